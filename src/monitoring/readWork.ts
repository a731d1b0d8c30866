import { makePool } from "../database/pool.ts";
import type { Logger } from "../base/log.ts";
import type { WorkNumber } from "./workGauges.ts";

/** Milliseconds after which a question that has become a load is cancelled. */
const STATEMENT_MS = 2_000;

/**
 * Asks the database for the numbers of the work that waits, on a connection of its own: a scrape waits for no request, and no request for
 * a scrape.
 * @param connectionString that of the API, which every process knows.
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
