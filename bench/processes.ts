/**
 * Scaling with the number of processes: reads of leads by id and of lists, over HTTPS, by one process and by several
 * on one port, alternately. Limit: 0.8 of linear scaling while processors are available; the load generator and the
 * database use some of them. Run: npm run bench -- processes
 */
import { availableParallelism } from "node:os";
import { withDatabase } from "./data/cluster.ts";
import { unlessSmoke } from "./data/size.ts";
import { contestants, keys, type Running } from "./peers/contestants.ts";
import { loadPeers } from "./peers/data.ts";
import { Line, load, type RequestOf } from "./peers/load.ts";
import { works } from "./peers/works.ts";

const SECONDS = unlessSmoke(4, 0.05);
const ROUNDS = unlessSmoke(3, 1);
const CONNECTIONS = unlessSmoke(32, 2);
/** Numbers of processes that are compared. For each serving process, the database uses about half a processor. */
const counts = unlessSmoke([1, 2, 3].slice(0, Math.max(2, availableParallelism() - 1)), [1]);
const asked = works.filter(({ name }) => ["Lead", "Leads"].includes(name));

const median = (values: number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1]!;

export default async function processes(): Promise<void> {
  await withDatabase(async (database) => {
    const viewers = await loadPeers(database, unlessSmoke(20_000, 100), keys);
    const [plat] = contestants(["Plat"]);
    const rates = new Map<number, number[]>(counts.map((count) => [count, []]));
    let n = 0;
    const measure = async (running: Running, seconds: number): Promise<number> => {
      const asking: RequestOf = (work, turn) => {
        const viewer = viewers[turn % viewers.length]!;
        const variables = work.variables?.(viewer, turn) ?? {};
        return {
          asked: { query: work.document, operationName: work.name, variables },
          token: running.token(viewer),
        };
      };
      const lines = await Promise.all(Array.from({ length: CONNECTIONS }, () => Line.open(running.port)));
      const run = await load(lines, asked, seconds, asking, n);
      for (const line of lines) line.close();
      n += run.count;
      if (run.failures.length > 0)
        throw new Error(`${run.failures.length} of ${run.count} requests failed: ${run.failures[0]}`);
      return run.count / seconds;
    };
    for (let round = 0; round < ROUNDS; round += 1) {
      for (const count of counts) {
        const running = await plat!.start(database, { API_PROCESSES: String(count) });
        try {
          await measure(running, SECONDS / 2);
          rates.get(count)!.push(await measure(running, SECONDS));
        } finally {
          await running.stop();
        }
      }
    }
    const one = median(rates.get(1)!);
    for (const [count, measured] of rates) {
      const rate = median(measured);
      console.log(
        `${count} process${count === 1 ? "" : "es"}: ${Math.round(rate).toLocaleString("en")} requests/s, ${(rate / one / count).toFixed(2)} of linear growth`,
      );
    }
  });
}
