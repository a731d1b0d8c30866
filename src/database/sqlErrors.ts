import { CodedError, internalError, isErrorCode, signInFirst } from "../base/errors.ts";
import { LOCK_NOT_AVAILABLE, refusesChanges } from "./databaseErrors.ts";
import { suspectReadOnly } from "./writes.ts";
import { constraintKey, type ConstraintMessage, type ConstraintMessages } from "./constraintMessages.ts";

/** Members of node-postgres' DatabaseError that are used here. */
export interface SqlError extends Error {
  code: string;
  detail?: string;
  schema?: string;
  table?: string;
  column?: string;
  dataType?: string;
  constraint?: string;
}

/** SQLSTATE of errors raised for the client; DETAIL is `{ "code", …extensions }`. */
export const RAISED_FOR_CALLER = "PLAT0";

/** Whether it came from PostgreSQL with an SQLSTATE, or from its socket with a code such as ECONNREFUSED. */
export function isSqlError(error: unknown): error is SqlError {
  const { code, message } = (error ?? {}) as { code?: unknown; message?: unknown };
  return typeof code === "string" && typeof message === "string";
}

const camelCase = (column: string) =>
  column.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());

/** The tenant column is part of nearly every key and never the invalid input. */
function fieldOf(error: SqlError, known: ConstraintMessage | undefined): { field?: string } {
  const column = error.column ?? known?.columns.findLast((name) => name !== "organization_id");
  return column === undefined ? {} : { field: camelCase(column) };
}

/**
 * Whether a foreign key violation (23503) is due to a deleted or changed record that is still referenced, rather than
 * a reference to a missing record. The error fields are the same in both cases, and the texts depend on lc_messages.
 * But in every language, the message contains the referenced table only in the first case (ri_ReportViolation in
 * PostgreSQL). For a table that references itself, it then contains the name twice.
 */
function isStillReferenced({ message, table }: SqlError, known: ConstraintMessage | undefined): boolean {
  const references = known?.references;
  if (references === undefined) return false;
  const names = message.split(/[^\w$]+/).filter((word) => word === references);
  return names.length > (references === table ? 1 : 0);
}

function raised(error: SqlError): CodedError {
  let detail: unknown;
  try {
    detail = JSON.parse(error.detail ?? "");
  } catch {
    return internalError(error);
  }
  if (typeof detail !== "object" || detail === null) return internalError(error);
  const { code, ...extensions } = detail as Record<string, unknown>;
  return isErrorCode(code) && code !== "INTERNAL"
    ? new CodedError(code, error.message, extensions, { cause: error })
    : internalError(error);
}

/** The database is unreachable or shutting down: class 08, shutdown, too many connections, socket errors. */
const unreachable =
  /^(08...|57P0[1-5]|53[0234]..|58030|ECONN[A-Z]+|ETIMEDOUT|EPIPE|ENOTFOUND|EAI_AGAIN|ENOENT|EHOSTUNREACH)$/;

/** Typical duration of a restart of the database, or of a queue for its connections, in seconds. */
const RETRY_AFTER_S = 5;

/** Typical duration until a standby is promoted, or disk space is freed, in seconds. */
const NO_CHANGES_RETRY_AFTER_S = 15;

function takesNoChanges(error: SqlError): CodedError {
  suspectReadOnly();
  return new CodedError(
    "UNAVAILABLE",
    `The service accepts no changes at the moment; nothing was changed. Try again in ${NO_CHANGES_RETRY_AFTER_S} s.`,
    { retryAfterSeconds: NO_CHANGES_RETRY_AFTER_S },
    { cause: error },
  );
}

/** Properties of a viewer that affect how an error is reported. */
export interface ErrorViewer {
  /** A visitor who lacks a grant must sign in first. */
  readonly signedIn: boolean;
  /** Whether the viewer's token is read-only. */
  readonly isReadOnly?: boolean;
}

/**
 * Maps SQLSTATEs to client errors. Constraint messages come from the catalog, beside the constraint; PostgreSQL's own
 * messages name tables and values and are never passed on.
 */
export function fromSqlError(error: SqlError, messages: ConstraintMessages, viewer: ErrorViewer): CodedError {
  const { code } = error;
  const owner = error.table ?? error.dataType ?? "";
  const known = messages.get(constraintKey(error.schema ?? "", owner, error.constraint ?? ""));
  const refuse = (as: "CONFLICT" | "BAD_USER_INPUT", sentence: string) =>
    new CodedError(as, known?.message ?? sentence, fieldOf(error, known), { cause: error });
  const say = (as: "CONFLICT" | "FORBIDDEN" | "BAD_USER_INPUT", sentence: string, more = {}) =>
    new CodedError(as, sentence, more, { cause: error });

  // With a read-only token, it is the token; otherwise the server is a standby or its disk is full.
  if (refusesChanges(error) && !(code === "25006" && viewer.isReadOnly)) return takesNoChanges(error);
  switch (code) {
    case RAISED_FOR_CALLER:
      return raised(error);
    case "23505":
    case "23P01":
      return refuse("CONFLICT", "There is already a record with this value.");
    case "23001":
      return refuse("CONFLICT", "Other records depend on this one.");
    case "23503":
      return isStillReferenced(error, known)
        ? refuse("CONFLICT", "Other records depend on this one.")
        : refuse("BAD_USER_INPUT", "The referenced record does not exist, or cannot be used here.");
    case "23502":
      return refuse("BAD_USER_INPUT", "A required value is missing.");
    case "23514":
      return refuse("BAD_USER_INPUT", "The value is not allowed here.");
    case "42501":
      return viewer.signedIn
        ? say("FORBIDDEN", "You do not have permission to do this.")
        : signInFirst(error);
    case "25006":
      return say("FORBIDDEN", "This access token is read-only.");
    case "40001":
    case "40P01":
      return say("CONFLICT", "Somebody else changed this at the same time. Try again.", {
        retryable: true,
      });
    case LOCK_NOT_AVAILABLE:
      return say(
        "CONFLICT",
        "Somebody else is changing this at the moment. Nothing was changed; try again in a moment.",
        { retryable: true },
      );
    case "57014":
      return new CodedError(
        "INTERNAL",
        "This took too long and was stopped; nothing was changed. Request less at once, or try again.",
        {},
        { cause: error, status: 503 },
      );
    default:
      if (code.startsWith("22") && code.length === 5)
        return say(
          "BAD_USER_INPUT",
          "A value has the wrong format or is out of range.",
          fieldOf(error, known),
        );
      return unreachable.test(code)
        ? new CodedError(
            "UNAVAILABLE",
            `The database is unreachable or overloaded; try again in ${RETRY_AFTER_S} s.`,
            { retryAfterSeconds: RETRY_AFTER_S },
            { cause: error },
          )
        : internalError(error);
  }
}
