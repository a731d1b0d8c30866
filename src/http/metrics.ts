import diagnostics from "node:diagnostics_channel";
import type { IncomingMessage, ServerResponse } from "node:http";
import { AggregatorRegistry, collectDefaultMetrics, Counter, Gauge, Registry } from "prom-client";
import type { MetricValues } from "./apiProcesses.ts";
import { type LiveNumbers, liveLags } from "../live/liveNumbers.ts";
import { connectionWaits, type PoolTiming, statementTimings } from "../database/timings.ts";
import type { Logger } from "../base/log.ts";
import { eventLoopDelayMetrics } from "../monitoring/eventLoopDelay.ts";
import { LabelledHistogram } from "../monitoring/histogram.ts";
import { type JobMetrics, jobMetrics } from "../monitoring/jobMetrics.ts";
import { operationLabels } from "../monitoring/operationLabels.ts";
import { type WorkNumber, workGauges } from "../monitoring/workGauges.ts";
import { pathOf } from "./requestLog.ts";
import { requestState, type RequestState } from "./requestState.ts";

/** Statistics of a connection pool, as in node-postgres. */
export interface PoolNumbers {
  readonly total: number;
  readonly idle: number;
  readonly waiting: number;
}

/** Values of the API for each scrape. */
export interface ApiNumbers {
  /** By pool name. */
  readonly pools: Readonly<Record<string, PoolNumbers>>;
  /** Statements of queries by the server that answered, where there are replicas. */
  readonly reads?: Readonly<Record<"replica" | "primary", number>> | undefined;
  /** Cached documents with plans, their estimated size in bytes, and the number of cache hits. */
  readonly documents?: { documents: number; bytes: number; hits: number; misses: number };
  /** Event streams. */
  readonly live?: LiveNumbers;
  /** Units of shared resources in use, and requests that wait for some, by resource. */
  readonly admission?: Readonly<Record<string, { held: number; waiting: number }>>;
}

/** Paths are labels only if there are few; any other is "other". */
const routes = new Set(["/", "/graphql", "/events/stream", "/healthz", "/readyz", "/jobs"]);
/** Lasts as long as its reader, so its duration is meaningless. */
const endless = new Set(["/events/stream"]);

/** Seconds; finer around the expected durations. */
const buckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10];

/** Prometheus metrics of this process. */
export interface Metrics {
  /** Unhandled promise rejections. */
  readonly strayRejections: Counter;
  /** Sets the expiry of the current certificate (seconds since 1970); undefined if it could not be re-read. */
  readonly certificate: (expiresAt: number | undefined) => void;
  /** Counts a request that has ended. */
  readonly count: (request: IncomingMessage, response: ServerResponse) => void;
  /** Metrics of background work. */
  readonly jobs: JobMetrics;
  /** Replaces the source of the values read at each scrape. */
  watch(numbers: () => ApiNumbers): void;
  /** Sets the source of the metrics of pending work; see workGauges.ts. */
  watchWork(read: () => Promise<WorkNumber[]>, log: Pick<Logger, "warn">): void;
  /** Metrics of this process, for aggregation. */
  values(): Promise<MetricValues>;
  /** Sets the source of other processes' metrics, which are merged: summed where that makes sense. */
  gather(others: () => Promise<MetricValues[]>): void;
  /** Metrics in the Prometheus text format. */
  render(): Promise<{ contentType: string; text: string }>;
}

/** Starts counting for the life of the process: the monitors of event loop and heap are never released. */
export function createMetrics(): Metrics {
  let numbers: () => ApiNumbers = () => ({ pools: {} });
  let others: (() => Promise<MetricValues[]>) | undefined;
  let renewWork = async (): Promise<void> => {};
  const registers = [new Registry()];
  const [registry] = registers as [Registry];
  // PERF: the delay of the event loop is sampled by eventLoopDelayMetrics; theirs, which cannot be turned off, wakes once an hour.
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: 3_600_000 });
  eventLoopDelayMetrics(registry);
  const requests = requestMetrics(registers);
  registerPools(registry, () => numbers());
  registerReads(registry, () => numbers().reads);
  registerDocuments(registry, () => numbers().documents);
  registerLive(registry, () => numbers().live);
  watchDurations(registers);
  const strayRejections = new Counter({
    name: "plat_stray_rejections_total",
    help: "Failures that nobody heard: each is a fault of the service",
    registers,
  });
  return {
    strayRejections,
    certificate: certificateMetrics(registers),
    count: requests,
    jobs: jobMetrics(registers),
    watch(given) {
      numbers = given;
    },
    watchWork(read, log) {
      renewWork = workGauges(registers, read, log);
    },
    values: async () => (await registry.getMetricsAsJSON()) as MetricValues,
    gather(given) {
      others = given;
    },
    async render() {
      await renewWork();
      if (others) {
        const [own, found] = await Promise.all([registry.getMetricsAsJSON(), others()]);
        const together = AggregatorRegistry.aggregate([own as MetricValues, ...found]);
        return { contentType: together.contentType, text: await together.metrics() };
      }
      return { contentType: registry.contentType, text: await registry.metrics() };
    },
  };
}

const methods = new Set(["GET", "POST", "OPTIONS", "HEAD"]);

/** Request metrics. */
function requestMetrics(registers: Registry[]): Metrics["count"] {
  const requests = new Counter({
    name: "plat_http_requests_total",
    help: "Requests by route, method and status",
    labelNames: ["route", "method", "status"],
    registers,
  });
  const durations = new LabelledHistogram({
    name: "plat_http_request_duration_seconds",
    help: "From the first middleware to the end of the answer",
    labelNames: ["route"],
    buckets,
    registers,
  });
  const errors = new Counter({
    name: "plat_errors_total",
    help: "Answers that carry an error, by code",
    labelNames: ["code"],
    registers,
  });
  const observeOperation = operationMetrics(registers);
  return (request, response) => {
    const state = requestState(request);
    const { path = pathOf(request) } = request as IncomingMessage & { path?: string };
    const route = routes.has(path) ? path : "other";
    const method = methods.has(request.method!) ? request.method! : "other";
    const seconds = Number(process.hrtime.bigint() - state.startedAt) / 1e9;
    requests.inc({ route, method, status: String(response.statusCode) });
    const isEndless = endless.has(route) || state.operationType === "subscription";
    if (!isEndless || response.statusCode !== 200) durations.of(route).observe(seconds);
    observeOperation(state, seconds);
    for (const code of state.errorCodes) errors.inc({ code });
  };
}

/** Duration of GraphQL operations by name, if the name is a label. */
function operationMetrics(registers: Registry[]): (state: RequestState, seconds: number) => void {
  const durations = new LabelledHistogram({
    name: "plat_graphql_operation_duration_seconds",
    help: "The same for GraphQL operations that were executed, by name and type",
    labelNames: ["operation", "type"],
    buckets,
    registers,
  });
  const labelOf = operationLabels();
  return (state, seconds) => {
    if (state.operationType === undefined || state.operationType === "subscription") return;
    const operation = labelOf({
      name: state.operationName,
      isRegistered: state.isRegistered,
      isTrusted: state.claims?.userId != null && state.errorCodes.size === 0,
    });
    durations.of(operation, state.operationType).observe(seconds);
  };
}

/** Connections and other shared resources, at each scrape. */
function registerPools(registry: Registry, numbers: () => ApiNumbers): void {
  registry.registerMetric(
    new Gauge({
      name: "plat_pool_connections",
      help: "Connections of the pools, and callers that wait for one",
      labelNames: ["pool", "state"],
      registers: [],
      collect() {
        for (const [pool, found] of Object.entries(numbers().pools))
          for (const state of ["total", "idle", "waiting"] as const) this.set({ pool, state }, found[state]);
      },
    }),
  );
  registry.registerMetric(
    new Gauge({
      name: "plat_admission_requests",
      help: "Units of shared resources that are held, and requests that wait for some",
      labelNames: ["resource", "state"],
      registers: [],
      collect() {
        for (const [resource, found] of Object.entries(numbers().admission ?? {}))
          for (const state of ["held", "waiting"] as const) this.set({ resource, state }, found[state]);
      },
    }),
  );
}

/** Number of queries by the server that answered them, if there are replicas. */
function registerReads(registry: Registry, found: () => ApiNumbers["reads"]): void {
  registry.registerMetric(
    new Counter({
      name: "plat_reads_total",
      help: "Statements of queries, by whether a read replica or the primary answered; only with READ_DATABASE_URLS",
      labelNames: ["server"],
      registers: [],
      collect() {
        this.reset();
        for (const [server, count] of Object.entries(found() ?? {})) this.inc({ server }, count);
      },
    }),
  );
}

/** Published measurements: lag of live events, statements, and waits for connections. */
function watchDurations(registers: Registry[]): void {
  const lags = new LabelledHistogram({
    name: "plat_live_lag_seconds",
    help: "From the beginning of the transaction that wrote an event to handing it to the streams that are up to date",
    labelNames: [],
    buckets,
    registers,
  });
  const lag = lags.of();
  diagnostics.subscribe(liveLags.name, (seconds) => lag.observe(seconds as number));
  const statements = new LabelledHistogram({
    name: "plat_database_statement_duration_seconds",
    help: "From sending statements on a connection to the server being ready for the next, by pool",
    labelNames: ["pool"],
    buckets,
    registers,
  });
  const waits = new LabelledHistogram({
    name: "plat_database_connection_wait_seconds",
    help: 'From asking a pool for a connection to having it; "operations" wait for their share as well',
    labelNames: ["pool"],
    buckets,
    registers,
  });
  for (const [channel, histogram] of [
    [statementTimings, statements],
    [connectionWaits, waits],
  ] as const)
    diagnostics.subscribe(channel.name, (message) => {
      const { pool, ms } = message as PoolTiming;
      histogram.of(pool).observe(ms / 1000);
    });
}

/** Sets the expiry of the certificate, or that it could not be re-read. */
function certificateMetrics(registers: Registry[]): Metrics["certificate"] {
  const expiry = new Gauge({
    name: "plat_certificate_expires_timestamp_seconds",
    help: "When the certificate that is used expires",
    // Shared by all processes, except one that serves no requests itself.
    aggregator: "max",
    registers,
  });
  const failures = new Counter({
    name: "plat_certificate_reload_failures_total",
    help: "Times that the files of the certificate could not be read again",
    registers,
  });
  return (expiresAt) => {
    if (expiresAt === undefined) failures.inc();
    else expiry.set(expiresAt);
  };
}

/** Cached documents with plans, if there is an API. */
function registerDocuments(registry: Registry, found: () => ApiNumbers["documents"]): void {
  const counted = {
    hits: "Documents that were found among those that are kept",
    misses: "Documents that had to be parsed",
  };
  for (const [name, help] of Object.entries(counted) as [keyof typeof counted, string][])
    registry.registerMetric(
      new Counter({
        name: `plat_plan_cache_${name}_total`,
        help,
        registers: [],
        collect() {
          this.reset();
          this.inc(found()?.[name] ?? 0);
        },
      }),
    );
  const kept = {
    documents: "Documents that are kept with their plans",
    bytes: "Bytes that they are thought to take",
  };
  for (const [name, help] of Object.entries(kept) as [keyof typeof kept, string][])
    registry.registerMetric(
      new Gauge({
        name: `plat_plan_cache_${name}`,
        help,
        registers: [],
        collect() {
          this.set(found()?.[name] ?? 0);
        },
      }),
    );
}

/** Event streams, if there is an API. */
function registerLive(registry: Registry, found: () => LiveNumbers | undefined): void {
  const present = {
    streams: "Event streams that are open",
    feeds: "Sets of claims, by organization, that event streams are read for",
  };
  for (const [name, help] of Object.entries(present) as [keyof typeof present, string][])
    registry.registerMetric(
      new Gauge({
        name: `plat_live_${name}`,
        help,
        registers: [],
        collect() {
          this.set(found()?.[name] ?? 0);
        },
      }),
    );
  const counted = {
    reads: "Pages of events that were read for streams",
    deliveries: "Events that were handed to streams that are up to date, once for each",
  };
  for (const [name, help] of Object.entries(counted) as [keyof typeof counted, string][])
    registry.registerMetric(
      new Counter({
        name: `plat_live_${name}_total`,
        help,
        registers: [],
        collect() {
          this.reset();
          this.inc(found()?.[name] ?? 0);
        },
      }),
    );
}
