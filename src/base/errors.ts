/**
 * The one registry of error codes: what a caller can meet, and the HTTP status where the transport itself refuses.
 * An error inside a well-formed operation travels with HTTP 200, beside `data`.
 */
export const errorCodes = {
  UNAUTHENTICATED: {
    status: 401,
    description: "The token is missing, unknown, expired or revoked, or the name and password do not match.",
  },
  FORBIDDEN: { status: 403, description: "The viewer may see the record but not do that." },
  NOT_FOUND: { status: 404, description: "The record of a mutation does not exist for this viewer." },
  BAD_USER_INPUT: {
    status: 400,
    description: "A value that cannot be: format, range, missing, both of two.",
  },
  CONFLICT: { status: 409, description: "Refused because of what depends on it or already stands." },
  INVALID_TRANSITION: { status: 409, description: "The state machine has no such step from here." },
  INVENTORY_UNAVAILABLE: { status: 409, description: "The unit or lot is claimed." },
  VERSION_MISMATCH: { status: 409, description: "The record was changed by somebody else meanwhile." },
  IDEMPOTENCY_MISMATCH: { status: 409, description: "The idempotency key was used with another body." },
  LIMIT_EXCEEDED: { status: 400, description: "A list, the depth or the cost of a query is over its limit." },
  PAYLOAD_TOO_LARGE: { status: 413, description: "The body of the request is over its limit." },
  UNSUPPORTED_FILE: { status: 415, description: "The content of the file is of no accepted type." },
  RATE_LIMITED: { status: 429, description: "Too many attempts; wait retryAfterSeconds." },
  PROJECT_ARCHIVED: { status: 409, description: "A write in an archived project." },
  UNAVAILABLE: {
    status: 503,
    description: "The database cannot be reached, or is overloaded; wait retryAfterSeconds.",
  },
  PROVIDER_ERROR: {
    status: 502,
    description: "An outside party failed: payment processor, mail server or other.",
  },
  INTERNAL: { status: 500, description: "A fault of the service; logged with the request id." },
} as const;

export type ErrorCode = keyof typeof errorCodes;

/** Whether a value, from wherever, is a code of the registry. */
export function isErrorCode(value: unknown): value is ErrorCode {
  return typeof value === "string" && Object.hasOwn(errorCodes, value);
}

/** What a caller is told about a failure of ours. The cause is in the log, under the request id. */
export const internalMessage =
  "Something went wrong on our side. Please try again; if it happens again, tell us the request id.";

/**
 * An error meant for the caller: its message and extensions go out as they are.
 * Throw it anywhere below a request; everything that is not one of these is masked as INTERNAL.
 */
export class CodedError extends Error {
  readonly code: ErrorCode;
  /** Goes out in `extensions` beside `code` and `requestId`. */
  readonly extensions: Readonly<Record<string, unknown>>;
  /** HTTP status when the transport answers with it; the registry's, unless given. */
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

/** The refusal of what takes a token to whoever came without one. */
export function signInFirst(cause?: unknown): CodedError {
  return new CodedError(
    "UNAUTHENTICATED",
    'Sign in first: send the header "Authorization: Bearer <token>".',
    {},
    { cause },
  );
}

/** A masked failure of ours; `cause` is for the log only. */
export function internalError(cause: unknown, status = 500): CodedError {
  return new CodedError("INTERNAL", internalMessage, {}, { cause, status });
}

/** One entry of a GraphQL answer's `errors`. */
export interface AnsweredError {
  message: string;
  extensions: Record<string, unknown>;
}

/** The JSON body of a request that was refused before it became an operation. */
export function errorBody(error: CodedError, requestId: string): { errors: AnsweredError[] } {
  return {
    errors: [{ message: error.message, extensions: { ...error.extensions, code: error.code, requestId } }],
  };
}
