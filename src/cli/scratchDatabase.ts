import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startEmbeddedPostgres } from "../database/embedded.ts";
import { migrate } from "../database/migrate.ts";

/** Runs `work` on a migrated embedded database of its own, which is gone afterwards. */
export async function withScratchDatabase(work: (ownerUrl: string) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "plat-scratch-"));
  await chmod(folder, 0o711);
  const logger = { info() {}, warn: console.warn, error: console.error };
  const postgres = await startEmbeddedPostgres({ dataDir: folder, fast: true, logger });
  try {
    await migrate(postgres.connectionString, { logger });
    await work(postgres.connectionString);
  } finally {
    await postgres.stop();
    await rm(folder, { recursive: true, force: true });
  }
}
