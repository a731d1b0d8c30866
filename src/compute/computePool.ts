/**
 * Computes texts, conditions and mappings of organizations in threads beside the event loop. A thread that does not
 * return is terminated. Each organization has its own queue and one thread at a time. The organization that has used
 * the least time goes first, for one time slice, so that no tenant waits until the work of another is finished.
 */
import { availableParallelism } from "node:os";
import type { Logger } from "../base/log.ts";
import { budgets } from "./budget.ts";
import type { Item, Result, Shared, TaskName } from "./tasks.ts";
import type { ThreadMessage } from "./computeThread.ts";
import { PoolThread } from "./poolThread.ts";
import { Queues, type Job } from "./queues.ts";

export interface ComputeOptions {
  log: Pick<Logger, "warn">;
  /** Maximum number of threads; they are started on demand. */
  threads?: number;
  /** See budgets.taskMs. */
  taskMs?: number;
  /** Milliseconds that a tenant may compute in a burst; half a second is restored per second. */
  shareMs?: number;
}

export interface Compute {
  /**
   * Computes a task for each item.
   * @param tenant the id of an organization or user, or a part of its work that must not wait for the rest.
   * @throws ComputeStopped when the service stops
   * @throws Error for a fault of the service
   */
  run<N extends TaskName>(
    tenant: string,
    task: N,
    shared: Shared<N>,
    items: readonly Item<N>[],
  ): Promise<Result<N>[]>;
  /** The same with JSON texts, for values that pass from the database and back without being parsed. */
  runTexts(tenant: string, task: TaskName, shared: unknown, items: readonly string[]): Promise<string[]>;
  /** Whether a tenant has used up its share. Work that can wait should then be deferred; after `stop`, this is true for everybody. */
  isSpent(tenant: string): boolean;
  /** All tenants that have used up their share. */
  spent(): string[];
  /** Terminates the threads; running work is rejected. */
  stop(): Promise<void>;
}

export class ComputeStopped extends Error {
  constructor() {
    super("The service stops; this is computed later.");
    this.name = "ComputeStopped";
  }
}

/** Computes in threads of this process. */
export const createCompute = (options: ComputeOptions): Compute => new ThreadPool(options);

class ThreadPool implements Compute {
  readonly #log: ComputeOptions["log"];
  readonly #mostThreads: number;
  readonly #taskMs: number;
  readonly #shareMs: number;
  readonly #queues = new Queues();
  readonly #threads = new Set<PoolThread>();
  #isStopping = false;

  constructor({ log, threads, taskMs = budgets.taskMs, shareMs = 30_000 }: ComputeOptions) {
    this.#log = log;
    this.#mostThreads = threads ?? Math.max(2, Math.min(4, availableParallelism() - 1));
    this.#taskMs = taskMs;
    this.#shareMs = shareMs;
  }

  async run<N extends TaskName>(
    tenant: string,
    task: N,
    shared: Shared<N>,
    items: readonly Item<N>[],
  ): Promise<Result<N>[]> {
    const texts = items.map((item) => JSON.stringify(item));
    const results = await this.runTexts(tenant, task, shared, texts);
    return results.map((text) => JSON.parse(text));
  }

  runTexts(tenant: string, task: TaskName, shared: unknown, items: readonly string[]): Promise<string[]> {
    if (items.length === 0) return Promise.resolve([]);
    if (this.#isStopping) return Promise.reject(new ComputeStopped());
    return new Promise((resolve, reject) => {
      this.#queues.add(tenant, { task, shared: JSON.stringify(shared), items, resolve, reject });
      this.#dispatch();
    });
  }

  isSpent(tenant: string): boolean {
    return this.#isStopping || (this.#queues.spent(tenant) ?? 0) > this.#shareMs;
  }

  spent(): string[] {
    return this.#queues.ids.filter((id) => this.isSpent(id));
  }

  async stop(): Promise<void> {
    this.#isStopping = true;
    this.#queues.rejectAll(new ComputeStopped());
    await Promise.all([...this.#threads].map((thread) => thread.end()));
  }

  /** Assigns waiting work to idle threads, and starts further ones. */
  #dispatch(): void {
    if (this.#isStopping) return;
    for (let tenant = this.#queues.next(); tenant; tenant = this.#queues.next()) {
      const threads = [...this.#threads];
      const free = threads.find(({ isFree }) => isFree);
      if (free) {
        free.send(tenant.jobs[0]!);
        continue;
      }
      const starting = threads.filter(({ isReady }) => !isReady).length;
      if (threads.length >= this.#mostThreads || starting >= this.#queues.waiting.length) return;
      this.#startThread();
    }
  }

  #startThread(): void {
    const thread = new PoolThread({
      queues: this.#queues,
      taskMs: this.#taskMs,
      onMessage: (message, job) => {
        if (job) this.#take(message, job);
        this.#dispatch();
      },
      onExit: (job, item, cause) => {
        this.#threads.delete(thread);
        if (this.#isStopping) return;
        if (job) this.#continueWithout(job, item, cause);
        // No thread can start: reject all waiting work, to be retried later.
        else if (!thread.isReady)
          this.#queues.rejectAll(new Error("A thread could not be started.", { cause }));
        this.#dispatch();
      },
    });
    this.#threads.add(thread);
  }

  #take(message: ThreadMessage, job: Job): void {
    if ("fault" in message) this.#queues.end(job, () => job.reject(new Error(message.fault)));
    else if ("results" in message) {
      job.results.push(...message.results);
      if (job.results.length === job.items.length) this.#queues.end(job, () => job.resolve(job.results));
    }
  }

  /**
   * Keeps the completed items of its part, and repeats the part without the item for which the thread was terminated.
   */
  #continueWithout(job: Job, item: number, cause: Error | undefined): void {
    if (job.over.includes(item)) {
      // The item is not the cause.
      const fault = new Error("A thread ended twice at the same place.", { cause });
      this.#queues.end(job, () => job.reject(fault));
      return;
    }
    job.over.push(item);
    this.#log.warn(
      { event: "compute.over_budget", err: cause, organization: job.tenant.id, task: job.task },
      "A computation exceeded its budget; its thread was terminated.",
    );
  }
}
