/** Checks that a connection has a server session of its own. A pooler in transaction mode does not provide one. */
import { onConnection } from "./onConnection.ts";

const checks = 3;

/**
 * Two open connections must have two sessions. If a pooler shares one between them, a lock that one takes and the
 * other waits for hangs, and outlives both.
 * @param setting that contains the connection string
 * @throws Error with a message for the user
 */
export async function requireOwnSessions(setting: string, connectionString: string): Promise<void> {
  const isShared = await onConnection(connectionString, (one) =>
    onConnection(connectionString, async (other) => {
      const session = async (client: typeof one) =>
        (await client.query<{ pid: number }>("select pg_backend_pid() as pid")).rows[0]!.pid;
      for (let check = 1; check <= checks; check++)
        if ((await session(one)) === (await session(other))) return true;
      return false;
    }),
  );
  if (isShared)
    throw new Error(
      `${setting} leads to a pooler that shares sessions, such as PgBouncer in transaction mode. Locks, LISTEN and the settings of a session do not work there: name the server itself${setting === "WORKER_URL" || setting.startsWith("DIRECT") ? "" : ", or beside it by DIRECT_DATABASE_URL"}.`,
    );
}
