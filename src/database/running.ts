/** The database of a data folder, whether or not the service is running. */
import { lstat, realpath } from "node:fs/promises";
import { join } from "node:path";
import type { Config } from "../base/config.ts";
import { startEmbeddedPostgres, embeddedUrl } from "./embeddedServer.ts";
import { primaryUrl } from "./hosts.ts";
import { postmasterPort } from "./postmaster.ts";
import { FolderInUse } from "../base/folderLock.ts";

/**
 * Uses the database in DATABASE_URL or that of the running service, or starts the embedded one temporarily.
 * @throws Error with a message for the user if it is unreachable.
 */
export async function withDatabase<T>(config: Config, work: (loginUrl: string) => Promise<T>): Promise<T> {
  if (config.databaseUrl) return work(await primaryUrl(config.databaseUrl));
  const { dataDir, archive } = config;
  if (!(await lstat(join(dataDir, "postgres")).catch(() => undefined)))
    throw new Error(`There is no database in ${dataDir}: name the data folder of the service with DATA_DIR.`);
  const started = await startEmbeddedPostgres({ dataDir, archive }).catch((error: unknown) => {
    if (!(error instanceof FolderInUse)) throw error;
  });
  if (started)
    try {
      return await work(started.connectionString);
    } finally {
      await started.stop();
    }
  const port = postmasterPort(join(await realpath(join(dataDir, "postgres")), "data"));
  if (port === undefined)
    throw new Error(
      `The service on ${dataDir} has not started its database yet, or this user may not see it: try again as the service's user.`,
    );
  return work(await embeddedUrl(dataDir, port));
}
