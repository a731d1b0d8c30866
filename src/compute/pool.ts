/**
 * What organizations make the service compute (conditions, texts, mappings) runs in threads beside the event loop. A thread that does
 * not come back is ended. Each organization has a queue of its own and one thread at a time; who has used least goes first, a slice
 * of time each, so that nobody waits until somebody else's work is done.
 */
import { availableParallelism } from "node:os";
import { setTimeout as pause } from "node:timers/promises";
import { Worker } from "node:worker_threads";
import type { Logger } from "../base/log.ts";
import { budgets } from "./budget.ts";
import type { Item, Result, Shared, TaskName } from "./tasks.ts";
import type { Part, ThreadData, ThreadMessage } from "./computeThread.ts";

export interface ComputeOptions {
  log: Pick<Logger, "warn">;
  /** Threads at most; they are started when they are needed. */
  threads?: number;
  /** See budgets.taskMs. */
  taskMs?: number;
  /** Milliseconds that a tenant may compute at once; half a second for each second that passes comes back. */
  shareMs?: number;
}

export interface Compute {
  /**
   * Computes a task for each item.
   * @param tenant whose work it is: the id of an organization or user, or a part of its work that is not to wait for the rest.
   * @throws ComputeStopped when the service ends
   * @throws Error for a fault of the service
   */
  run<N extends TaskName>(
    tenant: string,
    task: N,
    shared: Shared<N>,
    items: readonly Item<N>[],
  ): Promise<Result<N>[]>;
  /** The same of JSON texts, for what comes from the database and goes back to it unread. */
  runTexts(tenant: string, task: TaskName, shared: unknown, items: readonly string[]): Promise<string[]>;
  /** Whether a tenant has used up its share. Whoever takes work that can wait leaves it alone meanwhile; once this stops, anybody's. */
  isSpent(tenant: string): boolean;
  /** All of whom that is so. */
  spent(): string[];
  /** Ends the threads; what is under way is rejected. */
  stop(): Promise<void>;
}

export class ComputeStopped extends Error {
  constructor() {
    super("The service stops; this is computed later.");
    this.name = "ComputeStopped";
  }
}

/** How long a tenant computes before others have their turn. */
const sliceMs = 50;
/** Characters of one message to a thread, but for a single item that is longer. */
const messageLength = 1_000_000;
/** What a tenant gets back of its share as time passes. */
const refill = 0.5;
/** So many times what a thread may compute may pass meanwhile. */
const mostPatience = 3;
/** A thread that has had nothing to do for so long is ended. */
const idleMs = 60_000;
/** Of a thread; what has to be kept in memory is bounded by `budgets.memory` long before. */
const resourceLimits = { maxOldGenerationSizeMb: 128, maxYoungGenerationSizeMb: 16, stackSizeMb: 4 };

interface Job {
  tenant: Tenant;
  task: TaskName;
  shared: string;
  items: readonly string[];
  results: string[];
  over: number[];
  resolve(results: string[]): void;
  reject(error: Error): void;
}

interface Tenant {
  id: string;
  jobs: Job[];
  isComputing: boolean;
  /** Milliseconds computed, less what time has given back. */
  spent: number;
  /** When that was so. */
  at: number;
}

interface Thread {
  worker: Worker;
  isReady: boolean;
  job?: Job;
  /** When its part was sent. */
  since: number;
  progress: Int32Array;
  timer?: NodeJS.Timeout;
}

/** Computes in threads of this process. */
export function createCompute({
  log,
  threads: mostThreads = Math.max(2, Math.min(4, availableParallelism() - 1)),
  taskMs = budgets.taskMs,
  shareMs = 30_000,
}: ComputeOptions): Compute {
  const tenants = new Map<string, Tenant>();
  const threads = new Set<Thread>();
  let stopping = false;

  const spentBy = (tenant: Tenant): number => {
    const now = performance.now();
    tenant.spent = Math.max(0, tenant.spent - (now - tenant.at) * refill);
    tenant.at = now;
    return tenant.spent;
  };

  function next(): Tenant | undefined {
    if (stopping) return undefined;
    let chosen: Tenant | undefined;
    for (const tenant of tenants.values())
      if (!tenant.isComputing && tenant.jobs.length > 0 && !(chosen && spentBy(chosen) <= spentBy(tenant)))
        chosen = tenant;
    return chosen;
  }

  /** Gives what waits to threads that do nothing, and starts further ones. */
  function dispatch(): void {
    for (let tenant = next(); tenant; tenant = next()) {
      const thread = [...threads].find(({ isReady, job }) => isReady && !job);
      if (!thread) {
        const starting = [...threads].filter(({ isReady }) => !isReady).length;
        const waiting = [...tenants.values()].filter(
          ({ isComputing, jobs }) => !isComputing && jobs.length > 0,
        );
        if (threads.size < mostThreads && starting < waiting.length) startThread();
        else return;
        continue;
      }
      send(thread, tenant.jobs[0]!);
    }
  }

  function send(thread: Thread, job: Job): void {
    const from = job.results.length;
    let to = from;
    for (let length = 0; to < job.items.length; to += 1) {
      length += job.items[to]!.length;
      if (to > from && length > messageLength) break;
    }
    clearTimeout(thread.timer);
    thread.job = job;
    job.tenant.isComputing = true;
    thread.since = performance.now();
    Atomics.store(thread.progress, 0, from);
    const { task, shared, over } = job;
    const part: Part = { task, shared, items: job.items.slice(from, to), from, over, sliceMs };
    // Whoever waits for a result keeps the process, a thread without work does not.
    thread.worker.ref();
    thread.worker.postMessage(part);
    watch(thread);
  }

  /** Ends a thread that computes one item for too long; on a busy machine it may take longer until it has computed as much. */
  function watch(thread: Thread): void {
    const { worker, since } = thread;
    const item = Atomics.load(thread.progress, 0);
    const latest = performance.now() + mostPatience * taskMs;
    const before = worker.cpuUsage().catch(() => undefined);
    const look = () => {
      thread.timer = setTimeout(async () => {
        const used = await Promise.race([
          before.then((usage) => worker.cpuUsage(usage)).catch(() => undefined),
          // Who does not answer is in the middle of something long.
          pause(taskMs, undefined, { ref: false }),
        ]);
        if (!thread.job || thread.since !== since) return;
        if (Atomics.load(thread.progress, 0) !== item) watch(thread);
        else if (used && used.user + used.system < taskMs * 1000 && performance.now() < latest) look();
        else worker.terminate().catch(() => {});
      }, taskMs);
    };
    look();
  }

  /** The thread has nothing more to do with its job. */
  function free(thread: Thread): Job | undefined {
    const { job } = thread;
    clearTimeout(thread.timer);
    thread.job = undefined;
    if (job) {
      const { tenant } = job;
      tenant.isComputing = false;
      tenant.spent = spentBy(tenant) + (performance.now() - thread.since);
    }
    return job;
  }

  function settle(job: Job, done: () => void): void {
    const { tenant } = job;
    tenant.jobs.splice(tenant.jobs.indexOf(job), 1);
    done();
    if (tenants.size > 1000)
      for (const one of tenants.values())
        if (one.jobs.length === 0 && spentBy(one) === 0) tenants.delete(one.id);
  }

  function rest(thread: Thread): void {
    thread.worker.unref();
    thread.timer = setTimeout(() => {
      threads.delete(thread);
      thread.worker.terminate().catch(() => {});
    }, idleMs).unref();
  }

  function startThread(): void {
    const progress = new SharedArrayBuffer(4);
    const worker = new Worker(new URL("./computeThread.ts", import.meta.url), {
      workerData: { progress } satisfies ThreadData,
      resourceLimits,
      name: "plat-compute",
    });
    const thread: Thread = { worker, isReady: false, since: 0, progress: new Int32Array(progress) };
    threads.add(thread);
    let cause: Error | undefined;
    worker.on("message", (message: ThreadMessage) => {
      if ("ready" in message) {
        thread.isReady = true;
        rest(thread);
        return dispatch();
      }
      const job = free(thread);
      rest(thread);
      if (job && "fault" in message) settle(job, () => job.reject(new Error(message.fault)));
      else if (job && "results" in message) {
        job.results.push(...message.results);
        if (job.results.length === job.items.length) settle(job, () => job.resolve(job.results));
      }
      dispatch();
    });
    worker.on("error", (error: Error) => (cause = error));
    worker.once("exit", () => {
      threads.delete(thread);
      const item = Atomics.load(thread.progress, 0);
      const job = free(thread);
      if (stopping) return;
      if (job?.over.includes(item)) {
        // It is not the item.
        settle(job, () => job.reject(new Error("A thread ended twice at the same place.", { cause })));
      } else if (job) {
        // What was computed of this part is computed once more, without the item that the thread was ended by.
        job.over.push(item);
        log.warn(
          { event: "compute.over_budget", err: cause, organization: job.tenant.id, task: job.task },
          "A computation exceeded its budget; its thread was terminated.",
        );
      } else if (!thread.isReady) {
        // Nobody can compute anything: whoever waits is told, and tries again later.
        const error = new Error("A thread could not be started.", { cause });
        for (const { jobs } of tenants.values())
          for (const waiting of [...jobs]) settle(waiting, () => waiting.reject(error));
      }
      dispatch();
    });
  }

  const compute: Compute = {
    runTexts(id, task, shared, items) {
      if (items.length === 0) return Promise.resolve([]);
      if (stopping) return Promise.reject(new ComputeStopped());
      return new Promise<string[]>((resolve, reject) => {
        let tenant = tenants.get(id);
        if (!tenant) {
          tenant = { id, jobs: [], isComputing: false, spent: 0, at: performance.now() };
          tenants.set(id, tenant);
        }
        tenant.jobs.push({
          tenant,
          task,
          shared: JSON.stringify(shared),
          items,
          results: [],
          over: [],
          resolve,
          reject,
        });
        dispatch();
      });
    },
    async run(tenant, task, shared, items) {
      const texts = await compute.runTexts(
        tenant,
        task,
        shared,
        items.map((item) => JSON.stringify(item)),
      );
      return texts.map((text) => JSON.parse(text));
    },
    isSpent: (id) => {
      const tenant = tenants.get(id);
      return stopping || (tenant !== undefined && spentBy(tenant) > shareMs);
    },
    spent: () => [...tenants.keys()].filter(compute.isSpent),
    async stop() {
      stopping = true;
      const jobs = [...tenants.values()].flatMap((tenant) => tenant.jobs);
      tenants.clear();
      for (const { reject } of jobs) reject(new ComputeStopped());
      for (const thread of threads) clearTimeout(thread.timer);
      await Promise.all([...threads].map(({ worker }) => worker.terminate()));
    },
  };
  return compute;
}
