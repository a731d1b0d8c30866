import { isSafeError } from "postgraphile/grafast";
import type { ConstraintMessages } from "../database/constraintMessages.ts";
import { fromSqlError, isSqlError } from "../database/sqlErrors.ts";
import { CodedError, internalError, isErrorCode } from "../errors.ts";

/** The error itself, then what caused it, the outermost first; bounded, since a cause can be its own. */
function* causes(error: unknown): Generator<unknown> {
  for (let current = error, steps = 0; current != null && steps < 8; steps++) {
    yield current;
    const { originalError, cause } = current as { originalError?: unknown; cause?: unknown };
    current = originalError ?? cause;
  }
}

/**
 * What the caller is told about anything that was thrown: a coded error as it is, an error of the database by its
 * SQLSTATE, everything else as INTERNAL with the original in `cause`.
 */
export function toCodedError(error: unknown, messages: ConstraintMessages, signedIn: boolean): CodedError {
  for (const candidate of causes(error)) {
    if (candidate instanceof CodedError) return candidate;
    if (candidate instanceof Error && isSafeError(candidate)) {
      const {
        code,
        statusCode: _,
        ...extensions
      } = (candidate as { extensions?: Record<string, unknown> }).extensions ?? {};
      return new CodedError(isErrorCode(code) ? code : "BAD_USER_INPUT", candidate.message, extensions);
    }
    if (isSqlError(candidate)) return fromSqlError(candidate, messages, signedIn);
  }
  return internalError(error);
}

/** What the log keeps of a failure: never PostgreSQL's DETAIL or parameters, which hold callers' values. */
export function describeForLog(error: unknown): Record<string, unknown> {
  const found = [...causes(error)].filter((cause) => !(cause instanceof CodedError));
  const innermost = found.at(-1) as Partial<Error & Record<string, unknown>> | undefined;
  if (typeof innermost?.message !== "string") return { message: String(error) };
  const { name, message, stack, code, schema, table, constraint, routine } = innermost;
  return { name, message, stack, code, schema, table, constraint, routine };
}
