/**
 * A data folder with the demo data, pictures and payments, created once per run: copying it takes a twentieth of the
 * time of loading.
 */
import { existsSync } from "node:fs";
import { cp, writeFile } from "node:fs/promises";
import { join } from "node:path";
import pino from "pino";
import { copyDataDir } from "../../src/database/dataDirs.ts";
import { startEmbeddedPostgres } from "../../src/database/embeddedServer.ts";
import { authenticatorUrl, workerUrl } from "../../src/database/roles.ts";
import { loadDemo } from "../../src/demo/index.ts";
import { demoPayments } from "../../src/demo/demoPayments.ts";
import { incomingFolder } from "../../src/providers/files/incoming.ts";
import { createFileStore } from "../../src/providers/files/index.ts";
import { openPayments } from "../../src/providers/payments/index.ts";
import { whileLocked } from "./database.ts";
import { migratedFolder } from "./service.ts";

/** Number of the advisory lock that the creating process holds. */
const lock = 7_528_000_004n;
const logger = { info() {}, warn: console.warn };

/** A data folder as left by an earlier run of the service with demo data. */
export async function demoFolder(): ReturnType<typeof migratedFolder> {
  const loaded = await loadedFolder();
  const folder = await migratedFolder(loaded);
  await cp(join(loaded, "files"), join(folder.path, "files"), { recursive: true });
  return folder;
}

/** @returns the folder, as a source for `copyDataDir`; it is never started itself. */
export async function loadedFolder(): Promise<string> {
  const { PLAT_TEST_MIGRATED: migrated, PLAT_TEST_DEMO: dataDir } = process.env;
  if (!migrated || !dataDir)
    throw new Error("There is no folder for the demo: start the tests through `npm test`.");
  await whileLocked(lock, async () => {
    const isLoaded = join(dataDir, "loaded");
    if (existsSync(isLoaded)) return;
    await copyDataDir(migrated, dataDir);
    const postgres = await startEmbeddedPostgres({ dataDir, fast: true, logger });
    try {
      await loadDemo(postgres.connectionString, {
        store: createFileStore({ dataDir }),
        incomingFolder: incomingFolder(dataDir),
      });
      await payDemo(postgres.connectionString);
    } finally {
      await postgres.stop();
    }
    await writeFile(isLoaded, "");
  });
  return dataDir;
}

/** The payments that the service makes when it has loaded the demo. */
async function payDemo(ownerUrl: string): Promise<void> {
  const url = "https://localhost:8443";
  const { processor, close } = await openPayments({
    stripe: undefined,
    workerUrl: () => workerUrl(ownerUrl),
    endpoint: undefined,
    returnUrl: url,
    serviceUrl: url,
    log: pino({ level: "silent" }),
  });
  try {
    await demoPayments({ ownerUrl, authenticatorUrl: authenticatorUrl(ownerUrl) }, processor);
  } finally {
    await close();
  }
}
