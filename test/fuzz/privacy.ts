/** Data that viewers must not see: records of other organizations, and masked fields in events. */
import type { GraphQLSchema } from "graphql";
import type { Pool } from "pg";
import type { Person } from "../harness/api.ts";
import { camel } from "../../src/schema/codecNames.ts";

/** All strings of a response. */
export function stringsOf(value: unknown, found = new Set<string>()): Set<string> {
  if (typeof value === "string") found.add(value);
  else if (Array.isArray(value)) value.forEach((item) => stringsOf(item, found));
  else if (value && typeof value === "object") Object.values(value).forEach((item) => stringsOf(item, found));
  return found;
}

/** Tables of organizations without a policy for visitors. */
export async function privateTables(owner: Pool): Promise<string[]> {
  const { rows } = await owner.query<{ name: string }>(
    `select c.oid::regclass::text as name from pg_class c
     where c.relnamespace = 'app_public'::regnamespace and c.relkind in ('r', 'p')
       and exists (select from pg_attribute a where a.attrelid = c.oid and a.attname = 'organization_id')
       and exists (select from pg_attribute a where a.attrelid = c.oid and a.attname = 'id' and a.atttypid = 'uuid'::regtype)
       and not exists (select from pg_policy p where p.polrelid = c.oid and p.polcmd in ('r', '*')
         and p.polroles && array[0, 'plat_anonymous'::regrole::oid])
     order by 1`,
  );
  return rows.map(({ name }) => name);
}

/**
 * Private records of organizations of which the user is not a member that occurred in responses, with the operation.
 * @param heard the strings of responses, and their operations
 * @param user null for a visitor
 */
export async function foreignIds(
  owner: Pool,
  tables: readonly string[],
  received: ReadonlyMap<string, string>,
  user: string | null,
): Promise<string[]> {
  const ids = [...received.keys()].filter((text) =>
    /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/.test(text),
  );
  const parts = tables.map(
    (table) =>
      `select '${table}' as table, id from ${table} r where id = any ($1::uuid[])
         -- Their own, whatever organization it is about.
         and coalesce(to_jsonb(r) ->> 'user_id', to_jsonb(r) -> 'actor' ->> 'id', to_jsonb(r) ->> 'actor_id') is distinct from $2::text
         and to_jsonb(r) ->> 'stream_id' is distinct from $2::text
         and not exists (select from app_public.organization_user_connections c where c.user_id = $2::uuid and (c.organization_id = r.organization_id or c.organization_id::text = to_jsonb(r) ->> 'owner_id'))
         -- Whoever has the mail of an invitation reads it.
         and not exists (select from app_hidden.user_identities u where u.user_id = $2::uuid and u.email = to_jsonb(r) ->> 'email'
           and '${table}' = 'app_public.project_organization_invites')`,
  );
  const { rows } = await owner.query<{ table: string; id: string }>(parts.join(" union all "), [ids, user]);
  return rows.map(({ table, id }) => `${table} ${id} by ${received.get(id)}`);
}

/** Fields that are readable in the latest events although the record hides them. */
export async function unmasked(owner: Pool, schema: GraphQLSchema, person: Person): Promise<string[]> {
  const { data } = await person.ask(
    "{ events(first: 100, orderBy: ID_DESC) { id subjectType subjectId data changes } }",
  );
  const events: { subjectType: string; subjectId: string; data: object; changes: object | null }[] =
    data?.events ?? [];
  const { rows } = await owner.query<{ subject: string; table: string; members: string[] }>(
    "select t.subject, t.table_name as table, app_hidden.masked_members(t.subject) as members from app_hidden.record_types t",
  );
  const masked = new Map(rows.map(({ subject, members }) => [subject, members ?? []]));
  const tables = new Map(rows.map(({ subject, table }) => [subject, table]));
  const readable = new Map<string, { subject: string; id: string; members: Set<string> }>();
  for (const { subjectType, subjectId, data: values, changes } of events) {
    const members = (masked.get(subjectType) ?? []).filter(
      (member) => (values as Record<string, unknown>)?.[member] != null || (changes && member in changes),
    );
    if (members.length === 0) continue;
    const known = readable.get(subjectId) ?? { subject: subjectType, id: subjectId, members: new Set() };
    readable.set(subjectId, known);
    for (const member of members) known.members.add(member);
  }
  const faults: string[] = [];
  for (const { subject, id, members } of readable.values()) {
    const field = schema.getQueryType()!.getFields()[camel(subject)];
    const type = field && schema.getType(String(field.type));
    const fields = [...members].filter((member) => type && "getFields" in type && member in type.getFields());
    if (!field || fields.length === 0) continue;
    const answer = await person.ask(
      `query ($id: ID!) { record: ${field.name}(id: $id) { ${fields.join(" ")} } }`,
      { id },
    );
    const record = answer.data?.record;
    // Events of deleted records are only visible to auditors, who may read all of them.
    if (!record) continue;
    const { rows: stored } = await owner.query<{ row: Record<string, unknown> }>(
      `select to_jsonb(r) as row from app_public.${tables.get(subject)} r where id = $1`,
      [id],
    );
    const now = new Map(
      Object.entries(stored[0]?.row ?? {}).map(([column, value]) => [camel(column), value]),
    );
    faults.push(
      ...fields
        .filter((member) => record[member] === null && now.get(member) != null)
        .map((member) => `${subject} ${id} ${member}`),
    );
  }
  return faults;
}
