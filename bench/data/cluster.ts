import { chmod, mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "pg";
import { authenticatorUrl, workerUrl } from "../../src/database/roles.ts";
import { createTestDatabase, type TestDatabase } from "../../test/harness/database.ts";
import { smoke } from "./size.ts";

export interface BenchDatabase extends TestDatabase {
  /** A connection of the owner. */
  owner: Client;
}

/** Runs the work on a separate migrated database, which is removed afterwards. */
export async function withDatabase(work: (database: BenchDatabase) => Promise<void>): Promise<void> {
  if (process.env.PLAT_TEST_CLUSTER) {
    // In a test, it is a clone in the cluster of the run.
    const database = await createTestDatabase();
    return withOwner(database, work).finally(database.drop);
  }
  const { copyDataDir, removeDataDir } = await import("../../src/database/dataDirs.ts");
  const { migratedDataDir } = await import("../../src/cli/migratedDataDir.ts");
  const { startEmbeddedPostgres } = await import("../../src/database/embeddedServer.ts");
  const dataDir = await mkdtemp(join(tmpdir(), "plat-bench-"));
  // If this process runs as root, the database runs as another user, who needs access to the folder.
  await chmod(dataDir, 0o711);
  try {
    await copyDataDir(await migratedDataDir(), dataDir);
    const postgres = await startEmbeddedPostgres({ dataDir, fast: true });
    const ownerUrl = postgres.connectionString;
    const drop = async () => {};
    try {
      await withOwner(
        { ownerUrl, authenticatorUrl: authenticatorUrl(ownerUrl), workerUrl: workerUrl(ownerUrl), drop },
        work,
      );
    } finally {
      await postgres.stop();
    }
  } finally {
    await removeDataDir(dataDir);
  }
}

async function withOwner(
  database: TestDatabase,
  work: (database: BenchDatabase) => Promise<void>,
): Promise<void> {
  const owner = new Client({ connectionString: database.ownerUrl });
  await owner.connect();
  try {
    await work({ ...database, owner });
  } finally {
    await owner.end();
  }
}

/** The percentile of the values; `share` is between 0 and 1. */
export function percentile(figures: readonly number[], share: number): number {
  const sorted = figures.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

/** Milliseconds of each run, after some warm-up runs. Ends after `most` runs or `seconds`, but not before one run. */
export async function time(
  run: () => Promise<unknown>,
  { warm = 6, most = 60, seconds = 3 } = {},
): Promise<number[]> {
  if (smoke) [warm, most] = [0, 1];
  const figures: number[] = [];
  const end = performance.now() + seconds * 1000;
  for (let n = 0; n < warm + most && (figures.length === 0 || performance.now() < end); n += 1) {
    const start = performance.now();
    await run();
    const took = performance.now() - start;
    // A slow first run counts, because it is not slow due to a lack of warm-up.
    if (n >= warm || took > 500) figures.push(took);
  }
  return figures;
}
