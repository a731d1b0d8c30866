import { setTimeout as delay } from "node:timers/promises";
import type { DatabaseError } from "pg";
import { retryableStates } from "./databaseErrors.ts";

/**
 * Milliseconds that a schema change waits for a lock. Other statements queue behind it, and behind the locks that it
 * already holds, so it gives up soon: in `npm run rehearse`, no request waits for 100 ms.
 */
export const lockTimeoutMs = 50;
/** About two minutes, including the pauses. */
export const lockAttempts = 40;

const firstPauseMs = 100;
const longestPauseMs = 3000;

/** Whether a retry may succeed: a lock held by others, a deadlock, a serialization conflict. */
export function isTransient(error: unknown): boolean {
  const { code = "" } = error as DatabaseError;
  return code === "55P03" || retryableStates.has(code);
}

/**
 * Waits before the next attempt, longer each time.
 * @param attempt the failed one, from 1
 * @param tell gets the delay in milliseconds
 */
export async function pauseAfter(attempt: number, tell: (pauseMs: number) => void): Promise<void> {
  const pause = Math.min(firstPauseMs * 2 ** (attempt - 1), longestPauseMs);
  tell(pause);
  await delay(pause);
}
