/**
 * Outages of the database: PostgreSQL restarts, connections are killed, the network drops or delays them. Nothing is
 * lost or done twice.
 */
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { Pool } from "pg";
import { startEmbeddedPostgres, type EmbeddedPostgres } from "../../src/database/embeddedServer.ts";
import { rollingRestart } from "../faults/balancer.ts";
import { startChild, killChild } from "../harness/child.ts";
import { startProxy, type Proxy } from "../harness/proxy.ts";
import { migratedFolder, startService, temporaryFolder } from "../harness/service.ts";
import { until } from "../harness/until.ts";
import { freePort } from "../../src/network/freePort.ts";

let folder: Awaited<ReturnType<typeof migratedFolder>>;
let postgres: EmbeddedPostgres;
let proxy: Proxy;
let owner: Pool;
let taskDirectory: string;
const done = () => join(taskDirectory, "done");

const start = () => startEmbeddedPostgres({ dataDir: folder.path, fast: true });
const portOf = ({ connectionString }: EmbeddedPostgres) => Number(new URL(connectionString).port);
const loginUrl = () => proxy.through(postgres.connectionString);
const connect = () => {
  owner = new Pool({ connectionString: postgres.connectionString, max: 4 });
  owner.on("error", () => {});
};

beforeAll(async () => {
  folder = await migratedFolder();
  postgres = await start();
  proxy = await startProxy(portOf(postgres));
  connect();
  taskDirectory = await mkdtemp(join(tmpdir(), "plat-tasks-"));
  // Records the external effect of a job as a line in a file, after a moment in which its connections may be
  // closed.
  await writeFile(
    join(taskDirectory, "work.js"),
    `import { appendFile } from "node:fs/promises";
     import { setTimeout } from "node:timers/promises";
     export default async ({ n }) => {
       await setTimeout(40 + Math.random() * 40);
       await appendFile(${JSON.stringify(done())}, n + "\\n");
     };`,
  );
});
afterAll(async () => {
  await owner?.end();
  await proxy?.[Symbol.asyncDispose]();
  await postgres?.stop();
  await rm(taskDirectory, { recursive: true, force: true });
  await folder?.[Symbol.asyncDispose]();
});

/** Restarts PostgreSQL on another port, as after a failover. */
async function restart(): Promise<void> {
  await owner.end();
  proxy.shut();
  await postgres.stop();
  postgres = await start();
  proxy.lead(portOf(postgres));
  proxy.open();
  connect();
}
const kill = (whose: string) =>
  owner.query(
    "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid() and " +
      whose,
  );
const lines = async () => (await readFile(done(), "utf8").catch(() => "")).split("\n").filter(Boolean);
/**
 * The remaining jobs of the test, with the state of their workers. Jobs of the clock wait for tasks that
 * these workers lack.
 */
const left = async () =>
  (
    await owner.query(
      `select j.id, j.locked_by, j.locked_at, j.run_at, j.attempts, j.last_error, clock_timestamp() as now,
         (select to_jsonb(q) from graphile_worker._private_job_queues q where q.id = j.job_queue_id) as queue,
         (select jsonb_agg(w) from app_private.workers w) as workers,
         (select jsonb_agg(c) from app_private.worker_connections c) as connections
       from graphile_worker._private_jobs j join graphile_worker._private_tasks t on t.id = j.task_id where t.identifier = 'work'`,
    )
  ).rows;
const add = (from: number, to: number) =>
  owner.query(
    "select graphile_worker.add_job('work', json_build_object('n', n), queue_name => case when n % 10 = 0 then 'line' end) from generate_series($1::int, $2) n",
    [from, to],
  );

test("two workers continue after killed connections and a restart of PostgreSQL: each job is executed once", async () => {
  const worker = () =>
    startChild(
      [resolve(import.meta.dirname, "../harness/workerProcess.ts"), loginUrl(), taskDirectory, folder.path],
      { stdio: ["ignore", "ignore", "inherit"] },
    );
  const workers = [worker(), worker()];
  try {
    await add(1, 300);
    const more = async (amount: number) => {
      const before = (await lines()).length;
      await until(lines, (found) => found.length >= Math.min(300, before + amount), { withinMs: 40_000 });
    };
    await more(10);
    // The connection by which others detect that it is alive: nobody takes its jobs.
    for (let round = 0; round < 4; round += 1) {
      await kill("application_name = 'plat-worker-line'");
      await more(10);
    }
    // All connections, while jobs are taken and completed.
    for (let round = 0; round < 4; round += 1) {
      await kill("usename = 'plat_worker'");
      await more(10);
    }
    await restart();
    await more(10);
    await kill("usename = 'plat_worker'");
    await until(left, (jobs) => jobs.length === 0, { withinMs: 60_000 });
    const found = await lines();
    expect(found.toSorted((a, b) => Number(a) - Number(b))).toEqual(
      Array.from({ length: 300 }, (_, n) => String(n + 1)),
    );
    expect(workers.map(({ exitCode }) => exitCode)).toEqual([null, null]);
    // Both are registered, and neither is considered dead.
    await until(
      () => owner.query("select from app_private.workers where gone_at is null"),
      ({ rowCount }) => rowCount === 2,
    );
  } finally {
    await Promise.all(workers.map(killChild));
  }
}, 180_000);

describe("a service with an external database", () => {
  const probe = async (port: string, path: string) => (await fetch(`http://127.0.0.1:${port}${path}`)).status;

  test("that only runs jobs is ready while it can, and resumes; disconnected, it stops in time", async () => {
    await using data = await temporaryFolder();
    const port = String(await freePort());
    const env = {
      DATABASE_URL: loginUrl(),
      DATA_DIR: data.path,
      MONITORING: `127.0.0.1:${port}`,
      SECRET_KEYS: `a:${"k".repeat(32)}`,
      JWT_KEYS: `a:${"k".repeat(32)}`,
      STOP_TIMEOUT: "2",
    };
    await using service = await startService({ env, args: ["--worker-only"] });
    expect([await probe(port, "/healthz"), await probe(port, "/readyz")]).toEqual([200, 200]);
    proxy.shut();
    await until(async () => (await probe(port, "/readyz")) === 503);
    expect(await probe(port, "/healthz")).toBe(200);
    proxy.open();
    await until(async () => (await probe(port, "/readyz")) === 200);
    // A task of the service that has nothing to do.
    const { rows } = await owner.query<{ id: string }>(
      "select id from graphile_worker.add_job('idempotency_keys__sweep')",
    );
    // The pauses between attempts to connect have grown to 10 s.
    await until(
      () => owner.query("select from graphile_worker._private_jobs where id = $1", [rows[0]!.id]),
      ({ rowCount }) => rowCount === 0,
      { withinMs: 60_000 },
    );
    // As after a failover to a standby: the process is fine, but cannot write.
    const changes = async (value: string) => {
      await owner.query(`alter system set default_transaction_read_only = ${value}`);
      await owner.query("select pg_reload_conf()");
    };
    await changes("on");
    await until(async () => (await probe(port, "/readyz")) === 503);
    await owner.query("set session characteristics as transaction read write");
    await changes("default");
    await until(async () => (await probe(port, "/readyz")) === 200);
    // The database does not respond to the end of any connection.
    proxy.hush();
    expect(await service.stop()).toMatchObject({ code: expect.any(Number), signal: null });
    proxy.open();
  });

  test("restarting one of two processes loses no request if a load balancer checks their readiness", async () => {
    proxy.open();
    const outcomes = await rollingRestart({
      databaseUrl: loginUrl(),
      askEveryMs: 50,
      stopDelay: 1,
      requests: 400,
      callers: 8,
      restMs: 30,
      restarted: [0],
    });
    expect([...outcomes.keys()]).toEqual(["200"]);
  });
});

test("a failing start exits even if nobody reads its output", async () => {
  await using data = await temporaryFolder();
  const code = join(data.path, "code");
  await promisify(execFile)("sh", ["-c", `(node src/server.ts 2>&1; echo $? > ${code}) | true`], {
    cwd: resolve(import.meta.dirname, "../.."),
    env: {
      ...process.env,
      DATABASE_URL: "postgres://u:p@127.0.0.1:1/x",
      NODE_ENV: "test",
      DATA_DIR: data.path,
    },
  });
  expect(await until(() => readFile(code, "utf8").catch(() => ""))).toBe("1\n");
});
