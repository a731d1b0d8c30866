/**
 * The registry of error codes, with the HTTP status used when the transport itself refuses a request. Errors inside a
 * well-formed operation are returned with HTTP 200, beside `data`.
 */
export const errorCodes = {
  UNAUTHENTICATED: {
    status: 401,
    description: "The token is missing, unknown, expired or revoked, or the name and password do not match.",
  },
  FORBIDDEN: {
    status: 403,
    description: "The viewer can see the record, but lacks the permission for this operation.",
  },
  NOT_FOUND: {
    status: 404,
    description: "The record that a mutation refers to does not exist, or the viewer cannot see it.",
  },
  BAD_USER_INPUT: {
    status: 400,
    description: "An input value is missing, malformed or out of range, or contradicts another one.",
  },
  CONFLICT: {
    status: 409,
    description:
      "The change conflicts with other records, such as a duplicate or a record that is still in use.",
  },
  INVALID_TRANSITION: {
    status: 409,
    description: "The state machine does not allow this transition from the current status.",
  },
  INVENTORY_UNAVAILABLE: {
    status: 409,
    description: "Another hold, reservation or purchase claims the unit or lot.",
  },
  VERSION_MISMATCH: { status: 409, description: "The record has changed since the client read it." },
  IDEMPOTENCY_MISMATCH: {
    status: 409,
    description: "The idempotency key was used for a request with another body.",
  },
  LIMIT_EXCEEDED: { status: 400, description: "The query exceeds a limit of depth, cost or list length." },
  PAYLOAD_TOO_LARGE: { status: 413, description: "The request body exceeds its size limit." },
  UNSUPPORTED_FILE: { status: 415, description: "The content of the file is not of an accepted type." },
  RATE_LIMITED: { status: 429, description: "Too many requests or attempts; retry after retryAfterSeconds." },
  ORGANIZATION_MOVED: {
    status: 421,
    description: "The organization is on another server; send the request to `url`.",
  },
  PROJECT_ARCHIVED: { status: 409, description: "The project is archived, and therefore read-only." },
  UNAVAILABLE: {
    status: 503,
    description: "The database is unreachable or overloaded; retry after retryAfterSeconds.",
  },
  PROVIDER_ERROR: {
    status: 502,
    description: "An external provider failed, such as the payment processor or the mail server.",
  },
  INTERNAL: { status: 500, description: "An internal error; it is logged with the request id." },
} as const;

export type ErrorCode = keyof typeof errorCodes;

/** Whether a value is a registered error code. */
export function isErrorCode(value: unknown): value is ErrorCode {
  return typeof value === "string" && Object.hasOwn(errorCodes, value);
}

/** The message that clients get for internal errors. The cause is in the log, under the request id. */
export const internalMessage =
  "An internal error occurred. Try again; if it happens again, report the request id.";

/**
 * An error meant for the client: message and extensions are returned unchanged. Throw it anywhere below a request;
 * any other error is masked as INTERNAL.
 */
export class CodedError extends Error {
  readonly code: ErrorCode;
  /** Returned in `extensions` beside `code` and `requestId`. */
  readonly extensions: Readonly<Record<string, unknown>>;
  /** HTTP status if the transport refuses the request; default: the status of the code. */
  readonly status: number;

  constructor(
    code: ErrorCode,
    message: string,
    extensions: Record<string, unknown> = {},
    options: ErrorOptions & { status?: number } = {},
  ) {
    super(message, options);
    this.name = "CodedError";
    this.code = code;
    this.extensions = extensions;
    this.status = options.status ?? errorCodes[code].status;
  }
}

/**
 * Creates an error without a stack trace. PERF: a trace takes 30 microseconds; for refusals of which an attacker can cause
 * thousands per second.
 */
export function withoutTrace<T extends Error>(create: () => T): T {
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0;
  try {
    return create();
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
}

/** Refusal of a request without a token where one is required. */
export function signInFirst(cause?: unknown): CodedError {
  return new CodedError(
    "UNAUTHENTICATED",
    'Sign in first: send the header "Authorization: Bearer <token>".',
    {},
    { cause },
  );
}

/** A masked internal error; `cause` is only logged. */
export function internalError(cause: unknown, status = 500): CodedError {
  return new CodedError("INTERNAL", internalMessage, {}, { cause, status });
}

/** One entry of `errors` in a GraphQL response. */
export interface AnsweredError {
  message: string;
  extensions: Record<string, unknown>;
}

/** JSON body of a request that was refused before it became an operation. */
export function errorBody(error: CodedError, requestId: string): { errors: AnsweredError[] } {
  return {
    errors: [{ message: error.message, extensions: { ...error.extensions, code: error.code, requestId } }],
  };
}
