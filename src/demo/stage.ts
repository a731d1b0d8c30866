import { schemaOwner } from "../database/roles.ts";
import type { Client, QueryResultRow } from "pg";

const dayMs = 86_400_000;

/** The transaction in which the parts of the demo call operations of the API as users. */
export class Stage {
  /** Ids of created records, by names of the demo such as "project gardens". */
  readonly #ids = new Map<string, string>();
  readonly #client: Client;
  readonly #now: number;
  #actor = "";
  /** Hash of the common password. */
  passwordHash = "";

  private constructor(client: Client, now: Date) {
    this.#client = client;
    this.#now = now.getTime();
  }

  /** Prepares the transaction that `client` has begun. */
  static async open(client: Client): Promise<Stage> {
    const { rows } = await client.query<{ now: Date }>(
      "select now(), set_config('plat.channel', 'IMPORT', true), set_config('jit', 'off', true)",
    );
    return new Stage(client, rows[0]!.now);
  }

  /** Removes the mails and other jobs that the parts enqueued, and those that would follow: nobody waits for them. */
  async close(): Promise<void> {
    await this.asOwner(
      "select graphile_worker.complete_jobs(array(select j.id from graphile_worker.jobs j where j.created_at = now()))",
    );
    await this.asOwner("set constraints all immediate");
    await this.asOwner("select app_private.skip_notifications()");
  }

  /** Stores an id under a name of the demo. */
  keep(name: string, id: string): string {
    this.#ids.set(name, id);
    return id;
  }

  /** The stored id. @throws if there is none */
  id(name: string): string {
    const id = this.#ids.get(name);
    if (!id) throw new Error(`The demo has no ${name}.`);
    return id;
  }

  /** A time that many days before the demo is loaded, so that the data never looks old. */
  daysAgo(days: number): Date {
    return new Date(this.#now - days * dayMs);
  }

  /** A date that many days after the demo is loaded, as PostgreSQL parses it. */
  day(daysFromNow: number): string {
    return this.daysAgo(-daysFromNow).toISOString().slice(0, 10);
  }

  /**
   * Executes a statement as a user, with their rights; as a visitor if `person` is null.
   * @returns its first row
   */
  async as<R extends QueryResultRow = { id: string }>(
    person: string | null,
    sql: string,
    values: unknown[] = [],
  ): Promise<R> {
    await this.#become(person === null ? "plat_anonymous" : "plat_user", person && this.id(person));
    const { rows } = await this.#client.query<R>(sql, values);
    return rows[0]!;
  }

  /**
   * Executes a statement as the owner of the database: for changes that no operation of the API makes, such as dates
   * in the past.
   */
  async asOwner(sql: string, values: unknown[] = []): Promise<void> {
    await this.#become(schemaOwner, null);
    await this.#client.query(sql, values);
  }

  /** Creates a record as a user, with the statement of the generated operations. */
  create(person: string, table: string, input: Record<string, unknown>): Promise<{ id: string }> {
    return this.as(person, `select r.id from app_hidden.create_record(null::app_public.${table}, $1) r`, [
      input,
    ]);
  }

  async #become(role: string, userId: string | null): Promise<void> {
    const actor = `${role} ${userId}`;
    // A function that creates an account signs in as its user, so the visitor is set again each time.
    if (actor === this.#actor && role !== "plat_anonymous") return;
    this.#actor = actor;
    await this.#client.query("select set_config('role', $1, true), set_config('plat.user_id', $2, true)", [
      role,
      userId ?? "",
    ]);
  }
}
