import { afterAll, beforeAll, expect, test } from "@jest/globals";
import type { Pool } from "pg";
import { createTestDatabase, poolOf, type TestDatabase } from "../harness/database.ts";
import { createPeople } from "../harness/people.ts";

// Rules for roles and people; rules for every table and function are in src/checks.

let database: TestDatabase;
let owner: Pool;

beforeAll(async () => {
  database = await createTestDatabase();
  owner = poolOf(database.ownerUrl, 2);
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

test("the API's login can only switch to its two roles, and owns and creates nothing", async () => {
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

test("everything belongs to a role without login and other privileges", async () => {
  expect(
    await column(
      "select rolname from pg_roles where rolname = 'plat_owner' and not (rolcanlogin or rolsuper or rolbypassrls or rolcreaterole or rolcreatedb or rolreplication)",
    ),
  ).toEqual(["plat_owner"]);
  expect(
    await column(`
      select n.nspname || ' ' || o.what || ' ' || o.owner::regrole from pg_namespace n
      cross join lateral (
        select 'schema', n.nspowner union all select relname, relowner from pg_class where relnamespace = n.oid
        union all select proname, proowner from pg_proc where pronamespace = n.oid
        union all select typname, typowner from pg_type where typnamespace = n.oid) o (what, owner)
      where n.nspname in ('app_public', 'app_hidden', 'app_private', 'graphile_worker', 'graphile_migrate') and o.owner <> 'plat_owner'::regrole
        and o.what not in (select unnest(array[c.relname, '_' || c.relname]) from pg_class c where c.relkind = 'v' and c.relowner = 'plat_masker'::regrole)
      order by 1`),
  ).toEqual([]);
  // Its default privileges for functions apply to those of the owner.
  expect(await column("select distinct defaclrole::regrole from pg_default_acl")).toEqual(["plat_owner"]);
});

test("masking views belong to a role that reads what users read, under their policies", async () => {
  expect(
    await column(`select rolname from pg_roles where rolname = 'plat_masker'
      and not (rolcanlogin or rolsuper or rolbypassrls or rolcreaterole or rolcreatedb or rolreplication)`),
  ).toEqual(["plat_masker"]);
  expect(
    await column(
      `select b.rolname from pg_auth_members m join pg_roles b on b.oid = m.roleid where m.member = 'plat_masker'::regrole`,
    ),
  ).toEqual(["plat_user"]);
  expect(
    await column(`select distinct lower(a.privilege_type) from pg_class c, aclexplode(c.relacl) a
      where a.grantee = 'plat_masker'::regrole and c.relowner <> 'plat_masker'::regrole`),
  ).toEqual(["select"]);
  expect(
    await column("select relname from pg_class where relowner = 'plat_masker'::regrole and relkind <> 'v'"),
  ).toEqual([]);
});

test("no role can create tables, not even temporary ones, that could shadow those of a definer function", async () => {
  const roles = ["plat_authenticator", "plat_user", "plat_anonymous"];
  expect(
    await column(`select role || ' ' || privilege from unnest(array['${roles.join("','")}']) role, unnest(array['create', 'temporary']) privilege
      where has_database_privilege(role, current_database(), privilege)`),
  ).toEqual([]);
  const people = createPeople(database.ownerUrl);
  try {
    const ann = await people.person("dora");
    for (const sql of [
      "create temp table import_rows (row int)",
      "create table public.traps (id int)",
      "create schema traps",
    ])
      for (const who of [ann, null])
        await expect(people.as(who, sql)).rejects.toMatchObject({ code: "42501" });
  } finally {
    await people.end();
  }
});

test("a user's own history is invisible to colleagues: sign-ins and changes of the password", async () => {
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
