/** The numbers of the API, of its measurements, and of several processes together. */
import diagnostics from "node:diagnostics_channel";
import { expect, test } from "@jest/globals";
import { connectionWaits, statementTimings } from "../../src/database/timings.ts";
import { createMetrics, type ApiNumbers } from "../../src/http/metrics.ts";
import { liveLags } from "../../src/live/liveNumbers.ts";

/** The samples of the service in the text format, without those of the runtime. */
async function samples(metrics: ReturnType<typeof createMetrics>): Promise<string[]> {
  const { text } = await metrics.render();
  return text.split("\n").filter((line) => line.startsWith("plat_"));
}

const numbers: ApiNumbers = {
  pools: { api: { total: 5, idle: 2, waiting: 1 } },
  admission: { planning: { held: 3, waiting: 4 } },
  reads: { replica: 7, primary: 8 },
  documents: { documents: 9, bytes: 1000, hits: 20, misses: 30 },
  live: { streams: 2, feeds: 1, reads: 40, deliveries: 50 } as ApiNumbers["live"] & {},
};
const written = [
  'plat_pool_connections{pool="api",state="total"} 5',
  'plat_pool_connections{pool="api",state="idle"} 2',
  'plat_pool_connections{pool="api",state="waiting"} 1',
  'plat_admission_requests{resource="planning",state="held"} 3',
  'plat_admission_requests{resource="planning",state="waiting"} 4',
  'plat_reads_total{server="replica"} 7',
  'plat_reads_total{server="primary"} 8',
  "plat_plan_cache_documents 9",
  "plat_plan_cache_bytes 1000",
  "plat_plan_cache_hits_total 20",
  "plat_plan_cache_misses_total 30",
  "plat_live_streams 2",
  "plat_live_feeds 1",
  "plat_live_reads_total 40",
  "plat_live_deliveries_total 50",
];

test("each scrape reads the numbers of the API again, and counters are not added up", async () => {
  const metrics = createMetrics();
  metrics.watch(() => numbers);
  for (let scrape = 0; scrape < 2; scrape += 1)
    expect(await samples(metrics)).toEqual(expect.arrayContaining(written));
  const { text } = await metrics.render();
  for (const line of [
    "# HELP plat_plan_cache_documents Documents that are kept with their plans",
    "# TYPE plat_plan_cache_documents gauge",
    "# TYPE plat_plan_cache_hits_total counter",
    "# TYPE plat_live_reads_total counter",
  ])
    expect(text.split("\n")).toContain(line);
});

test("without an API, its numbers are zero, and shared resources have none", async () => {
  const found = await samples(createMetrics());
  expect(found).toEqual(
    expect.arrayContaining([
      "plat_plan_cache_documents 0",
      "plat_plan_cache_hits_total 0",
      "plat_live_streams 0",
      "plat_live_deliveries_total 0",
      "plat_stray_rejections_total 0",
    ]),
  );
  expect(
    found.filter((line) => /^plat_(pool_connections|admission_requests|reads_total)/.test(line)),
  ).toEqual([]);
});

test("published measurements are observed in seconds, by pool", async () => {
  const metrics = createMetrics();
  diagnostics.channel(statementTimings.name).publish({ pool: "api", ms: 200 });
  diagnostics.channel(connectionWaits.name).publish({ pool: "operations", ms: 3 });
  diagnostics.channel(liveLags.name).publish(0.02);
  expect(await samples(metrics)).toEqual(
    expect.arrayContaining([
      'plat_database_statement_duration_seconds_bucket{le="0.1",pool="api"} 0',
      'plat_database_statement_duration_seconds_bucket{le="0.25",pool="api"} 1',
      'plat_database_statement_duration_seconds_sum{pool="api"} 0.2',
      'plat_database_connection_wait_seconds_sum{pool="operations"} 0.003',
      "plat_live_lag_seconds_sum 0.02",
      "plat_live_lag_seconds_count 1",
    ]),
  );
});

test("a certificate has its expiry, and files that could not be read again are counted", async () => {
  const metrics = createMetrics();
  metrics.certificate(1_900_000_000);
  metrics.certificate(undefined);
  expect(await samples(metrics)).toEqual(
    expect.arrayContaining([
      "plat_certificate_expires_timestamp_seconds 1900000000",
      "plat_certificate_reload_failures_total 1",
    ]),
  );
});

test("the metrics of other processes are added, except for what they share", async () => {
  const [own, other] = [createMetrics(), createMetrics()];
  for (const metrics of [own, other]) {
    metrics.watch(() => numbers);
    metrics.certificate(1_900_000_000);
  }
  own.gather(async () => [await other.values()]);
  const found = await samples(own);
  expect(found).toEqual(
    expect.arrayContaining([
      'plat_pool_connections{pool="api",state="total"} 10',
      "plat_plan_cache_hits_total 40",
      "plat_certificate_expires_timestamp_seconds 1900000000",
    ]),
  );
});
