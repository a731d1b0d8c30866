/** The objects of the sandbox, in the service's database: one transaction for each request. */
import { randomBytes } from "node:crypto";
import type { PoolClient } from "pg";
import type { WorkPool } from "../../../database/workConnections.ts";
import { inTransaction } from "../../../database/transaction.ts";
import { invalid, missing } from "./sandboxErrors.ts";
import type { DatabaseValue } from "../../../database/databaseValue.ts";

/** An object as in the API. */
export interface SandboxRecord {
  id: string;
  object: string;
  created: number;
  [member: string]: DatabaseValue;
}

/** The page that a client requests. */
export interface PageParams {
  limit?: string;
  starting_after?: string;
  ending_before?: string;
}

/** Filters of objects of a kind. */
interface Selection {
  /** Values of fields, whose names are trusted. */
  where?: Record<string, string>;
  /** Created then, in seconds since 1970, or later. */
  since?: number | undefined;
  /** One of these types, if any. */
  types?: string[];
}

interface Around {
  after?: string | undefined;
  before?: string | undefined;
  most?: number;
}

/** The objects, within one transaction. Objects read for a change are locked. */
export class Store {
  readonly #client: PoolClient;

  constructor(client: PoolClient) {
    this.#client = client;
  }

  async find(id: string): Promise<SandboxRecord | undefined> {
    const { rows } = await this.#client.query<{ data: SandboxRecord }>(
      "select data from app_private.sandbox_objects where id = $1 for update",
      [id],
    );
    return rows[0]?.data;
  }

  /** @param param the parameter that named it @throws ApiError if there is no such object of the kind */
  async get(kind: string, id: unknown, param?: string): Promise<SandboxRecord> {
    const thing = await this.find(String(id));
    if (thing?.object !== kind) throw missing(kind, String(id), param);
    return thing;
  }

  /** All of a kind with these field values, newest first. */
  async all(kind: string, where: Record<string, string>): Promise<SandboxRecord[]> {
    return this.#select(kind, { where });
  }

  /** The requested page of a list. */
  async page(
    url: string,
    kind: string,
    { limit = "10", starting_after: after, ending_before: before }: PageParams,
    of: Selection,
  ): Promise<{ object: "list"; url: string; has_more: boolean; data: SandboxRecord[] }> {
    const most = Number(limit);
    if (!Number.isInteger(most) || most < 1 || most > 100)
      throw invalid("A list gives from 1 to 100 objects at a time.", "limit", "parameter_invalid_integer");
    if (after && before) throw invalid("Give starting_after or ending_before, not both.", "ending_before");
    for (const [param, cursor] of Object.entries({ starting_after: after, ending_before: before }))
      if (cursor) await this.get(kind, cursor, param);
    const found = await this.#select(kind, { ...of, after, before, most: most + 1 });
    const data = found.slice(0, most);
    return { object: "list", url, has_more: found.length > most, data: before ? data.reverse() : data };
  }

  /** Newest first; before another object, the next one first. */
  async #select(
    kind: string,
    { where = {}, since, types = [], after, before, most }: Selection & Around,
  ): Promise<SandboxRecord[]> {
    const position = (n: number) => `(select position from app_private.sandbox_objects where id = $${n})`;
    const { rows } = await this.#client.query<{ data: SandboxRecord }>(
      `select data from app_private.sandbox_objects
       where kind = $1 ${Object.keys(where)
         .map((member, index) => `and data ? '${member}' and data ->> '${member}' = $${index + 7}`)
         .join(" ")}
         and ($2::text is null or position < ${position(2)}) and ($3::text is null or position > ${position(3)})
         and ($4::bigint is null or (data ->> 'created')::bigint >= $4) and ($5::text[] = '{}' or data ->> 'type' = any ($5))
       order by position ${before ? "" : "desc"} limit $6`,
      [kind, after, before, since, types, most, ...Object.values(where)],
    );
    return rows.map(({ data }) => data);
  }

  async put<T extends SandboxRecord>(thing: T): Promise<T> {
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

  make<T extends object>(object: string, prefix: string, members: T): T & SandboxRecord {
    return {
      id: `${prefix}_${randomBytes(12).toString("hex")}`,
      object,
      created: Math.floor(Date.now() / 1000),
      livemode: false,
      ...members,
    };
  }

  /** Records an event, which is delivered after the transaction. */
  async emit(type: string, thing: SandboxRecord, account?: string): Promise<void> {
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

/** Runs work on the objects in a transaction. */
export const withStore = <T>(
  pool: WorkPool,
  work: (store: Store, client: PoolClient) => Promise<T>,
): Promise<T> => inTransaction(pool, (client) => work(new Store(client), client));
