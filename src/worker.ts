/**
 * Runs the jobs of the queue. Starts the job runner (graphile-worker), restarts it when it ends, and watches for dead
 * workers.
 */
import { EventEmitter } from "node:events";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import {
  Logger as WorkerLogger,
  run,
  type Job,
  type Runner,
  WorkerPreset,
  type Task,
  type WorkerEvents,
  type WorkerPool,
} from "graphile-worker";
import { backoff } from "./base/backoff.ts";
import { coalesceCalls } from "./base/coalesceCalls.ts";
import type { ListenConnection } from "./database/listener.ts";
import { refusesChanges } from "./database/databaseErrors.ts";
import { JobFetches } from "./jobs/fetches.ts";
import { watchWorkers, type Liveness } from "./jobs/liveness.ts";
import { JobShares } from "./jobs/shares.ts";
import { RunnerPool } from "./jobs/runnerPool.ts";
import type { Logger } from "./base/log.ts";
import type { LogEvent } from "./base/logEvents.ts";
import { inSpan } from "./tracing/spans.ts";
import { workContext } from "./base/workContext.ts";

export interface WorkerOptions {
  /** Connection string of plat_worker. */
  connectionString: string;
  /** The listening connection of the process. Default: one of its own. */
  listenConnection?: ListenConnection;
  /** Maximum number of concurrent jobs. */
  concurrency: number;
  /**
   * Maximum number of concurrent connections. The job runner uses one of them to listen. Default: enough for all
   * jobs.
   */
  connections?: number;
  log: Logger;
  /** Presets that add to the context of tasks. */
  presets?: GraphileConfig.Preset[];
  /** Folder of the task files. */
  taskDirectory?: string;
  /** Receives the events of each job runner, for metrics. */
  listen?: (events: WorkerEvents) => void;
  /** Milliseconds between checks for dead workers. */
  lookEveryMs?: number;
  /** Milliseconds between polls for due jobs. */
  pollEveryMs?: number;
  /**
   * Called if jobs permanently cannot be run although the database is available: another process may be able to run
   * them.
   */
  onFailure?: (error: unknown) => void;
  /** Milliseconds for which a restart is retried while the database is available. */
  failAfterMs?: number;
}

export interface Worker {
  /** Whether it currently runs jobs. */
  isRunning(): boolean;
  /** Accepts no further jobs and waits for the running ones. After 15 seconds they are aborted, and retried later. */
  stop(): Promise<void>;
}

const giveUpAfterMs = 15_000;

/** Default of `failAfterMs`. */
const FAIL_AFTER_MS = 120_000;

/**
 * PERF: new jobs are announced by notifications. For scheduled jobs, each slot of the job runner would poll by
 * itself. Instead, one statement every 4 to 6 seconds polls for all of them. The interval is random, so that
 * processes that lost the same server do not reconnect simultaneously.
 */
const duePollMs = 4_000 + 2_000 * Math.random();
const slotPollMs = 60_000;

/** Exit code of the job runner if the schema of the queue is newer than this version of it. */
const TOO_OLD = 57;

/**
 * Runs the background jobs in this process: the tasks in src/tasks, and the schedule in src/crontab. If the job
 * runner ends by itself, for example because it lost track of a job, another one is started.
 * @throws if the database is unreachable, or the job runner cannot be started
 */
export async function startWorker(options: WorkerOptions): Promise<Worker> {
  const liveness = await watchWorkers(options);
  const worker = new JobWorker(options, liveness);
  await worker.start();
  return worker;
}

class JobWorker implements Worker {
  readonly #options: WorkerOptions;
  readonly #liveness: Liveness;
  readonly #pool: RunnerPool;
  readonly #stopping = new AbortController();
  readonly #due: ReturnType<typeof coalesceCalls>;
  readonly #fetches = new JobFetches();
  #duePoll: NodeJS.Timeout | undefined;
  #workerPool: WorkerPool | undefined;
  #runner: Runner | undefined;
  #ended: Promise<void> | undefined;
  /** Since when starting a runner has failed although the database was available. */
  #downSince: number | undefined;

  constructor(options: WorkerOptions, liveness: Liveness) {
    const { connectionString, concurrency, connections = concurrency + 3, log } = options;
    this.#options = options;
    this.#liveness = liveness;
    this.#pool = new RunnerPool({
      connectionString,
      max: connections,
      log,
      pausedTasks: () => liveness.pausedTasks(),
      noted: (ids, inQueue) => {
        for (const id of ids) liveness.held.delete(id);
        // PERF: the slot asked for its next job while the outcome of this one was on its way, when the queue was
        // still locked. Without a nudge, the next job of the queue would wait for the next poll.
        if (inQueue) this.#workerPool?.nudge(1);
      },
    });
    this.#due = coalesceCalls(
      () => this.#nudgeForDueJobs(),
      (error) => {
        this.#fetches.reset();
        if (!this.#stopping.signal.aborted)
          log.warn({ event: "worker.poll_failed", err: error }, "Looking for due jobs failed; retrying.");
      },
    );
  }

  /** Releases everything it has opened if the job runner cannot be started. */
  async start(): Promise<void> {
    const end = async () => {
      clearInterval(this.#duePoll);
      await this.#due.idle();
      await this.#liveness.end();
      await this.#pool.end();
    };
    try {
      this.#runner = await this.#begin();
    } catch (error) {
      await end();
      throw error;
    }
    this.#duePoll = setInterval(this.#due.call, this.#options.pollEveryMs ?? duePollMs);
    this.#ended = this.#runUntilStopped().finally(end);
  }

  isRunning(): boolean {
    return this.#runner !== undefined;
  }

  async #nudgeForDueJobs(): Promise<void> {
    if (!this.#runner || this.#stopping.signal.aborted) return;
    const { rows } = await this.#pool.query<{ due: number }>("select app_private.due_jobs($1) as due", [
      this.#options.concurrency,
    ]);
    if (rows[0]!.due === 0) return this.#fetches.reset();
    const failure = this.#fetches.check();
    if (failure) this.#replaceRunner(failure);
    else this.#workerPool?.nudge(rows[0]!.due);
  }

  /** Ends the job runner after its running jobs; another one follows. */
  #replaceRunner(failure: Error): void {
    this.#options.log.error(
      { event: "worker.fetch_failed", err: failure },
      "Jobs are due and cannot be fetched although the database answers; replacing the job runner.",
    );
    // Its end is awaited, and reported, by #runOne.
    void this.#runner?.stop().catch(() => {});
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#pool.hurry();
    const giveUp = setTimeout(() => {
      this.#runner?.kill("a job did not end in time").catch(() => {});
    }, giveUpAfterMs);
    await this.#runner
      ?.stop()
      .catch((error: unknown) =>
        this.#options.log.debug(
          { event: "service.stopped", err: error },
          "The job runner had already stopped.",
        ),
      );
    await this.#ended;
    clearTimeout(giveUp);
  }

  /** Starts a job runner. */
  #begin(): Promise<Runner> {
    const {
      concurrency,
      log,
      presets = [],
      taskDirectory = join(import.meta.dirname, "tasks"),
    } = this.#options;
    const liveness = this.#liveness;
    const events: WorkerEvents = new EventEmitter();
    const shares = new JobShares(concurrency);
    shares.listen(events);
    this.#fetches.listen(events);
    events.on("pool:create", ({ workerPool }) => {
      this.#workerPool = workerPool;
      liveness.begin(workerPool.id);
    });
    // A slot that has ended must not be nudged.
    const retire = ({ workerPool }: { workerPool: WorkerPool }) => {
      if (this.#workerPool === workerPool) this.#workerPool = undefined;
    };
    events.on("pool:gracefulShutdown", retire);
    events.on("pool:forcefulShutdown", retire);
    events.on("job:start", ({ job }) => void liveness.held.add(String(job.id)));
    events.on("worker:getJob:error", () => liveness.noteLostAnswer());
    this.#options.listen?.(events);
    return run({
      noHandleSignals: true,
      events,
      pgPool: this.#pool,
      forbiddenFlags: () => shares.forbidden(),
      preset: {
        extends: [WorkerPreset, ...presets, setAsidePreset(liveness, log), requestPreset],
        worker: {
          taskDirectory,
          // Not in the task list: the job runner would take it for a task.
          crontabFile: join(import.meta.dirname, "crontab"),
          concurrentJobs: concurrency,
          // With batching, one completed job stays locked at each graceful stop and runs again hours later.
          completeJobBatchDelay: 0,
          failJobBatchDelay: 0,
          pollInterval: slotPollMs,
          logger: workerLog(log),
        },
      },
    });
  }

  /** Runs job runners, one after the other, until it is stopped or restarting cannot help. */
  async #runUntilStopped(): Promise<void> {
    const { onFailure = () => {} } = this.#options;
    const pauses = backoff(200, 10_000);
    while (!this.#stopping.signal.aborted) {
      const ended = await this.#runOne();
      if (ended === "stopped") return;
      if (ended === "too old")
        return onFailure(new Error("The tables of the job runner have become too new for this process."));
      if (ended === "ran long") pauses.reset();
      this.#runner = undefined;
      if (this.#isDownTooLong(ended)) return onFailure(new Error("The job runner could not be begun anew."));
      await pause(pauses.pause(), undefined, { signal: this.#stopping.signal }).catch(() => {});
    }
  }

  /** Runs the current job runner, or a new one, until it ends. Returns the reason. */
  async #runOne(): Promise<"stopped" | "too old" | "ran long" | "refused" | "ended"> {
    const { log, failAfterMs = FAIL_AFTER_MS } = this.#options;
    const { signal } = this.#stopping;
    const isTooOld = () => process.exitCode === TOO_OLD;
    try {
      this.#runner ??= await this.#begin();
      const begun = performance.now();
      await this.#runner.promise;
      if (signal.aborted) return "stopped";
      if (isTooOld()) return "too old";
      log.error({ event: "worker.ended" }, "The job runner ended; starting another one.");
      return performance.now() - begun > failAfterMs ? "ran long" : "ended";
    } catch (error) {
      if (signal.aborted) return "stopped";
      if (isTooOld()) return "too old";
      log.error({ event: "worker.ended", err: error }, "The job runner failed; starting another one.");
      return refusesChanges(error) ? "refused" : "ended";
    }
  }

  /** While the database is unavailable or read-only, it waits without a limit: another process could do no more. */
  #isDownTooLong(ended: "ran long" | "refused" | "ended"): boolean {
    const { failAfterMs = FAIL_AFTER_MS } = this.#options;
    if (ended === "ran long") this.#downSince = undefined;
    if (ended === "refused" || !this.#liveness.isConnected()) this.#downSince = undefined;
    else this.#downSince ??= performance.now();
    return this.#downSince !== undefined && performance.now() - this.#downSince > failAfterMs;
  }
}

/** The origin of a job: add_job in the database adds it to the payload. */
function askedBy(payload: unknown): { requestId?: string; traceparent?: string } {
  const { context } = (payload ?? {}) as { context?: Record<string, unknown> };
  const text = (value: unknown) => (typeof value === "string" ? value : undefined);
  const [requestId, traceparent] = [text(context?.["requestId"]), text(context?.["traceparent"])];
  return { ...(requestId && { requestId }), ...(traceparent && { traceparent }) };
}

/**
 * Runs each job in the context of the request that caused it: log lines, statements, mails and external calls of the
 * job carry its id.
 */
export const requestPreset: GraphileConfig.Preset = {
  plugins: [
    {
      name: "RequestOfJobPlugin",
      version: "1.0.0",
      after: ["LoadTaskFromJsPlugin", "TaskContextPlugin", "SetAsidePlugin"],
      worker: {
        hooks: {
          loadTaskFromFiles(_ctx, event) {
            const task = event.handler as Task | undefined;
            if (!task) return;
            event.handler = (payload, helpers) => {
              const { id, task_identifier: name, attempts } = helpers.job;
              const { requestId, traceparent } = askedBy(payload);
              const attributes = { "plat.job": String(id), "plat.attempt": attempts };
              return workContext.run({ requestId, task: name, job: String(id) }, () =>
                inSpan(
                  { name, kind: "consumer", attributes, ...(traceparent && { parent: traceparent }) },
                  async () => task(payload, helpers),
                ),
              );
            };
          },
        },
      },
    },
  ],
};

/** Skips tasks that were set aside, also if the cron schedule has enqueued them again. */
function setAsidePreset(liveness: Liveness, log: Logger): GraphileConfig.Preset {
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
                const suspect = key === null ? undefined : liveness.suspicion(key);
                if (suspect?.ticket) {
                  const { ticket } = suspect;
                  log.warn(
                    { event: "job.set_aside", code: "JOB_SET_ASIDE", ticket, task: task_identifier },
                    "A job that is set aside was skipped.",
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
  return new WorkerLogger((scope) => (level, message, meta) => {
    // The runner's messages about a job carry the job beside the message.
    const job = meta?.["job"] as Job | undefined;
    // Fewer connections than jobs is intended; see src/service/background.ts.
    const isMeant = meta !== undefined && "max" in meta && "concurrency" in meta;
    log[isMeant ? "debug" : levels[level]](
      {
        event: (meta?.["event"] as LogEvent | undefined) ?? "job.log",
        component: "worker",
        task: scope.taskIdentifier ?? job?.task_identifier,
        job: scope.jobId ?? (job && String(job.id)),
        requestId: askedBy(job?.payload).requestId ?? workContext.getStore()?.requestId,
        err: meta?.["error"],
      },
      message,
    );
  });
}
