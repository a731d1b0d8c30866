/** Rate limits are exact under concurrent requests, and no request waits for another one. */
import { afterAll, beforeAll, beforeEach, expect, test } from "@jest/globals";
import { Client, Pool } from "pg";
import { createTestDatabase, type TestDatabase } from "../harness/database.ts";

let database: TestDatabase;
let owner: Pool;

beforeAll(async () => {
  database = await createTestDatabase();
  owner = new Pool({ connectionString: database.ownerUrl, max: 8 });
});
afterAll(async () => {
  await owner?.end();
  await database?.drop();
});
beforeEach(() => owner.query("truncate app_private.limit_uses"));

const take = async (key: string, most: number, by: Pick<Pool, "query"> = owner): Promise<number> =>
  (await by.query("select app_private.take_use($1, $2, '1 hour') as wait", [key, most])).rows[0].wait;
const uses = async () =>
  (await owner.query("select key, slot from app_private.limit_uses order by key, slot")).rows;

/** A transaction that stays open. Statements that would have to wait fail. */
async function transaction(): Promise<Client> {
  const client = new Client({ connectionString: database.ownerUrl });
  await client.connect();
  await client.query("begin; set local lock_timeout = '1ms'");
  return client;
}

test("of 40 concurrent uses exactly 7 are permitted", async () => {
  const waits = await Promise.all(Array.from({ length: 40 }, () => take("a", 7)));
  expect(waits.filter((wait) => wait === 0)).toHaveLength(7);
  expect(await uses()).toHaveLength(7);
  expect(await take("b", 1)).toBe(0);
});

test("uncommitted uses block nobody; they count, and are released by a rollback", async () => {
  const [first, second, third] = [await transaction(), await transaction(), await transaction()];
  try {
    expect(await take("a", 2, first)).toBe(0);
    expect(await take("a", 2, second)).toBe(0);
    // Both slots are in use: the third is refused rather than blocked.
    expect(await take("a", 2, third)).toBe(1);
    expect(await take("b", 2, third)).toBe(0);
    await first.query("rollback");
    expect(await take("a", 2, third)).toBe(0);
    await second.query("commit");
    await third.query("commit");
    expect(await take("a", 2)).toBeGreaterThan(3590);
    expect(await uses()).toEqual([
      { key: "a", slot: 1 },
      { key: "a", slot: 2 },
      { key: "b", slot: 1 },
    ]);
  } finally {
    for (const client of [first, second, third]) await client.end();
  }
});

test("a slot is reused after its window, also under concurrency", async () => {
  for (let n = 0; n < 3; n++) await take("a", 3);
  await owner.query("update app_private.limit_uses set expires_at = now() - interval '1 second'");
  const [first, second] = [await transaction(), await transaction()];
  try {
    for (const client of [first, second]) expect(await take("a", 3, client)).toBe(0);
    expect(await take("a", 3)).toBe(0);
    expect(await take("a", 3)).toBeGreaterThan(0);
  } finally {
    for (const client of [first, second]) {
      await client.query("commit");
      await client.end();
    }
  }
  expect(await uses()).toHaveLength(3);
});

test("a lower limit applies immediately, one transaction counts each of its uses, and a use can be returned", async () => {
  for (let n = 0; n < 5; n++) await take("a", 5);
  await owner.query("update app_private.limit_uses set expires_at = now() where slot <= 2");
  expect(await take("a", 3)).toBeGreaterThan(0);
  expect(await take("a", 4)).toBe(0);
  expect(await take("a", 0)).toBeGreaterThan(0);
  const { rows } = await owner.query(
    "select app_private.take_use('c', 2, '1 hour') = 0 as taken from generate_series(1, 3)",
  );
  expect(rows.map(({ taken }) => taken)).toEqual([true, true, false]);
  await owner.query("select app_private.return_use('c')");
  expect([await take("c", 2), await take("c", 2)]).toEqual([0, expect.any(Number)]);
});

test("a check uses nothing, and counts uncommitted uses", async () => {
  const check = async (by: Pick<Pool, "query"> = owner) =>
    (await by.query("select app_private.take_use('a', 1, '1 hour', false) as wait")).rows[0].wait;
  expect(await Promise.all([check(), check(), check()])).toEqual([0, 0, 0]);
  expect(await uses()).toEqual([]);
  const held = await transaction();
  try {
    expect(await take("a", 1, held)).toBe(0);
    expect(await check()).toBe(1);
  } finally {
    await held.end();
  }
});
