/** Spans of traces. Without OTEL_EXPORTER_OTLP_ENDPOINT there are none, and OpenTelemetry is not loaded; see tracing.ts. */
import type { IncomingMessage, ServerResponse } from "node:http";

export type SpanAttributes = Record<string, string | number | boolean | undefined>;

/** A span name with few distinct values. */
export interface SpanOptions {
  readonly name: string;
  /** Internal by default; `consumer` processes an earlier request, `client` calls another service. */
  readonly kind?: "client" | "consumer";
  readonly attributes?: SpanAttributes;
  /** The W3C `traceparent` of the request that a consumer processes. */
  readonly parent?: string | undefined;
}

/** The factory of spans. */
export interface SpanMaker {
  run<T>(options: SpanOptions, work: () => Promise<T>): Promise<T>;
  /** Begins a span below a recorded one; returns a function that ends it. */
  start(options: () => SpanOptions): ((error?: unknown) => void) | undefined;
  serve(
    request: IncomingMessage,
    response: ServerResponse,
    attributes: SpanAttributes,
    next: () => void,
  ): void;
  /** The W3C `traceparent` of the current span; undefined if it is not recorded. */
  traceparent(): string | undefined;
}

let maker: SpanMaker | undefined;

/** Enables or disables spans. */
export function makeSpansBy(given: SpanMaker | undefined): void {
  maker = given;
}

/** Whether tracing is enabled. */
export const isTraced = (): boolean => maker !== undefined;

/** Runs the work as a span, if tracing is enabled. */
export function inSpan<T>(options: SpanOptions, work: () => Promise<T>): Promise<T> {
  return maker ? maker.run(options, work) : work();
}

/** Begins a span below the current one, if that is recorded; returns a function that ends it. */
export const startSpan = (options: () => SpanOptions): ((error?: unknown) => void) | undefined =>
  maker?.start(options);

/** Handles a request as a span, which ends with its response. */
export function inServerSpan(
  request: IncomingMessage,
  response: ServerResponse,
  attributes: SpanAttributes,
  next: () => void,
): void {
  if (maker) maker.serve(request, response, attributes, next);
  else next();
}

/** The W3C `traceparent` for outgoing requests; undefined if nothing is recorded. */
export const traceparent = (): string | undefined => maker?.traceparent();
