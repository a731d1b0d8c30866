import { chmod, mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
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
    await unused(url);
  } catch (error) {
    // There is no teardown after a set-up that failed.
    await globalTeardown();
    throw error;
  }
}

/** A template can only be cloned when nobody is connected; the migration's own pools close a little later. */
async function unused(template: URL): Promise<void> {
  const root = new URL(template);
  root.pathname = "/postgres";
  const client = new Client({ connectionString: root.href });
  await client.connect();
  const name = template.pathname.slice(1);
  try {
    for (;;) {
      const { rowCount } = await client.query("select from pg_stat_activity where datname = $1", [name]);
      if (rowCount === 0) break;
      await client.query("select pg_sleep(0.01)");
    }
    await client.query(
      `alter database ${escapeIdentifier(name)} with is_template true allow_connections false`,
    );
  } finally {
    await client.end();
  }
}
