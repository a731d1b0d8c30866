/**
 * Whether the database takes changes. A standby says so when it is asked; a full disk is met by those who write, so that the first
 * refusal raises the question, and a little writing answers it.
 */
import type { Pool } from "pg";

let isSuspected = false;

/** A change was refused as the server takes none at the moment, or has no room for it. */
export function suspectWrites(): void {
  isSuspected = true;
}

/**
 * Whether changes are taken now.
 * @param pool connections of a login that may make temporary tables
 * @throws where the database cannot be asked
 */
export async function takesChanges(pool: Pick<Pool, "query">): Promise<boolean> {
  const { rows } = await pool.query<{ writable: boolean }>(
    "select not pg_is_in_recovery() and not current_setting('default_transaction_read_only')::boolean as writable",
  );
  if (!rows[0]!.writable) return false;
  if (!isSuspected) return true;
  try {
    // Some 200 KB that cannot be compressed away, gone with the statement's transaction.
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
