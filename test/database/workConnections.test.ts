import { afterAll, beforeAll, expect, test } from "@jest/globals";
import type { Pool, PoolClient } from "pg";
import { makeWorkPool } from "../../src/database/pool.ts";
import { shareOf, workPoolOf } from "../../src/database/workConnections.ts";
import { createTestDatabase, type TestDatabase } from "../harness/database.ts";
import { until } from "../harness/until.ts";

let database: TestDatabase;
let pool: Pool;

beforeAll(async () => {
  database = await createTestDatabase();
  pool = makeWorkPool({
    connectionString: database.ownerUrl,
    max: 3,
    applicationName: "plat-shared",
    log: { warn: () => {} },
  });
});
afterAll(async () => {
  await pool.end();
  await database.drop();
});

test("an engine has at most its share of connections, and others can use the rest", async () => {
  const [greedy, modest] = [shareOf(pool, 2), shareOf(pool, 2)];
  const held: PoolClient[] = [await greedy.connect(), await greedy.connect()];
  const third = greedy.connect().then((client) => held.push(client));
  // A statement that waits for its share does not wait for a connection of the pool.
  expect((await modest.query("select 1 as one")).rows).toEqual([{ one: 1 }]);
  expect([held.length, pool.totalCount]).toEqual([2, 3]);
  held.pop()!.release();
  await third;
  expect(held.length).toBe(2);
  for (const client of held) client.release();
  await expect(greedy.query("select 1 / 0")).rejects.toThrow("division by zero");
  // Refused requests release their slots.
  expect((await Promise.all([1, 2, 3].map(() => greedy.query("select 1")))).length).toBe(3);
});

test("the end of a share closes no connection; a separate engine has a pool of its own", async () => {
  await shareOf(pool, 1).end();
  expect((await pool.query("select 1 as one")).rowCount).toBe(1);
  const own = workPoolOf(undefined, {
    connectionString: database.ownerUrl,
    max: 1,
    applicationName: "plat-own",
    log: { warn: () => {} },
  });
  await own.query("select 1");
  await own.end();
  await until(async () => {
    const { rows } = await pool.query("select from pg_stat_activity where application_name = 'plat-own'");
    return rows.length === 0;
  });
});
