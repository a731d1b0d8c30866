/**
 * A restricted access token only reaches data of its scopes and its organization, for any user. Generated from the
 * catalog: tables, views and functions that depend on the viewer, read as every user of two organizations.
 */
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { startTwoOrganizations, type TwoOrganizations } from "../harness/twoOrganizations.ts";

let world: TwoOrganizations;
let users: { id: string; name: string }[];
/** SQL that reads each table or function, one text per row. */
let readable: { name: string; query: string }[];

/** One row of each is the viewer's own account or membership, which is known to its token. */
const ofOneself = new Set([
  "app_public.users",
  "app_hidden.masked_users",
  "app_hidden.user_identities",
  "app_public.user_organization_connections",
  "app_public.viewer()",
]);
/** Lists that every signed-in user may read. */
const ofEverybody = new Set([
  "app_public.integration_apps",
  "app_public.organization_integration_apps()",
  "app_public.user_integration_apps()",
]);

const readableQuery = `
  select c.oid::regclass::text as name,
    format('select md5(jsonb_build_array(%s)::text) from %s t', string_agg(format('t.%I', a.attname), ', ' order by a.attnum)
      -- What is masked of a row differs from viewer to viewer.
      filter (where c.relname not like 'masked\\_%' or a.attname = 'id'), c.oid::regclass) as query
  from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum between 1 and 90 and not a.attisdropped
  where c.relkind in ('r', 'p', 'v') and c.relnamespace in ('app_public'::regnamespace, 'app_hidden'::regnamespace)
    and has_column_privilege('plat_user', c.oid, a.attnum, 'select')
  group by c.oid
  union all
  -- What is known of the viewer without being told anything.
  select p.oid::regprocedure::text, format('select md5(x::text) from %s() x', p.oid::regproc)
  from pg_proc p
  where p.pronamespace in ('app_public'::regnamespace, 'app_hidden'::regnamespace) and p.proretset and p.pronargs = 0
    and p.provolatile <> 'v' and has_function_privilege('plat_user', p.oid, 'execute')
  order by 1`;

beforeAll(async () => {
  world = await startTwoOrganizations();
  ({ rows: readable } = await world.client.query(readableQuery));
  // Everybody is also a member of the second organization, for tokens that are restricted to it.
  await world.client.query(
    "insert into app_public.organization_user_connections (organization_id, user_id, role) select $1, u.id, 'MEMBER' from app_public.users u on conflict do nothing",
    [world.organizations.ours],
  );
  // Every purchase has an agent, who is visible to its assignee.
  await world.client.query(`
    begin; set local session_replication_role = replica;
    update app_public.buyers b set agent_id = (select a.id from app_public.agents a where a.organization_id = b.organization_id limit 1);
    commit`);
  ({ rows: users } = await world.client.query(
    `select u.id, concat_ws(' ', u.first_name, string_agg(m.role, ', ')) as name from app_public.users u
     join app_public.organization_user_connections m on m.user_id = u.id group by u.id order by u.id`,
  ));
});
afterAll(() => world?.end());

/** Everything that at least one of the viewers reads. */
function together(...viewers: Map<string, Set<string>>[]): Map<string, Set<string>> {
  return new Map(
    readable.map(({ name }) => [name, new Set(viewers.flatMap((rows) => [...rows.get(name)!]))]),
  );
}

/** Everything that a viewer with these settings reads, by source. */
async function read(settings: Record<string, string>): Promise<Map<string, Set<string>>> {
  const found = new Map<string, Set<string>>();
  const { client } = world;
  await client.query("begin");
  try {
    for (const [name, value] of Object.entries(settings))
      await client.query("select set_config($1, $2, true)", [`plat.${name}`, value]);
    await client.query(`set local role ${settings.user_id ? "plat_user" : "plat_anonymous"}`);
    for (const { name, query } of readable) {
      await client.query("savepoint reading");
      const rows = await client.query<{ md5: string }>(query).then(
        (answer) => answer.rows,
        async () => {
          await client.query("rollback to reading"); // not granted to visitors
          return [];
        },
      );
      found.set(name, new Set(rows.map(({ md5 }) => md5)));
    }
  } finally {
    await client.query("rollback");
  }
  return found;
}

/** What one viewer reads beyond another one. */
function beyond(much: Map<string, Set<string>>, little: Map<string, Set<string>>): Record<string, number> {
  const more: Record<string, number> = {};
  for (const [name, rows] of much) {
    const extra = [...rows].filter((row) => !little.get(name)!.has(row)).length;
    if (extra > (ofOneself.has(name) ? 1 : 0) && !ofEverybody.has(name)) more[name] = extra;
  }
  return more;
}

test("a token with a scope without effect reads what a visitor reads", async () => {
  const visitor = await read({});
  const revealed: Record<string, unknown> = {};
  for (const { id, name } of users) {
    const more = beyond(await read({ user_id: id, scopes: "nothing.read" }), visitor);
    if (Object.keys(more).length > 0) revealed[name] = more;
  }
  expect(revealed).toEqual({});
});

test("a token for one organization reads nothing of another", async () => {
  const { organizations, stranger } = world;
  const may = together(await read({}), await read({ user_id: stranger }));
  const revealed: Record<string, unknown> = {};
  for (const { id, name } of users) {
    const more = beyond(await read({ user_id: id, organization_id: organizations.ours }), may);
    if (Object.keys(more).length > 0) revealed[name] = more;
  }
  expect(revealed).toEqual({});
});

test("tokens for each of their organizations read together what members read", async () => {
  const { rows } = await world.client.query<{ id: string; organizations: string[] }>(
    `select m.user_id as id, array_agg(m.organization_id) as organizations from app_public.organization_user_connections m
     -- Purchases are of no organization.
     where m.user_id <> all (array(select b.user_id from app_public.buyers b where b.user_id is not null))
       and m.user_id <> all (array(select r.buyer_id from app_public.reservations r where r.buyer_id is not null))
     group by 1`,
  );
  let isAffiliate = false;
  for (const { id, organizations } of rows) {
    const parts = [];
    for (const organization of organizations)
      parts.push(await read({ user_id: id, organization_id: organization }));
    const { "app_public.projects": projects, "app_public.leads": leads } = beyond(
      await read({ user_id: id }),
      together(...parts),
    );
    expect({ id, projects, leads }).toEqual({ id });
    isAffiliate ||= organizations.every((one) => one !== world.organizations.theirs);
  }
  expect(isAffiliate).toBe(true);
});

test("without restrictions the same people read more, so that there is something to hide", async () => {
  const visitor = await read({});
  for (const { id } of users)
    expect(Object.keys(beyond(await read({ user_id: id }), visitor)).length).toBeGreaterThan(10);
});

test("a token with all read permissions changes nothing", async () => {
  const { client } = world;
  const { rows: writable } = await client.query<{ name: string; statement: string }>(
    `select c.oid::regclass::text as name, format('update %s set %I = %I', c.oid::regclass, min(a.attname), min(a.attname)) as statement
     from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
     where c.relkind in ('r', 'p') and c.relnamespace in ('app_public'::regnamespace, 'app_hidden'::regnamespace)
       and has_column_privilege('plat_user', c.oid, a.attnum, 'update') and has_column_privilege('plat_user', c.oid, a.attnum, 'select')
     group by c.oid
     union all
     select c.oid::regclass::text, format('delete from %s', c.oid::regclass) from pg_class c
     where c.relkind in ('r', 'p') and c.relnamespace in ('app_public'::regnamespace, 'app_hidden'::regnamespace)
       and has_table_privilege('plat_user', c.oid, 'delete')
     order by 1, 2`,
  );
  const { rows: scopes } = await client.query<{ all: string }>(
    "select string_agg(distinct permission, ',') as all from app_private.role_permissions where permission like '%.read' or permission = 'org.member'",
  );
  const changed: Record<string, Set<string>> = {};
  await client.query("begin");
  try {
    for (const { id, name } of users) {
      await client.query(
        "select set_config('plat.user_id', $1, true), set_config('plat.scopes', $2, true), set_config('role', 'plat_user', true)",
        [id, scopes[0]!.all],
      );
      for (const { statement } of writable) {
        await client.query("savepoint writing");
        // A refusal by any other rule would mean that the policy had permitted it.
        const rows = await client.query(statement).then(
          ({ rowCount }) => rowCount!,
          ({ code }: { code: string }) => (code === "42501" ? 0 : 1),
        );
        await client.query("rollback to writing");
        if (rows > 0) (changed[statement] ??= new Set()).add(name);
      }
      await client.query("reset role");
    }
  } finally {
    await client.query("rollback");
  }
  expect(Object.keys(changed)).toEqual([]);
});
