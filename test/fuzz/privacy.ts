/** What outsiders must not learn: ids of records, and texts, of organizations that they have no part in. */
import type { Pool } from "pg";

/** Every string of an answer. */
export function stringsOf(value: unknown, found = new Set<string>()): Set<string> {
  if (typeof value === "string") found.add(value);
  else if (Array.isArray(value)) value.forEach((item) => stringsOf(item, found));
  else if (value && typeof value === "object") Object.values(value).forEach((item) => stringsOf(item, found));
  return found;
}

/** Tables whose rows belong to an organization and of which no policy lets visitors see any. */
export async function privateTables(owner: Pool): Promise<string[]> {
  const { rows } = await owner.query<{ name: string }>(
    `select c.oid::regclass::text as name from pg_class c
     where c.relnamespace = 'app_public'::regnamespace and c.relkind = 'r'
       and exists (select from pg_attribute a where a.attrelid = c.oid and a.attname = 'organization_id')
       and exists (select from pg_attribute a where a.attrelid = c.oid and a.attname = 'id' and a.atttypid = 'uuid'::regtype)
       and not exists (select from pg_policy p where p.polrelid = c.oid and p.polcmd in ('r', '*')
         and p.polroles && array[0, 'plat_anonymous'::regrole::oid])
     order by 1`,
  );
  return rows.map(({ name }) => name);
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
         -- Their own, whatever organization it is about.
         and coalesce(to_jsonb(r) ->> 'user_id', to_jsonb(r) -> 'actor' ->> 'id', to_jsonb(r) ->> 'actor_id') is distinct from $2::text
         and not exists (select from app_public.organization_user_connections c where c.user_id = $2::uuid and c.organization_id = r.organization_id)`,
  );
  const { rows } = await owner.query<{ table: string; id: string }>(parts.join(" union all "), [ids, user]);
  return rows.map(({ table, id }) => `${table} ${id} by ${heard.get(id)}`);
}
