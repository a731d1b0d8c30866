/** The receiver of docs/webhooks.md, executed as written beside the service. */
import { writeFile } from "node:fs/promises";
import { request } from "node:https";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import pino from "pino";
import { testCompute } from "../harness/compute.ts";
import { freePort } from "../../src/network/freePort.ts";
import { createSeal } from "../../src/secrets/seal.ts";
import { startDispatcher, type Dispatcher } from "../../src/webhooks/dispatcher.ts";
import { startChild } from "../harness/child.ts";
import { secretKeys } from "../harness/api.ts";
import { guideBlocks } from "../harness/guide.ts";
import { temporaryFolder } from "../harness/service.ts";
import { startWorld, type World } from "../harness/world.ts";
import { testCertificate } from "../harness/certificate.ts";

const compute = testCompute();
let world: World;
let dispatcher: Dispatcher;

beforeAll(async () => {
  world = await startWorld(undefined, { loopbackWebhooks: true });
  dispatcher = await startDispatcher({
    connectionString: world.database.workerUrl,
    seal: createSeal(secretKeys),
    loopback: true,
    compute,
    log: pino({ level: "silent" }),
  });
});
afterAll(async () => {
  await dispatcher?.stop();
  await world?.stop();
});

test("the receiver of the guide prints the event", async () => {
  const block = (await guideBlocks("docs/webhooks.md")).find(
    ({ heading, language }) => heading === "Receive a webhook" && language === "js",
  );
  await using folder = await temporaryFolder();
  const { cert, key } = await testCertificate();
  const [TLS_CERT, TLS_KEY] = [join(folder.path, "cert.pem"), join(folder.path, "key.pem")];
  await Promise.all([writeFile(TLS_CERT, cert), writeFile(TLS_KEY, key)]);
  const port = await freePort();
  const { createWebhook: webhook } = await world.owen.get(
    "mutation ($input: CreateWebhookInput!) { createWebhook(input: $input) { id secret } }",
    { input: { organizationId: world.harbour.id, url: `https://localhost:${port}`, events: ["lead.*"] } },
  );
  const child = startChild(["--input-type=module", "--eval", block!.text], {
    env: { PATH: process.env.PATH, WEBHOOK_SECRET: webhook.secret, TLS_CERT, TLS_KEY, PORT: String(port) },
    stdio: ["ignore", "pipe", "inherit"],
  });
  try {
    let printed = "";
    const line = new Promise<string>((done) =>
      child.stdout!.setEncoding("utf8").on("data", (part: string) => {
        printed += part;
        if (printed.includes("\n")) done(printed.trim());
      }),
    );
    const { createLead: lead } = await world.owen.get(
      "mutation ($input: CreateLeadInput!) { createLead(input: $input) { id } }",
      { input: { projectId: world.project.id, name: "Vera" } },
    );
    // Before the receiver listens, the first attempt may fail.
    const dispatched = await line;
    // A request without a signature is refused, and the receiver continues.
    const stranger = await new Promise<number>((done, fail) => {
      request(
        `https://localhost:${port}`,
        { method: "POST", rejectUnauthorized: false, agent: false },
        (response) => done(response.resume().statusCode!),
      )
        .once("error", fail)
        .end('{"type":"lead.created"}');
    });
    expect([stranger, child.exitCode]).toEqual([400, null]);
    expect(dispatched).toBe(`lead.created ${lead.id}`);
  } finally {
    child.kill();
  }
}, 30_000);
