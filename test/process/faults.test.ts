/**
 * Failures around a whole service under load: errors of clients, /readyz, and no loss of acknowledged changes.
 * Failures that take longer than seconds are in faults.long.test.ts, which also measures.
 */
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { rename } from "node:fs/promises";
import { Agent, request } from "node:https";
import { buffer } from "node:stream/consumers";
import { play, type Outcome } from "../faults/play.ts";
import { startStage, type Stage } from "../faults/stage.ts";
import { post } from "../harness/load.ts";
import { picture } from "../harness/upload.ts";
import { until } from "../harness/until.ts";

let stage: Stage;
beforeAll(async () => {
  stage = await startStage();
});
afterAll(async () => {
  await stage?.[Symbol.asyncDispose]();
});

const well = "200";
const noChanges = "200 UNAVAILABLE, Retry-After: 15";
/** With 503 if the token could not be looked up. */
const unavailable = ["200 UNAVAILABLE, Retry-After: 5", "503 UNAVAILABLE, Retry-After: 5"];

const outcomesOf = (outcomes: Record<string, number>) => Object.keys(outcomes).toSorted();
const hasSeen = (outcomes: Record<string, number>, allowed: string[]) => {
  expect(outcomesOf(outcomes).filter((said) => !allowed.includes(said))).toEqual([]);
};

/** Clients notice nothing. */
const unnoticed = ({ readers, writers, red }: Outcome) =>
  expect([outcomesOf(readers), outcomesOf(writers), red]).toEqual([[well], [well], []]);

/**
 * Clients wait longer. A process that has lost its connections is not ready until it has one, which takes
 * more than two seconds.
 */
const slower = ({ readers, writers, red }: Outcome) => {
  expect([outcomesOf(readers), outcomesOf(writers)]).toEqual([[well], [well]]);
  expect(["", "database"]).toContain(red.join());
};

/** Reads succeed, changes are refused, and the load balancer is notified. */
const readsGoOn = ({ readers, writers, red }: Outcome) => {
  expect(outcomesOf(readers)).toEqual([well]);
  hasSeen(writers, [well, noChanges]);
  expect(red).toEqual(["writes"]);
};

/** All requests fail until the fault has ended. */
const nothingGoesOn = ({ readers, writers, red }: Outcome) => {
  hasSeen(readers, [well, ...unavailable]);
  hasSeen(writers, [well, ...unavailable]);
  expect(red).toEqual(["database", "writes"]);
};

/** The same for requests that need a new connection; the readiness check of writes may have kept its own. */
const noNewConnections = ({ readers, writers, red }: Outcome) => {
  hasSeen(readers, [well, ...unavailable]);
  hasSeen(writers, [well, ...unavailable]);
  expect(["database", "database,writes"]).toContain(red.join());
};

test.each([
  ["frozen", nothingGoesOn],
  ["full", readsGoOn],
  ["away", nothingGoesOn],
  ["silent", nothingGoesOn],
  ["slow", slower],
  ["crowded", noNewConnections],
  ["readOnly", readsGoOn],
] as const)("of the database: %s", async (name, asPromised) => {
  if (name === "full" && !stage.disk) return;
  const outcome = await play(stage.played, stage.faults[name]);
  asPromised(outcome);
  expect(outcome.lost).toBe(0);
});

test("tolerates a clock that is two hours, or two days, off", async () => {
  for (const hours of [2, -2, 48]) {
    const outcome = await play(stage.played, {
      name: `${hours} hours off`,
      begin: () => stage.setClock(hours * 3_600_000),
      end: () => stage.setClock(0),
      lastsMs: 300,
    });
    unnoticed(outcome);
    expect(outcome.lost).toBe(0);
  }
});

test("an error of the store, also between metadata and content, is an external failure", async () => {
  const { played, store, s3, service } = stage;
  const upload = async (width: number) => {
    const query = "mutation ($input: UploadProjectImageInput!) { uploadProjectImage(input: $input) { url } }";
    const file = `data:image/png;base64,${(await picture("png", width)).toString("base64")}`;
    const headers = { authorization: `Bearer ${played.token}` };
    const variables = { input: { projectId: played.projectId, file } };
    return post(new Agent(), played.baseUrl, { query, variables }, headers);
  };
  const { url } = (await upload(60)).data.uploadProjectImage;
  const read = () =>
    new Promise((resolve, reject) => {
      request(url, { rejectUnauthorized: false, agent: false }, async (response) => {
        const { statusCode: status, headers } = response;
        try {
          const content = await buffer(response);
          resolve({ status, headers, length: content.length, code: codeOf(content) });
        } catch {
          resolve({ status, brokeOff: true });
        }
      })
        .once("error", reject)
        .end();
    });
  const codeOf = (content: Buffer) =>
    content[0] === 0x7b ? JSON.parse(content.toString()).errors[0].extensions.code : undefined;
  const refused = {
    status: 502,
    code: "PROVIDER_ERROR",
    headers: expect.objectContaining({ "cache-control": "no-store" }),
  };
  const whole = await read();
  expect(whole).toMatchObject({ status: 200, code: undefined });
  s3.failReads("503");
  expect(await read()).toMatchObject(refused);
  s3.failReads("cut");
  // The length was announced, so the client notices that the content is incomplete.
  expect(await read()).toEqual({ status: 200, brokeOff: true });
  s3.failReads(undefined);
  store.shut();
  expect(await read()).toMatchObject(refused);
  expect((await upload(61)).errors).toMatchObject([
    { extensions: { code: "PROVIDER_ERROR", provider: "files", retryable: true } },
  ]);
  expect(service.log()).toContain('"event":"files.store_failed"');
  store.open();
  expect(await read()).toMatchObject({ status: 200, length: (whole as { length: number }).length });
  expect((await upload(61)).errors).toBeUndefined();
});

test("reports a certificate that cannot be reloaded by log, metrics and /readyz, and continues", async () => {
  const { tls, played, service } = stage;
  const readiness = async () => {
    const response = await fetch(`${played.monitoring}/readyz`);
    return { ...((await response.json()) as { warnings?: string[] }), status: response.status };
  };
  expect(await readiness()).not.toHaveProperty("warnings");
  await rename(tls.cert, `${tls.cert}.away`);
  const reported = await until(readiness, ({ warnings }) => warnings);
  expect(reported).toMatchObject({ status: 200, warnings: ["certificate cannot be read"] });
  expect(service.log()).toContain('"event":"tls.reload_failed"');
  const metrics = await (await fetch(`${played.monitoring}/metrics`)).text();
  expect(metrics).toMatch(/^plat_certificate_reload_failures_total [1-9]/m);
  expect((await service.get("/healthz")).status).toBe(200);
  await rename(`${tls.cert}.away`, tls.cert);
});

test("if jobs can never be run again, the process exits with the code for a restart by the supervisor", async () => {
  const { service, owner } = stage;
  // As when a later version has changed the tables of the job runner.
  await owner.query(`select pg_notify('worker:migrate', '{"breaking": true, "migrationNumber": 999}')`);
  expect(await service.exit).toMatchObject({ code: 69, signal: null });
  expect(service.log()).toContain('"event":"worker.failed"');
});
