/**
 * Compares the service with other GraphQL servers on Node, and with a ceiling that has no GraphQL and generates the
 * JSON in SQL: over HTTPS, each in its own process on one database, alternately; medians of the rounds. docs/speed.md
 * describes what is compared and how to interpret it.
 * `npm ci --prefix bench/peers` installs the others; without them, only the service and the ceiling run. BENCH_SIZE
 * sets the number of leads; bench/peers/sizes.ts has the other settings. BENCH_OUT is a folder for the table and the
 * chart.
 */
import { createHash } from "node:crypto";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Client } from "pg";
import { startWireCounter, type WireCounter } from "./peers/wireCounter.ts";
import { percentile, withDatabase } from "./data/cluster.ts";
import { smoke } from "./data/size.ts";
import { contestants, keys, type Contestant, type Running } from "./peers/contestants.ts";
import { loadPeers, type Viewer } from "./peers/data.ts";
import { runWork, Line, load, type RequestOf } from "./peers/load.ts";
import { cpuOf, cpuOfEach, memoryOf, since } from "./peers/measure.ts";
import { chart, machine, table, type Figures, type Results } from "./peers/report.ts";
import { CONNECTIONS, LEADS, only, ROUNDS, SECONDS } from "./peers/sizes.ts";
import { mix, works, type Work } from "./peers/works.ts";

const chosen = works.filter(({ name }) => only.work.length === 0 || only.work.includes(name));

/** The id of a registered document. */
const idOf = (text: string) => `sha256:${createHash("sha256").update(text).digest("hex")}`;

/** The requests of a contestant. */
const askingOf =
  (contestant: Contestant, running: Running, viewers: readonly Viewer[]): RequestOf =>
  (work, n) => {
    const viewer = viewers[n % viewers.length]!;
    const given = work.variables?.(viewer, Math.floor(n / viewers.length)) ?? {};
    return {
      asked: {
        ...(contestant.isRegistered
          ? { documentId: idOf(work.document) }
          : { query: contestant.documents?.[work.name] ?? work.document }),
        operationName: work.name,
        variables: contestant.variables?.[work.name]?.(given, viewer) ?? given,
      },
      token: work.anonymous ? undefined : running.token(viewer),
    };
  };

const can = (contestant: Contestant, work: Work) => contestant.documents?.[work.name] !== null;

/** Number of values of a response, at any depth. */
const values = (data: unknown): number =>
  typeof data === "object" && data !== null
    ? Object.values(data).reduce((sum: number, value) => sum + values(value), 0)
    : 1;

/** Server processes of the database, except for that of this connection. */
async function backends(owner: Client): Promise<number[]> {
  const { rows } = await owner.query<{ pid: number }>(
    "select pid from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()",
  );
  return rows.map(({ pid }) => pid);
}

interface Counted {
  statements: number;
  roundTrips: number;
}

/**
 * Statements and round trips of each kind of work, at its third execution, when all caches are filled. The responses
 * must contain as many values as those of the others.
 */
async function count(
  contestant: Contestant,
  running: Running,
  counter: WireCounter,
  viewers: readonly Viewer[],
  held: Map<string, number>,
): Promise<Map<string, Counted>> {
  const line = await Line.open(running.port);
  const found = new Map<string, Counted>();
  try {
    for (const work of chosen.filter((one) => can(contestant, one))) {
      // Changed records are not among those that the next contestant reads.
      const asking = askingOf(contestant, running, [viewers[work.writes ? 1 : 0]!]);
      for (let n = 0; n < 3; n += 1) {
        counter.take();
        // Work that changes data uses another record each time; other work uses the same record for every contestant.
        const data = await runWork(line, work, work.writes ? n : Math.min(n, 1), asking);
        if (n < 2) continue;
        found.set(work.name, counter.take());
        if (work.writes) continue;
        const amount = values(data);
        const expected = held.get(work.name) ?? amount;
        held.set(work.name, expected);
        if (amount !== expected)
          throw new Error(
            `${contestant.name} answers ${work.name} with ${amount} values, others with ${expected}: ${JSON.stringify(data).slice(0, 1000)}`,
          );
      }
    }
  } finally {
    line.close();
  }
  return found;
}

export default async function peers(): Promise<void> {
  await withDatabase(async (database) => {
    const start = performance.now();
    const viewers = await loadPeers(database, LEADS, keys);
    console.log(
      `${LEADS} leads, loaded in ${((performance.now() - start) / 1000).toFixed(0)} s; ${CONNECTIONS} connections, ${ROUNDS} × ${SECONDS} s. ${machine()}`,
    );
    for (const { document } of works)
      await database.owner.query("select app_private.register_document($1, $2)", [idOf(document), document]);
    const all = contestants(only.contestants);
    const counted = new Map<string, Map<string, Counted>>();
    const held = new Map<string, number>();
    const running = new Map<Contestant, Running>();
    const url = new URL(database.authenticatorUrl);
    const counter = await startWireCounter(Number(url.port), url.hostname);
    url.hostname = "127.0.0.1";
    url.port = `${counter.port}`;
    const results: Results = new Map();
    const memory = new Map<string, { now: number; most: number }>();
    try {
      for (const contestant of all) {
        const behind = await contestant.start({ ...database, authenticatorUrl: url.href });
        running.set(contestant, behind);
        counted.set(contestant.name, await count(contestant, behind, counter, viewers, held));
        // A smoke test measures nothing, so one process is enough.
        if (smoke) continue;
        await behind.stop();
        running.set(contestant, await contestant.start(database));
      }
      let n = 0;
      const mixed = Object.entries(mix).flatMap(([name, times]) =>
        Array.from({ length: times }, () => works.find((work) => work.name === name)!),
      );
      // Mixed, in the same order each time.
      const spread = mixed.map((_, index) => mixed[(index * 37) % mixed.length]!);
      const rows: { title: string; name: string; of: readonly Work[] }[] = [
        ...chosen.map((work) => ({ title: work.title, name: work.name, of: [work] })),
        ...(only.work.length === 0 || only.work.includes("Mixed")
          ? [{ title: "11 mixed", name: "Mixed", of: spread }]
          : []),
      ];
      for (const { title, name, of } of rows) {
        const taking = all.filter((contestant) => of.every((work) => can(contestant, work)));
        const figures = new Map(taking.map(({ name: who }) => [who, [] as Figures[]]));
        for (let round = -1; round < ROUNDS; round += 1) {
          // Another contestant begins each round.
          for (let turn = 0; turn < taking.length; turn += 1) {
            const contestant = taking[(turn + Math.max(round, 0)) % taking.length]!;
            const server = running.get(contestant)!;
            const asking = askingOf(contestant, server, viewers);
            const lines = await Promise.all(
              Array.from({ length: CONNECTIONS }, () => Line.open(server.port)),
            );
            const before = [
              await cpuOf(server.pid),
              await cpuOfEach(await backends(database.owner)),
            ] as const;
            const run = await load(lines, of, round < 0 ? SECONDS / 3 : SECONDS, asking, n);
            const after = [await cpuOf(server.pid), await cpuOfEach(await backends(database.owner))] as const;
            n += run.count;
            for (const line of lines) line.close();
            // The first round is a warm-up.
            if (round < 0) continue;
            figures.get(contestant.name)!.push({
              perSecond: run.took.length / (run.elapsed / 1000),
              p50: percentile(run.took, 0.5),
              p95: percentile(run.took, 0.95),
              p99: percentile(run.took, 0.99),
              server: (after[0] - before[0]) / run.count,
              database: since(before[1], after[1]) / run.count,
              statements: Number.NaN,
              roundTrips: Number.NaN,
              failures: run.failures.length,
            });
            if (run.failures.length > 0) console.log(`  ${contestant.name}: ${run.failures[0]}`);
          }
        }
        const ofWork = new Map<string, Figures>();
        for (const [who, list] of figures) {
          const median = (key: keyof Figures) =>
            percentile(
              list.map((one) => one[key]),
              0.5,
            );
          ofWork.set(who, {
            perSecond: median("perSecond"),
            p50: median("p50"),
            p95: median("p95"),
            p99: median("p99"),
            server: median("server"),
            database: median("database"),
            failures: list.reduce((sum, one) => sum + one.failures, 0),
            ...(counted.get(who)!.get(name) ?? { statements: Number.NaN, roundTrips: Number.NaN }),
          });
        }
        results.set(title, ofWork);
        console.log(title);
        for (const [who, f] of ofWork)
          console.log(
            `  ${who.padEnd(24)}${f.perSecond.toFixed(0).padStart(7)}/s  p50 ${f.p50.toFixed(1)}  p99 ${f.p99.toFixed(1)} ms  CPU ${Number.isFinite(f.server) ? f.server.toFixed(0) : "–"} + ${Number.isFinite(f.database) ? f.database.toFixed(0) : "–"} µs`,
          );
      }
      for (const [{ name }, { pid }] of running) memory.set(name, await memoryOf(pid));
    } finally {
      for (const server of running.values()) await server.stop();
      await counter.close();
    }
    const folder = process.env.BENCH_OUT;
    if (folder) {
      await mkdir(folder, { recursive: true });
      await writeFile(join(folder, "peers.md"), `${machine()}; ${LEADS} leads\n\n${table(results, memory)}`);
      await writeFile(join(folder, "peers.svg"), chart(results));
    }
  });
}
