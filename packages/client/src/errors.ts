/** An entry of `errors` in an answer. */
export interface AnsweredError {
  readonly message: string;
  readonly path?: readonly (string | number)[];
  readonly extensions?: Readonly<Record<string, unknown>> & { readonly code?: string };
}

/** An invalid field of an input. */
export interface BadField {
  readonly path: string;
  readonly message: string;
  readonly key?: string;
  readonly parameters?: readonly unknown[];
}

interface Retryable {
  /** Whether the same request may succeed when it is repeated. */
  readonly retryable?: boolean;
}

/** Properties of errors beside the message, by code. */
export interface ErrorDetails {
  /** The token is missing, unknown, expired or revoked, or the name and password do not match. */
  UNAUTHENTICATED: { readonly reason?: string };
  /** The viewer can see the record, but lacks the permission for this operation. */
  FORBIDDEN: { readonly permission?: string; readonly reason?: string };
  /** The record that a mutation refers to does not exist, or the viewer cannot see it. */
  NOT_FOUND: { readonly field?: string };
  /** An input value is missing, malformed or out of range, or contradicts another one. */
  BAD_USER_INPUT: {
    readonly field?: string;
    readonly fields?: readonly BadField[];
    readonly allowed?: readonly string[];
  };
  /** The change conflicts with other records, such as a duplicate or a record that is still in use. */
  CONFLICT: Retryable & { readonly existingId?: string; readonly dependents?: unknown };
  /** The state machine does not allow this transition from the current status. */
  INVALID_TRANSITION: {
    readonly from?: string;
    readonly to?: string;
    readonly allowedTransitions?: readonly string[];
  };
  /** Another hold, reservation or purchase claims the unit or lot. */
  INVENTORY_UNAVAILABLE: { readonly claimedUntil?: string | null };
  /** The record has changed since the client read it. */
  VERSION_MISMATCH: { readonly currentVersion?: number };
  /** The idempotency key was used for a request with another body. */
  IDEMPOTENCY_MISMATCH: { readonly field?: string };
  /** The query exceeds a limit of depth, cost or list length. */
  LIMIT_EXCEEDED: { readonly limit?: number; readonly part?: string };
  /** The request body exceeds its size limit. */
  PAYLOAD_TOO_LARGE: { readonly limit?: number };
  /** The content of the file is not of an accepted type. */
  UNSUPPORTED_FILE: { readonly field?: string };
  /** Too many requests or attempts; retry after retryAfterSeconds. */
  RATE_LIMITED: { readonly retryAfterSeconds?: number };
  /** The project is archived, and therefore read-only. */
  PROJECT_ARCHIVED: { readonly field?: string };
  /** The database is unreachable or overloaded; retry after retryAfterSeconds. */
  UNAVAILABLE: { readonly retryAfterSeconds?: number };
  /** The organization is on another server; send the request to `url`. */
  ORGANIZATION_MOVED: { readonly url?: string };
  /** An external provider failed, such as the payment processor or the mail server. */
  PROVIDER_ERROR: Retryable & { readonly provider?: string; readonly reason?: string };
  /** An internal error; it is logged with the request id. */
  INTERNAL: { readonly reason?: string };
  /** No answer: the connection failed, or timed out. Created by the client. */
  NETWORK_ERROR: { readonly reason?: string };
  /** An answer that is not from the service, but for example from a proxy. Created by the client. */
  UNEXPECTED_ANSWER: { readonly reason?: string };
}

/** The codes of errors, for decisions of programs. */
export type ErrorCode = keyof ErrorDetails;

interface PlatErrorOptions {
  /** HTTP status; 0 if there was no answer. */
  readonly status?: number;
  /** All errors of the answer, of which the first determines this error. */
  readonly errors?: readonly AnsweredError[];
  /** The data of the answer beside its errors. */
  readonly data?: unknown;
  readonly requestId?: string | null;
  readonly cause?: unknown;
}

/**
 * A request that was refused, or that had no answer. Check {@link PlatError.code}, or narrow the type with {@link
 * isPlatError}.
 */
export class PlatError<Code extends ErrorCode = ErrorCode> extends Error {
  override readonly name = "PlatError";
  /** The error code. Later versions of the service may return codes that this type does not contain. */
  readonly code: Code;
  /** Further properties of the error, such as `currentVersion` of VERSION_MISMATCH, `key` and `field`. */
  readonly details: ErrorDetails[Code] & Readonly<Record<string, unknown>>;
  readonly status: number;
  /** All errors of the answer; the first one is this. */
  readonly errors: readonly AnsweredError[];
  /** The data beside the errors; fields that failed are null. */
  readonly data: unknown;
  /** Id of the request in the logs of the service; include it when you ask for help. */
  readonly requestId: string | undefined;
  /** The path of the field that failed. */
  readonly path: readonly (string | number)[] | undefined;

  constructor(
    code: Code,
    message: string,
    { status = 0, errors = [], data, requestId, cause }: PlatErrorOptions = {},
  ) {
    super(message, { cause });
    this.code = code;
    this.details = (errors[0]?.extensions ?? {}) as PlatError<Code>["details"];
    this.status = status;
    this.errors = errors;
    this.data = data;
    this.requestId = requestId ?? undefined;
    this.path = errors[0]?.path;
  }

  /** The messages of invalid fields of BAD_USER_INPUT by their path, for forms. */
  get fieldMessages(): Record<string, string> {
    const fields = (this.details as ErrorDetails["BAD_USER_INPUT"]).fields ?? [];
    return Object.fromEntries(fields.map(({ path, message }) => [path, message]));
  }
}

/** Whether an error is a PlatError, optionally with that code. */
export function isPlatError(error: unknown): error is PlatError;
export function isPlatError<Code extends ErrorCode>(error: unknown, code: Code): error is PlatError<Code>;
export function isPlatError(error: unknown, code?: ErrorCode): boolean {
  return error instanceof PlatError && (code === undefined || error.code === code);
}
