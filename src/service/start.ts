/** The shared parts of a start, and the handling of uncaught errors. */
import { exitCodes } from "../base/exitCodes.ts";
import type { ServiceConfig } from "../http/address.ts";
import { createLog, type Logger } from "../base/log.ts";
import { logSlowStatements } from "../database/slowStatements.ts";
import type { requestPart } from "../http/apiProcesses.ts";
import type { Metrics } from "../http/metrics.ts";
import { Readiness } from "../monitoring/readiness.ts";
import { orderedShutdown, type Shutdown } from "./shutdown.ts";

export interface Start {
  readonly config: ServiceConfig;
  /** Whether this process is one of several that serve the API for the first one. */
  readonly part: Awaited<ReturnType<typeof requestPart>>;
  readonly log: Logger;
  /** Parts that are added last stop first. */
  readonly shutdown: Shutdown;
  readonly readiness: Readiness;
  readonly metrics: Metrics;
  /** Stops everything, and logs the reason. */
  fail(reason: string, exitCode: number): void;
}

/** Begins a start: from here on, the process always stops in order. */
export async function beginStart(config: ServiceConfig, part: Start["part"]): Promise<Start> {
  const log = createLog(config.logLevel);
  const shutdown = orderedShutdown(log, config.stopDelayMs + config.stopTimeoutMs);
  if (config.tracing) {
    // PERF: other processes do not load it.
    const { startTracing } = await import("../tracing/tracing.ts");
    shutdown.add("traces", startTracing({ ...config.tracing, mode: config.mode }).stop);
  }
  if (config.slowStatementMs > 0) logSlowStatements(log, config.slowStatementMs);
  const { createMetrics } = await import("../http/metrics.ts");
  const metrics = createMetrics();
  const fail = (reason: string, exitCode: number) =>
    void shutdown.begin(reason, exitCode).catch(() => process.exit(exitCode));
  const start = { config, part, log, shutdown, readiness: new Readiness(), metrics, fail };
  catchFailures(start);
  return start;
}

function catchFailures({ log, metrics, fail }: Start): void {
  process.on("uncaughtException", (error) => {
    log.fatal({ event: "process.exception", err: error }, "Uncaught exception; exiting.");
    fail("failure", exitCodes.failed);
  });
  // A rejection that nothing awaits any longer, such as a part of a job that has already failed, must not end the process.
  process.on("unhandledRejection", (error) => {
    metrics.strayRejections.inc();
    log.error({ event: "process.stray_rejection", err: error }, "Unhandled promise rejection.");
  });
  // The output may have no reader any longer, which is no reason to stop.
  for (const output of [process.stdout, process.stderr]) output.on("error", () => {});
}
