/** Our histograms (src/monitoring/histogram.ts) are exported and aggregated like those of prom-client. */
import { expect, test } from "@jest/globals";
import { AggregatorRegistry, Histogram, Registry } from "prom-client";
import { LabelledHistogram } from "../../src/monitoring/histogram.ts";

const options = { name: "durations", help: "How long", labelNames: ["name", "type"], buckets: [0.1, 0.5, 1] };
const observed: [string, string, number][] = [
  ["a", "query", 0.1],
  ["a", "query", 0.11],
  ["b", "query", 7],
  ["a", "mutation", 0],
  ["a", "query", 1],
];

function both() {
  const [ours, theirs] = [new Registry(), new Registry()];
  const own = new LabelledHistogram({ ...options, registers: [ours] });
  const other = new Histogram({ ...options, registers: [theirs] });
  for (const [name, type, value] of observed) {
    own.of(name, type).observe(value);
    other.observe({ name, type }, value);
  }
  return { ours, theirs };
}

test("a scrape has the same lines", async () => {
  const { ours, theirs } = both();
  expect((await ours.metrics()).split("\n")).toEqual((await theirs.metrics()).split("\n"));
  ours.resetMetrics();
  theirs.resetMetrics();
  expect(await ours.metrics()).toBe(await theirs.metrics());
});

test("those of several processes are added up in the same way", async () => {
  const { ours, theirs } = both();
  const twice = async (registry: Registry) => {
    const found = (await registry.getMetricsAsJSON()) as never;
    return AggregatorRegistry.aggregate([found, found]).metrics();
  };
  expect((await twice(ours)).split("\n").toSorted()).toEqual((await twice(theirs)).split("\n").toSorted());
});
