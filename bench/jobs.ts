/**
 * Overhead of the job runner for empty jobs: jobs per second of one process when many wait, and the latency of a
 * single job after its commit. Limits: 12,000/s and a p99 of 10 ms on a quiet machine. BENCH_SIZE sets the number of
 * waiting jobs. Run: npm run bench -- jobs
 */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { performance } from "node:perf_hooks";
import pino from "pino";
import { startWorker } from "../src/worker.ts";
import { percentile, withDatabase } from "./data/cluster.ts";
import { sized, unlessSmoke } from "./data/size.ts";

const waiting = sized(20_000, 20);
const single = unlessSmoke(500, 3);
const concurrency = 10;

export default async function jobs(): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "plat-bench-jobs-"));
  const began: { at?: (time: number) => void } = {};
  Object.assign(globalThis, { benchJobBegan: () => began.at?.(performance.now()) });
  try {
    await writeFile(join(folder, "nothing.js"), "export default () => globalThis.benchJobBegan();\n");
    await withDatabase(async ({ owner, workerUrl }) => {
      await owner.query(
        "select count(*) from (select graphile_worker.add_job('nothing') from generate_series(1, $1::int)) jobs",
        [waiting],
      );
      let left = waiting;
      const done = Promise.withResolvers<void>();
      began.at = () => {
        left -= 1;
        if (left === 0) done.resolve();
      };
      const start = performance.now();
      const worker = await startWorker({
        connectionString: workerUrl,
        concurrency,
        log: pino({ level: "warn" }),
        taskDirectory: folder,
      });
      try {
        await done.promise;
        const seconds = (performance.now() - start) / 1000;
        console.log(
          `${waiting.toLocaleString("en")} jobs that wait: ${Math.round(waiting / seconds).toLocaleString("en")} jobs/s`,
        );
        const delays: number[] = [];
        for (let n = 0; n < single; n += 1) {
          const started = Promise.withResolvers<number>();
          began.at = started.resolve;
          await owner.query("select graphile_worker.add_job('nothing')");
          const committed = performance.now();
          delays.push((await started.promise) - committed);
        }
        console.log(
          `from commit to start: p50 ${percentile(delays, 0.5).toFixed(1)} ms, p99 ${percentile(delays, 0.99).toFixed(1)} ms`,
        );
      } finally {
        await worker.stop();
      }
    });
  } finally {
    await rm(folder, { recursive: true });
  }
}
