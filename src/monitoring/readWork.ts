import { makePool } from "../database/pool.ts";
import type { Logger } from "../base/log.ts";
import type { WorkNumber } from "./workGauges.ts";

/** Milliseconds after which a slow query is cancelled. */
const STATEMENT_MS = 2_000;

/**
 * Reads the numbers of pending work on a separate connection, so that scrapes and requests do not wait for each other.
 * @param connectionString that of the API, which every process has.
 */
export function readWork(
  connectionString: string,
  log: Pick<Logger, "warn">,
): { read(): Promise<WorkNumber[]>; end(): Promise<void> } {
  const pool = makePool({
    connectionString,
    max: 1,
    applicationName: "plat-monitoring",
    statementTimeout: STATEMENT_MS,
    lockTimeout: STATEMENT_MS / 2,
    connectTimeout: STATEMENT_MS,
    onError: (error) =>
      log.warn(
        { event: "database.connection_lost", err: error, pool: "plat-monitoring" },
        "A database connection was lost; the pool opens another one.",
      ),
  });
  return {
    read: async () =>
      (await pool.query("select metric, label, value from app_private.work_numbers()")).rows as WorkNumber[],
    end: () => pool.end(),
  };
}
