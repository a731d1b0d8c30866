import type { RequestHandler } from "express";
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from "prom-client";
import { requestState } from "./requestState.ts";

/** The numbers of a connection pool, as node-postgres has them. */
export interface PoolNumbers {
  readonly total: number;
  readonly idle: number;
  readonly waiting: number;
}

/** Addresses are labels only where they are few; anything else a caller asks for is "other". */
const routes = new Set(["/", "/graphql", "/healthz", "/readyz"]);

/** What a process counts about itself, for Prometheus. */
export interface Metrics {
  /** Rejections of promises that nobody waited for. */
  readonly strayRejections: Counter;
  /** Takes when the certificate that is used expires (seconds since 1970); undefined where it could not be read again. */
  readonly certificate: (expiresAt: number | undefined) => void;
  /** Counts the requests that pass. */
  readonly count: RequestHandler;
  /** Takes the pools whose numbers are asked for at each scrape, by their names, in the place of those before. */
  watch(pools: () => Record<string, PoolNumbers>): void;
  /** The numbers in the Prometheus text format. */
  render(): Promise<{ contentType: string; text: string }>;
}

/** Counts from now on, as long as the process lives: what watches its event loop and its heap is never given up. */
export function createMetrics(): Metrics {
  let pools: () => Record<string, PoolNumbers> = () => ({});
  const registers = [new Registry()];
  const [registry] = registers as [Registry];
  collectDefaultMetrics({ register: registry });
  const requests = new Counter({
    name: "plat_http_requests_total",
    help: "Requests by route, method and status",
    labelNames: ["route", "method", "status"],
    registers,
  });
  const durations = new Histogram({
    name: "plat_http_request_duration_seconds",
    help: "From the first middleware to the end of the answer",
    labelNames: ["route"],
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10],
    registers,
  });
  const errors = new Counter({
    name: "plat_errors_total",
    help: "Answers that carry an error, by code",
    labelNames: ["code"],
    registers,
  });
  const connections = new Gauge({
    name: "plat_pool_connections",
    help: "Connections of the pools, and callers that wait for one",
    labelNames: ["pool", "state"],
    registers,
    collect() {
      for (const [pool, numbers] of Object.entries(pools()))
        for (const state of ["total", "idle", "waiting"] as const)
          connections.set({ pool, state }, numbers[state]);
    },
  });
  const strayRejections = new Counter({
    name: "plat_stray_rejections_total",
    help: "Failures that nobody heard: each is a fault of the service",
    registers,
  });
  const expiry = new Gauge({
    name: "plat_certificate_expires_timestamp_seconds",
    help: "When the certificate that is used expires",
    registers,
  });
  const reloadFailures = new Counter({
    name: "plat_certificate_reload_failures_total",
    help: "Times that the files of the certificate could not be read again",
    registers,
  });
  const methods = new Set(["GET", "POST", "OPTIONS", "HEAD"]);
  return {
    strayRejections,
    certificate(expiresAt) {
      if (expiresAt === undefined) reloadFailures.inc();
      else expiry.set(expiresAt);
    },
    count(request, response, next) {
      const state = requestState(request);
      const route = routes.has(request.path) ? request.path : "other";
      const method = methods.has(request.method) ? request.method : "other";
      response.once("close", () => {
        requests.inc({ route, method, status: String(response.statusCode) });
        durations.observe({ route }, Number(process.hrtime.bigint() - state.startedAt) / 1e9);
        for (const code of state.errorCodes) errors.inc({ code });
      });
      next();
    },
    watch(given) {
      pools = given;
    },
    render: async () => ({ contentType: registry.contentType, text: await registry.metrics() }),
  };
}
