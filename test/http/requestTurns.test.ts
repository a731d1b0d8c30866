/** Turns of requests: how many of a network are answered at a time, and how many of a connection. */
import { once } from "node:events";
import { get, type RequestListener, type ServerResponse } from "node:http";
import { connect } from "node:net";
import { expect, test } from "@jest/globals";
import { MOST_PIPELINED, REQUEST_HOLD_MS } from "../../src/admission/semaphores.ts";
import { forwardedFor } from "../../src/http/forwardedFor.ts";
import { listen } from "../../src/http/listen.ts";
import { endTurn } from "../../src/http/requestTurns.ts";
import { testCertificate } from "../harness/certificate.ts";
import { until } from "../harness/until.ts";

/** Requests of a network at a time. */
const OF_NETWORK = 64;

/** A service that answers when the test says so. */
async function start() {
  const begun: { address: string; response: ServerResponse }[] = [];
  const app: RequestListener = (request, response) =>
    void begun.push({ address: request.headers["x-forwarded-for"]!.toString(), response });
  const { cert, key } = await testCertificate();
  const isProxy = (address: string) => address.endsWith("127.0.0.1");
  const server = await listen(app, { port: 0, host: "127.0.0.1", cert, key, isProxy });
  const of = (address: string) => begun.filter((one) => one.address === address);
  return {
    port: server.port,
    of,
    ask: (address: string, count: number) => {
      for (let n = 0; n < count; n += 1)
        get({ port: server.port, agent: false, headers: { "x-forwarded-for": address } }, (response) =>
          response.resume(),
        ).on("error", () => {});
    },
    async [Symbol.asyncDispose]() {
      for (const { response } of begun) response.destroy();
      await server.close(0);
    },
  };
}

test("requests of a network wait for its earlier ones, and those of others do not", async () => {
  await using service = await start();
  const asked = performance.now();
  service.ask("192.0.2.1", 80);
  await until(() => service.of("192.0.2.1").length >= OF_NETWORK);
  service.ask("192.0.2.2", 1);
  await until(() => service.of("192.0.2.2").length === 1);
  const before = service.of("192.0.2.1");
  // Those that last do not count for long.
  const isEarly = performance.now() - asked < REQUEST_HOLD_MS;
  expect(before.length).toBeLessThanOrEqual(isEarly ? OF_NETWORK : 80);
  for (const { response } of before.slice(0, 16)) response.end();
  await until(() => service.of("192.0.2.1").length === 80);
});

test("a response that lasts, and a client that leaves while it waits, keep nobody waiting", async () => {
  await using service = await start();
  service.ask("192.0.2.1", OF_NETWORK);
  await until(() => service.of("192.0.2.1").length === OF_NETWORK);
  const leaving = get({ port: service.port, headers: { "x-forwarded-for": "192.0.2.1" } });
  leaving.on("error", () => {});
  await once(leaving, "socket");
  leaving.destroy();
  for (const { response } of service.of("192.0.2.1")) {
    response.write("event: begun\n\n");
    endTurn(response);
  }
  service.ask("192.0.2.1", OF_NETWORK);
  await until(() => service.of("192.0.2.1").length >= 2 * OF_NETWORK);
  expect(leaving.destroyed).toBe(true);
});

test("a connection with too many requests without a response is refused with instructions", async () => {
  await using service = await start();
  const socket = connect(service.port, "127.0.0.1");
  let text = "";
  socket.setEncoding("utf8").on("data", (part: string) => (text += part));
  socket.write("GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 192.0.2.1\r\n\r\n".repeat(MOST_PIPELINED + 5));
  await once(socket, "close");
  expect(text).toMatch(/^HTTP\/1\.1 429 Too Many Requests\r\n[^]*\r\nRetry-After: 1\r\n/);
  expect(JSON.parse(text.split("\r\n\r\n")[1]!)).toMatchObject({
    errors: [
      {
        message: expect.stringContaining("wait for responses"),
        extensions: { code: "RATE_LIMITED", retryAfterSeconds: 1 },
      },
    ],
  });
  expect(service.of("192.0.2.1").length).toBeLessThanOrEqual(MOST_PIPELINED);
});

test("too many waiting requests of a network are refused with instructions", async () => {
  await using service = await start();
  const request = "GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 192.0.2.1\r\n\r\n".repeat(MOST_PIPELINED);
  const answers: string[] = [];
  for (let n = 0; n < 120; n += 1) {
    const socket = connect(service.port, "127.0.0.1").on("error", () => {});
    socket.setEncoding("utf8").on("data", (part: string) => answers.push(part));
    socket.write(request);
  }
  await until(() => answers.length > 0);
  expect(answers[0]).toMatch(/^HTTP\/1\.1 429 Too Many Requests\r\n/);
  expect(JSON.parse(answers[0]!.split("\r\n\r\n")[1]!)).toMatchObject({
    errors: [{ extensions: { code: "RATE_LIMITED", retryAfterSeconds: 1 } }],
  });
  service.ask("192.0.2.2", 1);
  await until(() => service.of("192.0.2.2").length === 1);
});

test.each([
  ["192.0.2.1", undefined, "192.0.2.1"],
  ["192.0.2.1", "198.51.100.1", "192.0.2.1"],
  ["10.0.0.1", "198.51.100.1", "198.51.100.1"],
  // The client can write what it likes before the address that the first proxy adds.
  ["10.0.0.1", "203.0.113.1, 198.51.100.1, 10.0.0.2", "198.51.100.1"],
  ["10.0.0.1", "10.0.0.2", "10.0.0.1"],
  ["10.0.0.1", undefined, "10.0.0.1"],
])("the client of a connection from %s with the header %s is %s", (remoteAddress, header, client) => {
  const request = { socket: { remoteAddress }, headers: { "x-forwarded-for": header } };
  expect(forwardedFor(request as never, (address) => address.startsWith("10."))).toBe(client);
});
