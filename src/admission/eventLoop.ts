import { performance } from "node:perf_hooks";
import { eventLoopShare } from "./semaphores.ts";
import { FairSemaphore, type Release } from "./fairSemaphore.ts";
import type { Party } from "./party.ts";

/** Milliseconds that this thread has computed: on a busy machine a piece takes longer, which is not its fault. */
function cpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}

/**
 * A scheduler for long pieces of work on the event loop, such as planning a document or turning many rows into an answer, during
 * which nobody else is served. They run one at a time, fairly by party, and a token bucket keeps them within a share of the
 * time.
 */
export class EventLoop {
  readonly #semaphore = new FairSemaphore({ capacity: 1 });
  /** Milliseconds in the bucket; negative while the time for what was done is not over yet. */
  #tokens: number = eventLoopShare.burstMs;
  #at = performance.now();

  /** Runs a piece of work that does not wait for anything. */
  async run<T>(party: Party, work: () => T): Promise<T> {
    const release = await this.#semaphore.acquire(party);
    const began = cpuMs();
    try {
      return work();
    } finally {
      this.#next(this.charge(cpuMs() - began), release);
    }
  }

  /** Waits until the piece may run; what the caller does next, without waiting for anything, is the piece of work. */
  async ready(party: Party): Promise<void> {
    const release = await this.#semaphore.acquire(party);
    const began = cpuMs();
    setImmediate(() => this.#next(this.charge(cpuMs() - began), release));
  }

  /**
   * Takes from the bucket what a piece of work counts.
   * @param tookMs how long it computed
   * @returns how many milliseconds no other piece may run
   */
  charge(tookMs: number, now = performance.now()): number {
    const { share, burstMs, shortMs, mostTimes } = eventLoopShare;
    const counted = tookMs * Math.min(mostTimes, Math.max(1, tookMs / shortMs));
    this.#tokens = Math.min(burstMs, this.#tokens + (now - this.#at) * share) - counted;
    this.#at = now;
    return Math.max(0, -this.#tokens / share);
  }

  #next(pauseMs: number, release: Release): void {
    // Everything that came in meanwhile is served first in any case: a whole iteration of the event loop.
    if (pauseMs === 0) setImmediate(() => setImmediate(release));
    else setTimeout(release, pauseMs);
  }
}

/** That of the process. */
export const eventLoop = new EventLoop();
