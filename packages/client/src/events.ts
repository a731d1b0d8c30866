/**
 * The event stream of an organization: server-sent events with `fetch`, resumed without gaps after lost connections.
 */
import { type AnsweredError, type ErrorCode, PlatError } from "./errors.ts";
import { pause, retryAfterMs } from "./retries.ts";
import type { WebhookEvent } from "./webhooks.ts";

/** An event, in the same format as in webhooks. */
export type LiveEvent = WebhookEvent;

export interface EventsOptions {
  /** Id or slug. */
  readonly organizationId: string;
  /** Sequence number after which to begin, such as that of the last processed event. Default: only new events. */
  readonly after?: string;
  /** Names of events to receive: `lead.created`, `lead.*`. Default: all. */
  readonly names?: readonly string[];
  readonly projectId?: string;
  readonly subjectType?: string;
  readonly subjectId?: string;
  /** Ends the stream. */
  readonly signal?: AbortSignal;
  /** Called with the sequence number up to which the stream is complete. Store it to resume from there. */
  readonly onComplete?: (sequence: string) => void;
}

interface Connection {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly fetch: typeof fetch;
  /** Milliseconds without a byte after which the connection counts as lost. */
  readonly silenceMs: number;
  token(refused: boolean): Promise<string | null | undefined>;
}

interface Message {
  event?: string;
  id?: string;
  data: string;
  retry?: number;
}

/**
 * Parses messages according to the specification of server-sent events.
 * @param inTime waits for the next bytes, with a timeout that only runs while the caller reads
 */
async function* messagesOf(
  body: ReadableStream<Uint8Array>,
  inTime: <T>(waiting: Promise<T>) => Promise<T>,
): AsyncGenerator<Message> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  let message: Message = { data: "" };
  try {
    for (;;) {
      const { done, value } = await inTime(reader.read());
      if (done) return;
      const lines = (rest + decoder.decode(value, { stream: true })).split("\n");
      rest = lines.pop()!;
      for (const ended of lines) {
        const line = ended.replace(/\r$/, "");
        const at = line.indexOf(":");
        const name = at < 0 ? line : line.slice(0, at);
        const text = at < 0 ? "" : line.slice(at + 1).replace(/^ /, "");
        if (line === "") {
          yield message;
          message = { data: "" };
        } else if (name === "data") message.data += (message.data && "\n") + text;
        else if (name === "event" || name === "id") message[name] = text;
        else if (name === "retry") message.retry = Number(text);
      }
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}

/** The error of an answer that is not a stream. */
async function refusalOf(response: Response): Promise<PlatError> {
  const text = await response.text();
  let errors: readonly AnsweredError[] = [];
  try {
    errors = (JSON.parse(text) as { errors: AnsweredError[] }).errors;
  } catch {
    // For example from a proxy.
  }
  const [first] = errors;
  const code = (first?.extensions?.code ?? "UNEXPECTED_ANSWER") as ErrorCode;
  const message = first?.message ?? `The answer is not one of the service (HTTP ${response.status}).`;
  const requestId = response.headers.get("x-request-id");
  return new PlatError(code, message, { status: response.status, errors, requestId });
}

const PASSING = new Set([408, 429, 500, 502, 503, 504]);
/** Codes of ended streams that may be reopened immediately. */
const GOES_ON = new Set(["UNAVAILABLE", "LIMIT_EXCEEDED"]);
/** Maximum wait between two connections, in milliseconds. */
const LONGEST_WAIT = 30_000;

/**
 * The events, each once and in order, until the signal ends them.
 * @throws PlatError if the viewer may not follow them, or the token has expired and there is no other
 */
export async function* followEvents(
  { after, names, signal, onComplete, ...filter }: EventsOptions,
  { url, headers, fetch: fetchIt, silenceMs, token }: Connection,
): AsyncGenerator<LiveEvent, void, undefined> {
  let sequence = after;
  let refused = false;
  let failed = 0;
  let retryMs = 1_000;
  for (;;) {
    if (signal?.aborted) return;
    const silence = new AbortController();
    const inTime = async <T>(waiting: Promise<T>): Promise<T> => {
      const timer = setTimeout(() => silence.abort(), silenceMs);
      return waiting.finally(() => clearTimeout(timer));
    };
    const given = { ...filter, names: names?.join(","), after: sequence };
    const query = new URLSearchParams(
      Object.entries(given).flatMap(([name, value]): [string, string][] =>
        value === undefined ? [] : [[name, String(value)]],
      ),
    );
    let waitMs: number | undefined;
    try {
      const authorization = await token(refused);
      const asked = fetchIt(`${url}?${query}`, {
        headers: {
          ...headers,
          accept: "text/event-stream",
          ...(authorization && { authorization: `Bearer ${authorization}` }),
        },
        signal: signal ? AbortSignal.any([signal, silence.signal]) : silence.signal,
      });
      const response = await inTime(asked);
      if (!response.ok || !response.body) {
        const error = await refusalOf(response);
        if (response.status === 401 && !refused) {
          refused = true;
          continue;
        }
        if (!PASSING.has(response.status)) throw error;
        waitMs = retryAfterMs(response.headers.get("retry-after"));
      } else {
        for await (const { event, id, data, retry } of messagesOf(response.body, inTime)) {
          if (retry !== undefined) retryMs = retry;
          if (event === "end") {
            const { code, message, ...extensions } = JSON.parse(data) as { code: ErrorCode; message: string };
            if (code === "UNAUTHENTICATED" && !refused) refused = true;
            else if (!GOES_ON.has(code))
              throw new PlatError(code, message, {
                errors: [{ message, extensions: { code, ...extensions } }],
              });
            break;
          }
          if (id !== undefined) sequence = id;
          failed = 0;
          if (event === "complete") {
            refused = false;
            onComplete?.(sequence!);
          } else if (data !== "") yield JSON.parse(data) as LiveEvent;
        }
      }
    } catch (error) {
      if (error instanceof PlatError) throw error;
      // The connection was lost, or ended by the signal.
    } finally {
      silence.abort();
    }
    failed += 1;
    const backoff = Math.min(LONGEST_WAIT, retryMs * 2 ** (failed - 1)) * (0.5 + Math.random());
    await pause(waitMs ?? backoff, signal).catch(() => {});
  }
}
