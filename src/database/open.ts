/** Opens the database of the service: the embedded server, or the one of DATABASE_URL. */
import type { Config } from "../base/config.ts";
import type { Logger } from "../base/log.ts";
import { startEmbeddedPostgres } from "./embeddedServer.ts";
import { migratedCheck, type MigratedCheck } from "./migrated.ts";
import { apiUrlOf, withLoginOf } from "./pooler.ts";
import { ownerUrl, workerUrl } from "./roles.ts";
import { awaitStartedServer } from "./startingServer.ts";

/** The database of the service, embedded or not. */
export interface Database extends MigratedCheck {
  /** Connection string of the login that migrates. */
  loginUrl: string;
  /**
   * The same login with the role of the schema owner, which exists once the database is migrated; for one-time work
   * at start.
   */
  ownerUrl: string;
  /** Connection string of the API, to the server. */
  authenticatorUrl: string;
  /** Connection string of the API, to the pooler if there is one. */
  poolerUrl: string | undefined;
  /** Connection string of background work. */
  readonly workerUrl: string;
  /** Resolves when an embedded database is gone and could not be restarted; never for an external one. */
  exited: Promise<void>;
}

/** Milliseconds for which restarts of an embedded database are attempted; then the process exits. */
const againForMs = 120_000;

/** Starts the embedded database, or uses the one in DATABASE_URL. */
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
  if (!embedded) await awaitStartedServer(loginUrl, log);
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
    // Only requested by processes that run background work: the API needs no password for it.
    get workerUrl() {
      return config.workerUrl ?? workerUrl(loginUrl, apiUrl, config.rolePrefix);
    },
    exited: embedded?.exited ?? new Promise(() => {}),
    missing: check.missing,
    acceptsWrites: check.acceptsWrites,
    end: async () => {
      await check.end();
      await embedded?.stop();
    },
  };
}

/**
 * For processes that do not migrate.
 * @throws Error with a message for the user if the database is not migrated yet.
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
