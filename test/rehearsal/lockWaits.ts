import { Client } from "pg";
// oxlint-disable-next-line no-restricted-imports -- polls at an interval
import { setTimeout as delay } from "node:timers/promises";

export interface LockWait {
  /** The application name of the waiting connection. */
  who: string;
  relation: string;
  mode: string;
  /** The observed duration. */
  ms: number;
}

export interface LockWatch {
  /** The longest first; one for each waiting statement. */
  stop(): Promise<LockWait[]>;
}

const everyMs = 5;

/**
 * Checks every few milliseconds which sessions wait for a table lock.
 * @param connectionString of a superuser
 */
export async function watchLocks(connectionString: string): Promise<LockWatch> {
  const client = new Client({ connectionString, application_name: "plat watch" });
  await client.connect();
  const seen = new Map<string, LockWait>();
  const state = { stopped: false };
  const watching = (async () => {
    while (!state.stopped) {
      const { rows } = await client.query<LockWait & { key: string }>(
        `select l.pid || ' ' || l.waitstart as key, a.application_name as who, l.relation::regclass::text as relation, l.mode,
           extract(epoch from clock_timestamp() - l.waitstart)::float8 * 1000 as ms
         from pg_locks l join pg_stat_activity a using (pid)
         where not l.granted and l.locktype = 'relation' and l.waitstart is not null`,
      );
      for (const { key, ...wait } of rows) seen.set(key, wait);
      await delay(everyMs);
    }
  })();
  return {
    async stop() {
      state.stopped = true;
      await watching;
      await client.end();
      return [...seen.values()].sort((a, b) => b.ms - a.ms);
    },
  };
}
