import { execFile } from "node:child_process";
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { Client, escapeIdentifier } from "pg";
import { startEmbeddedPostgres, type EmbeddedPostgres } from "../../src/database/embedded.ts";
import globalTeardown from "./globalTeardown.ts";
import { migrate } from "../../src/database/migrate.ts";

declare global {
  var platTestCluster: { postgres: EmbeddedPostgres; folder: string } | undefined;
}

/** One cluster per run, with a migrated template that each test file clones. */
export default async function globalSetup(): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "plat-test-"));
  // Started by root, the database runs as another user, who has to pass through.
  await chmod(folder, 0o711);
  const logger = { info() {}, warn: console.warn, error: console.error };
  const postgres = await startEmbeddedPostgres({ dataDir: folder, fast: true, logger });
  globalThis.platTestCluster = { postgres, folder };
  const url = new URL(postgres.connectionString);
  process.env.PLAT_TEST_CLUSTER = url.href;
  try {
    await migrate(postgres.connectionString, { logger });
    await unused(url, () => keepMigrated(url, folder));
  } catch (error) {
    // There is no teardown after a set-up that failed.
    await globalTeardown();
    throw error;
  }
}

/**
 * A copy of the migrated data folder, for tests that start the whole service and are not about the first start: that takes
 * a tenth of making one. Nothing writes meanwhile, so what lies on the disk after a checkpoint is whole.
 */
async function keepMigrated(template: URL, folder: string): Promise<void> {
  const client = new Client({ connectionString: withPath(template, "/postgres") });
  await client.connect();
  await client.query("checkpoint");
  await client.end();
  const copy = join(folder, "migrated");
  await copyFolder(join(folder, "postgres"), copy);
  await rm(join(copy, "data", "postmaster.pid"));
  process.env.PLAT_TEST_MIGRATED = folder;
}

/** With owners, modes and times. */
export async function copyFolder(from: string, to: string): Promise<void> {
  await promisify(execFile)("cp", ["-a", from, to]);
}

function withPath(url: URL, path: string): string {
  const other = new URL(url);
  other.pathname = path;
  return other.href;
}

/** A template can only be cloned when nobody is connected; the migration's own pools close a little later. */
async function unused(template: URL, meanwhile: () => Promise<void>): Promise<void> {
  const client = new Client({ connectionString: withPath(template, "/postgres") });
  await client.connect();
  const name = template.pathname.slice(1);
  try {
    for (;;) {
      const { rowCount } = await client.query("select from pg_stat_activity where datname = $1", [name]);
      if (rowCount === 0) break;
      await client.query("select pg_sleep(0.01)");
    }
    await meanwhile();
    await client.query(
      `alter database ${escapeIdentifier(name)} with is_template true allow_connections false`,
    );
  } finally {
    await client.end();
  }
}
