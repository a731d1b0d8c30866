/** Metrics of a process, and their use by the dashboard and the alerts. */
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { execFile } from "node:child_process";
import { mkdir, readFile, realpath } from "node:fs/promises";
import { request } from "node:https";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { Client } from "pg";
import { parse } from "yaml";
import { embeddedUrl } from "../../src/database/embeddedServer.ts";
import { postmasterPort } from "../../src/database/postmaster.ts";
import { freePort } from "../../src/network/freePort.ts";
import { guideBlocks } from "../harness/guide.ts";
import { openShell } from "../harness/shell.ts";
import { metricsOf } from "../monitoring/promql.ts";
import { migratedFolder, startService, type Service } from "../harness/service.ts";
import { until } from "../harness/until.ts";

const folder = resolve(import.meta.dirname, "../../monitoring");
let data: Awaited<ReturnType<typeof migratedFolder>>;
let service: Service;
let owner: Client;
let monitoring: string;

beforeAll(async () => {
  data = await migratedFolder();
  const port = await freePort();
  monitoring = `http://127.0.0.1:${port}`;
  const archive = join(data.path, "archive");
  await mkdir(archive);
  service = await startService({
    env: { DATA_DIR: data.path, MONITORING: `127.0.0.1:${port}`, ARCHIVE_DIR: archive },
  });
  const server = postmasterPort(await realpath(join(data.path, "postgres", "data")))!;
  owner = new Client({ connectionString: await embeddedUrl(data.path, server) });
  owner.on("error", () => {});
  await owner.connect();
});
afterAll(async () => {
  await owner?.end();
  await service?.stop();
  await data?.[Symbol.asyncDispose]();
});

interface Scrape {
  text: string;
  /** Samples by the name of the metric, with the names of its labels. */
  samples: Map<string, Set<string>[]>;
  valueOf(sample: string): number | undefined;
}

async function scrape(): Promise<Scrape> {
  const response = await fetch(`${monitoring}/metrics`);
  expect(response.status).toBe(200);
  const text = await response.text();
  const samples = new Map<string, Set<string>[]>();
  for (const [, name, labels = ""] of text.matchAll(/^([a-z_]\w*)(?:\{(.*)\})? \S+$/gim)) {
    const names = new Set([...labels.matchAll(/(\w+)="(?:[^"\\]|\\.)*"/g)].map(([, label]) => label!));
    samples.set(name!, [...(samples.get(name!) ?? []), names]);
  }
  const valueOf = (sample: string) => {
    const line = text.split("\n").find((found) => found.startsWith(`${sample} `));
    return line && Number(line.slice(sample.length + 1));
  };
  return { text, samples, valueOf } as Scrape;
}

/** Sends a document as a visitor without a token. */
const ask = (query: string) =>
  new Promise<void>((done, fail) => {
    const headers = { "content-type": "application/json" };
    const options = { method: "POST", rejectUnauthorized: false, agent: false as const, headers };
    request(`${service.baseUrl}/graphql`, options, (response) => response.resume().on("end", done))
      .on("error", fail)
      .end(JSON.stringify({ query }));
  });

/** Metrics of installations with standbys or read replicas only; there are none here. */
const elsewhere = new Set(["plat_replication_lag_seconds", "plat_reads_total"]);

/** The expressions of the dashboard and of the alerts, by their location. */
async function expressions(): Promise<[string, string][]> {
  const dashboard = JSON.parse(await readFile(join(folder, "grafana/dashboards/plat.json"), "utf8"));
  const alerts = parse(await readFile(join(folder, "alerts.yml"), "utf8"));
  return [
    ...dashboard.panels.flatMap(({ title, targets = [] }: any) =>
      targets.map(({ expr }: { expr: string }) => [`panel ${title}`, expr]),
    ),
    ...alerts.groups.flatMap(({ rules }: any) =>
      rules.map(({ alert, expr }: { alert: string; expr: string }) => [`alert ${alert}`, expr]),
    ),
  ];
}

test("the dashboard and the alerts use existing metrics and labels, and all of ours", async () => {
  await owner.query("select pg_create_physical_replication_slot('plat_test', true)");
  await owner.query("select pg_switch_wal()");
  await owner.query("select graphile_worker.add_job('idempotency_keys__sweep')");
  await ask("query Monitored { viewer { id } }");
  await ask("{ nothing }");
  const wanted = (await expressions()).flatMap(([place, expression]) =>
    metricsOf(expression).map((metric) => ({ place, ...metric })),
  );
  expect(wanted.length).toBeGreaterThan(60);
  const missing = ({ samples, text }: Scrape) =>
    wanted.filter(({ name, labels }) => {
      if (name === "up") return false;
      if (elsewhere.has(name)) return !text.includes(`# TYPE ${name} `);
      // The scraper adds the labels of the target.
      const own = labels.filter((label) => label !== "instance" && label !== "job");
      return !samples.get(name)?.some((found) => own.every((label) => found.has(label)));
    });
  // The first job, and the first archived segment, take a moment.
  const found = await until(scrape, (page) => missing(page).length === 0, { withinMs: 20_000 }).catch(scrape);
  expect(missing(found)).toEqual([]);
  const shown = new Set(wanted.map(({ name }) => name.replace(/_(bucket|count|sum)$/, "")));
  const unshown = [...found.text.matchAll(/^# TYPE (plat_\w+) /gm)]
    .map(([, name]) => name!)
    .filter((name) => !shown.has(name));
  expect(unshown).toEqual([]);
  await owner.query("select pg_drop_replication_slot('plat_test')");
});

test("jobs, events and other waiting work are counted, by queries whose cost does not grow with it", async () => {
  await owner.query(
    `select graphile_worker.add_job('files__sweep', run_at => now() + interval '1 day') from generate_series(1, 3);
     select graphile_worker.add_job('webhook__disabled', run_at => now() + interval '1 day', max_attempts => 1);
     update graphile_worker._private_jobs set attempts = 1 where max_attempts = 1`,
  );
  const { valueOf } = await until(
    scrape,
    (page) => page.valueOf('plat_jobs_scheduled{task="files__sweep"}') === 3,
    { withinMs: 20_000 },
  );
  expect(valueOf('plat_jobs_failed{task="webhook__disabled"}')).toBe(1);
  expect(valueOf("plat_workers")).toBe(1);
  expect(valueOf('plat_events_unread{reader="webhooks"}')).toBe(0);
  expect(valueOf("plat_archive_failing")).toBe(0);
  // Scrapes within a few seconds share one query.
  const before = (await scrape()).valueOf("plat_work_query_timestamp_seconds");
  const after = await Promise.all(Array.from({ length: 20 }, scrape));
  expect(
    new Set(after.map((page) => page.valueOf("plat_work_query_timestamp_seconds"))).size,
  ).toBeLessThanOrEqual(2);
  expect(before).toBeGreaterThan(0);
});

test("an operation name of a signed-in viewer becomes a label; a visitor's does not", async () => {
  await ask("query OfAStranger { viewer { id } }");
  await ask("{ viewer { id } }");
  const { text, valueOf } = await scrape();
  expect(text).not.toContain("OfAStranger");
  expect(
    valueOf('plat_graphql_operation_duration_seconds_count{operation="other",type="query"}'),
  ).toBeGreaterThan(0);
  expect(
    valueOf('plat_graphql_operation_duration_seconds_count{operation="anonymous",type="query"}'),
  ).toBeGreaterThan(0);
});

test("each alert has a test in which it fires and one in which it does not", async () => {
  const { tests } = parse(await readFile(join(folder, "alerts.test.yml"), "utf8"));
  const { groups } = parse(await readFile(join(folder, "alerts.yml"), "utf8"));
  for (const { alert, annotations } of groups.flatMap(({ rules }: any) => rules)) {
    const outcomes = tests.flatMap(({ alert_rule_test: of }: any) =>
      of.filter((one: any) => one.alertname === alert).map((one: any) => one.exp_alerts.length > 0),
    );
    expect([alert, outcomes.toSorted()]).toEqual([alert, [false, true]]);
    expect(annotations).toEqual({
      summary: expect.stringMatching(/\.$/),
      remedy: expect.stringMatching(/\.$/),
    });
  }
});

/**
 * Whether promtool of Prometheus is installed; without it, expressions are parsed, but alerts are not
 * evaluated.
 */
async function hasPromtool(): Promise<boolean> {
  try {
    await promisify(execFile)("promtool", ["--version"]);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    console.warn(
      "promtool is not installed (Debian: apt-get install prometheus): the alerts were parsed, not run.",
    );
    return false;
  }
}

test("the guide's commands for probes and metrics work, and the tests of the alerts pass", async () => {
  const isThere = await hasPromtool();
  const blocks = (await guideBlocks("docs/operating.md")).filter(
    ({ heading, language }) => language === "sh" && ["Probes", "Metrics"].includes(heading),
  );
  const commands = blocks.flatMap(({ text }) => text.trim().split("\n"));
  expect(commands.length).toBeGreaterThan(4);
  await using shell = await openShell();
  for (const command of commands) {
    if (command.startsWith("promtool") && !isThere) continue;
    const output = await shell.run(
      `cd '${join(folder, "..")}'; ${command.replace("http://127.0.0.1:8444", monitoring)}`,
    );
    expect([command, output]).toEqual([command, expect.stringMatching(/alive|ready|plat_|SUCCESS/)]);
  }
});
