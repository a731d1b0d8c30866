import { existsSync } from "node:fs";
import { Client, escapeIdentifier } from "pg";
import { migratedDataDir } from "../../src/cli/migratedDataDir.ts";
import { removeLeftoverFolders, scratchFolder } from "../../src/database/scratchFolder.ts";
import { startEmbeddedPostgres, type EmbeddedPostgres } from "../../src/database/embeddedServer.ts";
import { copyDataDir, removeDataDir } from "../../src/database/dataDirs.ts";
import { authenticatorUrl } from "../../src/database/roles.ts";
import { readingFile } from "./catalogFiles.ts";
import globalTeardown from "./globalTeardown.ts";

declare global {
  var platTestCluster: { postgres: EmbeddedPostgres; folder: string } | undefined;
}

/** Starts one cluster per run, with a migrated template that each test file clones. */
export default async function globalSetup({ nonFlagArgs }: { nonFlagArgs: string[] }): Promise<void> {
  await removeLeftoverFolders();
  const folder = await scratchFolder("test");
  try {
    const migrated = await migratedDataDir();
    process.env.PLAT_TEST_MIGRATED = migrated;
    const host = () => import("./host.ts");
    // PERF: a single file runs in this process, which can load the API and build its schema while the cluster is copied.
    if (nonFlagArgs.length === 1 && nonFlagArgs[0]!.endsWith(".test.ts"))
      host()
        .then(({ buildAhead }) => buildAhead(migrated))
        .catch(() => {});
    process.env.PLAT_TEST_DEMO = await scratchFolder("demo");
    // Programs are executed from it, which a memory file system may not permit.
    process.env.PLAT_TEST_BROWSER = await scratchFolder("browser", { onDisk: true });
    await copyDataDir(migrated, folder);
    const logger = { info() {}, warn: console.warn, error: console.error };
    const postgres = await startEmbeddedPostgres({ dataDir: folder, fast: true, logger });
    globalThis.platTestCluster = { postgres, folder };
    process.env.PLAT_TEST_CLUSTER = postgres.connectionString;
    if (!existsSync(readingFile(migrated)))
      await (await host()).keepReading(migrated, authenticatorUrl(postgres.connectionString));
    await makeTemplate(postgres.connectionString);
  } catch (error) {
    // Jest runs no teardown after a failed set-up.
    await globalTeardown();
    await removeDataDir(folder);
    throw error;
  }
}

/** Makes the migrated database a template without connections: an open connection would prevent clones. */
async function makeTemplate(connectionString: string): Promise<void> {
  const root = new URL(connectionString);
  const name = escapeIdentifier(root.pathname.slice(1));
  root.pathname = "/postgres";
  const client = new Client({ connectionString: root.href });
  await client.connect();
  try {
    await client.query(`alter database ${name} with is_template true allow_connections false`);
  } finally {
    await client.end();
  }
}
