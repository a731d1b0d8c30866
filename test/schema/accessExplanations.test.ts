/** Explanations of access agree with the policies, for every kind of person and rows of every table. */
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { Client } from "pg";
import { createTestDatabase, type TestDatabase } from "../harness/database.ts";
import { makeRows, type RowWorld } from "../harness/rowWorld.ts";

let database: TestDatabase;
let client: Client;
let world: RowWorld;
beforeAll(async () => {
  database = await createTestDatabase();
  client = new Client({ connectionString: database.ownerUrl });
  await client.connect();
  world = await makeRows(client);
});
afterAll(async () => {
  await client?.end();
  await database?.drop();
});

const names = [
  "admin",
  "member",
  "another member",
  "member without second factor",
  "seller",
  "builder",
  "role with own",
  "buyer",
  "reserving",
];
/** Number of rows per table. */
const mostRows = 3;

test("explanations agree with the policies for each record and person", async () => {
  const { rows: organizations } = await client.query(
    "select id from app_public.organizations where name = 'Harbour'",
  );
  const organization: string = organizations[0].id;
  const { rows: types } = await client.query<{ type: string; relation: string }>(
    `select app_hidden.camel(r.subject) as type, 'app_public.' || r.table_name as relation from app_hidden.record_types r
       join pg_attribute a on a.attrelid = to_regclass('app_public.' || r.table_name) and a.attname = 'organization_id' order by 1`,
  );
  const owner = world.people.find(({ name }) => name === "owner")!.user;
  await client.query("begin");
  const as = (user: string | null) =>
    client.query(
      "select set_config('plat.user_id', $1, true), set_config('plat.access', '', true), set_config('role', 'plat_user', true)",
      [user],
    );
  const reasons = new Set<string>();
  const wrong: unknown[] = [];
  for (const { type, relation } of types) {
    await as(owner);
    const { rows: chosen } = await client.query<{ id: string }>(
      `select id from ${relation} where organization_id = $1 order by md5(id::text) limit ${mostRows}`,
      [organization],
    );
    const ids = chosen.map(({ id }) => id);
    for (const name of names) {
      const { user } = world.people.find((person) => person.name === name)!;
      await as(user);
      const { rows: seen } = await client.query<{ id: string }>(
        `select id from ${relation} where id = any ($1)`,
        [ids],
      );
      await as(owner);
      const { rows: explained } = await client.query(
        `select r.id, e.is_visible as "isVisible", e.reason from unnest($1::uuid[]) r (id)
           cross join lateral app_public.explain_access($2, $3, $4, r.id) e`,
        [ids, organization, user, type],
      );
      const visible = new Set(seen.map(({ id }) => id));
      for (const { id, isVisible, reason } of explained) {
        reasons.add(reason);
        if (isVisible !== visible.has(id)) wrong.push({ type, name, isVisible, reason });
      }
    }
  }
  await client.query("rollback");
  expect(wrong).toEqual([]);
  expect([...reasons].toSorted()).toEqual([
    "NOT_ASSIGNED",
    "NO_PART",
    "OWN_RECORD",
    "PERMISSION",
    "PERMISSION_MISSING",
    "PERSONAL",
    "PUBLIC",
    "SECOND_FACTOR_MISSING",
  ]);
});
