/** What the sandbox remembers, in the service's database: one transaction for each request. */
import { randomBytes } from "node:crypto";
import type { Pool, PoolClient } from "pg";

/** An object as the API shows it. */
export interface Thing {
  id: string;
  object: string;
  created: number;
  [member: string]: any;
}

/** The objects, within one transaction. What was read to be changed is locked. */
export class Store {
  readonly #client: PoolClient;

  constructor(client: PoolClient) {
    this.#client = client;
  }

  async find(id: string): Promise<Thing | undefined> {
    const { rows } = await this.#client.query<{ data: Thing }>(
      "select data from app_private.sandbox_objects where id = $1 for update",
      [id],
    );
    return rows[0]?.data;
  }

  /** Newest first. */
  async list(kind: string, where: Record<string, unknown> = {}, limit = 100): Promise<Thing[]> {
    const { rows } = await this.#client.query<{ data: Thing }>(
      `select data from app_private.sandbox_objects
       where kind = $1 and ($2::jsonb = '{}' or data @> $2) and (not $2::jsonb ? 'payment_intent' or data ->> 'payment_intent' = $2 ->> 'payment_intent')
         and (not $2::jsonb ? 'charge' or data ->> 'charge' = $2 ->> 'charge')
       order by position desc limit $3`,
      [kind, JSON.stringify(where), limit],
    );
    return rows.map(({ data }) => data);
  }

  async put<T extends Thing>(thing: T): Promise<T> {
    await this.#client.query(
      `insert into app_private.sandbox_objects (id, kind, data) values ($1, $2, $3)
       on conflict (id) do update set data = excluded.data`,
      [thing.id, thing.object, JSON.stringify(thing)],
    );
    return thing;
  }

  async remove(id: string): Promise<void> {
    await this.#client.query("delete from app_private.sandbox_objects where id = $1", [id]);
  }

  make<T extends object>(object: string, prefix: string, members: T): T & Thing {
    return {
      id: `${prefix}_${randomBytes(12).toString("hex")}`,
      object,
      created: Math.floor(Date.now() / 1000),
      livemode: false,
      ...members,
    };
  }

  /** Writes down an event, which is delivered after the transaction. */
  async tell(type: string, thing: Thing, account?: string): Promise<void> {
    await this.put(
      this.make("event", "evt", {
        type,
        api_version: "2026-10-28.endive",
        data: { object: thing },
        pending_webhooks: 1,
        request: { id: null, idempotency_key: null },
        ...(account && { account }),
        due: Date.now() / 1000,
        tries: 0,
      }),
    );
  }
}

export async function inTransaction<T>(
  pool: Pool,
  work: (store: Store, client: PoolClient) => Promise<T>,
): Promise<T> {
  const client = await pool.connect();
  try {
    await client.query("begin");
    const result = await work(new Store(client), client);
    await client.query("commit");
    return result;
  } catch (error) {
    await client.query("rollback").catch(() => {});
    throw error;
  } finally {
    client.release();
  }
}
