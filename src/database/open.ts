import type { Config } from "../base/config.ts";
import type { Logger } from "../base/log.ts";
import { startEmbeddedPostgres } from "./embeddedServer.ts";
import { migratedCheck, type MigratedCheck } from "./migrated.ts";
import { apiUrlOf, withLoginOf } from "./pooler.ts";
import { ownerUrl, workerUrl } from "./roles.ts";

/** The database that the service works on, wherever it runs. */
export interface Database extends MigratedCheck {
  /** Of the login that migrates. */
  loginUrl: string;
  /** The same login as the owner of the schema, which is there once the database is migrated: for what happens once, at a start. */
  ownerUrl: string;
  /** The API's connection to the server. */
  authenticatorUrl: string;
  /** Where a pooler stands between: the API's connection to it. */
  poolerUrl: string | undefined;
  /** The connection of background work. */
  readonly workerUrl: string;
  /** Resolves when an embedded database is gone and cannot be started again; never for one that is not ours to start. */
  exited: Promise<void>;
}

/** For how long an embedded database that has ended by itself is tried to be started again; then the process ends. */
const againForMs = 120_000;

/** Starts the embedded database, or takes the one that DATABASE_URL names. */
export async function openDatabase(config: Config, log: Logger): Promise<Database> {
  const embedded = config.databaseUrl
    ? undefined
    : await startEmbeddedPostgres({
        dataDir: config.dataDir,
        archive: config.archive,
        logger: log,
        againForMs,
      });
  const loginUrl = embedded?.connectionString ?? config.databaseUrl!;
  const { poolerUrl } = config;
  const apiUrl = apiUrlOf(config, loginUrl);
  const check = await migratedCheck(loginUrl, (error) =>
    log.warn(
      { event: "database.connection_lost", err: error },
      "A database connection was lost; the pool opens another one.",
    ),
  );
  return {
    loginUrl,
    ownerUrl: ownerUrl(loginUrl),
    authenticatorUrl: apiUrl,
    poolerUrl: poolerUrl && (config.authenticatorUrl ?? withLoginOf(poolerUrl, apiUrl)),
    // Asked for by those who run background work only: the API needs to know no password for it.
    get workerUrl() {
      return config.workerUrl ?? workerUrl(loginUrl, apiUrl);
    },
    exited: embedded?.exited ?? new Promise(() => {}),
    missing: check.missing,
    takesChanges: check.takesChanges,
    end: async () => {
      await check.end();
      await embedded?.stop();
    },
  };
}

/**
 * For processes that leave migrating to others.
 * @throws Error with a sentence for the user when the database is not migrated yet.
 */
export async function requireMigrated(database: Database): Promise<void> {
  const [first, ...others] = await database.missing();
  if (!first) return;
  const lacks =
    first === "objects"
      ? "has other functions and policies than this version needs"
      : `lacks ${1 + others.length} migration(s), from ${first} on`;
  throw new Error(`The database ${lacks}: run \`npm start -- --migrate-only\` first.`);
}
