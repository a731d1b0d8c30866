import { DatabaseError } from "pg";

/** SQLSTATEs with which PostgreSQL asks for a whole transaction to be run again. */
export const retryableStates: ReadonlySet<string> = new Set(["40001", "40P01"]);

/** SQLSTATE of a lock that was waited for in vain: lock_timeout, NOWAIT. */
export const LOCK_NOT_AVAILABLE = "55P03";

/** Of a server that takes no changes: it is a standby or read-only, or its disk is full. Node's own codes for the latter included. */
const NO_CHANGES = new Set(["25006", "53100", "ENOSPC", "EDQUOT"]);

/** Whether the database is there and takes no changes at the moment, which passes without this process doing anything. */
export const refusesChanges = (error: unknown): boolean =>
  NO_CHANGES.has(((error ?? {}) as { code?: string }).code ?? "");

/** SQLSTATEs after which the server closes the connection: administrator or crash shutdown, database dropped, idle limits. */
const CLOSING = new Set(["57P01", "57P02", "57P03", "57P04", "57P05", "25P03", "25P04"]);

/**
 * The connection was lost or could not be made. `code` is an SQLSTATE like those of the server's own errors:
 * 08001 (not made), 08006 (lost; whether the transaction was committed is then unknown). The socket's or driver's error is the `cause`.
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

/** Sentences of the driver about a connection that is gone: it gives them no code. */
const gone =
  /^(Connection terminated|Client (was closed|has encountered a connection error) and is not queryable)/;

/** Whether the driver says that the connection was lost, to whoever asked it without one of our clients in between. */
export const isLostConnection = (error: unknown): error is Error =>
  error instanceof Error && !("code" in error) && gone.test(error.message);

/** The SQLSTATE of an error of the server or of {@link DatabaseConnectionError}; undefined for anything else. */
export function sqlState(error: unknown): string | undefined {
  if (error instanceof DatabaseError || error instanceof DatabaseConnectionError) return error.code;
  return undefined;
}

/** Whether the unit of work failed only because of what others did at the same time: 40001, 40P01. */
export function isRetryable(error: unknown): boolean {
  return retryableStates.has(sqlState(error) ?? "");
}

/**
 * Whether the connection on which this error came is of no further use.
 * Class 08 of the server does not say so: 08P01, a wrong number of parameters, leaves the connection in order.
 */
export function closesConnection(error: unknown): boolean {
  if (error instanceof DatabaseConnectionError) return true;
  if (!(error instanceof DatabaseError)) return false;
  return CLOSING.has(error.code ?? "") || ["FATAL", "PANIC"].includes(error.severity ?? "");
}

/**
 * Whether the server refused a prepared statement as such, before running anything: its result type changed by a
 * migration, or it is gone (DISCARD, DEALLOCATE). The message is translated by servers, so the raising routine decides.
 */
export function isStaleStatement(error: unknown): boolean {
  if (!(error instanceof DatabaseError)) return false;
  if (error.code === "0A000") return error.routine === "RevalidateCachedQuery";
  return error.code === "26000" && error.routine === "FetchPreparedStatement";
}
