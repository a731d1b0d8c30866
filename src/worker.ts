import { join } from "node:path";
import { Logger as WorkerLogger, run, WorkerPreset } from "graphile-worker";
import type { Logger } from "./log.ts";

export interface WorkerOptions {
  /** The owner's: the job runner's schema is open to nobody else. */
  connectionString: string;
  /** Jobs at a time. */
  concurrency: number;
  log: Logger;
  /** Presets that give tasks what they need. */
  presets?: GraphileConfig.Preset[];
}

export interface Worker {
  isRunning(): boolean;
  /** Takes no further jobs, waits for the running ones; after 15 seconds they are given up and retried later. */
  stop(): Promise<void>;
}

const giveUpAfterMs = 15_000;
const tasks = join(import.meta.dirname, "tasks");

/** Runs the background jobs in this process: one file of src/tasks each, and src/crontab. */
export async function startWorker(options: WorkerOptions): Promise<Worker> {
  const { connectionString, concurrency, log, presets = [] } = options;
  const runner = await run({
    noHandleSignals: true,
    preset: {
      extends: [WorkerPreset, ...presets],
      worker: {
        connectionString,
        taskDirectory: tasks,
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
  });
  let running = true;
  const ended = runner.promise
    .catch((error: unknown) => log.error({ err: error }, "The job runner failed."))
    .finally(() => {
      running = false;
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
