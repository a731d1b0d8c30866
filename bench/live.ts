/**
 * Live events: readers of streams over TLS, the 20 members of each organization; half of them 50 per organization,
 * half 500. Measures, for either size, the latency of an event, from its statement and from its commit to each reader
 * of its organization, at 20 events per second; deliveries per second when several writers write as fast as possible;
 * the memory and CPU time of the service; and the number of its reads.
 * Claim: 10,000 readers in 1 GB; half of all events arrive within 10 ms after the commit, 99 of 100 within 100 ms;
 * 50,000 deliveries per second. BENCH_SIZE sets the number of readers. Run: BENCH_SIZE=10000 npm run bench -- live
 */
import { once } from "node:events";
import { get } from "node:http";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import { Pool } from "pg";
import { createLoginTokens } from "../src/auth/loginToken.ts";
import { freePort } from "../src/network/freePort.ts";
import { signUp } from "../test/harness/signUp.ts";
import { until } from "../test/harness/until.ts";
import { percentile, withDatabase } from "./data/cluster.ts";
import { sized, unlessSmoke } from "./data/size.ts";
import type { Arrivals, ReadersData } from "./data/streamReaders.ts";
import { contestants, keys } from "./peers/contestants.ts";
import { cpuOf, memoryOf } from "./peers/measure.ts";

const readers = sized(2_000, 20);
/** Readers of an organization: of each size, as many organizations as take half of the readers. */
const sizes = unlessSmoke([50, 500], [2, 10]);
const claims = unlessSmoke(20, 2);
const amounts = sizes.flatMap((size) =>
  Array.from({ length: Math.max(1, Math.round(readers / 2 / size)) }, () => size),
);
/** Events per size. */
const singles = unlessSmoke(200, 3);
const pauseMs = unlessSmoke(50, 1);
const writers = 4;
const burst = unlessSmoke(2_000, 8);
const threads = unlessSmoke(2, 1);

const now = () => performance.timeOrigin + performance.now();

/** Opens the readers of a thread. */
async function startReaders(data: ReadersData): Promise<Worker> {
  const worker = new Worker(join(import.meta.dirname, "data/streamReaders.ts"), { workerData: data });
  await once(worker, "message");
  return worker;
}

async function ask<T>(worker: Worker, what: "count" | "take"): Promise<T> {
  const answered = once(worker, "message");
  worker.postMessage(what);
  return (await answered)[0] as T;
}

/** The value of a metric of the service. */
const counterOf = (port: number, name: string) =>
  new Promise<number>((found, failed) => {
    get(`http://127.0.0.1:${port}/metrics`, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (part: string) => (text += part));
      response.on("end", () => found(Number(new RegExp(`^${name} (\\d+)`, "m").exec(text)?.[1])));
    }).once("error", failed);
  });

export default async function live(): Promise<void> {
  await withDatabase(async (database) => {
    const pool = new Pool({ connectionString: database.ownerUrl, max: 4 });
    const sign = createLoginTokens(keys).sign;
    const one = async (text: string, values: unknown[]) =>
      (await pool.query<{ id: string }>(text, values)).rows[0]!.id;
    const streams: { organizationId: string; projectId: string; tokens: string[] }[] = [];
    for (const [n, amount] of amounts.entries()) {
      const people: Awaited<ReturnType<typeof signUp>>[] = [];
      for (let person = 0; person < claims; person += 1)
        people.push(await signUp(pool, "Reader", (text) => sign(JSON.parse(text) as never)));
      const organizationId = await one(
        "insert into app_public.organizations (name) values ($1) returning id",
        [`Live ${n}`],
      );
      await pool.query(
        `insert into app_public.organization_user_connections (organization_id, user_id, role)
         select $1, u.id, (array['OWNER', 'ADMIN', 'MEMBER'])[1 + n % 3] from unnest($2::uuid[]) with ordinality u (id, n)`,
        [organizationId, people.map(({ id }) => id)],
      );
      const projectId = await one(
        "insert into app_public.projects (organization_id, title, status) values ($1, 'P', 'SELLING') returning id",
        [organizationId],
      );
      streams.push({
        organizationId,
        projectId,
        tokens: Array.from({ length: amount }, (_, reader) => people[reader % claims]!.token),
      });
    }
    const monitoring = await freePort();
    const opened = amounts.reduce((sum, amount) => sum + amount, 0);
    const [plat] = contestants(["Plat"]);
    const running = await plat!.start(database, {
      MONITORING: `127.0.0.1:${monitoring}`,
      STREAMS: `${opened + 10}`,
      STREAMS_PER_ORGANIZATION: `${opened + 10}`,
      STREAMS_PER_VIEWER: `${opened + 10}`,
    });
    const workers: Worker[] = [];
    try {
      const before = await memoryOf(running.pid);
      const openedAt = performance.now();
      const starting = Array.from({ length: threads }, (_, n) =>
        startReaders({
          port: running.port,
          readers: streams.flatMap(({ organizationId, tokens }, number) =>
            number % threads === n ? tokens.map((token) => ({ organizationId, token })) : [],
          ),
          firstAddress: n * 500,
        }),
      );
      workers.push(...(await Promise.all(starting)));
      const opening = (performance.now() - openedAt) / 1000;
      const open = await memoryOf(running.pid);
      console.log(
        `  ${opened} readers of ${amounts.length} organizations with ${claims} sets of claims each, opened in ${opening.toFixed(1)} s; ${before.now.toFixed(0)} MB before, ${open.now.toFixed(0)} MB open, ${(((open.now - before.now) * 1024) / opened).toFixed(0)} KB each`,
      );
      const arrived = async () => {
        const counts = await Promise.all(workers.map((worker) => ask<number>(worker, "count")));
        return counts.reduce((sum, count) => sum + count, 0);
      };
      const take = async () => {
        const taken = await Promise.all(
          workers.map((worker) => ask<{ taken: Arrivals; wrong: number }>(worker, "take")),
        );
        const wrong = taken.reduce((sum, part) => sum + part.wrong, 0);
        if (wrong > 0) throw new Error(`${wrong} events came out of their order.`);
        return taken.flatMap((part) => part.taken);
      };
      const write = ({ projectId }: (typeof streams)[number], n: number) =>
        pool.query("insert into app_public.leads (project_id, name) values ($1, $2)", [
          projectId,
          `Lead ${n}`,
        ]);
      const times = new Map<string, { sent: number; committed: number }>();
      const counts = new Map(streams.map(({ organizationId }) => [organizationId, 0]));
      const sequences = new Map<string, number>();
      const { rows: heads } = await pool.query<{ stream_id: string; last_sequence: string }>(
        "select stream_id, last_sequence from app_private.event_counters where stream_id = any ($1)",
        [streams.map(({ organizationId }) => organizationId)],
      );
      for (const { stream_id, last_sequence } of heads) sequences.set(stream_id, Number(last_sequence));
      for (const size of sizes) {
        const followed = streams.filter(({ tokens }) => tokens.length === size);
        const readsBefore = await counterOf(monitoring, "plat_live_reads_total");
        for (let n = 0; n < singles; n += 1) {
          const stream = followed[n % followed.length]!;
          const { organizationId } = stream;
          counts.set(organizationId, counts.get(organizationId)! + 1);
          const key = `${organizationId} ${sequences.get(organizationId)! + counts.get(organizationId)!}`;
          const sent = now();
          await write(stream, n);
          times.set(key, { sent, committed: now() });
          const end = now() + pauseMs;
          await until(() => now() >= end);
        }
        await until(arrived, (count) => count >= singles * size, { withinMs: 60_000 });
        const reads = (await counterOf(monitoring, "plat_live_reads_total")) - readsBefore;
        const sinceCommit: number[] = [];
        const sinceStatement: number[] = [];
        for (const [key, at] of await take()) {
          const { sent, committed } = times.get(key)!;
          for (const time of at) {
            sinceCommit.push(time - committed);
            sinceStatement.push(time - sent);
          }
        }
        const spread = (all: number[]) =>
          `p50 ${percentile(all, 0.5).toFixed(1)} ms, p99 ${percentile(all, 0.99).toFixed(1)} ms`;
        console.log(
          `  ${singles} events, one at a time, each to ${size} readers: ${spread(sinceCommit)} from the commit to a reader, ${spread(sinceStatement)} from the statement; ${(reads / singles).toFixed(1)} reads of each`,
        );
      }

      const largest = streams.filter(({ tokens }) => tokens.length === sizes.at(-1));
      const begunAt = now();
      const cpu = await cpuOf(running.pid);
      await Promise.all(
        Array.from({ length: writers }, async (_, writer) => {
          for (let n = writer; n < burst; n += writers) await write(largest[n % largest.length]!, n);
        }),
      );
      const deliveries = burst * sizes.at(-1)!;
      await until(arrived, (count) => count >= deliveries, { withinMs: 300_000 });
      const spent = ((await cpuOf(running.pid)) - cpu) / 1e6;
      const ends = (await take()).flatMap(([, at]) => at.reduce((most, time) => Math.max(most, time), 0));
      const seconds = (Math.max(...ends) - begunAt) / 1000;
      const { now: memory, most } = await memoryOf(running.pid);
      console.log(
        `  ${burst} events, as fast as ${writers} writers can, each to ${sizes.at(-1)} readers: ${Math.round(deliveries / seconds)} deliveries/s, ${((spent * 1e6) / deliveries).toFixed(1)} µs of the processor each; ${memory.toFixed(0)} MB, at most ${most.toFixed(0)}`,
      );
    } finally {
      for (const worker of workers) await worker.terminate();
      await running.stop();
      await pool.end();
    }
  });
}
