/** The database of a data folder, whether the service runs on it or not. */
import { lstat, realpath } from "node:fs/promises";
import { join } from "node:path";
import type { Config } from "../base/config.ts";
import { startEmbeddedPostgres, embeddedUrl } from "./embeddedServer.ts";
import { postmasterPort } from "./postmaster.ts";
import { FolderInUse } from "../base/folderLock.ts";

/**
 * Takes the database that DATABASE_URL names, that of the running service, or starts the embedded one for the time.
 * @throws Error with a sentence for the user where it cannot be reached.
 */
export async function withDatabase<T>(config: Config, work: (loginUrl: string) => Promise<T>): Promise<T> {
  if (config.databaseUrl) return work(config.databaseUrl);
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
