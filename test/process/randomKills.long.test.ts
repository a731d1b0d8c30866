/**
 * API, worker, database and the receiver of webhooks are killed at random moments under a mixed load, and started again: no write that
 * was acknowledged is lost, nothing is done twice, no job is stuck, and what holds of deals holds.
 * `npm run test:long -- test/process/randomKills` goes on for an hour, or for KILL_SECONDS; SEED repeats a run.
 */
import { expect, test } from "@jest/globals";
// oxlint-disable-next-line no-restricted-imports -- the moments are random
import { setTimeout as delay } from "node:timers/promises";
import { Client, Pool } from "pg";
import { startEmbeddedPostgres } from "../../src/database/embedded.ts";
import { broken } from "../../src/doctor/invariants.ts";
import { secretKeys } from "../harness/api.ts";
import { Agent } from "node:https";
import { post, signIn, startLoad } from "../harness/load.ts";
import { startProxy } from "../harness/proxy.ts";
import { randomFrom } from "../harness/random.ts";
import { gone, migratedFolder, postmasterPid, startService, temporaryFolder } from "../harness/service.ts";
import { until } from "../harness/until.ts";
import { startReceiver } from "../webhooks/receiver.ts";

const seconds = Number(process.env.KILL_SECONDS ?? 3_600);
const seed = Number(process.env.SEED ?? Date.now() % 100_000);
const clients = 4;
/** A job that is due waits no longer than this for somebody who does it. */
const stuckAfterMs = 60_000;

test(
  "nothing is lost, done twice or stuck, whatever is killed and when",
  async () => {
    const random = randomFrom(seed);
    await using folder = await migratedFolder();
    await using data = await temporaryFolder();
    // As in production: fast, it would lose what was committed a moment ago.
    let postgres = await startEmbeddedPostgres({ dataDir: folder.path });
    const portOf = () => Number(new URL(postgres.connectionString).port);
    await using database = await startProxy(portOf());
    const receiver = await startReceiver();
    await using way = await startProxy(Number(new URL(receiver.url).port));
    const env = {
      DATABASE_URL: database.through(postgres.connectionString),
      DATA_DIR: data.path,
      MAIL: "outbox",
      LOOPBACK_WEBHOOKS: "1",
      SECRET_KEYS: secretKeys.map(({ kid, secret }) => `${kid}:${secret}`).join(","),
      JWT_KEYS: `a:${"k".repeat(32)}`,
      STOP_TIMEOUT: "5",
    };
    const startApi = () => startService({ env, args: ["--api-only"] });
    const startWorker = () => startService({ env, args: ["--worker-only"] });
    // Whoever serves and works loads the demo.
    await (await startService({ env: { ...env, DEMO: "1" } })).stop();
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
        steps: [{ type: "CREATE_TASK", config: { title: "Once" } }],
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
    });
    const ready = () =>
      until(
        () => api.get("/readyz").catch(() => ({ status: 0 })),
        ({ status }) => status === 200,
        { withinMs: stuckAfterMs },
      );
    const kill = {
      api: async () => {
        await api.stop("SIGKILL");
        api = await startApi();
      },
      worker: async () => {
        await worker.stop("SIGKILL");
        worker = await startWorker();
      },
      database: async () => {
        const pid = await postmasterPid(folder.path);
        process.kill(pid, "SIGKILL");
        await gone(pid);
        database.shut();
        postgres = await startEmbeddedPostgres({ dataDir: folder.path });
        database.lead(portOf());
        database.open();
        await ready();
      },
      receiver: async () => {
        way.shut();
        await delay(random(300));
        way.open();
      },
    };
    const killed: Record<string, number> = {};
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
      await load.stop();
      expect(load.wrong).toEqual([]);
      expect(load.acknowledged.size).toBeGreaterThan(0);
      await using owner = await ownerOf(postgres.connectionString);

      // Whatever is due is done soon, by those that are there.
      await until(
        async () =>
          (
            await owner.pool.query(
              `select j.id, j.attempts, j.last_error from graphile_worker._private_jobs j
               where j.run_at < now() and j.attempts < j.max_attempts
               union all select 0, 0, e.id::text from app_public.workflow_executions e
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
            `select l.id, l.name, (select count(*)::int from app_public.tasks t where t.lead_id = l.id and t.title = 'Once') as tasks
             from app_public.leads l where l.name like 'Load %' and l.project_id = $1`,
            [projectId],
          ),
        ({ rows }) => rows.every(({ tasks }) => tasks > 0),
        { withinMs: stuckAfterMs },
      ).catch(async () => {
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
        throw new Error(`Leads without a task: ${JSON.stringify(rows)} ${JSON.stringify(streams)}`);
      });
      const kept = found.rows;
      const names = new Map(kept.map(({ id, name }) => [id, name]));
      // What was acknowledged is there; what was sent again is there once.
      expect([...load.acknowledged].filter(([id, name]) => names.get(id) !== name)).toEqual([]);
      expect(new Set(names.values()).size).toBe(kept.length);
      expect(kept.filter(({ tasks }) => tasks !== 1)).toEqual([]);
      // At least once, under one id for each event.
      await until(
        () => new Set(receiver.messages.map(({ event }) => event.subjectId)),
        (told) => kept.every(({ id }) => told.has(id)),
        { withinMs: stuckAfterMs },
      );
      const ids = new Map<string, Set<string>>();
      for (const { id, event } of receiver.messages)
        ids.set(event.subjectId, (ids.get(event.subjectId) ?? new Set()).add(id));
      expect([...ids].filter(([, of]) => of.size !== 1)).toEqual([]);
      expect(await broken(owner.pool)).toEqual({});
    } catch (error) {
      throw new Error(`SEED=${seed} after ${JSON.stringify(killed)}, ${JSON.stringify(load.again)}`, {
        cause: error,
      });
    } finally {
      await load.stop();
      await Promise.all([api.stop(), worker.stop()]);
      await receiver.close();
      await postgres.stop();
    }
    process.stderr.write(
      `SEED=${seed}: killed ${JSON.stringify(killed)}; ${load.requests} requests, ${load.acknowledged.size} leads, sent again ${JSON.stringify(load.again)}\n`,
    );
  },
  (seconds + 240) * 1_000,
);

/** Connections of the owner, who sees everything. */
async function ownerOf(connectionString: string): Promise<AsyncDisposable & { pool: Pool }> {
  const pool = new Pool({ connectionString, max: 2, Client });
  return { pool, [Symbol.asyncDispose]: () => pool.end() };
}
