import { setTimeout as pause } from "node:timers/promises";
import { DatabaseError } from "pg";
import { backoff } from "../base/backoff.ts";
import { CANNOT_CONNECT_NOW, closesConnection, refusesChanges } from "./databaseErrors.ts";

/**
 * SQLSTATEs of a server that accepts no connections at the moment: too many connections, starting up, shutting down.
 */
const BUSY = new Set(["53300", CANNOT_CONNECT_NOW]);

/** Whether a statement failed because of its connection or for lack of one, so that it may succeed on another one. */
export function isOutage(error: unknown): boolean {
  // Errors without a server code come from the socket, the pool or the driver.
  if (!(error instanceof DatabaseError)) return error instanceof Error;
  return closesConnection(error) || BUSY.has(error.code ?? "");
}

/**
 * Retries work that must not be lost because of a lost connection or a full disk: recording what has happened
 * outside. It must be idempotent, as the first attempt may have been committed although the response was lost.
 * @param withinMs milliseconds after which it gives up. Default: enough for a restart of the server
 * @throws the last failure
 */
export async function retryDuringOutages<T>(
  work: () => Promise<T>,
  { withinMs = 20_000, signal }: { withinMs?: number; signal?: AbortSignal } = {},
): Promise<T> {
  const pauses = backoff();
  const end = performance.now() + withinMs;
  for (;;) {
    try {
      return await work();
    } catch (error) {
      const isPassing = isOutage(error) || refusesChanges(error);
      if (!isPassing || performance.now() > end || signal?.aborted) throw error;
      await pause(pauses.pause(), undefined, signal && { signal }).catch(() => {});
    }
  }
}
