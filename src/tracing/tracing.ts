/**
 * Traces by OpenTelemetry, sent to a collector over OTLP. Only loaded if OTEL_EXPORTER_OTLP_ENDPOINT is set, so that
 * otherwise no request pays for it. The id of a trace decides whether it is recorded, also if the client has chosen
 * the id: clients cannot cause more than the configured ratio.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import {
  type Context,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  trace,
  TraceFlags,
  type Tracer,
} from "@opentelemetry/api";
import { parseTraceParent } from "@opentelemetry/core";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http";
import { resourceFromAttributes } from "@opentelemetry/resources";
import {
  AlwaysOnSampler,
  BatchSpanProcessor,
  SamplingDecision,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from "@opentelemetry/sdk-trace";
import { workContext } from "../base/workContext.ts";
import { makeSpansBy, type SpanMaker, type SpanOptions } from "./spans.ts";

export interface TracingOptions {
  /** URL of the collector, without `/v1/traces`. */
  endpoint: string;
  /** Headers of each batch, such as an API key of the collector. */
  headers?: Readonly<Record<string, string>>;
  /** Ratio of traces that are recorded, 0 to 1. */
  ratio: number;
  /** Mode of the process, such as `all` or `worker`. */
  mode: string;
}

const kinds = { client: SpanKind.CLIENT, consumer: SpanKind.CONSUMER };

/** Milliseconds for sending the remaining spans at a stop. */
const FLUSH_MS = 3_000;

function createProvider({ endpoint, headers = {}, mode }: TracingOptions): TracerProvider {
  return new TracerProvider({
    resource: resourceFromAttributes({ "service.name": "plat", "plat.mode": mode }),
    // PERF: unrecorded traces create no spans at all; see rootOf.
    sampler: new AlwaysOnSampler(),
    spanLimits: { attributeValueLengthLimit: 2_000 },
    spanProcessors: [
      new BatchSpanProcessor({
        exporter: new OTLPTraceExporter({
          url: `${endpoint.replace(/\/+$/, "")}/v1/traces`,
          headers: { ...headers },
        }),
      }),
    ],
  });
}

/** @returns the context of a new trace, which was begun here or by `parent`; undefined if it is not recorded */
function rootsBy(ratio: number): (parent: string | undefined) => Context | undefined {
  const byRatio = new TraceIdRatioBasedSampler(ratio);
  return (parent) => {
    const remote = parent === undefined ? null : parseTraceParent(parent);
    if (!remote) return Math.random() < ratio ? ROOT_CONTEXT : undefined;
    if (!(remote.traceFlags & TraceFlags.SAMPLED)) return undefined;
    const { decision } = byRatio.shouldSample(ROOT_CONTEXT, remote.traceId);
    if (decision !== SamplingDecision.RECORD_AND_SAMPLED) return undefined;
    return trace.setSpanContext(ROOT_CONTEXT, { ...remote, isRemote: true });
  };
}

function fail(span: Span, error: unknown): void {
  // Messages of errors may quote any data.
  const { name, code } = (error ?? {}) as { name?: string; code?: string };
  span.setStatus({ code: SpanStatusCode.ERROR });
  span.setAttribute("error.type", code ?? name ?? "Error");
}

/** Creates the spans of a process, each as a child of the active one. */
function createSpanMaker(tracer: Tracer, rootOf: ReturnType<typeof rootsBy>): SpanMaker {
  const active = new AsyncLocalStorage<Context>();
  const begin = (
    above: Context,
    { name, kind, attributes = {} }: SpanOptions,
    kindOf?: SpanKind,
  ): { span: Span; context: Context } => {
    const span = tracer.startSpan(
      name,
      { kind: kindOf ?? (kind ? kinds[kind] : SpanKind.INTERNAL), attributes },
      above,
    );
    const requestId = workContext.getStore()?.requestId;
    if (requestId !== undefined) span.setAttribute("plat.request_id", requestId);
    return { span, context: trace.setSpan(above, span) };
  };
  return {
    async run(options, work) {
      // Deferred work continues its trace, or starts one; everything else is a child of the current span.
      const above = options.kind === "consumer" ? rootOf(options.parent) : active.getStore();
      if (!above) return work();
      const { span, context } = begin(above, options);
      try {
        return await active.run(context, work);
      } catch (error) {
        fail(span, error);
        throw error;
      } finally {
        span.end();
      }
    },
    start(options) {
      const above = active.getStore();
      if (!above) return undefined;
      const { span } = begin(above, options());
      return (error) => {
        if (error !== undefined) fail(span, error);
        span.end();
      };
    },
    serve(request, response, attributes, next) {
      const given = request.headers["traceparent"];
      const above = rootOf(typeof given === "string" ? given : undefined);
      if (!above) return next();
      const { span, context } = begin(
        above,
        {
          name: String(attributes["http.route"]),
          attributes: { "http.request.method": request.method, ...attributes },
        },
        SpanKind.SERVER,
      );
      response.once("close", () => {
        span.setAttribute("http.response.status_code", response.statusCode);
        if (response.statusCode >= 500) span.setStatus({ code: SpanStatusCode.ERROR });
        span.end();
      });
      active.run(context, next);
    },
    traceparent() {
      const context = active.getStore();
      const span = context && trace.getSpan(context);
      if (!span) return undefined;
      const { traceId, spanId } = span.spanContext();
      return `00-${traceId}-${spanId}-01`;
    },
  };
}

/** Creates spans from now on. `stop` sends the remaining ones. */
export function startTracing(options: TracingOptions): { stop(): Promise<void> } {
  const provider = createProvider(options);
  makeSpansBy(createSpanMaker(provider.getTracer("plat"), rootsBy(options.ratio)));
  return {
    async stop() {
      makeSpansBy(undefined);
      const late = Promise.withResolvers<void>();
      const timer = setTimeout(late.resolve, FLUSH_MS);
      await Promise.race([provider.shutdown().catch(() => {}), late.promise]);
      clearTimeout(timer);
    },
  };
}
