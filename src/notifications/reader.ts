/**
 * Reads the stream of events for notifications. Looking costs one statement, and mails wait for a minute anyway, so it polls
 * now and then rather than being called at each commit. Any number of processes may; the database lets one at a time.
 */
import { Engine, type EngineConnections } from "../engines/engine.ts";

export interface NotificationReader {
  /** Looks no more, waits for the look on its way. */
  stop(): Promise<void>;
}

/** Events of an organization in one transaction. */
const batch = 1000;
const lookEveryMs = 2000;

/** Starts to read, once the database can be reached. */
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
