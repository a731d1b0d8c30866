import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { Pool } from "pg";
import { createTestDatabase, type TestDatabase } from "../harness/database.ts";
import { createPeople } from "../harness/people.ts";

// What holds for roles and people; what holds for every table and function stands in src/checks.

let database: TestDatabase;
let owner: Pool;

beforeAll(async () => {
  database = await createTestDatabase();
  owner = new Pool({ connectionString: database.ownerUrl, max: 2 });
});
afterAll(async () => {
  await owner.end();
  await database.drop();
});

/** The first column of each row. */
async function column(query: string): Promise<string[]> {
  const { rows } = await owner.query({ text: query, rowMode: "array" });
  return rows.map(([value]) => String(value));
}

test("the API's own role can become its two roles, and owns and creates nothing", async () => {
  expect(
    await column(`select b.rolname from pg_auth_members m join pg_roles a on a.oid = m.member join pg_roles b on b.oid = m.roleid
      where a.rolname = 'plat_authenticator' order by 1`),
  ).toEqual(["plat_anonymous", "plat_user"]);
  expect(
    await column(`select rolname from pg_roles where rolname in ('plat_authenticator', 'plat_user', 'plat_anonymous')
      and (rolsuper or rolcreaterole or rolcreatedb or rolbypassrls or rolreplication)`),
  ).toEqual([]);
  expect(
    await column(`select n.nspname || ' ' || role from pg_namespace n, unnest(array['plat_authenticator', 'plat_user', 'plat_anonymous']) role
      where has_schema_privilege(role, n.oid, 'create') and n.nspname not like 'pg\\_temp%'`),
  ).toEqual([]);
});

test("colleagues do not read a user's own history: when they signed in, when the password changed", async () => {
  const people = createPeople(database.ownerUrl);
  try {
    const [ann, ben] = [await people.person("ann"), await people.person("ben")];
    await people.organization("Pair", { [ann]: "OWNER", [ben]: "OWNER" });
    await owner.query("update app_public.users set last_login_at = now() where id = $1", [ben]);
    const history = (viewer: string, settings = {}) =>
      people.as<{ name: string }>(
        viewer,
        "select name from app_public.events where subject_type = 'user' and subject_id = $1 order by id",
        [ben],
        settings,
      );
    expect(await people.as(ann, "select from app_public.users where id = $1", [ben])).toHaveLength(1);
    expect(await history(ann)).toEqual([]);
    expect(await history(ben)).toEqual([{ name: "user.created" }, { name: "user.signed_in" }]);
    expect(await history(ben, { scopes: "lead.read" })).toEqual([]);
  } finally {
    await people.end();
  }
});
