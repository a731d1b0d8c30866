/**
 * The failures of faults.test.ts until all timeouts have expired: `npm run test:long -- test/process/faults` prints
 * the table of the guide.
 */
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { Agent, get } from "node:https";
import { rollingRestart } from "../faults/balancer.ts";
import { play, type Outcome } from "../faults/play.ts";
import { startStage, type Stage } from "../faults/stage.ts";
import { post } from "../harness/load.ts";
import { picture } from "../harness/upload.ts";

let stage: Stage;
beforeAll(async () => {
  stage = await startStage();
}, 120_000);
afterAll(async () => {
  await stage?.[Symbol.asyncDispose]();
});

const summary = (outcomes: Record<string, number>) =>
  Object.entries(outcomes)
    .map(([said, times]) => `${times} × ${said}`)
    .join("; ");
const print = (name: string, { attempts, readers, writers, longestMs, red, backAfterMs, lost }: Outcome) =>
  process.stderr.write(
    `| ${name} | ${attempts} | reads: ${summary(readers)}; changes: ${summary(writers)}; longest ${longestMs} ms; /readyz: ${red.join(", ") || "ready"} | ${backAfterMs} ms | ${lost} |\n`,
  );

test.each([
  ["frozen", 35],
  ["silent", 35],
  ["slow", 30],
  ["crowded", 30],
  ["away", 30],
  ["readOnly", 150],
  ["full", 150],
] as const)(
  "of the database: %s",
  async (name, seconds) => {
    const outcome = await play(stage.played, { ...stage.faults[name], lastsMs: seconds * 1_000 });
    print(stage.faults[name].name, outcome);
    expect(outcome.lost).toBe(0);
    const said = [...Object.keys(outcome.readers), ...Object.keys(outcome.writers)];
    expect(said.filter((one) => one !== "200" && !one.includes("UNAVAILABLE, Retry-After: "))).toEqual([]);
    // The process continues even if the database is read-only for minutes.
    expect(stage.service.log()).not.toContain('"event":"worker.failed"');
  },
  400_000,
);

test("requests to a silent store time out", async () => {
  const { store, played } = stage;
  const file = `data:image/png;base64,${(await picture("png")).toString("base64")}`;
  const query = "mutation ($input: UploadProjectImageInput!) { uploadProjectImage(input: $input) { url } }";
  const variables = { input: { projectId: played.projectId, file } };
  const headers = { authorization: `Bearer ${played.token}` };
  const { data } = await post(new Agent(), played.baseUrl, { query, variables }, headers);
  const { url } = data.uploadProjectImage;
  store.hush();
  const begun = performance.now();
  const status = await new Promise((resolve, reject) => {
    get(url, { rejectUnauthorized: false }, (response) => {
      response.resume();
      resolve(response.statusCode);
    }).once("error", reject);
  });
  process.stderr.write(
    `| The store falls silent | 1 | ${status} after ${Math.round(performance.now() - begun)} ms |\n`,
  );
  store.open();
  expect(status).toBe(502);
});

test("none of 10,000 requests fails during a rolling restart of two processes", async () => {
  const { owner } = stage;
  const outcomes = await rollingRestart({
    databaseUrl: (owner as unknown as { options: { connectionString: string } }).options.connectionString,
    askEveryMs: 2_000,
    stopDelay: 5,
    requests: 10_000,
    callers: 8,
    restarted: [0, 1],
  });
  process.stderr.write(`| Rolling restart | ${JSON.stringify([...outcomes])} |\n`);
  expect([...outcomes.keys()]).toEqual(["200"]);
}, 600_000);
