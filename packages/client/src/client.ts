import { mayChange, textOf, type TypedDocument } from "./document.ts";
import { type AnsweredError, type ErrorCode, PlatError } from "./errors.ts";
import { type EventsOptions, followEvents, type LiveEvent } from "./events.ts";
import { type Item, pagesOf } from "./pages.ts";
import { type Refusal, retryAfterMs, type RetryOptions, withRetries } from "./retries.ts";
import { filesApart, multipart, type Progress, sendForm } from "./uploads.ts";

/** A token, or what gives one: asked for each request, and once more with `refused` when the service no longer takes the last. */
export type Token =
  | string
  | null
  | undefined
  | ((asked: { refused: boolean }) => string | null | undefined | Promise<string | null | undefined>);

export interface ClientOptions {
  /** The endpoint, such as `https://plat.example/graphql`. */
  readonly url: string;
  readonly token?: Token;
  /** Headers of each request. */
  readonly headers?: Readonly<Record<string, string>>;
  /** The name of the program and its version, which the service logs. */
  readonly clientName?: string;
  readonly clientVersion?: string;
  /** What sends requests; that of the runtime where omitted. */
  readonly fetch?: typeof fetch;
  /** When requests are sent again; `false`: never. */
  readonly retries?: RetryOptions | false;
  /** Milliseconds that an attempt may take; 60,000 where omitted. */
  readonly timeoutMs?: number;
  /** Sends the ids of documents in their place: they have to be registered with the service. */
  readonly registered?: boolean;
  /** `print` of graphql, for parsed documents that do not keep their source. */
  readonly print?: (document: never) => string;
}

export interface RequestOptions {
  /** Ends the request and its repeats. */
  readonly signal?: AbortSignal;
  readonly headers?: Readonly<Record<string, string>>;
  /** The key of a mutation; a random one where omitted. Use one of your own to repeat the request after a crash of your program. */
  readonly idempotencyKey?: string;
  /** The name of the operation, where the document has several. */
  readonly operationName?: string;
  readonly retries?: RetryOptions | false;
  readonly timeoutMs?: number;
  /** The position of another answer, which this one has to reach at least: whatever was in that is in this one too. */
  readonly notBefore?: string;
  /** Told how far the files among the variables have come. */
  readonly onProgress?: (progress: Progress) => void;
}

/** An answer with what stands around its data. */
export interface Answer<Result> {
  readonly data: Result | null;
  /** What failed, beside the data; empty where nothing did. */
  readonly errors: readonly AnsweredError[];
  /** Such as `cost` and `fullPages`. */
  readonly extensions: Readonly<Record<string, unknown>>;
  readonly status: number;
  readonly requestId: string | undefined;
  /** Whether the mutation had been carried out before under this idempotency key. */
  readonly replayed: boolean;
  /** How far the data reach: for `notBefore` of a later request. */
  readonly position: string | undefined;
}

/** Variables may be omitted where none is required. */
export type Rest<Variables> =
  Partial<Variables> extends Variables
    ? [variables?: Variables, options?: RequestOptions]
    : [variables: Variables, options?: RequestOptions];

export interface Client {
  /**
   * Sends an operation and gives its data.
   * @throws PlatError when any part of it failed; what was answered beside is its `data`
   */
  request<Result, Variables>(
    document: TypedDocument<Result, Variables>,
    ...rest: Rest<Variables>
  ): Promise<Result>;
  /**
   * Sends an operation and gives its whole answer, errors of its fields included.
   * @throws PlatError when there is none: the request was refused, or did not arrive
   */
  execute<Result, Variables>(
    document: TypedDocument<Result, Variables>,
    ...rest: Rest<Variables>
  ): Promise<Answer<Result>>;
  /** The pages of a list or connection, `first` items each, 100 where that is omitted. */
  pages<Result extends object, Variables>(
    document: TypedDocument<Result, Variables>,
    ...rest: Rest<Variables>
  ): AsyncGenerator<Item<Result>[], void, undefined>;
  /**
   * The events of an organization as they are committed, each once and in their order, through lost connections; behind `after`, else
   * from the present on. Ends with its signal, or when the loop is left.
   * @throws PlatError where the viewer may not follow them, or the token has ended and `token` gives no other
   */
  events(options: EventsOptions): AsyncGenerator<LiveEvent, void, undefined>;
  /** The items of a list or connection, read page by page. */
  items<Result extends object, Variables>(
    document: TypedDocument<Result, Variables>,
    ...rest: Rest<Variables>
  ): AsyncGenerator<Item<Result>, void, undefined>;
}

/** A stream says something every 15 seconds. */
const SILENCE_MS = 45_000;
const ACCEPT = "application/graphql-response+json, application/json;q=0.9";
/** Statuses that say that the request was not carried out, or that nobody knows. */
const PASSING = new Set([408, 429, 502, 503, 504]);
const PASSING_CODES = new Set(["RATE_LIMITED", "UNAVAILABLE"]);

const isPassing = ({ extensions }: AnsweredError): boolean =>
  PASSING_CODES.has(extensions?.code ?? "") || extensions?.["retryable"] === true;

/** A client of one endpoint. It holds no connection: it needs not be closed. */
export function createClient(options: ClientOptions): Client {
  const fetchIt = options.fetch ?? ((url, init) => fetch(url, init));
  const ids = new Map<string, Promise<string>>();

  const tokenOf = async (refused: boolean) =>
    typeof options.token === "function" ? options.token({ refused }) : options.token;

  /** Sends the request once; gives its answer, or the refusal after which it may be sent again. */
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

  /** The id under which a document is registered. */
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
    // The same for all attempts: a mutation whose answer was lost on the way is not carried out twice.
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

/** Headers that name the program. */
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

/** The error of an answer that has some. */
export function errorOf({ data, errors, status, requestId }: Answer<unknown>): PlatError {
  const [first] = errors;
  const code = (first?.extensions?.code ?? "INTERNAL") as ErrorCode;
  return new PlatError(code, first?.message ?? "", { status, errors, data, requestId });
}
