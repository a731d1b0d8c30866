import { DatabaseError } from "pg";

/** SQLSTATEs after which the entire transaction should be retried. */
export const retryableStates: ReadonlySet<string> = new Set(["40001", "40P01"]);

/** SQLSTATE of a lock timeout: lock_timeout, NOWAIT. */
export const LOCK_NOT_AVAILABLE = "55P03";

/** SQLSTATE of a server that is starting, recovering or shutting down. */
export const CANNOT_CONNECT_NOW = "57P03";

/**
 * SQLSTATEs of a server that accepts no changes: a standby, read-only, or a full disk; including Node's own codes for
 * the latter.
 */
const NO_CHANGES = new Set(["25006", "53100", "ENOSPC", "EDQUOT"]);

/**
 * Whether the database is reachable but accepts no changes at the moment, which resolves without action by this
 * process.
 */
export const refusesChanges = (error: unknown): boolean =>
  NO_CHANGES.has(((error ?? {}) as { code?: string }).code ?? "");

/** SQLSTATEs after which the server closes the connection: administrator or crash shutdown, database dropped, idle limits. */
const CLOSING = new Set(["57P01", "57P02", CANNOT_CONNECT_NOW, "57P04", "57P05", "25P03", "25P04"]);

/**
 * The connection was lost or could not be established. `code` is an SQLSTATE like those of server errors: 08001 (not
 * established), 08006 (lost; the outcome of the transaction is unknown). The error of the socket or driver is the
 * `cause`.
 */
export class DatabaseConnectionError extends Error {
  readonly code: "08001" | "08006";

  constructor(code: "08001" | "08006", cause: unknown) {
    super(code === "08001" ? "The database cannot be reached" : "The connection to the database was lost", {
      cause,
    });
    this.name = "DatabaseConnectionError";
    this.code = code;
  }
}

/** Driver messages about lost connections, which have no code. */
const gone =
  /^(Connection terminated|Client (was closed|has encountered a connection error) and is not queryable)/;

/** Whether the driver reports a lost connection, for callers that do not use our clients. */
export const isLostConnection = (error: unknown): error is Error =>
  error instanceof Error && !("code" in error) && gone.test(error.message);

/** SQLSTATE of a server error or {@link DatabaseConnectionError}; undefined for anything else. */
export function sqlState(error: unknown): string | undefined {
  if (error instanceof DatabaseError || error instanceof DatabaseConnectionError) return error.code;
  return undefined;
}

/** Whether the unit of work failed only because of concurrent work: 40001, 40P01. */
export function isRetryable(error: unknown): boolean {
  return retryableStates.has(sqlState(error) ?? "");
}

/**
 * Whether the connection is unusable after this error. Class 08 from the server does not imply it: after 08P01, a
 * wrong number of parameters, the connection is fine.
 */
export function closesConnection(error: unknown): boolean {
  if (error instanceof DatabaseConnectionError) return true;
  if (!(error instanceof DatabaseError)) return false;
  return CLOSING.has(error.code ?? "") || ["FATAL", "PANIC"].includes(error.severity ?? "");
}

/**
 * Whether the server refused a prepared statement as such, before executing it: a migration changed its result type,
 * or it no longer exists (DISCARD, DEALLOCATE). Messages are localized, so the raising routine decides.
 */
export function isStaleStatement(error: unknown): boolean {
  if (!(error instanceof DatabaseError)) return false;
  if (error.code === "0A000") return error.routine === "RevalidateCachedQuery";
  return error.code === "26000" && error.routine === "FetchPreparedStatement";
}
