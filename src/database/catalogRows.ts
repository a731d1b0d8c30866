import { escapeIdentifier, escapeLiteral, type ClientBase } from "pg";
import type { CatalogObject } from "./catalog.ts";
import { schemas, tableKinds } from "./catalogSql.ts";

/** The tables of our schemas that contain rows, as `schema.table`, sorted. */
export async function filledTables(client: ClientBase): Promise<string[]> {
  const { rows } = await client.query<{ name: string }>(`
    select t.name from pg_class c join pg_namespace n on n.oid = c.relnamespace
    cross join lateral (select format('%I.%I', n.nspname, c.relname) as name) t
    where n.nspname in ${schemas} and c.relkind in ${tableKinds} and not c.relispartition
      and xpath_exists('/table/row', query_to_xml(format('select from %s limit 1', t.name), true, false, ''))
    order by t.name collate "C"`);
  return rows.map(({ name }) => name);
}

interface DeclaredTable {
  name: string;
  /** Columns that identify and compare rows, sorted; without those that the database fills in. */
  columns: string[];
  /** Columns that the service writes at runtime: declared but not compared. */
  runtime: string[];
  /** Primary key, otherwise the first unique index, of these columns; empty if the whole row is the key. */
  key: string[] | null;
}

/**
 * Values of volatile defaults and identities (time, sequences, random ids) differ between databases, and generated
 * columns follow from others. A column with the tag @runtime starts with the declared value and is then changed by
 * the service, so it is not compared.
 */
const tablesQuery = `
  with usable as (
    select a.attrelid, a.attnum, a.attname
    from pg_attribute a left join pg_attrdef f on f.adrelid = a.attrelid and f.adnum = a.attnum
    where a.attnum > 0 and not a.attisdropped and a.attidentity = '' and a.attgenerated = ''
      and coalesce(pg_get_expr(f.adbin, f.adrelid), '') !~*
        '\\m(now|clock_timestamp|statement_timestamp|transaction_timestamp|nextval|random|uuidv[47]|gen_random_\\w+)\\(|CURRENT_')
  select format('%I.%I', n.nspname, c.relname) as name,
    (select coalesce(json_agg(u.attname order by u.attname), '[]') from usable u where u.attrelid = c.oid) as columns,
    (select coalesce(json_agg(u.attname), '[]') from usable u
      where u.attrelid = c.oid and col_description(u.attrelid, u.attnum) ~ '@runtime\\M') as runtime,
    (select k.names from pg_index x join pg_class i on i.oid = x.indexrelid
      cross join lateral (
        select json_agg(u.attname order by u.attname) as names, count(u.attnum) as found
        from unnest(x.indkey::int2[]) with ordinality as p (attnum, n)
        left join usable u on u.attrelid = c.oid and u.attnum = p.attnum where p.n <= x.indnkeyatts) k
      where x.indrelid = c.oid and x.indisunique and x.indpred is null and x.indimmediate and k.found = x.indnkeyatts
      order by not x.indisprimary, i.relname limit 1) as key
  from pg_class c join pg_namespace n on n.oid = c.relnamespace
  where c.relkind in ('r', 'p') and n.nspname in ${schemas} and format('%I.%I', n.nspname, c.relname) = any ($1)`;

interface Row {
  name: string;
  key: Record<string, unknown>;
  definition: string;
  values: (string | null)[];
}

/**
 * Rows of the named tables. A row is identified by its key and written with the text form of its values, which every
 * type accepts back unchanged.
 * @throws Error if there is no such table.
 */
export async function readRows(client: ClientBase, names: readonly string[]): Promise<CatalogObject[]> {
  if (names.length === 0) return [];
  const { rows: tables } = await client.query<DeclaredTable>(tablesQuery, [names]);
  const missing = names.filter((name) => !tables.some((table) => table.name === name));
  if (missing.length > 0) throw new Error(`There is no table ${missing.join(", ")} to read rows of.`);
  const byName = new Map(tables.map((table) => [table.name, table]));
  const { rows } = await client.query<Row>(tables.map(rowsOf).join(" union all "));
  return rows.map((row) => describe(byName.get(row.name)!, row));
}

function rowsOf({ name, columns, runtime, key }: DeclaredTable): string {
  const compared = columns.filter((column) => !runtime.includes(column));
  const id = (column: string) => `t.${escapeIdentifier(column)}`;
  const object = (names: string[]) =>
    `jsonb_build_object(${names.map((column) => `${escapeLiteral(column)}, ${id(column)}`).join(", ")})`;
  const values = columns.map((column) => `${id(column)}::text`).join(", ");
  return `select ${escapeLiteral(name)} as name, ${object(key ?? compared)} as key, ${object(compared)}::text as definition,
    array[${values}]::text[] as values from ${name} t`;
}

function describe({ name, columns, runtime, key }: DeclaredTable, row: Row): CatalogObject {
  const literal = (value: string | null) => (value === null ? "null" : escapeLiteral(value).trimStart());
  const value = (column: string) => literal(row.values[columns.indexOf(column)]!);
  const rest = columns.filter((column) => !key?.includes(column));
  const assignments = rest
    .filter((column) => !runtime.includes(column))
    .map((column) => `${escapeIdentifier(column)} = excluded.${escapeIdentifier(column)}`);
  const conflict = key
    ? ` on conflict (${key.map(escapeIdentifier).join(", ")}) do ${
        assignments.length > 0 ? `update set ${assignments.join(", ")}` : "nothing"
      }`
    : "";
  const same = (key ?? columns).map(
    (column) => `${escapeIdentifier(column)} is not distinct from ${value(column)}`,
  );
  return {
    kind: "row",
    identity: `row ${name} ${JSON.stringify(row.key)}`,
    on: name,
    definition: row.definition,
    create: `insert into ${name} (${columns.map(escapeIdentifier).join(", ")}) values (${columns
      .map(value)
      .join(", ")})${conflict}`,
    drop: `delete from ${name} where ${same.join(" and ")}`,
  };
}
