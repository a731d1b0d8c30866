/** Spans of traces. Without OTEL_EXPORTER_OTLP_ENDPOINT there are none, and nothing of OpenTelemetry is loaded; see tracing.ts. */
import type { IncomingMessage, ServerResponse } from "node:http";

export type SpanAttributes = Record<string, string | number | boolean | undefined>;

/** A piece of work with a name that has few values. */
export interface SpanOptions {
  readonly name: string;
  /** Internal where omitted; `consumer` does what was asked for earlier, `client` asks somebody else. */
  readonly kind?: "client" | "consumer";
  readonly attributes?: SpanAttributes;
  /** The W3C `traceparent` of what has asked a consumer for it. */
  readonly parent?: string | undefined;
}

/** What makes spans. */
export interface SpanMaker {
  run<T>(options: SpanOptions, work: () => Promise<T>): Promise<T>;
  /** Begins a span below a recorded one; gives what ends it. */
  start(options: () => SpanOptions): ((error?: unknown) => void) | undefined;
  serve(
    request: IncomingMessage,
    response: ServerResponse,
    attributes: SpanAttributes,
    next: () => void,
  ): void;
  /** The W3C `traceparent` of what runs now; undefined where it is not recorded. */
  traceparent(): string | undefined;
}

let maker: SpanMaker | undefined;

/** Has spans made from now on, or none any more. */
export function makeSpansBy(given: SpanMaker | undefined): void {
  maker = given;
}

/** Does the work as a span, where spans are made. */
export function inSpan<T>(options: SpanOptions, work: () => Promise<T>): Promise<T> {
  return maker ? maker.run(options, work) : work();
}

/** Begins a span below the one that runs now, where that is recorded; gives what ends it. */
export const startSpan = (options: () => SpanOptions): ((error?: unknown) => void) | undefined =>
  maker?.start(options);

/** Answers a request as a span, which ends with its response. */
export function inServerSpan(
  request: IncomingMessage,
  response: ServerResponse,
  attributes: SpanAttributes,
  next: () => void,
): void {
  if (maker) maker.serve(request, response, attributes, next);
  else next();
}

/** The W3C `traceparent` that goes along with what is asked of others; undefined where nothing is recorded. */
export const traceparent = (): string | undefined => maker?.traceparent();
