import { setTimeout as pause } from "node:timers/promises";
import { backoff } from "../base/backoff.ts";
import type { Logger } from "../base/log.ts";
import { CANNOT_CONNECT_NOW } from "./databaseErrors.ts";
import { onConnection } from "./onConnection.ts";

/** Time limit in milliseconds, enough for the recovery from a crash; after that, a supervisor restarts the process. */
const RECOVERY_MS = 120_000;

/**
 * Waits while a database server is starting, recovering or shutting down (SQLSTATE 57P03), so that a process that is
 * started together with its database does not fail. A server that does not answer at all is an error at once.
 * @param withinMs milliseconds after which it gives up
 * @throws the failure to connect
 */
export async function awaitStartedServer(
  connectionString: string,
  log: Logger,
  withinMs = RECOVERY_MS,
): Promise<void> {
  const pauses = backoff(100, 2_000);
  const end = performance.now() + withinMs;
  for (let isLogged = false; ; isLogged = true) {
    try {
      return await onConnection(connectionString, async () => {});
    } catch (error) {
      if ((error as { code?: unknown }).code !== CANNOT_CONNECT_NOW || performance.now() > end) throw error;
      if (!isLogged)
        log.warn(
          { event: "database.starting", err: error },
          "The database does not accept connections yet; waiting for it.",
        );
      await pause(pauses.pause());
    }
  }
}
