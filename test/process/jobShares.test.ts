/** The slots of a job runner are shared: neither one organization nor long jobs take all of them. */
import { afterAll, beforeAll, beforeEach, expect, test } from "@jest/globals";
import { existsSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { Pool } from "pg";
import pino from "pino";
import { startWorker, type Worker } from "../../src/worker.ts";
import { createTestDatabase, type TestDatabase } from "../harness/database.ts";
import { until } from "../harness/until.ts";

let database: TestDatabase;
let owner: Pool;
let taskDirectory: string;
let worker: Worker;

beforeAll(async () => {
  database = await createTestDatabase();
  owner = new Pool({ connectionString: database.ownerUrl, max: 2 });
  taskDirectory = await mkdtemp(join(tmpdir(), "plat-tasks-"));
  await owner.query(
    `create table app_private.runs (name text, ended boolean not null default false);
     create table app_private.gate (is_open boolean);
     grant insert, select, update on app_private.runs to plat_worker; grant select on app_private.gate to plat_worker`,
  );
  await writeFile(
    join(taskDirectory, "work.js"),
    `export default async ({ name }, { query }) => {
       await query("insert into app_private.runs (name) values ($1)", [name]);
       const opened = async () => {
         const { rowCount } = await query("select pg_sleep(0.01) from app_private.gate where is_open");
         if (rowCount === 0) await query("select pg_sleep(0.01)").then(opened);
       };
       if (name !== "short") await opened();
       await query("update app_private.runs set ended = true where name = $1", [name]);
     };`,
  );
  worker = await startWorker({
    connectionString: database.workerUrl,
    taskDirectory,
    concurrency: 5,
    log: pino({ level: "silent" }),
  });
});
afterAll(async () => {
  await owner?.query("insert into app_private.gate values (true)");
  await worker?.stop();
  await owner?.end();
  await database?.drop();
  await rm(taskDirectory, { recursive: true, force: true });
});
beforeEach(() => owner.query("truncate app_private.runs, app_private.gate"));

/** Enqueues jobs in one statement, so that all idle slots ask for them at the same moment. */
const add = (name: string, flags: string[] | null, amount = 1) =>
  owner.query(
    `select graphile_worker.add_job('work', json_build_object('name', case when $3 = 1 then $1 else $1 || n end), flags => $2)
     from generate_series(1, $3::int) n`,
    [name, flags, amount],
  );
const runs = async () =>
  (await owner.query<{ name: string; ended: boolean }>("select * from app_private.runs order by name")).rows;
const ended = async (name: string) => (await runs()).some((run) => run.name === name && run.ended);
const open = () => owner.query("insert into app_private.gate values (true)");

test("an organization has two of five slots, and others do not wait for it", async () => {
  await add("a", ["organization:a"], 10);
  await until(async () => (await runs()).length === 2);
  for (const flags of [["organization:b"], null]) {
    await owner.query("delete from app_private.runs where name = 'short'");
    await add("short", flags);
    await until(() => ended("short"));
  }
  // All of its further jobs were fetched by no slot.
  expect((await runs()).filter(({ name }) => name.startsWith("a"))).toHaveLength(2);
  await open();
  await until(async () => (await runs()).filter((run) => run.ended).length === 11);
});

test("long jobs of any organizations leave two slots", async () => {
  for (const organization of ["a", "b", "c", "d", "e"])
    await add(`${organization} long`, [`organization:${organization}`, "long"], 2);
  await until(async () => (await runs()).length === 3);
  await add("short", ["organization:f"]);
  await until(() => ended("short"));
  expect((await runs()).filter(({ name }) => name.includes("long"))).toHaveLength(3);
  await open();
  await until(async () => (await runs()).filter((run) => run.ended).length === 11);
});

test("jobs of several organizations use all slots", async () => {
  for (const organization of ["a", "b", "c"]) await add(organization, [`organization:${organization}`], 3);
  await until(async () => (await runs()).length === 5);
  const running = (await runs()).map(({ name }) => name.slice(0, 1));
  for (const organization of ["a", "b", "c"])
    expect(running.filter((name) => name === organization).length).toBeLessThanOrEqual(2);
  await open();
  await until(async () => (await runs()).filter((run) => run.ended).length === 9);
});

test("jobs that may take long are flagged with their organization, and those that take minutes as long", async () => {
  const { rows } = await owner.query<{ flags: string[] }>(
    `select app_private.job_flags(task, '00000000-0000-4000-8000-000000000001') as flags
     from unnest(array['workflow_mail__send', 'export__requested', 'organization_deletion__due', 'search__catch_up']) task`,
  );
  const organization = "organization:00000000-0000-4000-8000-000000000001";
  expect(rows.map(({ flags }) => flags)).toEqual([
    [organization],
    [organization, "long"],
    [organization, "long"],
    [organization, "long"],
  ]);
  const { rows: none } = await owner.query(
    "select app_private.job_flags('account__changed', '00000000-0000-4000-8000-000000000001') as flags",
  );
  expect(none).toEqual([{ flags: null }]);
  const tasks = resolve(import.meta.dirname, "../../src/tasks");
  for (const name of [
    "workflow_mail__send",
    "generation__sent",
    "integration__retried",
    "export__requested",
    "organization_deletion__due",
    "search__catch_up",
  ])
    expect(existsSync(join(tasks, `${name}.ts`))).toBe(true);
});
