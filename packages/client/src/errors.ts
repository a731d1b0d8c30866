/** What an answer says of one error. */
export interface AnsweredError {
  readonly message: string;
  readonly path?: readonly (string | number)[];
  readonly extensions?: Readonly<Record<string, unknown>> & { readonly code?: string };
}

/** A bad field of an input. */
export interface BadField {
  readonly path: string;
  readonly message: string;
  readonly key?: string;
  readonly parameters?: readonly unknown[];
}

interface Retryable {
  /** Whether the same request may succeed when it is sent again. */
  readonly retryable?: boolean;
}

/** What the errors of each code carry beside their message. */
export interface ErrorDetails {
  /** The token is missing, unknown, expired or revoked, or the name and password do not match. */
  UNAUTHENTICATED: { readonly reason?: string };
  /** The viewer may see the record but not do that. */
  FORBIDDEN: { readonly permission?: string; readonly reason?: string };
  /** The record of a mutation does not exist for this viewer. */
  NOT_FOUND: { readonly field?: string };
  /** A value that cannot be: format, range, missing, both of two. */
  BAD_USER_INPUT: {
    readonly field?: string;
    readonly fields?: readonly BadField[];
    readonly allowed?: readonly string[];
  };
  /** Refused because of what depends on it or already stands. */
  CONFLICT: Retryable & { readonly existingId?: string; readonly dependents?: unknown };
  /** The state machine has no such step from here. */
  INVALID_TRANSITION: {
    readonly from?: string;
    readonly to?: string;
    readonly allowedTransitions?: readonly string[];
  };
  /** The unit or lot is claimed. */
  INVENTORY_UNAVAILABLE: { readonly claimedUntil?: string | null };
  /** The record was changed by somebody else meanwhile. */
  VERSION_MISMATCH: { readonly currentVersion?: number };
  /** The idempotency key was used with another body. */
  IDEMPOTENCY_MISMATCH: { readonly field?: string };
  /** A list, the depth or the cost of a query is over its limit. */
  LIMIT_EXCEEDED: { readonly limit?: number; readonly part?: string };
  /** The body of the request is over its limit. */
  PAYLOAD_TOO_LARGE: { readonly limit?: number };
  /** The content of the file is of no accepted type. */
  UNSUPPORTED_FILE: { readonly field?: string };
  /** Too many attempts. */
  RATE_LIMITED: { readonly retryAfterSeconds?: number };
  /** A write in an archived project. */
  PROJECT_ARCHIVED: { readonly field?: string };
  /** The database cannot be reached, or is overloaded. */
  UNAVAILABLE: { readonly retryAfterSeconds?: number };
  /** An outside party failed: payment processor, mail server or other. */
  PROVIDER_ERROR: Retryable & { readonly provider?: string; readonly reason?: string };
  /** A fault of the service, logged with the request id. */
  INTERNAL: { readonly reason?: string };
  /** No answer: the connection failed, or nothing came in time. Said by the client. */
  NETWORK_ERROR: { readonly reason?: string };
  /** An answer that is not one of the service, such as that of a proxy. Said by the client. */
  UNEXPECTED_ANSWER: { readonly reason?: string };
}

/** What programs decide by. */
export type ErrorCode = keyof ErrorDetails;

interface PlatErrorOptions {
  /** HTTP status; 0 where there was no answer. */
  readonly status?: number;
  /** All errors of the answer; the error is made of the first. */
  readonly errors?: readonly AnsweredError[];
  /** What the answer holds beside its errors. */
  readonly data?: unknown;
  readonly requestId?: string | null;
  readonly cause?: unknown;
}

/** A request that was refused, or that had no answer. Decide by {@link PlatError.code}, or narrow by {@link isPlatError}. */
export class PlatError<Code extends ErrorCode = ErrorCode> extends Error {
  override readonly name = "PlatError";
  /** What programs decide by. A code of a later version of the service is one that this type does not name. */
  readonly code: Code;
  /** What the code carries, such as `currentVersion` of VERSION_MISMATCH, with `key`, `field` and others. */
  readonly details: ErrorDetails[Code] & Readonly<Record<string, unknown>>;
  readonly status: number;
  /** All errors of the answer; the first one is this. */
  readonly errors: readonly AnsweredError[];
  /** What was answered beside the errors: fields that failed are null in it. */
  readonly data: unknown;
  /** Under which the service has logged the request; name it when you ask for help. */
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

  /** The bad fields of BAD_USER_INPUT by their path, for a form. */
  get fieldMessages(): Record<string, string> {
    const fields = (this.details as ErrorDetails["BAD_USER_INPUT"]).fields ?? [];
    return Object.fromEntries(fields.map(({ path, message }) => [path, message]));
  }
}

/** Whether an error is one of the service, and of that code. */
export function isPlatError(error: unknown): error is PlatError;
export function isPlatError<Code extends ErrorCode>(error: unknown, code: Code): error is PlatError<Code>;
export function isPlatError(error: unknown, code?: ErrorCode): boolean {
  return error instanceof PlatError && (code === undefined || error.code === code);
}
