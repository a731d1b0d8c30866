/**
 * Webhook deliveries, from the commit of the event to the recorded response. Measures deliveries per second of one
 * process to a real HTTPS receiver, signed and logged, for many organizations and for a single webhook; the CPU time
 * per delivery; and the latency of a single event after its commit. Limit: 1,500/s. BENCH_SIZE sets the number of
 * deliveries. Run: npm run bench -- deliveries
 */
import { once } from "node:events";
import { performance } from "node:perf_hooks";
import { Worker } from "node:worker_threads";
import type { Client } from "pg";
import pino from "pino";
import { createCompute } from "../src/compute/computePool.ts";
import { createSeal, secretOfWebhook } from "../src/secrets/seal.ts";
import { startDispatcher } from "../src/webhooks/dispatcher.ts";
import { freshSecret } from "../src/webhooks/signature.ts";
import { secretKeys } from "../test/harness/api.ts";
import { testCertificate } from "../test/harness/certificate.ts";
import { until } from "../test/harness/until.ts";
import { percentile, withDatabase } from "./data/cluster.ts";
import { sized, unlessSmoke } from "./data/size.ts";
import type { ReceiverCount, ReceiverData } from "./data/webhookReceiver.ts";

/** Number of deliveries per measurement; set by BENCH_SIZE. */
const amount = sized(20_000, 12);
const organizations = unlessSmoke(20, 2);
const webhooksOfEach = 2;
const single = unlessSmoke(200, 2);

interface Stream {
  project: string;
  paths: string[];
}

/** Creates an organization with a project and webhooks for its leads, and stores their secrets by path. */
async function makeStream(
  owner: Client,
  name: string,
  webhooks: number,
  keep: (webhook: string, path: string) => { sealed: string },
): Promise<Stream & { webhookIds: string[] }> {
  const one = async (text: string, values: unknown[]) =>
    (await owner.query<{ id: string }>(text, values)).rows[0]!.id;
  const organization = await one("insert into app_public.organizations (name) values ($1) returning id", [
    name,
  ]);
  await owner.query(
    "insert into app_public.organization_user_connections (organization_id, user_id, role) values ($1, app_public.current_user_id(), 'OWNER')",
    [organization],
  );
  const project = await one(
    "insert into app_public.projects (organization_id, title, status) values ($1, 'P', 'SELLING') returning id",
    [organization],
  );
  const made: Stream & { webhookIds: string[] } = { project, paths: [], webhookIds: [] };
  for (let n = 0; n < webhooks; n += 1) {
    const path = `/${organization}/${n}`;
    const webhook = await one(
      `insert into app_public.webhooks (organization_id, url, events, secret_prefix)
       values ($1, 'https://localhost' || $2, '{lead.created}', 'whsec_') returning id`,
      [organization, path],
    );
    await owner.query("insert into app_private.webhook_secrets (webhook_id, sealed) values ($1, $2)", [
      webhook,
      keep(webhook, path).sealed,
    ]);
    await owner.query(
      `insert into app_private.webhook_progress (webhook_id, organization_id, last_sequence)
       select $1, $2, coalesce((select c.last_sequence from app_private.event_counters c where c.stream_id = $2), 0)`,
      [webhook, organization],
    );
    await owner.query(
      "insert into app_private.webhook_health (webhook_id, organization_id) values ($1, $2)",
      [webhook, organization],
    );
    made.paths.push(path);
    made.webhookIds.push(webhook);
  }
  return made;
}

export default async function deliveries(): Promise<void> {
  const { cert, key } = await testCertificate();
  const seal = createSeal(secretKeys);
  const compute = createCompute({ log: pino({ level: "warn" }) });
  try {
    await withDatabase(async ({ owner, workerUrl }) => {
      const secrets: Record<string, string> = {};
      const keep = (webhook: string, path: string) => {
        const secret = freshSecret();
        secrets[path] = secret;
        return { sealed: seal.seal(secret, secretOfWebhook(webhook)) };
      };
      const { rows } = await owner.query<{ id: string }>(
        "insert into app_public.users (first_name, last_name) values ('A', 'B') returning id",
      );
      await owner.query("select set_config('plat.user_id', $1, false)", [rows[0]!.id]);
      const many: Stream[] = [];
      for (let n = 0; n < organizations; n += 1)
        many.push(await makeStream(owner, `Bench ${n}`, webhooksOfEach, keep));
      const alone = await makeStream(owner, "Bench of one", 1, keep);
      const thread = new Worker(new URL("data/webhookReceiver.ts", import.meta.url), {
        workerData: { cert, key, secrets } satisfies ReceiverData,
      });
      let count: ReceiverCount = { received: 0, refused: 0, connections: 0, at: 0 };
      const [port] = (await once(thread, "message")) as [number];
      thread.on("message", (told: ReceiverCount) => (count = told));
      await owner.query(
        "update app_public.webhooks set url = replace(url, 'https://localhost/', 'https://localhost:' || $1 || '/')",
        [port],
      );
      const dispatch = () =>
        startDispatcher({
          connectionString: workerUrl,
          seal,
          loopback: true,
          compute,
          log: pino({ level: "warn" }),
        });
      const isOver = async () =>
        (await owner.query("select from app_private.webhook_queue limit 1")).rowCount === 0 &&
        (
          await owner.query(
            `select from app_private.webhook_progress p join app_private.event_counters c on c.stream_id = p.organization_id
             and c.last_sequence > p.last_sequence limit 1`,
          )
        ).rowCount === 0;
      try {
        const measure = async (title: string, streams: Stream[]) => {
          const deliveriesOfEach = streams.reduce((sum, { paths }) => sum + paths.length, 0);
          const leads = Math.max(1, Math.round(amount / deliveriesOfEach));
          for (const { project } of streams)
            await owner.query(
              "insert into app_public.leads (project_id, name) select $1, 'Lead ' || n from generate_series(1, $2::int) n",
              [project, leads],
            );
          const sent = leads * deliveriesOfEach;
          const before = count;
          const cpu = process.cpuUsage();
          const cpuOfReceiver = await thread.cpuUsage();
          const start = performance.now();
          const dispatcher = await dispatch();
          await until(
            () => count.received - before.received,
            (received) => received >= sent,
            { withinMs: 600_000 },
          );
          await until(isOver, (is) => is, { withinMs: 600_000 });
          const seconds = (performance.now() - start) / 1000;
          await dispatcher.stop();
          const { user, system } = process.cpuUsage(cpu);
          const receiver = await thread.cpuUsage(cpuOfReceiver);
          const each = (user + system - receiver.user - receiver.system) / sent;
          console.log(
            `${title}: ${sent.toLocaleString("en")} deliveries, ${Math.round(sent / seconds).toLocaleString("en")}/s, ` +
              `${Math.round(each).toLocaleString("en")} µs of this process each, ${count.connections - before.connections} connections`,
          );
        };
        await measure(`${organizations} organizations with ${webhooksOfEach} webhooks each`, many);
        await measure("One webhook", [alone]);
        const dispatcher = await dispatch();
        const delays: number[] = [];
        for (let n = 0; n < single; n += 1) {
          const { received } = count;
          await owner.query("insert into app_public.leads (project_id, name) values ($1, 'Single')", [
            alone.project,
          ]);
          const committed = performance.timeOrigin + performance.now();
          await until(() => count.received > received);
          delays.push(count.at - committed);
        }
        console.log(
          `from commit to receipt: p50 ${percentile(delays, 0.5).toFixed(1)} ms, p99 ${percentile(delays, 0.99).toFixed(1)} ms`,
        );
        await until(isOver);
        await dispatcher.stop();
        if (count.refused > 0)
          throw new Error(`${count.refused} deliveries were not signed as they should be.`);
      } finally {
        await thread.terminate();
      }
    });
  } finally {
    await compute.stop();
  }
}
