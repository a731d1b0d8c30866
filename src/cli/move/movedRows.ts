/**
 * Copies the rows of a table between installations, and finds differences. Each row is compared by a hash of the text
 * of all its columns, in buckets, so that an unchanged table takes one statement on either side.
 */
import { escapeIdentifier, escapeLiteral, type ClientBase } from "pg";
import { quoted, type Moved, type MovedTable } from "./movedTables.ts";

/** Values that differ at the other installation. */
export interface Changes extends Moved {
  /** Ids of users here → ids of their accounts there. */
  users: ReadonlyMap<string, string>;
  /** Ids of cities here → ids there. */
  cities: ReadonlyMap<string, string>;
  /** Slugs and user names that other users have there. */
  takenSlugs: readonly string[];
  takenNames: readonly string[];
}

const BUCKETS = 1_024;
const BATCH = 500;

/** Settings on which the text of a value depends. */
export const textSettings = `set timezone = 'UTC'; set datestyle = 'ISO'; set intervalstyle = 'iso_8601';
  set bytea_output = 'hex'; set extra_float_digits = 1; set lock_timeout = '10 s'; set statement_timeout = 0;
  set idle_in_transaction_session_timeout = 0; set max_parallel_workers_per_gather = 0`;

const literalArray = (texts: readonly string[]) =>
  `array[${texts.map((text) => escapeLiteral(text)).join(", ")}]::text[]`;

/** The SQL expression of a column's text as the other installation has it. */
function changed(table: MovedTable, column: string, changes: Changes): string {
  const own = `t.${escapeIdentifier(column)}`;
  if (table.name === "app_private.event_counters" && column === "is_closed") return "'false'";
  // No process there holds the row.
  if (table.isHeld && (column === "holder" || column === "held_until")) return "null::text";
  if (table.isHeld && column === "leased") return "'false'";
  const others = table.users.has(column)
    ? changes.users
    : table.name === "app_private.project_cities" && column === "city_id"
      ? changes.cities
      : new Map<string, string>();
  if (others.size > 0)
    return `coalesce(${escapeLiteral(JSON.stringify(Object.fromEntries(others)))}::jsonb ->> ${own}::text, ${own}::text)`;
  const isSlug =
    column === "slug" && (table.name === "app_public.users" || table.name === "app_private.slugs");
  if (isSlug && changes.takenSlugs.length > 0) {
    const id = table.name === "app_public.users" ? "t.id" : "t.record_id";
    return `case when ${id} = any (${literalArray(changes.userIds)}::uuid[]) and ${own}::text = any (${literalArray(changes.takenSlugs)})
      then ${own}::text || '-' || right(${id}::text, 8) else ${own}::text end`;
  }
  if (table.name === "app_hidden.user_identities" && column === "username" && changes.takenNames.length > 0)
    return `case when lower(${own}::text) <> all (${literalArray(changes.takenNames)}) then ${own}::text end`;
  return `${own}::text`;
}

/** One side of a table. */
class Side {
  readonly #client: ClientBase;
  readonly #table: MovedTable;
  readonly #changes: Changes;
  readonly #expression: (column: string) => string;

  constructor(client: ClientBase, table: MovedTable, changes: Changes, isSource: boolean) {
    this.#client = client;
    this.#table = table;
    this.#changes = changes;
    this.#expression = isSource
      ? (column) => changed(table, column, changes)
      : (column) => `t.${escapeIdentifier(column)}::text`;
  }

  get #from() {
    return `from ${quoted(this.#table.name)} t where ${this.#table.condition("t", this.#changes)}`;
  }

  get #hash() {
    const columns = this.#table.columns
      .filter(({ name }) => !this.#table.sealed.includes(name))
      .map(({ name }) => this.#expression(name));
    return `pg_catalog.hashtextextended(row(${columns.join(", ")})::text, 0)`;
  }

  get #keys() {
    return this.#table.key.map(({ name }) => this.#expression(name));
  }

  get #bucket() {
    return this.#table.key.length === 0
      ? "0"
      : `pg_catalog.hashtext(concat_ws(' ', ${this.#keys.join(", ")})) & ${BUCKETS - 1}`;
  }

  /** SQL: count and sum of hashes of the whole table. */
  get total(): string {
    return `select count(*) || ' ' || coalesce(sum((${this.#hash})::numeric), 0) as digest ${this.#from}`;
  }

  /** Number and sum of hashes of each bucket. */
  async buckets(): Promise<Map<number, string>> {
    const { rows } = await this.#client.query<{ bucket: number; digest: string }>(
      `select ${this.#bucket} as bucket, count(*) || ' ' || sum((${this.#hash})::numeric) as digest ${this.#from} group by 1`,
    );
    return new Map(rows.map(({ bucket, digest }) => [bucket, digest]));
  }

  /** Keys of the rows of buckets, with their hashes. */
  async hashes(buckets: readonly number[]): Promise<Map<string, string>> {
    const { rows } = await this.#client.query<{ key: string[]; hash: string }>(
      `select array[${this.#keys.join(", ")}] as key, (${this.#hash})::text as hash ${this.#from}
         and ${this.#bucket} = any ('{${buckets.join(",")}}'::int[])`,
    );
    return new Map(rows.map(({ key, hash }) => [JSON.stringify(key), hash]));
  }

  /** Reads rows as arrays of texts, all of them or those of keys, in batches. */
  async *rows(keys?: readonly (readonly string[])[]): AsyncGenerator<(string | null)[][]> {
    const columns = this.#table.columns.map(({ name }) => this.#expression(name)).join(", ");
    const order = this.#table.order ? ` order by t.${escapeIdentifier(this.#table.order)}` : "";
    const read = (text: string, values: unknown[] = []) =>
      this.#client.query<(string | null)[]>({ text, values, rowMode: "array" });
    if (keys) {
      for (let from = 0; from < keys.length; from += BATCH) {
        const { rows } = await read(
          `select ${columns} ${this.#from} and (${this.#keys.join(", ")}) in (select * from unnest(${this.#unnested("text")}))`,
          this.#columnsOf(keys.slice(from, from + BATCH)),
        );
        yield rows;
      }
      return;
    }
    await this.#client.query(`declare moved no scroll cursor for select ${columns} ${this.#from}${order}`);
    for (;;) {
      const { rows } = await read(`fetch ${BATCH} from moved`);
      if (rows.length === 0) break;
      yield rows;
    }
    await this.#client.query("close moved");
  }

  #unnested(type?: string) {
    return this.#table.key.map((column, place) => `$${place + 1}::${type ?? column.type}[]`).join(", ");
  }

  #columnsOf(keys: readonly (readonly string[])[]) {
    return this.#table.key.map((_, place) => keys.map((key) => key[place]));
  }

  async insert(rows: readonly (string | null)[][]): Promise<void> {
    if (rows.length === 0) return;
    const { columns, name } = this.#table;
    const names = columns.map((column) => escapeIdentifier(column.name)).join(", ");
    const values = columns.map((column, place) => `u.c${place}::${column.type}`).join(", ");
    await this.#client.query(
      `insert into ${quoted(name)} (${names}) select ${values}
         from unnest(${columns.map((_, place) => `$${place + 1}::text[]`).join(", ")})
           with ordinality u (${columns.map((_, place) => `c${place}`).join(", ")}, place) order by u.place`,
      columns.map((_, place) => rows.map((row) => row[place])),
    );
  }

  async remove(keys?: readonly (readonly string[])[]): Promise<void> {
    const table = quoted(this.#table.name);
    if (!keys) {
      await this.#client.query(`delete ${this.#from}`);
      return;
    }
    const on = this.#table.key.map(({ name }, place) => `t.${escapeIdentifier(name)} = k.c${place}`);
    await this.#client.query(
      `delete from ${table} t using unnest(${this.#unnested()}) k (${this.#table.key.map((_, place) => `c${place}`).join(", ")})
         where ${on.join(" and ")}`,
      this.#columnsOf(keys),
    );
  }
}

/** Tables that differ, determined by one statement on either side. */
export async function differingTables(
  source: ClientBase,
  target: ClientBase,
  tables: readonly MovedTable[],
  changes: Changes,
): Promise<MovedTable[]> {
  const totals = async (client: ClientBase, isSource: boolean) => {
    const each = tables.map((table) => new Side(client, table, changes, isSource).total);
    const { rows } = await client.query<{ place: number; digest: string }>(
      each.map((total, place) => `select ${place} as place, d.digest from (${total}) d`).join(" union all "),
    );
    return new Map(rows.map(({ place, digest }) => [place, digest]));
  };
  const [ours, theirs] = await Promise.all([totals(source, true), totals(target, false)]);
  return tables.filter((_, place) => ours.get(place) !== theirs.get(place));
}

/** One table on both sides. */
export class TableCopy {
  readonly #source: Side;
  readonly #target: Side;
  readonly table: MovedTable;

  constructor(source: ClientBase, target: ClientBase, table: MovedTable, changes: Changes) {
    this.table = table;
    this.#source = new Side(source, table, changes, true);
    this.#target = new Side(target, table, changes, false);
  }

  /** Copies all rows into an empty table. Yields the number of rows of each batch. */
  async *all(): AsyncGenerator<number> {
    for await (const rows of this.#source.rows()) {
      await this.#target.insert(rows);
      yield rows.length;
    }
  }

  /** Copies differences. @returns the number of rows that were written or removed */
  async differences(): Promise<number> {
    const [ours, theirs] = await Promise.all([this.#source.buckets(), this.#target.buckets()]);
    const differing = [...new Set([...ours.keys(), ...theirs.keys()])].filter(
      (bucket) => ours.get(bucket) !== theirs.get(bucket),
    );
    if (differing.length === 0) return 0;
    if (this.table.key.length === 0) {
      await this.#target.remove();
      let count = 0;
      for await (const rows of this.all()) count += rows;
      return Math.max(1, count);
    }
    const [here, there] = await Promise.all([this.#source.hashes(differing), this.#target.hashes(differing)]);
    const parsed = (keys: Iterable<string>) => [...keys].map((key) => JSON.parse(key) as string[]);
    const stale = parsed([...there.keys()].filter((key) => there.get(key) !== here.get(key)));
    const wanted = parsed([...here.keys()].filter((key) => there.get(key) !== here.get(key)));
    if (stale.length > 0) await this.#target.remove(stale);
    if (wanted.length > 0)
      for await (const rows of this.#source.rows(wanted)) await this.#target.insert(rows);
    return stale.length + wanted.length;
  }
}
