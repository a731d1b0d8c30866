import { performance } from "node:perf_hooks";
import { cpuMs } from "../base/cpuTime.ts";
import { eventLoopShare } from "./semaphores.ts";
import { FairSemaphore, type Release } from "./fairSemaphore.ts";
import type { Party } from "./party.ts";

/**
 * Scheduler for CPU-heavy work on the event loop, such as planning a document or serializing many rows, which blocks
 * everything else. Pieces run one at a time, fairly by party, and a token bucket limits them to a share of the time.
 */
export class EventLoop {
  readonly #semaphore = new FairSemaphore({ capacity: 1 });
  /** Milliseconds in the bucket; negative until the time for past work has elapsed. */
  #tokens: number = eventLoopShare.burstMs;
  #at = performance.now();

  /** Runs a synchronous piece of work. */
  async run<T>(party: Party, work: () => T): Promise<T> {
    const release = await this.#semaphore.acquire(party);
    const began = cpuMs();
    try {
      return work();
    } finally {
      this.#next(this.charge(cpuMs() - began), release);
    }
  }

  /** Waits until the piece may run; the synchronous code after it is the piece of work. */
  async ready(party: Party): Promise<void> {
    const release = await this.#semaphore.acquire(party);
    const began = cpuMs();
    setImmediate(() => this.#next(this.charge(cpuMs() - began), release));
  }

  /**
   * Charges a piece of work to the bucket.
   * @param tookMs its CPU time
   * @returns for how many milliseconds no other piece may run
   */
  charge(tookMs: number, now = performance.now()): number {
    const { share, burstMs, shortMs, mostTimes } = eventLoopShare;
    const counted = tookMs * Math.min(mostTimes, Math.max(1, tookMs / shortMs));
    this.#tokens = Math.min(burstMs, this.#tokens + (now - this.#at) * share) - counted;
    this.#at = now;
    return Math.max(0, -this.#tokens / share);
  }

  #next(pauseMs: number, release: Release): void {
    // Everything that has arrived meanwhile is served first in any case: a full iteration of the event loop.
    if (pauseMs === 0) setImmediate(() => setImmediate(release));
    else setTimeout(release, pauseMs);
  }
}

/** The scheduler of the process. */
export const eventLoop = new EventLoop();
