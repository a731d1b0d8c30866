import type { Pool } from "pg";

/**
 * Simulates that time passes: moves all timestamps of all records back by the interval, and dates by its whole days.
 * Triggers do not run, so nothing else changes.
 * @param owner connections of the database's owner.
 * @param interval in the format of PostgreSQL, such as `3 days` or `47 hours`.
 */
export async function passTime(owner: Pick<Pool, "query">, interval: string): Promise<void> {
  const { rows } = await owner.query<{ statement: string }>(
    `select format('update %s set %s', c.oid::regclass, string_agg(
        case when a.atttypid = 'date'::regtype then format('%1$I = %1$I - extract(day from %2$L::interval)::int', a.attname, $1::text)
          else format('%1$I = %1$I - %2$L::interval', a.attname, $1::text) end, ', ')) as statement
      from pg_class c
      join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and a.attgenerated = ''
        and a.atttypid in ('timestamptz'::regtype, 'date'::regtype)
      where c.relkind in ('r', 'p') and c.relnamespace in ('app_public'::regnamespace, 'app_hidden'::regnamespace)
      group by c.oid order by c.oid`,
    [interval],
  );
  const statements = rows.map((row) => row.statement).join(";\n");
  await owner.query(`begin; set local session_replication_role = replica;\n${statements};\ncommit`);
}
