import { setTimeout as pause } from "node:timers/promises";
import { DatabaseError } from "pg";
import { backoff } from "../base/backoff.ts";
import { closesConnection, refusesChanges } from "./databaseErrors.ts";

/** SQLSTATEs of a server that takes nobody at the moment: too many connections, starting up, stopping. */
const BUSY = new Set(["53300", "57P03"]);

/** Whether a statement failed because of the connection or for want of one, so that the same statement may go well on another one. */
export function isOutage(error: unknown): boolean {
  // What is not said by the server is said by the socket, the pool or the driver about the connection.
  if (!(error instanceof DatabaseError)) return error instanceof Error;
  return closesConnection(error) || BUSY.has(error.code ?? "");
}

/**
 * Does what must not be lost because the connection was, or the disk of the database is full: notes what has happened outside. It has to be of the kind that can be done
 * twice, as the first time may have been committed although nobody heard of it.
 * @param withinMs milliseconds after which it gives up; those of a restart of the server, unless given
 * @throws the last failure
 */
export async function throughOutages<T>(
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
