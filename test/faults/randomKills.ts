/**
 * Kills API, worker, database, its archiver, the file store, the mail server and the receiver of webhooks at random
 * times under a mixed load, and restarts them. No acknowledged write is lost, nothing is done twice, no job is stuck,
 * the archive is complete, and the invariants of deals hold.
 */
import { expect } from "@jest/globals";
import type { ChildProcess } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
// oxlint-disable-next-line no-restricted-imports -- the moments are random
import { setTimeout as delay } from "node:timers/promises";
import { Client, Pool } from "pg";
import { startEmbeddedPostgres } from "../../src/database/embeddedServer.ts";
import { brokenInvariants } from "../../src/doctor/invariants.ts";
import { secretKeys } from "../harness/api.ts";
import { Agent } from "node:https";
import { demoFolder } from "../harness/demoFolder.ts";
import { post, signIn, startLoad } from "../harness/load.ts";
import { startProxy } from "../harness/proxy.ts";
import { randomFrom } from "../harness/random.ts";
import {
  untilEnded,
  postmasterPid,
  runToExit,
  type Service,
  startService,
  temporaryFolder,
} from "../harness/service.ts";
import { until } from "../harness/until.ts";
import { archivedLog, openSeries } from "../../src/database/backupSeries.ts";
import { createFileStore } from "../../src/providers/files/index.ts";
import { killChild, startChild } from "../harness/child.ts";
import { picture } from "../harness/upload.ts";
import { freePort } from "../../src/network/freePort.ts";

const clients = 4;
/** Maximum wait of a job that is due. */
const stuckAfterMs = 60_000;

/** Number of kills by kind of process, and the time until the service was ready after the database was killed. */
export interface Kills {
  killed: Record<string, number>;
  requests: number;
  leads: number;
  uploads: number;
  mails: number;
  /** Jobs that were affected by two kills and released afterwards by an operator. */
  released: number;
  /** Milliseconds from the time at which the database accepts connections. */
  readyAfterMs: number[];
}

/**
 * @param seconds minimum duration; each kind of process is killed at least once
 * @param restMs milliseconds that each client pauses between two requests
 * @param onDisk whether the archive, the files and the mails are on disk: an hour produces some 19 GB, more than fits
 * into memory
 * @throws Error with the violated expectations
 */
export async function playRandomKills({
  seconds,
  seed,
  restMs = 0,
  onDisk = false,
}: {
  seconds: number;
  seed: number;
  restMs?: number;
  onDisk?: boolean;
}): Promise<Kills> {
  const random = randomFrom(seed);
  await using folder = await demoFolder();
  await using data = await temporaryFolder(undefined, { onDisk });
  // As in production: with faster settings, committed changes could be lost.
  const archiveFolder = join(data.path, "archive");
  await mkdir(archiveFolder, { mode: 0o711 });
  const archive = { folder: archiveFolder, timeoutSeconds: 1 };
  let postgres = await startEmbeddedPostgres({ dataDir: folder.path, archive });
  const portOf = () => Number(new URL(postgres.connectionString).port);
  await using database = await startProxy(portOf());
  const outside = {
    store: await startOutside("store", join(data.path, "store")),
    mail: await startOutside("mail", join(data.path, "mails")),
    receiver: await startOutside("receiver", join(data.path, "messages")),
  };
  await using way = await startProxy(outside.receiver.port);
  const env = {
    DATABASE_URL: database.through(postgres.connectionString),
    DATA_DIR: data.path,
    SMTP_URL: `smtp://127.0.0.1:${outside.mail.port}`,
    OPERATOR_EMAIL: "desk@plat.example",
    S3_BUCKET: "plat",
    S3_ENDPOINT: `http://127.0.0.1:${outside.store.port}`,
    S3_REGION: "us-east-1",
    S3_ACCESS_KEY_ID: "S3RVER",
    S3_SECRET_ACCESS_KEY: "S3RVER",
    LOOPBACK_WEBHOOKS: "1",
    SECRET_KEYS: secretKeys.map(({ kid, secret }) => `${kid}:${secret}`).join(","),
    JWT_KEYS: `a:${"k".repeat(32)}`,
    STOP_TIMEOUT: "5",
  };
  // Other processes may use most of the machine for an hour.
  const withinMs = 4 * stuckAfterMs;
  const startApi = () => startService({ env, args: ["--api-only"], withinMs });
  const startWorker = () => startService({ env, args: ["--worker-only"], withinMs });
  expect(await runToExit({ env, args: ["--migrate-only"] })).toMatchObject({ code: 0 });
  let api = await startApi();
  let worker = await startWorker();
  const { token, projectId, organizationId } = await signIn(api.baseUrl);
  const ask = async (query: string, input: unknown) => {
    const answer = await post(
      new Agent(),
      api.baseUrl,
      { query, variables: { input } },
      { authorization: `Bearer ${token}` },
    );
    expect(answer.errors).toBeUndefined();
    return answer.data;
  };
  const memberId = (await ask("{ viewer { id } }", {})).viewer.id;
  await ask("mutation ($input: CreateWebhookInput!) { createWebhook(input: $input) { id } }", {
    organizationId,
    url: `https://localhost:${way.port}`,
    events: ["lead.created"],
  });
  const { createWorkflow } = await ask(
    "mutation ($input: CreateWorkflowInput!) { createWorkflow(input: $input) { id } }",
    {
      organizationId,
      name: "Call",
      subjectType: "LEAD",
      trigger: { type: "EVENT", event: "lead.created" },
      steps: [
        { type: "CREATE_TASK", config: { title: "Once" } },
        {
          type: "SEND_EMAIL",
          config: { to: "MEMBER", memberId, subject: "A new lead", body: "{{ lead.name }} has come." },
        },
      ],
    },
  );
  await ask("mutation ($input: EnableWorkflowInput!) { enableWorkflow(input: $input) { id } }", {
    id: createWorkflow.id,
  });

  const load = startLoad({
    baseUrl: () => api.baseUrl,
    token,
    projectId,
    clients,
    seed,
    persistent: true,
    restMs,
  });
  const beside = besideLoad({ baseUrl: () => api.baseUrl, token, projectId, seed });
  const ready = () =>
    until(
      () => api.get("/readyz").catch(() => ({ status: 0 })),
      ({ status }) => status === 200,
      { withinMs: stuckAfterMs },
    );
  const kill = {
    api: async () => {
      ended.push((await api.stop("SIGKILL")).stdout);
      api = await startApi();
    },
    worker: async () => {
      await worker.stop("SIGKILL");
      worker = await startWorker();
    },
    database: async () => {
      const pid = await postmasterPid(folder.path);
      process.kill(pid, "SIGKILL");
      await untilEnded(pid);
      database.shut();
      postgres = await startEmbeddedPostgres({ dataDir: folder.path, archive });
      database.lead(portOf());
      database.open();
      const since = performance.now();
      await ready();
      kills.readyAfterMs.push(Math.round(performance.now() - since));
    },
    archiver: async () => {
      const pid = await archiverPid(folder.path);
      // PostgreSQL treats it as a crash and restarts itself.
      if (pid !== undefined) process.kill(pid, "SIGKILL");
    },
    way: async () => {
      way.shut();
      await delay(random(300));
      way.open();
    },
    store: () => outside.store.restart(random(500)),
    mail: () => outside.mail.restart(random(500)),
    receiver: () => outside.receiver.restart(random(500)),
  };
  /** The log output of API processes that were killed. */
  const ended: string[] = [];
  const kills: Kills = {
    killed: {},
    requests: 0,
    leads: 0,
    uploads: 0,
    mails: 0,
    released: 0,
    readyAfterMs: [],
  };
  const { killed } = kills;
  const kinds = Object.keys(kill) as (keyof typeof kill)[];
  const end = performance.now() + seconds * 1_000;
  try {
    for (let n = 0; performance.now() < end || n < kinds.length; n += 1) {
      await delay(random(800));
      // Each at least once.
      const kind = n < kinds.length ? kinds[(n + seed) % kinds.length]! : kinds[random(kinds.length)]!;
      killed[kind] = (killed[kind] ?? 0) + 1;
      await kill[kind]();
    }
    await Promise.all([load.stop(), beside.stop()]);
    expect([...load.wrong, ...beside.wrong]).toEqual([]);
    expect(load.acknowledged.size).toBeGreaterThan(0);
    await using owner = await ownerOf(postgres.connectionString);

    // Jobs that are due are executed soon, by the remaining processes.
    await until(
      async () =>
        (
          await owner.pool.query(
            `select j.id, t.identifier, j.attempts, j.last_error, j.locked_by, q.queue_name, q.locked_by as queue_locked_by
               from graphile_worker._private_jobs j join graphile_worker._private_tasks t on t.id = j.task_id
                 left join graphile_worker._private_job_queues q on q.id = j.job_queue_id
               where j.run_at < now() and j.attempts < j.max_attempts
               union all select 0, 'execution', 0, e.id::text, null, null, null from app_public.workflow_executions e
               where e.workflow_id = $1 and e.status in ('PENDING', 'RUNNING')`,
            [createWorkflow.id],
          )
        ).rows,
      (rows) => rows.length === 0,
      { withinMs: stuckAfterMs },
    );
    const found = await until(
      () =>
        owner.pool.query<{ id: string; name: string; tasks: number }>(
          // An hour creates tens of thousands of them.
          `select l.id, l.name, coalesce(t.count, 0) as tasks from app_public.leads l
             left join (select lead_id, count(*)::int from app_public.tasks where title = 'Once' group by 1) t on t.lead_id = l.id
             where l.name like 'Load %' and l.project_id = $1`,
          [projectId],
        ),
      ({ rows }) => rows.every(({ tasks }) => tasks > 0),
      { withinMs: stuckAfterMs },
    ).catch(async (cause: Error) => {
      const { rows } = await owner.pool.query(
        `select e.status, e.pause_reason, e.deaths, count(*)::int as leads from app_public.leads l
           left join app_public.workflow_executions e on e.subject_id = l.id and e.workflow_id = $2
           where l.name like 'Load %' and l.project_id = $1 group by 1, 2, 3`,
        [projectId, createWorkflow.id],
      );
      const { rows: streams } = await owner.pool.query(
        `select s.*, now() as now, c.last_sequence as written, (select jsonb_agg(w) from app_private.worker_connections w) as lines,
             (select jsonb_agg(jsonb_build_object('pid', a.pid, 'app', a.application_name, 'state', a.state, 'wait', a.wait_event, 'since', a.state_change, 'query', left(a.query, 80)))
                from pg_stat_activity a where a.application_name like 'plat-%') as activity
           from app_private.workflow_streams s join app_private.event_counters c on c.stream_id = s.organization_id where s.organization_id = $1`,
        [organizationId],
      );
      throw new Error(`Leads without a task: ${JSON.stringify(rows)} ${JSON.stringify(streams)}`, { cause });
    });
    const kept = found.rows;
    const names = new Map(kept.map(({ id, name }) => [id, name]));
    // Acknowledged writes exist, and repeated ones exist once.
    expect([...load.acknowledged].filter(([id, name]) => names.get(id) !== name)).toEqual([]);
    expect(new Set(names.values()).size).toBe(kept.length);
    expect(kept.filter(({ tasks }) => tasks !== 1)).toEqual([]);
    // At least once, with one id per event. Deliveries that failed twice are due minutes later; time is advanced
    // instead.
    await until(
      async () => {
        await owner.pool.query("update app_private.webhook_queue set due_at = now() where due_at > now()");
        return new Set((await outside.receiver.taken()).map(({ subjectId }) => subjectId));
      },
      (told) => kept.every(({ id }) => told.has(id)),
      { withinMs: stuckAfterMs },
    );
    const messages = await outside.receiver.taken();
    expect(severalIds(messages.map(({ id, subjectId }) => [subjectId!, id]))).toEqual([]);
    // Mails are retried with increasing pauses, up to minutes; time is advanced instead. Other mails, such as
    // notifications, name leads as well.
    const nameOf = (text = "") => /(Load \d+-\d+-\d+) has come/.exec(text)?.[1] ?? "";
    await until(
      async () => {
        await owner.pool.query(
          "update graphile_worker._private_jobs set run_at = now() where run_at > now() and attempts > 0 and locked_at is null",
        );
        // A job affected by two kills is suspended with a ticket, until an operator releases it.
        const released = await owner.pool.query(
          "select app_private.release_job(d.id) from app_private.job_deaths d where d.set_aside_at is not null",
        );
        kills.released += released.rows.length;
        const sent = new Set((await outside.mail.taken()).map(({ text }) => nameOf(text)));
        const missing = kept.filter(({ name }) => !sent.has(name)).map(({ id }) => id);
        return { missing, jobs: missing.length > 0 ? await jobsOf(owner.pool, missing) : [] };
      },
      ({ missing }) => missing.length === 0,
      { withinMs: 2 * stuckAfterMs },
    );
    const mails = await outside.mail.taken();
    expect(severalIds(mails.map(({ id, text }) => [nameOf(text), id])).filter(Boolean)).toEqual([]);
    kills.mails = mails.length;
    // The contents of all acknowledged files are complete.
    const store = createFileStore({ dataDir: data.path, s3: storeOptions(outside.store.port) });
    for (const checksum of beside.checksums) {
      const content = await buffer((await store.get(checksum))!);
      expect(createHash("sha256").update(content).digest("hex")).toBe(checksum);
    }
    await store.close();
    // The archive has all segments of the WAL.
    const { rows: switched } = await owner.pool.query<{ segment: string }>(
      "select pg_walfile_name(pg_switch_wal()) as segment",
    );
    const series = await openSeries(archiveFolder, folder.path, {});
    const segments = await until(
      async () => (await archivedLog(series)).filter((name) => !name.includes("history")),
      (archived) => archived.includes(switched[0]!.segment),
      { withinMs: stuckAfterMs },
    );
    // Two halves of 32 bits, of which the second counts to 255.
    const numberOf = (name: string) =>
      parseInt(name.slice(8, 16), 16) * 256 + parseInt(name.slice(16, 24), 16);
    const first = numberOf(segments[0]!);
    expect(segments.map(numberOf)).toEqual(segments.map((_, n) => first + n));
    expect(await brokenInvariants(owner.pool)).toEqual({});
  } catch (error) {
    const faults = [...ended, api.log()]
      .join("")
      .split("\n")
      .filter((line) => line.includes('"level":"error"'));
    const internal = faults.filter((line) => !/"code":"(57P0|08|ECONN)/.test(line)).slice(-20);
    internal.push(...worker.log().split("\n").slice(-20));
    // If a process has exited by itself, the last lines of its log have the reason.
    const running = Symbol("running");
    for (const [name, process] of Object.entries({ api, worker })) {
      const exit = await Promise.race([process.exit, Promise.resolve(running)]);
      if (exit === running) continue;
      const { code, stdout, stderr } = exit as Awaited<Service["exit"]>;
      internal.push(
        `The ${name} has ended with ${code}: ${stderr.slice(-2_000)}`,
        ...stdout.split("\n").slice(-12),
      );
    }
    throw new Error(
      `SEED=${seed} after ${JSON.stringify(killed)}, ${JSON.stringify(load.again)}\n${internal.join("\n")}`,
      { cause: error },
    );
  } finally {
    await Promise.all([load.stop(true), beside.stop()]);
    await Promise.all([api.stop(), worker.stop()]);
    await Promise.all(Object.values(outside).map((one) => one.kill()));
    await postgres.stop();
  }
  return {
    ...kills,
    requests: load.requests,
    leads: load.acknowledged.size,
    uploads: beside.checksums.length,
  };
}

/** Details about leads whose mail is missing: failed jobs, and the step that sends it. */
async function jobsOf(pool: Pool, leads: readonly string[]): Promise<unknown[]> {
  const { rows } = await pool.query(
    `with runs as (
       select e.id, e.status as execution, s.sequence, s.status as step, s.error from app_public.workflow_executions e
         left join lateral (select r.sequence, r.status, r.error from app_public.workflow_step_runs r where r.execution_id = e.id order by r.started_at desc limit 1) s on true
         where e.subject_id = any ($1))
     select r.execution, r.sequence, r.step, r.error, t.identifier as job, j.attempts, left(j.last_error, 100) as last_error,
       j.run_at > now() as later, j.locked_at is not null as locked, count(*)::int, min(r.id::text) as one
     from runs r left join graphile_worker._private_jobs j on j.payload ->> 'executionId' = r.id::text
       left join graphile_worker._private_tasks t on t.id = j.task_id
     group by 1, 2, 3, 4, 5, 6, 7, 8, 9 order by 10 desc limit 20`,
    [leads],
  );
  const { rows: noted } = await pool.query(
    `select d.* from app_private.mail_deliveries d join app_public.workflow_executions e
       on d.key like '%' || e.id || '%' where e.subject_id = any ($1) limit 3`,
    [leads.slice(0, 10)],
  );
  return [...rows, ...noted];
}

/** Events that were received with more than one id. */
function severalIds(taken: [what: string, id: string][]): string[] {
  const ids = new Map<string, Set<string>>();
  for (const [what, id] of taken) ids.set(what, (ids.get(what) ?? new Set()).add(id));
  return [...ids].filter(([, of]) => of.size > 1).map(([what]) => what);
}

const storeOptions = (port: number) => ({
  bucket: "plat",
  region: "us-east-1",
  endpoint: `http://127.0.0.1:${port}`,
  credentials: { accessKeyId: "S3RVER", secretAccessKey: "S3RVER" },
});

/** A process of test/faults/outside.ts, on the same port after each restart. */
async function startOutside(kind: "store" | "mail" | "receiver", place: string) {
  let child: ChildProcess;
  const start = async (port: number): Promise<number> => {
    child = startChild([join(import.meta.dirname, "outside.ts"), kind, place, String(port)], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const [told] = (await once(child.stdout!, "data")) as [Buffer];
    return Number(told.toString());
  };
  const port = await start(await freePort());
  return {
    port,
    kill: () => killChild(child),
    async restart(afterMs: number) {
      await killChild(child);
      await delay(afterMs);
      await start(port);
    },
    /** Everything that it has received and written. */
    async taken(): Promise<{ id: string; subjectId?: string; text?: string }[]> {
      const text = await readFile(place, "utf8").catch(() => "");
      return text
        .split("\n")
        .filter(Boolean)
        .map((line) => JSON.parse(line));
    },
  };
}

async function archiverPid(dataDir: string): Promise<number | undefined> {
  const postmaster = await postmasterPid(dataDir);
  const children = await readFile(`/proc/${postmaster}/task/${postmaster}/children`, "utf8").catch(() => "");
  for (const pid of children.trim().split(" ").map(Number))
    if ((await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "")).includes("archiver")) return pid;
  return undefined;
}

/** Uploads files during the load; unacknowledged files are not sent again. */
function besideLoad(to: { baseUrl: () => string; token: string; projectId: string; seed: number }) {
  const [checksums, wrong]: string[][] = [[], []];
  const state = { stopped: false };
  const agent = new Agent({ keepAlive: false });
  const ask = async (query: string, input: object): Promise<boolean> => {
    const headers = { authorization: `Bearer ${to.token}` };
    // No process is running at the moment.
    const answer = await post(agent, to.baseUrl(), { query, variables: { input } }, headers).catch(
      () => undefined,
    );
    const [error] = answer?.errors ?? [];
    if (error && !["UNAVAILABLE", "PROVIDER_ERROR"].includes(error.extensions?.code ?? ""))
      wrong!.push(`${error.extensions?.code}: ${error.message}`);
    return answer !== undefined && !error;
  };
  const go = async () => {
    const begin = await picture("png");
    for (let n = 0; !state.stopped; n += 1) {
      const content = Buffer.concat([begin, randomBytes(3_000)]);
      const file = `data:image/png;base64,${content.toString("base64")}`;
      const upload =
        "mutation ($input: UploadProjectImageInput!) { uploadProjectImage(input: $input) { id } }";
      if (await ask(upload, { projectId: to.projectId, file }))
        checksums!.push(createHash("sha256").update(content).digest("hex"));
      await delay(300);
    }
  };
  const going = go();
  return {
    checksums: checksums!,
    wrong: wrong!,
    async stop() {
      state.stopped = true;
      await going;
    },
  };
}

/** Connections of the owner, who sees everything. */
async function ownerOf(connectionString: string): Promise<AsyncDisposable & { pool: Pool }> {
  const pool = new Pool({ connectionString, max: 2, Client });
  return { pool, [Symbol.asyncDispose]: () => pool.end() };
}
