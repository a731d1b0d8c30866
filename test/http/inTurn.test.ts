/** Fair queueing of pages beside the API: clients with many or large requests only delay themselves. */
import type { RequestHandler } from "express";
import { expect, test } from "@jest/globals";
import { createFileAddresses } from "../../src/files/addresses.ts";
import { filePage } from "../../src/http/filePage.ts";
import { pageRequests, requestBodies } from "../../src/admission/semaphores.ts";
import { partyOf } from "../../src/admission/party.ts";
import { until } from "../harness/until.ts";
import { scriptedDatabase } from "./scriptedDatabase.ts";
import { startServer } from "./server.ts";

const says: RequestHandler<any> = (_request, response) => void response.send("here");
const from = (address: string) => ({ "x-forwarded-for": address });
const waiting = (count: number) =>
  until(
    () => pageRequests.numbers.waiting,
    (found) => found === count,
  );

const addresses = createFileAddresses([{ secret: "s".repeat(32) }], "https://localhost");
const publicFile = new URL(
  addresses.sign({
    key: "a".repeat(64),
    name: "a.png",
    record: `floor_plans.${crypto.randomUUID()}`,
  } as never),
);
const { pool } = scriptedDatabase([[/file_is_public/, [{ is_public: true }]]]);
const pages = {
  trackers: says,
  unsubscribe: says,
  confirm: says,
  signing: says,
  stopEmailChange: says,
  calendars: says,
  consent: says,
  paymentsWebhook: says,
  messagesWebhook: says,
  signingWebhook: says,
  filePage: filePage({ store: { size: async () => undefined } as never, addresses, pool }),
};

test.each([
  ["GET", "/t/k"],
  ["GET", "/unsubscribe/k"],
  ["GET", "/confirm/k"],
  ["GET", "/sign/k"],
  ["POST", "/sign/k"],
  ["GET", "/stop-email-change/k"],
  ["GET", "/calendars/k.ics"],
  ["GET", "/integrations/callback"],
  ["POST", "/webhooks/payments"],
  ["POST", "/webhooks/messages"],
  ["POST", "/webhooks/signing/k"],
  ["GET", publicFile.pathname + publicFile.search],
])("%s %s is answered in turn, by networks", async (method, path) => {
  await using server = await startServer({ ...pages, trustProxy: ["127.0.0.1"] });
  const ask = (address: string) => server.send({ method, path, headers: from(address) });
  const whole = (await ask("192.0.2.1")).status;
  expect([200, 404]).toContain(whole);
  const network = partyOf(null, "192.0.2.1");
  const held = [await pageRequests.acquire(network), await pageRequests.acquire(network)];
  const third = ask("192.0.2.1");
  await waiting(1);
  expect((await ask("192.0.2.2")).status).toBe(whole);
  expect(pageRequests.numbers.waiting).toBe(1);
  for (const release of held) release();
  expect((await third).status).toBe(whole);
  await until(
    () => pageRequests.numbers,
    (numbers) => numbers.held === 0,
  );
});

test("skips clients that disconnected while waiting, and releases their slots", async () => {
  let answered = 0;
  await using server = await startServer({
    trackers: (_request, response) => void response.send(String((answered += 1))),
  });
  const network = partyOf(null, "127.0.0.1");
  const held = [await pageRequests.acquire(network), await pageRequests.acquire(network)];
  const gone = new AbortController();
  const asking = server.send({ method: "GET", path: "/t/k", signal: gone.signal }).catch(() => {});
  await waiting(1);
  gone.abort();
  await asking;
  await waiting(0);
  for (const release of held) release();
  expect(pageRequests.numbers).toEqual({ held: 0, waiting: 0 });
  expect(answered).toBe(0);
});

test("a failing page releases its slot", async () => {
  await using server = await startServer({ trackers: () => Promise.reject(new Error("No connection.")) });
  expect((await server.send({ method: "GET", path: "/t/k" })).status).toBe(500);
  expect(pageRequests.numbers).toEqual({ held: 0, waiting: 0 });
});

test("a client with too many waiting requests is refused with the time to retry", async () => {
  await using server = await startServer({ trackers: says });
  const network = partyOf(null, "127.0.0.1");
  const held = await Promise.all([1, 2].map(() => pageRequests.acquire(network)));
  const queue = Array.from({ length: 256 }, () => pageRequests.acquire(network));
  const answer = await server.send({ method: "GET", path: "/t/k" });
  expect([answer.status, answer.headers["retry-after"]]).toEqual([429, "1"]);
  for (const release of held) release();
  for (const entered of queue) (await entered)();
});

test("bodies of notifications share the memory for visitors' bodies, except for small ones", async () => {
  await using server = await startServer({ paymentsWebhook: says });
  const send = (bytes: number) => server.send({ path: "/webhooks/payments", body: Buffer.alloc(bytes) });
  const release = await requestBodies.acquire(partyOf(null, "192.0.2.1"), { weight: 24_000_000 });
  const large = send(20_000);
  await until(
    () => requestBodies.numbers.waiting,
    (count) => count === 1,
  );
  expect((await send(16_384)).status).toBe(200);
  expect((await send(300_000)).status).toBe(413);
  release();
  expect((await large).status).toBe(200);
  await until(
    () => requestBodies.numbers,
    (numbers) => numbers.held === 0,
  );
});
