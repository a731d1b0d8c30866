/**
 * The view of the events that a viewer sees, which live streams read, has the same rows with the same content as the
 * policy shows: for people in every role and access tokens, with events of records in every situation of rowWorld.ts.
 */
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { Client } from "pg";
import { createTestDatabase, type TestDatabase } from "../harness/database.ts";
import { startRows } from "../harness/rowReach.ts";
import type { RowWorld, Viewer } from "../harness/rowWorld.ts";

let database: TestDatabase;
let client: Client;
let world: RowWorld;

/** Events of records of each kind. */
const OF_KIND = 8;

beforeAll(async () => {
  database = await createTestDatabase();
  client = new Client({ connectionString: database.ownerUrl });
  await client.connect();
  world = await startRows(client);
  await client.query("set session_replication_role = replica; delete from app_public.events");
  const { rows: kinds } = await client.query<{ subject: string; table_name: string }>(
    "select subject, table_name from app_hidden.record_types order by 1",
  );
  for (const [index, { subject, table_name }] of kinds.entries()) {
    const { rows } = await client.query<{ columns: string[] }>(
      `select array_agg(attname::text) as columns from pg_attribute
       where attrelid = format('app_public.%I', $1::text)::regclass and attname in ('organization_id', 'project_id')`,
      [table_name],
    );
    const of = (column: string) => (rows[0]!.columns?.includes(column) ? `r.${column}` : "null::uuid");
    await client.query(
      `insert into app_public.events (id, stream_id, organization_id, project_id, sequence, name, subject_type, subject_id, data)
       select gen_random_uuid(), coalesce(organization_id, id), organization_id, project_id, row_number() over () + $2, $1 || '.updated', $1, id, data
       from (
         select r.id, ${of("organization_id")} as organization_id, ${of("project_id")} as project_id, to_jsonb(r) as data,
           row_number() over (order by r.id) as n, count(*) over () as all
         from app_public.${table_name} r) picked
       where n % greatest(1, "all" / $3) = 0`,
      [subject, 1000 * index, OF_KIND],
    );
  }
  // Of nobody's record, and of a person alone.
  await client.query(
    `insert into app_public.events (id, stream_id, organization_id, sequence, name, subject_type, subject_id, data)
     select gen_random_uuid(), u.id, null, 1000000, 'user.signed_in', 'user', u.id, '{}'::jsonb from app_public.users u
     union all
     select gen_random_uuid(), o.id, o.id, 1000000 + s.n, s.type || '.updated', s.type, gen_random_uuid(), '{}'::jsonb
     from app_public.organizations o,
       unnest(array['member', 'affiliation', 'affiliation_invite', 'unit', 'something']) with ordinality s (type, n)`,
  );
  await client.query("set session_replication_role = origin");
}, 120_000);
afterAll(async () => {
  await client?.end();
  await database?.drop();
});

/** Number of events that a viewer sees, and how many differ between view and policy. */
async function compare({ user, settings }: Viewer): Promise<{ seen: number; different: number }> {
  await client.query("begin");
  try {
    await client.query("select set_config('plat.' || s.key, s.value, true) from json_each_text($1) s", [
      JSON.stringify({ user_id: user, ...settings }),
    ]);
    await client.query("set local role plat_user");
    const { rows } = await client.query<{ seen: number; different: number }>(
      `with policy as materialized (select e::text as event from app_hidden.masked_events e),
         view as materialized (select e::text as event from app_hidden.seen_events e)
       select (select count(*)::int from policy) as seen, (select count(*)::int from
         ((table policy except all table view) union all (table view except all table policy)) d) as different`,
    );
    return rows[0]!;
  } finally {
    await client.query("rollback");
  }
}

test("viewers see the same events by the view as by the policy", async () => {
  const seen = new Set<number>();
  const differing: string[] = [];
  // Tokens are of these people, for one permission each.
  const viewers = [...world.people, ...world.tokens.filter((_token, index) => index % 7 === 0)];
  for (const viewer of viewers.filter(({ user }) => user !== null)) {
    const found = await compare(viewer);
    seen.add(found.seen);
    if (found.different > 0) differing.push(`${viewer.name}: ${found.different}`);
  }
  expect(differing).toEqual([]);
  // They are not all alike.
  expect(seen.size).toBeGreaterThan(10);
});

test("visitors may not use it", async () => {
  await client.query("begin; set local role plat_anonymous");
  await expect(client.query("select from app_hidden.seen_events")).rejects.toThrow("permission denied");
  await client.query("rollback");
});
