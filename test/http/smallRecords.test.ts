/** What arrives in many small TLS records. */
import type { RequestListener } from "node:http";
import { expect, test } from "@jest/globals";
import { listen } from "../../src/http/listen.ts";
import { SmallRecords } from "../../src/network/smallRecords.ts";
import { testCertificate } from "../harness/certificate.ts";
import { openRecordSender } from "../harness/smallRecords.ts";
import { until } from "../harness/until.ts";

/** A service that returns paths, and accepts WebSockets. */
async function start() {
  const app: RequestListener = (request, response) => {
    request.resume();
    response.end(request.url);
  };
  const { cert, key } = await testCertificate();
  const server = await listen(app, { port: 0, host: "127.0.0.1", cert, key });
  return {
    open: () => openRecordSender({ host: "127.0.0.1", port: server.port }),
    [Symbol.asyncDispose]: () => server.close(0),
  };
}

test("headers in records of one byte are refused with instructions, and the connection is closed", async () => {
  await using service = await start();
  using sender = await service.open();
  await sender.encrypt(`GET / HTTP/1.1\r\nHost: a\r\nX: ${"x".repeat(4_000)}`, 1);
  sender.send();
  await until(() => sender.isClosed());
  expect(sender.text()).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n/);
  expect(JSON.parse(sender.text().split("\r\n\r\n")[1]!)).toMatchObject({
    errors: [{ message: expect.stringContaining("16 bytes"), extensions: { code: "BAD_USER_INPUT" } }],
  });
});

test("a request in records of one byte is answered if it is short, and many in a record each are", async () => {
  await using service = await start();
  using sender = await service.open();
  await sender.encrypt("GET /short HTTP/1.1\r\nHost: a\r\n\r\n", 1);
  sender.send();
  await until(() => sender.text().includes("/short"));
  // One after the other, as a client with keep-alive sends them.
  for (let n = 0; n < 600; n++) {
    const request = `GET /${n}. HTTP/1.1\r\nHost: a\r\n\r\n`;
    await sender.encrypt(request, request.length);
    sender.send();
    await until(() => sender.text().includes(`/${n}.`));
  }
  expect(sender.isClosed()).toBe(false);
});

test("messages of a WebSocket in records of one byte close it", async () => {
  await using service = await start();
  using sender = await service.open();
  const handshake = [
    "GET /graphql HTTP/1.1",
    "Host: a",
    "Connection: Upgrade",
    "Upgrade: websocket",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    "Sec-WebSocket-Protocol: graphql-transport-ws",
  ].join("\r\n");
  await sender.encrypt(`${handshake}\r\n\r\n`, 1_000);
  sender.send();
  await until(() => sender.text().startsWith("HTTP/1.1 101 "));
  // The head of a frame of 4,000 bytes, masked with zeros.
  await sender.encrypt("\u0001", 1);
  await sender.encrypt("x".repeat(2_000), 1);
  sender.send();
  await until(() => sender.isClosed());
  expect(sender.text()).toMatch(/^HTTP\/1\.1 101 /);
});

test("short records now and then are allowed for days, and only within a window not", () => {
  let now = 0;
  const clock = performance.now.bind(performance);
  performance.now = () => now;
  try {
    const pongs = new SmallRecords();
    for (let n = 0; n < 10_000; n++) {
      now += 15_000;
      expect(pongs.take(6)).toBe(true);
    }
    const flood = new SmallRecords();
    // However much it has sent before.
    expect(flood.take(10_000_000)).toBe(true);
    const taken = Array.from({ length: 1_000 }, () => flood.take(1)).filter(Boolean).length;
    expect(taken).toBe(272);
    expect(flood.take(1)).toBe(false);
  } finally {
    performance.now = clock;
  }
});
