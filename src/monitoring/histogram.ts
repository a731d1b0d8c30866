/**
 * PERF: histograms for what happens several times in each request. Those of prom-client check and join all labels at
 * each observation; these have the series at hand.
 */
import type { Metric, Registry } from "prom-client";

/** One series of a histogram. */
export class Series {
  readonly labels: Readonly<Record<string, string>>;
  /** Observations by bucket; those above the last bound come last. */
  readonly counts: number[];
  readonly #bounds: readonly number[];
  sum = 0;
  count = 0;

  constructor(labels: Readonly<Record<string, string>>, bounds: readonly number[]) {
    this.labels = labels;
    this.#bounds = bounds;
    this.counts = Array.from({ length: bounds.length + 1 }, () => 0);
  }

  observe(value: number): void {
    let bucket = 0;
    while (bucket < this.#bounds.length && value > this.#bounds[bucket]!) bucket += 1;
    this.counts[bucket]! += 1;
    this.sum += value;
    this.count += 1;
  }
}

export interface HistogramOptions {
  readonly name: string;
  readonly help: string;
  /** In the order in which values are given. */
  readonly labelNames: readonly string[];
  readonly buckets: readonly number[];
  readonly registers: readonly Registry[];
}

/** A histogram of the registry, in the form of those of prom-client. */
export class LabelledHistogram {
  readonly name: string;
  readonly #options: HistogramOptions;
  readonly #series = new Map<string, Series>();

  constructor(options: HistogramOptions) {
    this.name = options.name;
    this.#options = options;
    for (const registry of options.registers) registry.registerMetric(this as unknown as Metric);
  }

  /** The series with these values of the labels. */
  of(...values: readonly string[]): Series {
    const key = values.length === 1 ? values[0]! : values.join("\0");
    const known = this.#series.get(key);
    if (known) return known;
    const { labelNames, buckets } = this.#options;
    const made = new Series(
      Object.fromEntries(labelNames.map((name, index) => [name, values[index]!])),
      buckets,
    );
    this.#series.set(key, made);
    return made;
  }

  /** Called by the registry at each scrape. */
  async get() {
    const { name, help, buckets } = this.#options;
    const bounds = [...buckets, "+Inf" as const];
    const values = [...this.#series.values()].flatMap(({ labels, counts, sum, count }) => {
      let below = 0;
      const inBuckets = bounds.map((le, index) => ({
        labels: { le, ...labels },
        value: (below += counts[index]!),
        metricName: `${name}_bucket`,
      }));
      return [
        ...inBuckets,
        { labels, value: sum, metricName: `${name}_sum` },
        { labels, value: count, metricName: `${name}_count` },
      ];
    });
    return { name, help, type: "histogram", aggregator: "sum", values };
  }

  reset(): void {
    this.#series.clear();
  }
}
