import { performance } from "node:perf_hooks";
import { FairGate } from "./fairGate.ts";
import type { Party } from "./party.ts";

/** What share of the time all long pieces of work together may hold the event loop. */
const SHARE = 0.25;
/** Milliseconds of such work that a quiet service does at once. */
const MOST_CREDIT_MS = 150;

/**
 * The event loop is one for everybody: while it plans a document or turns many rows into an answer, nobody else is served.
 * Such pieces are done one at a time, by turns of the parties, and pauses between them keep three quarters of the time for
 * everything that is short. One per process, as the event loop is.
 */
class LoopTurns {
  readonly #gate = new FairGate({ atOnce: 1 });
  #credit = MOST_CREDIT_MS;
  #at = performance.now();

  get waiting(): number {
    return this.#gate.numbers.waiting;
  }

  /** Runs a piece of work that does not wait for anything. */
  async run<T>(party: Party, work: () => T): Promise<T> {
    const leave = await this.#gate.enter(party);
    const began = performance.now();
    try {
      return work();
    } finally {
      this.#charge(performance.now() - began, leave);
    }
  }

  /** Waits for the turn; what the caller does next, without waiting for anything, is the piece of work. */
  async take(party: Party): Promise<void> {
    const leave = await this.#gate.enter(party);
    const began = performance.now();
    setImmediate(() => this.#charge(performance.now() - began, leave));
  }

  #charge(tookMs: number, leave: () => void): void {
    const now = performance.now();
    this.#credit = Math.min(MOST_CREDIT_MS, this.#credit + (now - this.#at) * SHARE) - tookMs;
    this.#at = now;
    // Everything that came in meanwhile is served first in any case: a whole round of the event loop.
    if (this.#credit >= 0) setImmediate(() => setImmediate(leave));
    else setTimeout(leave, -this.#credit / SHARE);
  }
}

export const loopTurns = new LoopTurns();
