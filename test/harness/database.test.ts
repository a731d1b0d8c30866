import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { Client } from "pg";
import { catalogState } from "./catalogState.ts";
import { createTestDatabase, type TestDatabase } from "./database.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

async function ask(connectionString: string, sql: string): Promise<unknown[]> {
  const client = new Client({ connectionString });
  await client.connect();
  try {
    return (await client.query<Record<string, unknown>>(sql)).rows;
  } finally {
    await client.end();
  }
}

test("a clone is migrated and has the job runner", async () => {
  const sql =
    "select to_regprocedure('graphile_worker.add_job(text, json, text, timestamptz, int, text, int, text[], text)') is not null as worker, to_regclass('graphile_migrate.migrations') is not null as chain";
  expect(await ask(database.ownerUrl, sql)).toEqual([{ worker: true, chain: true }]);
});

test("clones are of one state until one is changed", async () => {
  const other = await createTestDatabase();
  const states = new Set<string>();
  for (const { authenticatorUrl } of [database, other, database, other])
    states.add(await catalogState(authenticatorUrl));
  expect(states.size).toBe(1);
  // The set-up stores these facts beside the migrated folder, so that clones need not be queried.
  const kept = await readFile(join(process.env.PLAT_TEST_MIGRATED!, "catalog.state"), "utf8");
  expect([...states]).toEqual([kept]);
  await ask(other.ownerUrl, "comment on table app_public.leads is 'Others.'");
  expect(states).not.toContain(await catalogState(other.authenticatorUrl));
  await other.drop();
});

test("the authenticator can only become viewers", async () => {
  expect(await ask(database.authenticatorUrl, "select current_user::text as me")).toEqual([
    { me: "plat_authenticator" },
  ]);
  for (const role of ["plat_user", "plat_anonymous"])
    await expect(ask(database.authenticatorUrl, `set role ${role}`)).resolves.toEqual([]);
  for (const role of ["plat_worker", "plat"])
    await expect(ask(database.authenticatorUrl, `set role ${role}`)).rejects.toMatchObject({ code: "42501" });
});

test("drops a clone despite open connections", async () => {
  const other = await createTestDatabase("empty");
  const client = new Client({ connectionString: other.ownerUrl });
  client.on("error", () => {});
  await client.connect();
  await other.drop();
  await expect(ask(other.ownerUrl, "select 1")).rejects.toMatchObject({ code: "3D000" });
  await client.end();
});
