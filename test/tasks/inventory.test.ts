/** Jobs of the inventory: expired claims and the service index; and the inventory of the demo. */
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { Client } from "pg";
import { parseCrontab } from "graphile-worker";
import { readFile } from "node:fs/promises";
import { createTestDatabase, type TestDatabase } from "../harness/database.ts";
import { createOutbox, runJobs, type Outbox } from "./worker.ts";

let database: TestDatabase;
let outbox: Outbox;
let owner: Client;

beforeAll(async () => {
  database = await createTestDatabase("demo");
  outbox = await createOutbox();
  owner = new Client({ connectionString: database.ownerUrl });
  await owner.connect();
});
afterAll(async () => {
  await owner.end();
  await database.drop();
  await outbox.remove();
});

const query = async (text: string) => (await owner.query(text)).rows;

test("the demo has a realistic inventory", async () => {
  expect(
    await query("select status, count(*)::int from app_public.units group by status order by status"),
  ).toEqual([
    { status: "AVAILABLE", count: 16 },
    { status: "CLOSED", count: 1 },
    { status: "HELD", count: 1 },
    { status: "OFF_MARKET", count: 1 },
    { status: "PENDING", count: 2 },
    { status: "RESERVED", count: 2 },
    { status: "SOLD", count: 7 },
    { status: "UNRELEASED", count: 10 },
  ]);
  expect(
    await query(`select (select count(*)::int from app_public.floor_plans) as plans, (select count(*)::int from app_public.lots) as lots,
      (select count(distinct sold_at)::int from app_public.units) as sales, (select min(listing_date) < current_date from app_public.units) as aged`),
  ).toEqual([{ plans: 3, lots: 10, sales: 8, aged: true }]);
});

test("releases expired claims every minute", async () => {
  await query("update app_hidden.claims set expires_at = now() - interval '1 minute' where kind = 'HOLD'");
  await query("select graphile_worker.add_job('deadlines__settle')");
  expect((await runJobs(database.ownerUrl, outbox.provider)).join("\n")).not.toMatch(/error/i);
  expect(await query("select from app_public.units where status = 'HELD'")).toEqual([]);
  expect(await query("select from app_public.lots where status = 'HELD'")).toEqual([]);
});

test("the service index is computed without a new version of the project", async () => {
  const before = await query("select id, version, updated_at from app_public.projects order by id");
  await query("select graphile_worker.add_job('projects__service_index')");
  await runJobs(database.ownerUrl, outbox.provider);
  expect(await query("select id, version, updated_at from app_public.projects order by id")).toEqual(before);
  const [gardens, towns] = await query(
    "select service_index from app_public.projects where visibility = 'PUBLIC' order by title",
  );
  expect(gardens.service_index).toBeGreaterThan(towns.service_index);
  expect(gardens.service_index).toBeLessThanOrEqual(100);
});

test("the crontab only has existing tasks", async () => {
  const items = parseCrontab(await readFile(new URL("../../src/crontab", import.meta.url), "utf8"));
  expect(items.map((item) => item.task)).toEqual(
    expect.arrayContaining(["deadlines__settle", "projects__service_index"]),
  );
});
