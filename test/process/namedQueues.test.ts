/** Jobs of a named queue follow one another: in order, one at a time, and without waiting for the next poll. */
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
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
    `create table app_private.runs (id serial, n int); grant insert on app_private.runs to plat_worker;
     grant usage on sequence app_private.runs_id_seq to plat_worker`,
  );
  await writeFile(
    join(taskDirectory, "work.js"),
    `export default async ({ n, fails }, { query }) => {
       await query("insert into app_private.runs (n) values ($1)", [n]);
       if (fails) throw new Error("a failure of the test");
     };`,
  );
  worker = await startWorker({
    connectionString: database.workerUrl,
    taskDirectory,
    concurrency: 4,
    log: pino({ level: "silent" }),
  });
});
afterAll(async () => {
  await worker?.stop();
  await owner?.end();
  await database?.drop();
  await rm(taskDirectory, { recursive: true, force: true });
});

/** Far more jobs than polls within the time limit of `until`. */
const AMOUNT = 30;

test.each([
  ["succeed", false],
  ["fail", true],
])("jobs of a queue that %s", async (name, fails) => {
  await owner.query("truncate app_private.runs");
  await owner.query(
    `select graphile_worker.add_job('work', json_build_object('n', n, 'fails', $2::boolean), queue_name => $1, max_attempts => 1)
     from generate_series(1, $3::int) n`,
    [name, fails, AMOUNT],
  );
  const runs = async () =>
    (await owner.query<{ n: number }>("select n from app_private.runs order by id")).rows.map(({ n }) => n);
  expect(await until(runs, ({ length }) => length === AMOUNT)).toEqual(
    Array.from({ length: AMOUNT }, (_, index) => index + 1),
  );
});
