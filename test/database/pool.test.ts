import { afterAll, beforeAll, expect, test } from "@jest/globals";
import type { Pool } from "pg";
import { makePool } from "../../src/database/pool.ts";
import { createTestDatabase, type TestDatabase } from "../harness/database.ts";

let database: TestDatabase;
let pool: Pool;
beforeAll(async () => {
  database = await createTestDatabase("empty");
  pool = makePool({ connectionString: database.ownerUrl, max: 1 });
});
afterAll(async () => {
  await pool.end();
  await database.drop();
});

const backend = async () =>
  (await pool.query<{ pid: number }>("select pg_backend_pid() as pid, $1::int", [1])).rows[0]!.pid;

test("a refused statement leaves its connection to the next", async () => {
  const first = await backend();
  await expect(pool.query("select 1 / $1::int", [0])).rejects.toMatchObject({ code: "22012" });
  await expect(pool.query("selec 1")).rejects.toMatchObject({ code: "42601" });
  expect(await backend()).toBe(first);
});

test.each([
  ["that failed", "begin; select 1 / 0", "22012"],
  ["that nobody ended", "begin", undefined],
])("nobody gets a connection with a transaction %s", async (_name, sql, code) => {
  const first = await backend();
  const asked = pool.query(sql);
  if (code) await expect(asked).rejects.toMatchObject({ code });
  else await asked;
  expect(await backend()).not.toBe(first);
});

test("nobody gets a connection that the server has closed", async () => {
  const first = await backend();
  const ended = pool.query("select pg_terminate_backend(pg_backend_pid())");
  await expect(ended).rejects.toMatchObject({ code: "57P01" });
  expect(await backend()).not.toBe(first);
});
