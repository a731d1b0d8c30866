/**
 * Whether the database accepts changes. A standby reports that it does not; a full disk is only noticed by writing. So
 * after the first refusal, a small write checks it repeatedly.
 */
import type { Pool } from "pg";

let isSuspected = false;

/** A change was refused because the server is read-only or its disk is full. */
export function suspectReadOnly(): void {
  isSuspected = true;
}

/**
 * Whether changes are accepted now.
 * @param pool connections of a login that may create temporary tables
 * @throws if the check cannot be made
 */
export async function acceptsWrites(pool: Pick<Pool, "query">): Promise<boolean> {
  const { rows } = await pool.query<{ writable: boolean }>(
    "select not pg_is_in_recovery() and not current_setting('default_transaction_read_only')::boolean as writable",
  );
  if (!rows[0]!.writable) return false;
  if (!isSuspected) return true;
  try {
    // About 200 KB of incompressible data, rolled back with the transaction.
    await pool.query(
      "create temporary table plat_probe on commit drop as select gen_random_uuid()::text || gen_random_uuid() as some from generate_series(1, 2000)",
    );
  } catch (error) {
    if (["53100", "25006"].includes((error as { code?: string }).code ?? "")) return false;
    throw error;
  }
  isSuspected = false;
  return true;
}
