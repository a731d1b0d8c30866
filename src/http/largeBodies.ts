/**
 * Large bodies: nobody's take the memory that others need, and reading one after the other leaves the event loop to others in
 * between.
 */
import { setTimeout as delay } from "node:timers/promises";
import type { BudgetLimits } from "../limits/byteBudget.ts";

export const bodyMemory: BudgetLimits = {
  total: 96_000_000,
  ofOne: 24_000_000,
  ofStrangers: 24_000_000,
  free: 16_384,
};

/** From so many bytes on a body waits its turn. */
const LARGE = 256_000;
/** The part of the time that large bodies may take from the event loop: a quarter. */
const PAUSE_FACTOR = 3;

/** Bytes a second of large bodies: to decrypt, read and parse them takes a quarter of the event loop at this rate. */
const READ_RATE = 30_000_000;
let freeAt = 0;

/** Waits until a body of so many bytes may be read; meanwhile its sender is slowed down, not refused. */
export async function paceLarge(bytes: number): Promise<void> {
  if (bytes < LARGE) return;
  const now = performance.now();
  const from = Math.max(freeAt, now);
  freeAt = from + (bytes / READ_RATE) * 1_000;
  if (from > now) await delay(from - now);
}

let last: Promise<unknown> = Promise.resolve();

/** Does the work on a body of so many bytes: at once where it is small, else in its turn. */
export async function inTurnBySize<T>(bytes: number, work: () => T): Promise<T> {
  if (bytes < LARGE) return work();
  const before = last;
  const turn = Promise.withResolvers<void>();
  last = turn.promise;
  await before;
  const began = performance.now();
  try {
    return work();
  } finally {
    void delay((performance.now() - began) * PAUSE_FACTOR).then(turn.resolve);
  }
}
