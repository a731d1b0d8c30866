import type { Pool } from "pg";

/**
 * Searches a database for texts: returns the tables that contain any of them, of all schemas but the catalog's, with
 * the number of rows. Rows are compared as text, so JSON and arrays are included; case is ignored.
 */
export async function tablesContaining(
  owner: Pool,
  texts: readonly string[],
): Promise<Record<string, number>> {
  const { rows: tables } = await owner.query<{ name: string }>(
    `select c.oid::regclass::text as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
     where c.relkind in ('r', 'p') and not c.relispartition and n.nspname !~ '^(pg_|information_schema)' order by 1`,
  );
  const query = tables.map(
    ({ name }) =>
      `select '${name}' as name, count(*)::int as amount from ${name} t where lower(t::text) like any ($1)`,
  );
  const { rows } = await owner.query<{ name: string; amount: number }>(
    `select * from (${query.join(" union all ")}) m where amount > 0`,
    [texts.map((text) => `%${text.toLowerCase()}%`)],
  );
  return Object.fromEntries(rows.map(({ name, amount }) => [name, amount]));
}
