import { mayChange, textOf, type TypedDocument } from "./document.ts";
import { type AnsweredError, type ErrorCode, PlatError } from "./errors.ts";
import { type EventsOptions, followEvents, type LiveEvent } from "./events.ts";
import { type Item, pagesOf } from "./pages.ts";
import { type Refusal, retryAfterMs, type RetryOptions, withRetries } from "./retries.ts";
import { filesApart, multipart, type Progress, sendForm } from "./uploads.ts";

/**
 * A token, or a function that returns one. The function is called for each request, and again with `refused` if the
 * service no longer accepts the last token.
 */
export type Token =
  | string
  | null
  | undefined
  | ((asked: { refused: boolean }) => string | null | undefined | Promise<string | null | undefined>);

export interface ClientOptions {
  /** The endpoint, such as `https://plat.example/graphql`. */
  readonly url: string;
  readonly token?: Token;
  /** Additional headers of each request. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Name and version of the program, which the service logs. */
  readonly clientName?: string;
  readonly clientVersion?: string;
  /** The function that sends requests. Default: `fetch` of the runtime. */
  readonly fetch?: typeof fetch;
  /** Retries of requests; `false` disables them. */
  readonly retries?: RetryOptions | false;
  /** Timeout of an attempt in milliseconds. Default: 60,000. */
  readonly timeoutMs?: number;
  /** Sends the ids of documents instead of their texts. They must be registered with the service. */
  readonly registered?: boolean;
  /** `print` of graphql, for parsed documents that do not keep their source. */
  readonly print?: (document: never) => string;
}

export interface RequestOptions {
  /** Cancels the request and its retries. */
  readonly signal?: AbortSignal;
  readonly headers?: Readonly<Record<string, string>>;
  /**
   * Idempotency key of a mutation. Default: a random one. Use your own to repeat the request after a crash of your
   * program.
   */
  readonly idempotencyKey?: string;
  /** Name of the operation, if the document has several. */
  readonly operationName?: string;
  readonly retries?: RetryOptions | false;
  readonly timeoutMs?: number;
  /** Position of an earlier answer. The data of this answer include everything up to it. */
  readonly notBefore?: string;
  /** Called with the progress of uploads. */
  readonly onProgress?: (progress: Progress) => void;
}

/** An answer with its metadata. */
export interface Answer<Result> {
  readonly data: Result | null;
  /** Errors beside the data; empty if there are none. */
  readonly errors: readonly AnsweredError[];
  /** Such as `cost` and `fullPages`. */
  readonly extensions: Readonly<Record<string, unknown>>;
  readonly status: number;
  readonly requestId: string | undefined;
  /** Whether the mutation had been executed before under this idempotency key. */
  readonly replayed: boolean;
  /** Position of the data, for `notBefore` of a later request. */
  readonly position: string | undefined;
}

/** Variables may be omitted if none is required. */
export type Rest<Variables> =
  Partial<Variables> extends Variables
    ? [variables?: Variables, options?: RequestOptions]
    : [variables: Variables, options?: RequestOptions];

export interface Client {
  /**
   * Sends an operation and returns its data.
   * @throws PlatError if any part of it failed; `data` of the error has the rest
   */
  request<Result, Variables>(
    document: TypedDocument<Result, Variables>,
    ...rest: Rest<Variables>
  ): Promise<Result>;
  /**
   * Sends an operation and returns its whole answer, including errors of its fields.
   * @throws PlatError if there is no answer, because the request was refused or did not arrive
   */
  execute<Result, Variables>(
    document: TypedDocument<Result, Variables>,
    ...rest: Rest<Variables>
  ): Promise<Answer<Result>>;
  /** The pages of a list or connection, with `first` items each. Default: 100. */
  pages<Result extends object, Variables>(
    document: TypedDocument<Result, Variables>,
    ...rest: Rest<Variables>
  ): AsyncGenerator<Item<Result>[], void, undefined>;
  /**
   * The events of an organization as they are committed, each once and in order, also after lost connections. Begins
   * after `after`, by default with new events. Ends with its signal, or when the loop is left.
   * @throws PlatError if the viewer may not follow them, or the token has expired and `token` returns no other
   */
  events(options: EventsOptions): AsyncGenerator<LiveEvent, void, undefined>;
  /** The items of a list or connection, read page by page. */
  items<Result extends object, Variables>(
    document: TypedDocument<Result, Variables>,
    ...rest: Rest<Variables>
  ): AsyncGenerator<Item<Result>, void, undefined>;
}

/** A stream sends something every 15 seconds. */
const SILENCE_MS = 45_000;
const ACCEPT = "application/graphql-response+json, application/json;q=0.9";
/** Statuses after which the request was not executed, or its outcome is unknown. */
const PASSING = new Set([408, 429, 502, 503, 504]);
const PASSING_CODES = new Set(["RATE_LIMITED", "UNAVAILABLE"]);

const isPassing = ({ extensions }: AnsweredError): boolean =>
  PASSING_CODES.has(extensions?.code ?? "") || extensions?.["retryable"] === true;

/** Creates a client of one endpoint. It holds no connection, so it need not be closed. */
export function createClient(options: ClientOptions): Client {
  const fetchIt = options.fetch ?? ((url, init) => fetch(url, init));
  const ids = new Map<string, Promise<string>>();

  const tokenOf = async (refused: boolean) =>
    typeof options.token === "function" ? options.token({ refused }) : options.token;

  /** Sends the request once. Returns its answer, or the refusal after which it may be retried. */
  async function attempt(
    text: string,
    variables: unknown,
    refused: boolean,
    asked: RequestOptions & { key: string | undefined },
  ): Promise<{ value: Answer<unknown>; unauthenticated?: boolean } | Refusal<Answer<unknown>>> {
    const { operationName, onProgress, signal, key } = asked;
    const timeout = AbortSignal.timeout(asked.timeoutMs ?? options.timeoutMs ?? 60_000);
    const init = { signal: signal ? AbortSignal.any([signal, timeout]) : timeout };
    const headers: Record<string, string> = { accept: ACCEPT };
    const token = await tokenOf(refused);
    if (token) headers["authorization"] = `Bearer ${token}`;
    if (asked.notBefore !== undefined) headers["plat-position"] = asked.notBefore;
    if (key !== undefined) headers["idempotency-key"] = key;
    Object.assign(headers, programOf(options), options.headers, asked.headers);
    const apart = filesApart(variables);
    const document = options.registered ? { documentId: await idOf(text) } : { query: text };
    const operation = { ...document, variables: apart.variables, operationName };
    let response: Response;
    let body: { data?: unknown; errors?: AnsweredError[]; extensions?: Record<string, unknown> } | undefined;
    try {
      if (apart.files.size > 0) {
        headers["graphql-preflight"] = "1";
        const form = multipart(operation, apart.files);
        response = onProgress
          ? await sendForm(options.url, { ...init, headers }, form, onProgress, fetchIt)
          : await fetchIt(options.url, { ...init, method: "POST", headers, body: form });
      } else {
        headers["content-type"] = "application/json";
        response = await fetchIt(options.url, {
          ...init,
          method: "POST",
          headers,
          body: JSON.stringify(operation),
        });
      }
      body = await response.text().then(parsed);
    } catch (cause) {
      if (signal?.aborted) throw signal.reason;
      const message = timeout.aborted
        ? "The service did not answer in time."
        : "The service could not be reached.";
      return { end: () => fail(new PlatError("NETWORK_ERROR", message, { cause })) };
    }
    const { status } = response;
    const requestId = response.headers.get("x-request-id") ?? undefined;
    const afterHeader = retryAfterMs(response.headers.get("retry-after"));
    if (!body || !("data" in body || body.errors)) {
      const message = `The answer is not one of the service (HTTP ${status}).`;
      const error = new PlatError("UNEXPECTED_ANSWER", message, { status, requestId });
      if (PASSING.has(status)) return { end: () => fail(error), afterMs: afterHeader };
      throw error;
    }
    const { data, errors = [], extensions = {} } = body;
    const position = response.headers.get("plat-position") ?? undefined;
    const replayed = response.headers.get("idempotency-replayed") === "true";
    const value = { data: data ?? null, errors, extensions, status, requestId, replayed, position };
    const passing = errors.find(isPassing);
    if (passing) {
      const seconds = Number(passing.extensions?.["retryAfterSeconds"]);
      return { end: () => value, afterMs: afterHeader ?? (seconds > 0 ? seconds * 1_000 : undefined) };
    }
    return { value, unauthenticated: status === 401 };
  }

  /** The id of a registered document. */
  function idOf(text: string): Promise<string> {
    const known = ids.get(text);
    if (known) return known;
    const found = crypto.subtle.digest("SHA-256", new TextEncoder().encode(text)).then((hash) => {
      const digits = Array.from(new Uint8Array(hash), (byte) => byte.toString(16).padStart(2, "0"));
      return `sha256:${digits.join("")}`;
    });
    ids.set(text, found);
    return found;
  }

  async function execute(
    document: TypedDocument<unknown, unknown>,
    variables: unknown = {},
    asked: RequestOptions = {},
  ): Promise<Answer<unknown>> {
    const text = textOf(document, options.print);
    // The same for all attempts, so that a mutation whose answer was lost is not executed twice.
    const key = asked.idempotencyKey ?? (mayChange(text) ? crypto.randomUUID() : undefined);
    const retries = asked.retries ?? options.retries ?? {};
    const once = (refused: boolean) => attempt(text, variables, refused, { ...asked, key });
    return withRetries(
      async () => {
        const result = await once(false);
        const isRefused = "value" in result && result.unauthenticated && typeof options.token === "function";
        return isRefused ? once(true) : result;
      },
      retries,
      asked.signal,
    );
  }

  async function request(
    document: TypedDocument<unknown, unknown>,
    variables?: unknown,
    asked?: RequestOptions,
  ): Promise<unknown> {
    const answer = await execute(document, variables, asked);
    if (answer.errors.length > 0) throw errorOf(answer);
    return answer.data;
  }

  const pages = (document: TypedDocument<object, unknown>, variables: unknown = {}, asked?: RequestOptions) =>
    pagesOf(
      (given) => request(document, given, asked) as Promise<object>,
      variables as Record<string, unknown>,
    );

  async function* items(
    document: TypedDocument<object, unknown>,
    variables?: unknown,
    asked?: RequestOptions,
  ) {
    for await (const page of pages(document, variables, asked)) yield* page;
  }

  const events = (asked: EventsOptions) =>
    followEvents(asked, {
      url: String(new URL("events/stream", options.url)),
      headers: { ...programOf(options), ...options.headers },
      fetch: fetchIt,
      silenceMs: SILENCE_MS,
      token: tokenOf,
    });

  return { request, execute, pages, items, events } as unknown as Client;
}

/** Headers with the name of the program. */
const programOf = ({ clientName, clientVersion }: ClientOptions): Record<string, string> => ({
  ...(clientName !== undefined && { "apollographql-client-name": clientName }),
  ...(clientVersion !== undefined && { "apollographql-client-version": clientVersion }),
});

function fail(error: Error): never {
  throw error;
}

function parsed(text: string): { data?: unknown } | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}

/** The error of an answer with errors. */
export function errorOf({ data, errors, status, requestId }: Answer<unknown>): PlatError {
  const [first] = errors;
  const code = (first?.extensions?.code ?? "INTERNAL") as ErrorCode;
  return new PlatError(code, first?.message ?? "", { status, errors, data, requestId });
}
