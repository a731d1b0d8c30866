import { isSafeError } from "postgraphile/grafast";
import { isPlanningTimeout } from "../limits/planningTime.ts";
import type { ConstraintMessages } from "../database/constraintMessages.ts";
import { DatabaseConnectionError, isLostConnection } from "../database/databaseErrors.ts";
import { type ErrorViewer, fromSqlError, isSqlError, RAISED_FOR_CALLER } from "../database/sqlErrors.ts";
import { CodedError, internalError, isErrorCode } from "../base/errors.ts";
import type { Claims } from "./requestState.ts";
import type { LogEvent } from "../base/logEvents.ts";

/** The error, followed by its chain of causes; bounded, since a cause can be cyclic. */
function* causes(error: unknown): Generator<unknown> {
  for (let current = error, steps = 0; current != null && steps < 8; steps++) {
    yield current;
    const { originalError, cause } = current as { originalError?: unknown; cause?: unknown };
    current = originalError ?? cause;
  }
}

/** A generated update or delete that matched no row throws a plain error. */
const noSuchRow = /^No values were (?:deleted|updated) in collection /;

/** Planner errors meant for the client: timeouts, invalid cursors and the like. */
function fromSafeError(error: Error & { extensions?: Record<string, unknown> }): CodedError {
  const { code, statusCode: _, ...extensions } = error.extensions ?? {};
  const fallback = isPlanningTimeout(extensions) ? "LIMIT_EXCEEDED" : "BAD_USER_INPUT";
  return new CodedError(isErrorCode(code) ? code : fallback, error.message, extensions, { cause: error });
}

/**
 * Maps anything thrown to a client error: a coded error unchanged, a database error by its SQLSTATE, anything else as
 * INTERNAL with the original in `cause`.
 */
export function toCodedError(error: unknown, messages: ConstraintMessages, viewer: ErrorViewer): CodedError {
  for (const candidate of causes(error)) {
    if (candidate instanceof CodedError) return candidate;
    if (candidate instanceof Error && isSafeError(candidate)) return fromSafeError(candidate);
    if (candidate instanceof Error && noSuchRow.test(candidate.message))
      return new CodedError(
        "NOT_FOUND",
        "There is no such record, or you may not see it.",
        {},
        { cause: candidate },
      );
    if (isSqlError(candidate)) return fromSqlError(candidate, messages, viewer);
    if (isLostConnection(candidate))
      return fromSqlError(new DatabaseConnectionError("08006", candidate), messages, viewer);
  }
  return internalError(error);
}

/** Claims that affect how an error is reported. */
export const viewerOf = (claims: Claims | undefined): ErrorViewer => ({
  signedIn: Boolean(claims?.userId),
  isReadOnly: claims?.readOnly ?? false,
});

/** Loggable part of a failure: never PostgreSQL's DETAIL or parameters, which contain client values. */
export function describeForLog(error: unknown): Record<string, unknown> {
  const found = [...causes(error)].filter((cause) => !(cause instanceof CodedError));
  const innermost = found.at(-1) as Partial<Error & Record<string, unknown>> | undefined;
  if (typeof innermost?.message !== "string") return { message: String(error) };
  const { name, message, stack, code, schema, table, constraint, routine } = innermost;
  return { name, message, stack, code, schema, table, constraint, routine };
}

/**
 * Log fields of failures that concern the operator: internal errors, those of the database or the file store.
 * Undefined for others, which concern the client or the operator.
 */
export function failureForLog(error: CodedError): { event?: LogEvent; err: object } | undefined {
  const err = () => describeForLog(error.cause ?? error);
  // What functions of the database refuse with UNAVAILABLE is their decision, such as while an organization is moving.
  const isDecision = (error.cause as { code?: unknown } | undefined)?.code === RAISED_FOR_CALLER;
  if (error.code === "INTERNAL" || (error.code === "UNAVAILABLE" && !isDecision)) return { err: err() };
  if (error.code === "PROVIDER_ERROR" && error.extensions["provider"] === "files")
    return { event: "files.store_failed", err: err() };
  return undefined;
}
