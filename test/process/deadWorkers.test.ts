/** Killed workers: their jobs run again immediately, also those of named queues, and living workers keep theirs. */
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { Pool } from "pg";
import pino from "pino";
import { startWorker } from "../../src/worker.ts";
import { killChild, startChild } from "../harness/child.ts";
import { createTestDatabase, type TestDatabase } from "../harness/database.ts";
import { until } from "../harness/until.ts";

let database: TestDatabase;
let owner: Pool;
let taskDirectory: string;
const log = pino({ level: "silent" });

beforeAll(async () => {
  database = await createTestDatabase();
  owner = new Pool({ connectionString: database.ownerUrl, max: 4 });
  taskDirectory = await mkdtemp(join(tmpdir(), "plat-tasks-"));
  await owner.query(
    "create table app_private.runs (id serial, name text, pid int, done boolean); grant select, insert on app_private.runs to plat_worker; grant usage on sequence app_private.runs_id_seq to plat_worker",
  );
  // Hangs on request, the first time or twice; otherwise it ends immediately.
  await writeFile(
    join(taskDirectory, "work.js"),
    `export default async ({ name, hangs }, { query, job }) => {
       const { rows } = await query("select from app_private.runs where name = $1", [name]);
       const again = hangs === "twice" ? rows.length > 1 : job.attempts > 1;
       await query("insert into app_private.runs (name, pid, done) values ($1, $2, $3)", [name, process.pid, again || !hangs]);
       if (hangs && !again) await new Promise(() => {});
     };`,
  );
});
afterAll(async () => {
  await owner.end();
  await database.drop();
  await rm(taskDirectory, { recursive: true, force: true });
});

const runs = async () =>
  (await owner.query<{ name: string; done: boolean }>("select name, done from app_private.runs order by id"))
    .rows;
const locked = async () =>
  (await owner.query("select from graphile_worker._private_jobs where locked_by is not null")).rowCount;
const worker = (lookEveryMs: number) =>
  startWorker({ connectionString: database.workerUrl, taskDirectory, concurrency: 4, log, lookEveryMs });
const add = (name: string, { hangs = true, queue = null as string | null } = {}) =>
  owner.query("select graphile_worker.add_job('work', $1::json, queue_name => $2)", [
    JSON.stringify({ name, hangs }),
    queue,
  ]);

/** A worker in another process that has taken a job of a named queue and another one, and hangs in both. */
async function hanging() {
  await owner.query("truncate app_private.runs");
  await Promise.all([add("alone"), add("queued", { queue: "line" })]);
  const child = startChild(
    [resolve(import.meta.dirname, "../harness/workerProcess.ts"), database.ownerUrl, taskDirectory],
    { stdio: ["ignore", "ignore", "inherit"] },
  );
  await until(async () => (await runs()).length === 2);
  return { kill: () => killChild(child) };
}
const finished = async () => new Set((await runs()).filter(({ done }) => done).map(({ name }) => name));

test("a killed worker's jobs run again at the next check by another worker; those of a living one do not", async () => {
  const first = await hanging();
  const second = await worker(20);
  try {
    // One behind the hanging job in its queue, and another one that shows that the second worker works.
    await add("behind", { hangs: false, queue: "line" });
    await add("other", { hangs: false });
    await until(async () => (await finished()).has("other"));
    // Checks have taken place, and the first worker still holds its jobs.
    const { rows } = await owner.query("select count(*)::int as amount from app_private.workers");
    expect(rows).toEqual([{ amount: 2 }]);
    expect(await finished()).toEqual(new Set(["other"]));
    // The job runner records that a job has succeeded after the job itself.
    await until(locked, (held) => held === 2);
    await first.kill();
    await until(async () => (await finished()).size === 4);
    expect(await finished()).toEqual(new Set(["other", "alone", "queued", "behind"]));
    await until(async () => (await locked()) === 0);
    // A broken connection is opened again, and registers the worker again.
    const lines =
      "select pid from pg_stat_activity where application_name = 'plat-worker-line' and datname = current_database()";
    const { rows: before } = await owner.query(lines);
    expect(before).toHaveLength(1);
    await owner.query("select pg_terminate_backend($1)", [before[0].pid]);
    await until(async () => {
      const { rows: after } = await owner.query(
        `select from (${lines}) line join pg_locks l on l.pid = line.pid and l.locktype = 'advisory' and l.classid = 7528003 where line.pid <> $1`,
        [before[0].pid],
      );
      return after.length === 1;
    });
    const { rows: known } = await owner.query("select id from app_private.workers");
    expect(known.length).toBeGreaterThan(0);
  } finally {
    await first.kill();
    await second.stop();
  }
  // A worker that stops unregisters itself.
  expect((await owner.query("select from app_private.workers")).rowCount).toBe(0);
});

test("a worker that was killed resumes its jobs immediately after a restart", async () => {
  const first = await hanging();
  await first.kill();
  expect(await locked()).toBe(2);
  const again = await worker(3_600_000);
  try {
    await until(async () => (await finished()).size === 2);
  } finally {
    await again.stop();
  }
  expect(await locked()).toBe(0);
});

test("a worker that stops regularly leaves no job locked, done or not", async () => {
  for (let round = 0; round < 5; round += 1) {
    await owner.query("truncate app_private.runs");
    const running = await worker(3_600_000);
    for (let n = 0; n < 20; n += 1) await add(`n${n}`, { hangs: false, queue: n % 2 ? "line" : null });
    await until(async () => (await finished()).size > 5);
    await running.stop();
    expect(await locked()).toBe(0);
    const { rowCount } = await owner.query(
      "select from graphile_worker._private_job_queues where locked_by is not null",
    );
    expect(rowCount).toBe(0);
    await owner.query(
      "select graphile_worker.complete_jobs(array(select id from graphile_worker._private_jobs))",
    );
  }
});

/** Parses the lines of a log. */
function logInto(lines: Record<string, any>[]) {
  return pino({ level: "warn" }, { write: (line: string) => void lines.push(JSON.parse(line)) });
}

test("a job that killed two processes is suspended with a ticket until it is released", async () => {
  await owner.query("truncate app_private.runs");
  const { rows: organizations } = await owner.query<{ id: string }>(
    "insert into app_public.organizations (name) values ('Harbour Homes') returning id",
  );
  const organization = organizations[0]!.id;
  const addTwice = (name: string, key: string | null) =>
    owner.query("select graphile_worker.add_job('work', $1::json, job_key => $2)", [
      JSON.stringify({ name, hangs: "twice", organization_id: organization }),
      key,
    ]);
  const times = async (name: string) => (await runs()).filter((run) => run.name === name).length;
  await Promise.all([addTwice("deadly", null), addTwice("clockwork", "each hour")]);
  for (const died of [1, 2]) {
    const doomed = startChild(
      [resolve(import.meta.dirname, "../harness/workerProcess.ts"), database.ownerUrl, taskDirectory],
      { stdio: ["ignore", "ignore", "inherit"] },
    );
    await until(async () => (await times("deadly")) === died && (await times("clockwork")) === died);
    await killChild(doomed);
  }
  const lines: Record<string, any>[] = [];
  const third = await startWorker({
    connectionString: database.workerUrl,
    taskDirectory,
    concurrency: 4,
    log: logInto(lines),
    lookEveryMs: 20,
  });
  try {
    const tickets = lines.filter(({ code }) => code === "JOB_SET_ASIDE");
    expect(tickets).toHaveLength(2);
    for (const line of tickets)
      expect(line).toMatchObject({ task: "work", organization, deaths: 2, ticket: expect.any(String) });
    // Later jobs are executed, and jobs that the clock adds under the key of the suspended one are skipped.
    await add("other", { hangs: false });
    await until(async () => (await finished()).has("other"));
    await addTwice("clockwork", "each hour");
    await until(async () => {
      const { rowCount } = await owner.query("select from graphile_worker.jobs where key = 'each hour'");
      return rowCount === 0;
    });
    expect([await times("deadly"), await times("clockwork")]).toEqual([2, 2]);
    // The job runner records that a job has succeeded after the job itself.
    const { rows } = await until(
      () =>
        owner.query("select last_error, attempts, max_attempts from graphile_worker.jobs where key is null"),
      ({ rowCount }) => rowCount === 2,
    );
    // The job of the clock has given its key to the skipped one.
    const aside = { last_error: expect.stringMatching(/^JOB_SET_ASIDE: the process died 2 times/) };
    expect(rows).toEqual([
      { ...aside, attempts: 25, max_attempts: 25 },
      { ...aside, attempts: 25, max_attempts: 25 },
    ]);
    for (const { ticket } of tickets) await owner.query("select app_private.release_job($1)", [ticket]);
    await until(async () => (await finished()).has("deadly"));
    const { rows: left } = await owner.query(
      "select from app_private.job_deaths where set_aside_at is not null",
    );
    expect(left).toEqual([]);
    // Workers learn of the release with their next check.
    await until(async () => {
      await addTwice("clockwork", "each hour");
      return (await finished()).has("clockwork");
    });
    const { rows: said } = await owner.query("select app_private.release_job($1) as said", [
      tickets[0]!.ticket,
    ]);
    expect(said).toEqual([{ said: "No job is set aside under this ticket." }]);
  } finally {
    await third.stop();
  }
});

test("a death that a job of the clock did not cause is forgotten when the job is done", async () => {
  // Jobs and deaths of earlier tests are removed.
  await owner.query(
    "delete from graphile_worker._private_jobs; truncate app_private.runs; delete from app_private.job_deaths",
  );
  const addByClock = (hangs: boolean) =>
    owner.query("select graphile_worker.add_job('work', $1::json, job_key => 'each minute')", [
      JSON.stringify({ name: "clockwork", hangs }),
    ]);
  for (const round of [1, 2]) {
    await addByClock(true);
    const doomed = startChild(
      [resolve(import.meta.dirname, "../harness/workerProcess.ts"), database.ownerUrl, taskDirectory],
      { stdio: ["ignore", "ignore", "inherit"] },
    );
    await until(async () => (await runs()).length === 2 * round - 1);
    await killChild(doomed);
    const next = await worker(20);
    await until(async () => (await runs()).length === 2 * round);
    await until(async () => (await owner.query("select from app_private.job_deaths")).rowCount === 0);
    await next.stop();
  }
  // Two processes died during jobs of this key, and both jobs were completed.
  expect((await runs()).map(({ done }) => done)).toEqual([false, true, false, true]);
});

test("a worker that lost its connections before its first job fetches jobs once it has new ones", async () => {
  await owner.query("truncate app_private.runs");
  // The job runner reads its tasks before its first job.
  const holder = await owner.connect();
  await holder.query("begin; lock table graphile_worker._private_tasks in share mode");
  const second = await startWorker({
    connectionString: database.workerUrl,
    taskDirectory,
    concurrency: 4,
    log,
    pollEveryMs: 100,
  });
  const waiting = `from pg_stat_activity where datname = current_database() and application_name = 'plat-worker-jobs'
    and wait_event_type = 'Lock'`;
  await until(async () => (await owner.query(`select pg_terminate_backend(pid) ${waiting}`)).rowCount === 1);
  await until(async () => (await owner.query(`select ${waiting}`)).rowCount === 0);
  await holder.query("rollback");
  holder.release();
  await add("after", { hangs: false });
  await until(async () => (await finished()).has("after"));
  await second.stop();
  expect(await locked()).toBe(0);
});
