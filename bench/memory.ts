/**
 * Memory of one process that serves the API like `npm start -- --api-only`, over HTTPS: after many different
 * documents, each sent once; after many requests of repeated documents; and with 200 concurrent connections, compared
 * with 8.
 * Claim: it uses no more memory after the last tenth of the requests than after the first, and none of the 200
 * concurrent requests fails. BENCH_SIZE sets the number of requests, and a fiftieth of it the number of documents.
 * Run: BENCH_SIZE=1000000 npm run bench -- memory
 */
import { percentile, withDatabase } from "./data/cluster.ts";
import { sized, unlessSmoke } from "./data/size.ts";
import { contestants, keys } from "./peers/contestants.ts";
import { loadPeers } from "./peers/data.ts";
import { Line, load, type RequestOf } from "./peers/load.ts";
import { memoryOf } from "./peers/measure.ts";
import { works, type Work } from "./peers/works.ts";

const REQUESTS = sized(1_000_000, 40);
const DOCUMENTS = Math.ceil(REQUESTS / 50);
const SECONDS = unlessSmoke(5, 0.05);
const reads = works.filter(({ writes, name }) => !writes && name !== "Search");

/** A different document each time. */
const different: Work = { name: "Viewer", title: "different documents", document: "" };
const documentOf = (n: number) =>
  `query Viewer { viewer { id n${n}: firstName ${n % 3 === 0 ? "lastName" : "email"} } publicProjects(first: ${1 + (n % 50)}) { id title p${n}: slug } }`;

export default async function memory(): Promise<void> {
  await withDatabase(async (database) => {
    const viewers = await loadPeers(database, unlessSmoke(2_000, 100), keys);
    const [plat] = contestants(["Plat"]);
    const running = await plat!.start(database);
    const tell = async (what: string) => {
      const { now, most } = await memoryOf(running.pid);
      console.log(`  ${what.padEnd(36)}${now.toFixed(0).padStart(6)} MB, at most ${most.toFixed(0)}`);
    };
    const asking: RequestOf = (work, n) => {
      const viewer = viewers[n % viewers.length]!;
      return {
        asked: {
          query: work === different ? documentOf(n) : work.document,
          operationName: work.name,
          variables: work.variables?.(viewer, n) ?? {},
        },
        token: work.anonymous ? undefined : running.token(viewer),
      };
    };
    let n = 0;
    const ask = async (list: readonly Work[], connections: number, most: number, seconds = Infinity) => {
      const lines = await Promise.all(Array.from({ length: connections }, () => Line.open(running.port)));
      const run = await load(lines, list, seconds, asking, n, most);
      for (const line of lines) line.close();
      n += run.count;
      if (run.failures.length > 0)
        throw new Error(`${run.failures.length} of ${run.count} requests failed: ${run.failures[0]}`);
      return run.took;
    };
    try {
      await tell("started");
      for (let part = 1; part <= 4; part += 1) {
        await ask([different], 8, DOCUMENTS / 4);
        await tell(`${Math.round((DOCUMENTS * part) / 4)} different documents`);
      }
      for (let part = 1; part <= 10; part += 1) {
        await ask(reads, 16, REQUESTS / 10);
        await tell(`${Math.round((REQUESTS * part) / 10)} requests`);
      }
      const few = await ask(reads, 8, Infinity, SECONDS);
      const many = await ask(reads, unlessSmoke(200, 20), Infinity, SECONDS);
      const [p50, p99] = [percentile(few, 0.5), percentile(many, 0.99)];
      console.log(
        `  8 connections: p50 ${p50.toFixed(1)} ms; 200: p99 ${p99.toFixed(1)} ms, × ${(p99 / p50).toFixed(1)}`,
      );
      await tell("200 connections");
    } finally {
      await running.stop();
    }
  });
}
