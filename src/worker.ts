import { EventEmitter } from "node:events";
import { join } from "node:path";
import { Logger as WorkerLogger, run, WorkerPreset, type WorkerEvents } from "graphile-worker";
import { withLockTimeout } from "./database/pool.ts";
import { watchWorkers } from "./jobs/liveness.ts";
import type { Logger } from "./log.ts";

export interface WorkerOptions {
  /** The owner's: the job runner's schema is open to nobody else. */
  connectionString: string;
  /** Jobs at a time. */
  concurrency: number;
  log: Logger;
  /** Presets that give tasks what they need. */
  presets?: GraphileConfig.Preset[];
  /** Where the tasks are. */
  taskDirectory?: string;
  /** How often it looks for workers that died. */
  lookEveryMs?: number;
}

export interface Worker {
  isRunning(): boolean;
  /** Takes no further jobs, waits for the running ones; after 15 seconds they are given up and retried later. */
  stop(): Promise<void>;
}

const giveUpAfterMs = 15_000;

/** Runs the background jobs in this process: one file of src/tasks each, and src/crontab. */
export async function startWorker(options: WorkerOptions): Promise<Worker> {
  const { connectionString, concurrency, log, presets = [] } = options;
  const { taskDirectory = join(import.meta.dirname, "tasks"), lookEveryMs } = options;
  const liveness = await watchWorkers({
    connectionString,
    log,
    ...(lookEveryMs !== undefined && { lookEveryMs }),
  });
  const events: WorkerEvents = new EventEmitter();
  events.on("pool:create", ({ workerPool }) => liveness.begin(workerPool.id));
  const runner = await run({
    noHandleSignals: true,
    events,
    preset: {
      extends: [WorkerPreset, ...presets],
      worker: {
        connectionString: withLockTimeout(connectionString),
        taskDirectory,
        // Not among the tasks: the job runner would take it for one.
        crontabFile: join(import.meta.dirname, "crontab"),
        concurrentJobs: concurrency,
        maxPoolSize: concurrency + 3,
        // With batching, one job that was done stays locked at each graceful stop and runs again hours later.
        completeJobBatchDelay: 0,
        failJobBatchDelay: 0,
        logger: workerLog(log),
      },
    },
  }).catch(async (error: unknown) => {
    await liveness.end();
    throw error;
  });
  let running = true;
  const ended = runner.promise
    .catch((error: unknown) => log.error({ err: error }, "The job runner failed."))
    .finally(() => {
      running = false;
      return liveness.end();
    });
  return {
    isRunning: () => running,
    stop: async () => {
      if (!running) return;
      const giveUp = setTimeout(
        () => void runner.kill("a job did not end in time").catch(() => {}),
        giveUpAfterMs,
      );
      await runner.stop();
      await ended;
      clearTimeout(giveUp);
    },
  };
}

function workerLog(log: Logger): WorkerLogger {
  const levels = { error: "error", warning: "warn", info: "debug", debug: "trace" } as const;
  return new WorkerLogger(
    (scope) => (level, message, meta) =>
      log[levels[level]](
        { component: "worker", task: scope.taskIdentifier, job: scope.jobId, err: meta?.error },
        message,
      ),
  );
}
