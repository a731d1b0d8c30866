import { performance } from "node:perf_hooks";
import { eventLoopShare } from "./admission.ts";
import { FairSemaphore } from "./fairSemaphore.ts";
import type { Party } from "./party.ts";

/**
 * A scheduler for long pieces of work on the event loop, such as planning a document or turning many rows into an answer, during
 * which nobody else is served. They run one at a time, fairly by party, and a token bucket keeps them within a share of the
 * time. One per process, as the event loop is.
 */
class EventLoop {
  readonly #semaphore = new FairSemaphore({ capacity: 1 });
  /** Milliseconds in the bucket; negative while the time for what was done is not over yet. */
  #tokens: number = eventLoopShare.burstMs;
  #at = performance.now();

  /** Runs a piece of work that does not wait for anything. */
  async run<T>(party: Party, work: () => T): Promise<T> {
    const release = await this.#semaphore.acquire(party);
    const began = performance.now();
    try {
      return work();
    } finally {
      this.#charge(performance.now() - began, release);
    }
  }

  /** Waits until the piece may run; what the caller does next, without waiting for anything, is the piece of work. */
  async ready(party: Party): Promise<void> {
    const release = await this.#semaphore.acquire(party);
    const began = performance.now();
    setImmediate(() => this.#charge(performance.now() - began, release));
  }

  #charge(tookMs: number, release: () => void): void {
    const now = performance.now();
    const { share, burstMs } = eventLoopShare;
    this.#tokens = Math.min(burstMs, this.#tokens + (now - this.#at) * share) - tookMs;
    this.#at = now;
    // Everything that came in meanwhile is served first in any case: a whole iteration of the event loop.
    if (this.#tokens >= 0) setImmediate(() => setImmediate(release));
    else setTimeout(release, -this.#tokens / share);
  }
}

export const eventLoop = new EventLoop();
