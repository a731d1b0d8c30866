/**
 * The delay of the event loop, under the names of prom-client's own metrics. Theirs are sampled forever, which takes more CPU time than
 * anything else in an idle process; these only while the event loop is busy.
 */
import { monitorEventLoopDelay, performance } from "node:perf_hooks";
import { Gauge, type Registry } from "prom-client";

/** Interval of samples while the loop is busy, which the values include. */
const RESOLUTION_MS = 50;
/** Interval of checks whether it is. */
const CHECK_MS = 1_000;
/** Share of a check interval from which on it is busy. */
const BUSY_SHARE = 0.02;
/** Consecutive quiet intervals after which sampling ends. */
const QUIET_CHECKS = 10;

type Delays = ReturnType<typeof monitorEventLoopDelay>;
type Summary = "min" | "max" | "mean" | "stddev" | "p50" | "p90" | "p99";

const summaries: Record<
  Summary,
  { help: string; aggregator: "min" | "max" | "average"; read: (values: Delays) => number }
> = {
  min: { help: "The minimum recorded event loop delay.", aggregator: "min", read: ({ min }) => min },
  max: { help: "The maximum recorded event loop delay.", aggregator: "max", read: ({ max }) => max },
  mean: {
    help: "The mean of the recorded event loop delays.",
    aggregator: "average",
    read: ({ mean }) => mean,
  },
  stddev: {
    help: "The standard deviation of the recorded event loop delays.",
    aggregator: "average",
    read: ({ stddev }) => stddev,
  },
  p50: percentile(50),
  p90: percentile(90),
  p99: percentile(99),
};

function percentile(share: number) {
  return {
    help: `The ${share}th percentile of the recorded event loop delays.`,
    aggregator: "average" as const,
    read: (values: Delays) => values.percentile(share),
  };
}

/** Samples delays while the event loop is busy. */
class DelaySampler {
  readonly #sampled = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  /** The longest delay, in nanoseconds, of a check while nothing was sampled. */
  #late = 0;
  #utilization = performance.eventLoopUtilization();
  #quiet = QUIET_CHECKS;
  #checkedAt = performance.now();

  constructor() {
    setInterval(() => this.#check(), CHECK_MS).unref();
  }

  #check(): void {
    const now = performance.now();
    const late = now - this.#checkedAt - CHECK_MS;
    this.#checkedAt = now;
    const utilization = performance.eventLoopUtilization();
    const { utilization: share } = performance.eventLoopUtilization(utilization, this.#utilization);
    this.#utilization = utilization;
    const wasSampled = this.#quiet < QUIET_CHECKS;
    this.#quiet = share >= BUSY_SHARE ? 0 : Math.min(QUIET_CHECKS, this.#quiet + 1);
    const isSampled = this.#quiet < QUIET_CHECKS;
    // Detects a blocked loop while delays are not sampled.
    if (!wasSampled && late > RESOLUTION_MS) this.#late = Math.max(this.#late, (late + RESOLUTION_MS) * 1e6);
    if (isSampled && !wasSampled) this.#sampled.enable();
    if (!isSampled && wasSampled) this.#sampled.disable();
  }

  /** The delays since the last call. */
  take(): Record<Summary, number> {
    const isEmpty = this.#sampled.count === 0;
    const values = {} as Record<Summary, number>;
    for (const [name, { read }] of Object.entries(summaries) as [Summary, (typeof summaries)[Summary]][])
      values[name] = isEmpty ? 0 : read(this.#sampled) / 1e9;
    values.max = Math.max(values.max, this.#late / 1e9);
    this.#sampled.reset();
    this.#late = 0;
    return values;
  }
}

/** Replaces prom-client's metrics of the event loop's delay, for the life of the process. */
export function eventLoopDelayMetrics(registry: Registry): void {
  const sampler = new DelaySampler();
  const gauges = {} as Record<Summary, Gauge>;
  for (const [name, { help, aggregator }] of Object.entries(summaries) as [
    Summary,
    (typeof summaries)[Summary],
  ][]) {
    const metric = `nodejs_eventloop_lag_${name}_seconds`;
    registry.removeSingleMetric(metric);
    gauges[name] = new Gauge({
      name: metric,
      help,
      aggregator,
      registers: [registry],
      // The first one reads for all.
      ...(name === "min" && {
        collect: () => {
          for (const [summary, value] of Object.entries(sampler.take()) as [Summary, number][])
            gauges[summary].set(value);
        },
      }),
    });
  }
}
