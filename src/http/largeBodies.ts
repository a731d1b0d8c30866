import { setTimeout as delay } from "node:timers/promises";
import { LARGE_BODY, LARGE_BODY_RATE } from "../admission/semaphores.ts";
import { eventLoop } from "../admission/eventLoop.ts";
import type { Party } from "../admission/party.ts";

let freeAt = 0;

/** Waits until a body of this size may be read; its sender is throttled meanwhile, not refused. */
export async function paceLarge(bytes: number): Promise<void> {
  if (bytes < LARGE_BODY) return;
  const now = performance.now();
  const from = Math.max(freeAt, now);
  freeAt = from + (bytes / LARGE_BODY_RATE) * 1_000;
  if (from > now) await delay(from - now);
}

/** Processes a body of this size: at once if it is small, otherwise within the share of the event loop. */
export async function scheduledBySize<T>(party: Party, bytes: number, work: () => T): Promise<T> {
  return bytes < LARGE_BODY ? work() : eventLoop.run(party, work);
}
