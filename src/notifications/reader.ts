/**
 * Reads the event stream for notifications. A poll costs one statement, and mails are delayed by a minute anyway, so it polls periodically
 * instead of being notified of each commit. Any number of processes may run it; the database admits one at a time.
 */
import { Engine, type EngineConnections } from "../engines/engine.ts";

export interface NotificationReader {
  /** Stops polling, after the running poll. */
  stop(): Promise<void>;
}

/** Events of an organization in one transaction. */
const batch = 1000;
const lookEveryMs = 2000;

/** Starts polling once the database is reachable. */
export async function startNotificationReader(connections: EngineConnections): Promise<NotificationReader> {
  const engine = new Engine({
    ...connections,
    name: "plat-notifications",
    connections: 1,
    failure: {
      event: "notifications.failed",
      message: "Reading events for notifications failed; retrying.",
    },
  });
  const reader = engine.loop(async () => {
    let rounds = 0;
    for (let more = true; more && !engine.isStopping; rounds += 1) {
      const { rows } = await engine.pool.query<{ more: boolean }>(
        "select app_private.fan_out_notifications($1) as more",
        [batch],
      );
      more = rows[0]!.more;
    }
    return rounds > 1;
  });
  await engine.start({ poll: reader.call, everyMs: lookEveryMs });
  return engine;
}
