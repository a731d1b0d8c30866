import { startEmbeddedPostgres } from "../database/embeddedServer.ts";
import { copyDataDir, removeDataDir } from "../database/dataDirs.ts";
import { migratedDataDir } from "./migratedDataDir.ts";
import { scratchFolder } from "../database/scratchFolder.ts";

/**
 * Runs `work` on a temporary migrated embedded database.
 * @param given the owner's connection of an existing migrated database to use instead
 */
export async function withScratchDatabase(
  work: (ownerUrl: string) => Promise<void>,
  given?: string,
): Promise<void> {
  if (given !== undefined) return await work(given);
  const folder = await scratchFolder("schema");
  try {
    await copyDataDir(await migratedDataDir(), folder);
    const logger = { info() {}, warn: console.warn, error: console.error };
    const postgres = await startEmbeddedPostgres({ dataDir: folder, fast: true, logger });
    try {
      await work(postgres.connectionString);
    } finally {
      await postgres.stop();
    }
  } finally {
    await removeDataDir(folder);
  }
}
