/** A thread of the pool, seen from the event loop: its current work, and its termination if it does not return. */
import { setTimeout as pause } from "node:timers/promises";
import { Worker } from "node:worker_threads";
import type { Part, ThreadData, ThreadMessage } from "./computeThread.ts";
import type { Job, Queues } from "./queues.ts";

/** Milliseconds that a tenant computes before others get their turn. */
const sliceMs = 50;
/** Maximum characters of one message to a thread, except for a single longer item. */
const messageLength = 1_000_000;
/** Limit of elapsed time, as a multiple of the CPU limit. */
const mostPatience = 3;
/** Idle time after which a thread is terminated. */
const idleMs = 60_000;
/** `budgets.memory` limits memory long before this. */
const resourceLimits = { maxOldGenerationSizeMb: 128, maxYoungGenerationSizeMb: 16, stackSizeMb: 4 };

interface PoolThreadOptions {
  queues: Queues;
  /** See budgets.taskMs. */
  taskMs: number;
  /** Called with the results of a part, and the job if the thread had one. */
  onMessage: (message: ThreadMessage, job: Job | undefined) => void;
  /** Called when it has ended: with its job, the index of its item, and the reason. */
  onExit: (job: Job | undefined, item: number, cause: Error | undefined) => void;
}

export class PoolThread {
  readonly #options: PoolThreadOptions;
  readonly #worker: Worker;
  /** The index of the current item. */
  readonly #progress: Int32Array;
  #isReady = false;
  #isEnding = false;
  #job: Job | undefined;
  /** When its part was sent. */
  #since = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: PoolThreadOptions) {
    this.#options = options;
    const progress = new SharedArrayBuffer(4);
    this.#progress = new Int32Array(progress);
    this.#worker = new Worker(new URL("./computeThread.ts", import.meta.url), {
      workerData: { progress } satisfies ThreadData,
      resourceLimits,
      name: "plat-compute",
    });
    let cause: Error | undefined;
    this.#worker.on("message", (message: ThreadMessage) => {
      if ("ready" in message) this.#isReady = true;
      const job = this.#free();
      this.#rest();
      options.onMessage(message, job);
    });
    this.#worker.on("error", (error: Error) => (cause = error));
    this.#worker.once("exit", () => options.onExit(this.#free(), Atomics.load(this.#progress, 0), cause));
  }

  get isReady(): boolean {
    return this.#isReady;
  }

  get isFree(): boolean {
    return this.#isReady && !this.#isEnding && !this.#job;
  }

  /** Sends it the next part of a job. */
  send(job: Job): void {
    const from = job.results.length;
    let to = from;
    for (let length = 0; to < job.items.length; to += 1) {
      length += job.items[to]!.length;
      if (to > from && length > messageLength) break;
    }
    clearTimeout(this.#timer);
    this.#job = job;
    job.tenant.isComputing = true;
    this.#since = performance.now();
    Atomics.store(this.#progress, 0, from);
    const { task, shared, over } = job;
    const part: Part = { task, shared, items: job.items.slice(from, to), from, over, sliceMs };
    // Pending results keep the process alive, an idle thread does not.
    this.#worker.ref();
    this.#worker.postMessage(part);
    this.#watch();
  }

  async end(): Promise<void> {
    clearTimeout(this.#timer);
    await this.#worker.terminate();
  }

  /** Terminates the thread if it computes one item for too long; on a busy machine, it may take longer to use its CPU time. */
  #watch(): void {
    const { taskMs } = this.#options;
    const since = this.#since;
    const item = Atomics.load(this.#progress, 0);
    const latest = performance.now() + mostPatience * taskMs;
    const before = this.#worker.cpuUsage().catch(() => undefined);
    const check = () => {
      this.#timer = setTimeout(async () => {
        const used = await Promise.race([
          before.then((usage) => this.#worker.cpuUsage(usage)).catch(() => undefined),
          // A thread that does not answer is busy with something long.
          pause(taskMs, undefined, { ref: false }),
        ]);
        if (!this.#job || this.#since !== since) return;
        if (Atomics.load(this.#progress, 0) !== item) this.#watch();
        else if (used && used.user + used.system < taskMs * 1000 && performance.now() < latest) check();
        else this.#terminate();
      }, taskMs);
    };
    check();
  }

  /** Detaches the thread from its job. */
  #free(): Job | undefined {
    const job = this.#job;
    clearTimeout(this.#timer);
    this.#job = undefined;
    if (job) {
      job.tenant.isComputing = false;
      this.#options.queues.spend(job.tenant, performance.now() - this.#since);
    }
    return job;
  }

  /** Terminates the thread when it has been idle for a while. */
  #rest(): void {
    this.#worker.unref();
    this.#timer = setTimeout(() => this.#terminate(), idleMs).unref();
  }

  #terminate(): void {
    this.#isEnding = true;
    this.#worker.terminate().catch(() => {});
  }
}
