/** Runs the committed migrations with graphile-migrate, on top of the schema of the job runner. */
import { randomUUID } from "node:crypto";
import { createRequire } from "node:module";
import { Logger as WorkerLogger, runMigrations } from "graphile-worker";
import type { Client, DatabaseError } from "pg";
import { isTransient, lockAttempts, lockTimeoutMs, pauseAfter } from "./lockRetry.ts";
import type { MigrationLog } from "./migrationLog.ts";

const require = createRequire(import.meta.url);
// PERF: only loaded if there is something to migrate.
const graphileMigrate = () => require("graphile-migrate") as typeof import("graphile-migrate");

export interface ChainOptions {
  /** The folder that holds `committed`. */
  folder: string;
  log?: MigrationLog | undefined;
}

/** Migrates the job runner's own schema, on which the migrations build. */
export async function migrateJobRunner(connectionString: string, log?: MigrationLog): Promise<void> {
  // Its library reports the end of an idle connection as an error; its messages go to our log.
  await runMigrations({
    connectionString,
    logger: new WorkerLogger(() => (level, message) => {
      if (level === "error" || level === "warning") log?.warn({ event: "migration.job_runner" }, message);
    }),
  });
}

/**
 * graphile-migrate keeps its connections for a while and exits the process if one breaks, for example when the
 * embedded database stops. So its pools are closed at once.
 */
export function closeConnections(): void {
  (require("graphile-migrate/dist/pgReal.js") as { clearAllPools(): void }).clearAllPools();
}

/**
 * Runs the committed migrations that a database lacks, and closes graphile-migrate's connection. Locks are waited for
 * briefly, so that others do not queue behind, and retried after a pause: each migration is a transaction of its own.
 * @param owner a connection to the same database.
 */
export async function runChain(
  owner: Client,
  connectionString: string,
  { folder, log }: ChainOptions,
): Promise<void> {
  const url = new URL(connectionString);
  const application = `plat migrate ${randomUUID()}`;
  url.searchParams.set("application_name", application);
  const given = url.searchParams.get("options");
  url.searchParams.set("options", `${given ? `${given} ` : ""}-c lock_timeout=${lockTimeoutMs}`);
  try {
    await retried(
      () =>
        graphileMigrate().migrate({
          connectionString: url.href,
          migrationsFolder: folder,
          logger: chainLogger(log),
        }),
      log,
    );
  } catch (error) {
    if ((error as DatabaseError).code !== "2BP01") throw error;
    throw new Error(
      `${(error as Error).message}: ${(error as DatabaseError).detail} A migration drops what is in its way itself, with "cascade" or by name; the replaceable objects are put back after it.`,
      { cause: error },
    );
  } finally {
    closeConnections();
    for (;;) {
      const { rowCount } = await owner.query("select from pg_stat_activity where application_name = $1", [
        application,
      ]);
      if (rowCount === 0) break;
      await owner.query("select pg_sleep(0.005)");
    }
  }
}

async function retried(run: () => Promise<unknown>, log: MigrationLog | undefined): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      await run();
      return;
    } catch (error) {
      if (!isTransient(error)) throw error;
      if (tries === lockAttempts)
        throw new Error(
          `A migration could not be run in ${lockAttempts} attempts, since others hold a lock that it needs: end what holds it, or start again at a quieter time. ${(error as Error).message}`,
          { cause: error },
        );
      await pauseAfter(tries, (pause) =>
        log?.warn(
          { event: "migration.lock_timeout", attempt: tries },
          `A migration timed out waiting for a lock; retrying in ${pause} ms.`,
        ),
      );
    }
  }
}

function chainLogger(log: MigrationLog | undefined) {
  return new (graphileMigrate().Logger)(() => (level, message) => {
    if (level === "error") log?.error({ event: "migration.failed" }, message);
    else if (level === "info" && message.includes("Running migration"))
      log?.info({ event: "migration.run" }, message.replace(/^graphile-migrate: /, ""));
  });
}
