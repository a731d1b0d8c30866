import { EventEmitter } from "node:events";
import { join } from "node:path";
import { Logger as WorkerLogger, run, WorkerPreset, type Task, type WorkerEvents } from "graphile-worker";
import { withLockTimeout } from "./database/pool.ts";
import { watchWorkers, type Liveness } from "./jobs/liveness.ts";
import type { Logger } from "./log.ts";

export interface WorkerOptions {
  /** That of plat_worker. */
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
      extends: [WorkerPreset, ...presets, setAsidePreset(liveness, log)],
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

/** Leaves alone what is set aside, also where the clock has added it again. */
function setAsidePreset({ suspicion }: Liveness, log: Logger): GraphileConfig.Preset {
  return {
    plugins: [
      {
        name: "SetAsidePlugin",
        version: "1.0.0",
        after: ["LoadTaskFromJsPlugin", "TaskContextPlugin"],
        worker: {
          hooks: {
            loadTaskFromFiles(_ctx, event) {
              const task = event.handler as Task | undefined;
              if (!task) return;
              event.handler = async (payload, helpers) => {
                const { key, task_identifier } = helpers.job;
                const suspect = key === null ? undefined : suspicion(key);
                if (suspect?.ticket) {
                  const { ticket } = suspect;
                  log.warn(
                    { code: "JOB_SET_ASIDE", ticket, task: task_identifier },
                    "This job is set aside and was left out.",
                  );
                  return;
                }
                const result = await task(payload, helpers);
                if (suspect) await helpers.query("select app_private.note_job_done($1)", [key]);
                return result;
              };
            },
          },
        },
      },
    ],
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
