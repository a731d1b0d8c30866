/**
 * Reads the stream of events for notifications. Looking costs one statement, and mails wait for a minute anyway, so it looks
 * now and then rather than being called at each commit. Any number of processes may; the database lets one at a time.
 */
import type { Pool } from "pg";
import { workPoolOf } from "../database/workConnections.ts";
import type { Logger } from "../base/log.ts";

export interface NotificationReader {
  /** Looks no more, waits for the look on its way. */
  stop(): Promise<void>;
}

/** Events of an organization in one transaction. */
const batch = 1000;
const lookEveryMs = 2000;

/** @param connectionString that of plat_worker */
export function startNotificationReader({
  connectionString,
  pool: shared,
  log,
}: {
  connectionString: string;
  /** The connections that the engines of a process share; its own where omitted. */
  pool?: Pick<Pool, "query" | "connect">;
  log: Logger;
}): NotificationReader {
  const pool = workPoolOf(shared, {
    connectionString,
    max: 1,
    applicationName: "plat-notifications",
    log,
  });
  let stopping = false;
  let timer: NodeJS.Timeout | undefined;
  let looking = Promise.resolve();

  const look = async () => {
    try {
      for (;;) {
        const { rows } = await pool.query<{ more: boolean }>(
          "select app_private.fan_out_notifications($1) as more",
          [batch],
        );
        if (!rows[0]!.more || stopping) break;
      }
    } catch (error) {
      if (!stopping)
        log.warn(
          { event: "notifications.failed", err: error },
          "Reading events for notifications failed; retrying.",
        );
    }
    if (!stopping) timer = setTimeout(() => (looking = look()), lookEveryMs);
  };
  looking = look();
  return {
    async stop() {
      stopping = true;
      clearTimeout(timer);
      await looking;
      await pool.end();
    },
  };
}
