/**
 * Principals of delayed actions, generated from the catalog: the permission to read all records of a type agrees with
 * row security, and every table of principals has the rules that end its rows.
 */
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { startTwoOrganizations, type TwoOrganizations } from "../harness/twoOrganizations.ts";

let world: TwoOrganizations;

interface RecordType {
  table_name: string;
  /** The source of its rows. */
  source: string;
  subject: string;
  read_permissions: string[] | null;
}
interface PrincipalTable {
  table_name: string;
  user_column: string;
  live: string;
  lacks: string;
  ends: string;
}

let records: RecordType[];
let principals: PrincipalTable[];

beforeAll(async () => {
  world = await startTwoOrganizations();
  records = (
    await world.client.query(
      "select r.*, app_hidden.source_of(format('app_public.%I', r.table_name)::regclass) as source from app_hidden.record_types r order by r.table_name",
    )
  ).rows;
  principals = (await world.client.query("select * from app_private.principal_tables order by table_name"))
    .rows;
});
afterAll(() => world.end());

/** Executes the work as the OWNER of our organization with a token of these scopes, and rolls it back. */
async function as<T>(scopes: string[] | null, role: string | null, work: () => Promise<T>): Promise<T> {
  await world.client.query("begin");
  try {
    await world.client.query(
      "select set_config('plat.user_id', $1, true), set_config('plat.scopes', $2, true)",
      [world.stranger, scopes?.join(",") ?? ""],
    );
    if (role) await world.client.query(`set local role ${role}`);
    return await work();
  } finally {
    await world.client.query("rollback");
  }
}

test("the derived read permission of a record type permits everything that its owner reads", async () => {
  const uncovered: string[] = [];
  for (const { table_name: table, source, read_permissions: scopes } of records) {
    if (!scopes || scopes.includes("audit.read")) continue;
    const ids = async () =>
      (
        await world.client.query<{ ids: string[] }>(
          `select coalesce(array_agg(id order by id), '{}') as ids
           from (select to_jsonb(t) as t, t.id from ${source} t) t where t ->> 'organization_id' = $1 or id = $1::uuid`,
          [world.organizations.ours],
        )
      ).rows[0]!.ids;
    const all = await as(null, "plat_user", ids);
    const seen = await as(scopes, "plat_user", ids);
    if (all.join() !== seen.join())
      uncovered.push(`${table}: ${seen.length} of ${all.length} by ${scopes.join(", ")}`);
  }
  expect(uncovered).toEqual([]);
});

test("a webhook requires the permissions for reading its events, and each of them", async () => {
  const lacks = async (subject: string) =>
    (
      await world.client.query<{ lacking: string | null }>(
        "select app_private.webhook_lacks(jsonb_populate_record(null::app_public.webhooks, $1)) as lacking",
        [{ organization_id: world.organizations.ours, events: [`${subject}.*`] }],
      )
    ).rows[0]!.lacking;
  for (const { subject, read_permissions } of records) {
    const wanted = read_permissions ?? ["audit.read"];
    expect([subject, await as(["org.admin", ...wanted], null, () => lacks(subject))]).toEqual([
      subject,
      null,
    ]);
    expect([subject, await as(["org.admin", "audit.read"], null, () => lacks(subject))]).toEqual([
      subject,
      null,
    ]);
    for (const missing of wanted) {
      const rest = ["org.admin", ...wanted.filter((permission) => permission !== missing)];
      if (rest.includes(missing)) continue;
      expect([subject, await as(rest, null, () => lacks(subject))]).toEqual([subject, missing]);
    }
  }
});

test("suspended rows do not act, in any table", async () => {
  expect(principals.map(({ table_name }) => table_name)).toEqual(
    expect.arrayContaining([
      "app_hidden.buyer_invites",
      "app_public.exports",
      "app_public.organization_integrations",
      "app_public.organization_invites",
      "app_public.user_integrations",
      "app_public.webhooks",
      "app_public.workflows",
    ]),
  );
  const acting: string[] = [];
  await as(null, null, async () => {
    for (const { table_name: table, live } of principals) {
      const count = async () =>
        (await world.client.query(`select r.id from ${table} r where ${live}`)).rows.map(
          ({ id }) => id as string,
        );
      const ids = await count();
      if (ids.length > 0) acting.push(table);
      await world.client.query(
        "select app_private.review_rows(t, $1, 'Because.') from app_private.principal_tables t where t.table_name = $2",
        [ids, table],
      );
      expect([table, await count()]).toEqual([table, []]);
    }
  });
  expect(acting).toEqual(expect.arrayContaining(["app_public.webhooks", "app_public.workflows"]));
});

test("only the service creates, uses and ends principals", async () => {
  const { rows } = await world.client.query(
    `select p.oid::regprocedure::text as name, r.role from pg_proc p
     cross join unnest('{plat_user, plat_anonymous, plat_authenticator}'::text[]) r (role)
     where p.pronamespace = 'app_private'::regnamespace and has_function_privilege(r.role, p.oid, 'execute')
       and (p.proname in ('act_as_principal', 'set_claims', 'claims', 'suspend', 'end_access', 'review_principals',
         'review_principal', 'review_rows', 'principal_fault', 'act_for_workflow', 'revoke_access_tokens')
         or exists (select from app_private.principal_tables t where p.oid::regproc::text in (t.lacks, t.ends)))`,
  );
  expect(rows).toEqual([]);
  const { rows: writable } = await world.client.query(
    `select t.table_name, c.name from app_private.principal_tables t
     cross join lateral unnest(array['principal_token_id', t.user_column]) c (name)
     where has_column_privilege('plat_user', t.table_name, c.name, 'insert')
       or has_column_privilege('plat_user', t.table_name, c.name, 'update')`,
  );
  expect(writable).toEqual([]);
});
