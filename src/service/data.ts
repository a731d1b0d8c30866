/** The database and the file store of a process: migrated, with the demo data if requested, and monitored. */
import { setTimeout as pause } from "node:timers/promises";
import { exitCodes } from "../base/exitCodes.ts";
import { migrate } from "../database/migrate.ts";
import { openDatabase, requireMigrated, type Database } from "../database/open.ts";
import { primaryUrl } from "../database/hosts.ts";
import { onConnection } from "../database/onConnection.ts";
import { requireOwnSessions } from "../database/ownSessions.ts";
import { requirePooler, setRoleDefaults } from "../database/pooler.ts";
import { requireLimited } from "../database/roles.ts";
import { loadDemo } from "../demo/index.ts";
import { requireAddress } from "../http/serve.ts";
import { readWork } from "../monitoring/readWork.ts";
import { createFileStore, type FileStore } from "../providers/files/index.ts";
import { incomingFolder } from "../providers/files/incoming.ts";
import { removeLeftoversOfDead } from "../providers/files/leftovers.ts";
import type { Start } from "./start.ts";

/** Timeout of a readiness check: a database that answers later adds no information. */
const answerWithinMs = 1_500;

export interface Data {
  database: Database;
  fileStore: FileStore;
  demo: Awaited<ReturnType<typeof loadDemo>>;
}

/** Starts the database, or connects to it; the process ends with it. */
export async function startDatabase({ config, part, log, shutdown, fail }: Start): Promise<Database> {
  const database = await openDatabase(config, log);
  shutdown.add("database", () => database.end());
  database.exited.then(() => fail("the embedded database ended", exitCodes.failed)).catch(() => {});
  if (!part && (config.mode === "all" || config.mode === "api")) await requireAddress(config);
  return database;
}

/**
 * Migrates the database if this process is responsible for that, and opens the file store.
 * @param current whether the uncommitted migration is applied as well
 */
export async function prepareData(
  { config, log, shutdown }: Start,
  database: Database,
  current: boolean,
): Promise<Data> {
  const isFirst = config.mode === "all" || config.mode === "migrate";
  if (config.databaseUrl)
    await requireOwnSessions(config.poolerUrl ? "DIRECT_DATABASE_URL" : "DATABASE_URL", config.databaseUrl);
  const { authenticatorUrl } = database;
  if (isFirst)
    await migrate(await primaryUrl(database.loginUrl), {
      authenticatorUrl,
      workerUrl: database.workerUrl,
      rolePrefix: config.rolePrefix,
      logger: log,
      current,
    });
  const apiRole = decodeURIComponent(new URL(authenticatorUrl).username);
  if (isFirst && config.poolerUrl && apiRole === `${config.rolePrefix}authenticator`)
    await onConnection(database.loginUrl, (owner) => setRoleDefaults(owner, apiRole));
  const fileStore = createFileStore({
    s3: config.s3,
    dataDir: config.dataDir,
    archive: config.archive?.folder,
  });
  shutdown.add("files", fileStore.close);
  const incoming = incomingFolder(config.dataDir);
  await removeLeftoversOfDead(incoming);
  const demo =
    config.demo && isFirst
      ? await loadDemo(database.ownerUrl, { store: fileStore, incomingFolder: incoming })
      : "absent";
  if (demo === "loaded") log.info({ event: "demo.loaded" }, "The demo organization is loaded.");
  return { database, fileStore, demo };
}

/** @throws Error with a sentence for the user if the database is incomplete, or a login has too many rights */
export async function requireUsable({ config, part }: Start, database: Database): Promise<void> {
  await requireMigrated(database);
  if (config.authenticatorUrl) await requireLimited("AUTHENTICATOR_URL", config.authenticatorUrl);
  if (database.poolerUrl) {
    if (!part) await requirePooler(database.poolerUrl, database.authenticatorUrl, config.preparedStatements);
  } else if (config.authenticatorUrl && !part)
    await requireOwnSessions("AUTHENTICATOR_URL", config.authenticatorUrl);
  if (!config.workerUrl) return;
  await requireLimited("WORKER_URL", config.workerUrl);
  await requireOwnSessions("WORKER_URL", config.workerUrl);
}

/** Adds the database to the readiness and the metrics of the process. */
export function watchDatabase({ part, log, shutdown, readiness, metrics }: Start, database: Database): void {
  let isMigrated = true;
  readiness.add("migrated", async () => {
    // An unreachable database is not an incomplete one: the other checks report it.
    const checked = database.missing().then(
      (missing) => (isMigrated = missing.length === 0),
      () => isMigrated,
    );
    const late = pause(answerWithinMs).then(() => isMigrated);
    return await Promise.race([checked, late]);
  });
  readiness.add("writes", () => database.acceptsWrites());
  const work = readWork(database.authenticatorUrl, log);
  shutdown.add("numbers of work", work.end);
  // Once for all processes of the API.
  if (!part) metrics.watchWork(work.read, log);
}
