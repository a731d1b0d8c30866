/** What outsiders must not learn: ids of records, and texts, of organizations that they have no part in. */
import type { Pool } from "pg";

/** Every string of an answer. */
export function stringsOf(value: unknown, found = new Set<string>()): Set<string> {
  if (typeof value === "string") found.add(value);
  else if (Array.isArray(value)) value.forEach((item) => stringsOf(item, found));
  else if (value && typeof value === "object") Object.values(value).forEach((item) => stringsOf(item, found));
  return found;
}

/** Tables whose rows belong to an organization and of which a visitor sees none, although there are some. */
export async function privateTables(owner: Pool): Promise<string[]> {
  const { rows } = await owner.query<{ name: string }>(
    `select c.oid::regclass::text as name from pg_class c
     where c.relnamespace = 'app_public'::regnamespace and c.relkind = 'r'
       and exists (select from pg_attribute a where a.attrelid = c.oid and a.attname = 'organization_id')
       and exists (select from pg_attribute a where a.attrelid = c.oid and a.attname = 'id' and a.atttypid = 'uuid'::regtype)
     order by 1`,
  );
  const found: string[] = [];
  for (const { name } of rows) if (!(await seenByVisitor(owner, name))) found.push(name);
  return found;
}

async function seenByVisitor(owner: Pool, table: string): Promise<boolean> {
  const client = await owner.connect();
  try {
    await client.query("begin; set local role plat_anonymous");
    const { rowCount } = await client.query(`select id from ${table} limit 1`);
    return rowCount! > 0;
  } catch {
    // Not granted at all.
    return false;
  } finally {
    await client.query("rollback");
    client.release();
  }
}

/**
 * Records that were told although they are private and of an organization of which the user is no member, with what told them.
 * @param heard the texts of answers, and the operation that each came from
 * @param user null for a visitor
 */
export async function foreignIds(
  owner: Pool,
  tables: readonly string[],
  heard: ReadonlyMap<string, string>,
  user: string | null,
): Promise<string[]> {
  const ids = [...heard.keys()].filter((text) => /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/.test(text));
  const parts = tables.map(
    (table) =>
      `select '${table}' as table, id from ${table} r where id = any ($1::uuid[])
         and not exists (select from app_public.organization_user_connections c where c.user_id = $2 and c.organization_id = r.organization_id)`,
  );
  const { rows } = await owner.query<{ table: string; id: string }>(parts.join(" union all "), [ids, user]);
  return rows.map(({ table, id }) => `${table} ${id} by ${heard.get(id)}`);
}
