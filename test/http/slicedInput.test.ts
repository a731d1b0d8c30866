/** What arrives at once, and is handed to the parser in slices: nothing is lost, and nothing behind a refusal is parsed. */
import { once } from "node:events";
import type { RequestListener } from "node:http";
import { connect } from "node:tls";
import { expect, test } from "@jest/globals";
import { listen } from "../../src/http/listen.ts";
import { testCertificate } from "../harness/certificate.ts";
import { until } from "../harness/until.ts";

async function start(app: RequestListener) {
  const { cert, key } = await testCertificate();
  const server = await listen(app, { port: 0, host: "127.0.0.1", cert, key });
  const open = async () => {
    const socket = connect({ port: server.port, host: "127.0.0.1", rejectUnauthorized: false });
    await once(socket, "secureConnect");
    let text = "";
    socket.on("error", () => {}).on("data", (part: Buffer) => (text += part.toString("latin1")));
    return { socket, text: () => text };
  };
  return { open, [Symbol.asyncDispose]: () => server.close(0) };
}

test("a long body arrives as it was sent, also behind another request", async () => {
  const bodies: string[] = [];
  await using service = await start((request, response) => {
    let body = "";
    request.setEncoding("utf8").on("data", (part: string) => (body += part));
    request.on("end", () => {
      bodies.push(body);
      response.end();
    });
  });
  const { socket } = await service.open();
  const body = Array.from({ length: 30_000 }, (_, n) => `${n}\n`).join("");
  const request = (text: string) =>
    `POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${text.length}\r\n\r\n${text}`;
  socket.write(request("short") + request(body));
  await until(() => bodies.length === 2);
  expect(bodies).toEqual(["short", body]);
  socket.destroy();
});

test("of a fast client, an iteration of the event loop reads no more than a turn", async () => {
  const length = 8_000_000;
  const turns: number[] = [0];
  let isOver = false;
  await using service = await start((request, response) => {
    request.on("data", (part: Buffer) => (turns[turns.length - 1]! += part.length));
    request.on("end", () => {
      isOver = true;
      response.end();
    });
  });
  const next = () => {
    turns.push(0);
    if (!isOver) setImmediate(next);
  };
  const { socket, text } = await service.open();
  socket.write(`POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${length}\r\n\r\n`);
  socket.write(Buffer.alloc(length));
  next();
  await until(() => text().startsWith("HTTP/1.1 200"));
  expect(turns.reduce((sum, bytes) => sum + bytes)).toBe(length);
  // A turn, and what was decrypted with it.
  expect(Math.max(...turns)).toBeLessThanOrEqual(2 * 65_536);
  socket.destroy();
});

test("requests of a client that does not read its responses yet are answered in their order", async () => {
  const large = "x".repeat(300_000);
  await using service = await start((request, response) => {
    request.resume();
    response.end(`${request.url} ${large}\n`);
  });
  const { socket, text } = await service.open();
  socket.pause();
  const paths = Array.from({ length: 15 }, (_, n) => `/${n}`);
  socket.write(
    paths.map((path) => `GET ${path} HTTP/1.1\r\nHost: a\r\nX-Filler: ${"y".repeat(1_500)}\r\n\r\n`).join(""),
  );
  await once(socket, "readable");
  socket.resume();
  await until(() => text().split(large).length === paths.length + 1);
  expect([...text().matchAll(/(\/\d+) x/g)].map(([, path]) => path)).toEqual(paths);
  socket.destroy();
});

test("a message that arrives together with the handshake of its WebSocket is read", async () => {
  await using service = await start((_request, response) => void response.end());
  const { socket, text } = await service.open();
  const payload = Buffer.from(JSON.stringify({ type: "connection_init" }));
  // Masked with zeros.
  const frame = Buffer.concat([Buffer.from([0x81, 0x80 | payload.length, 0, 0, 0, 0]), payload]);
  const handshake = [
    "GET /graphql HTTP/1.1",
    "Host: a",
    "Connection: Upgrade",
    "Upgrade: websocket",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    "Sec-WebSocket-Protocol: graphql-transport-ws",
    // The message begins in the same slice, and ends in another.
    `X-Filler: ${"x".repeat(1_830)}`,
  ].join("\r\n");
  const head = `${handshake}\r\n\r\n`;
  expect(head.length).toBeLessThan(2_048);
  expect(head.length + frame.length).toBeGreaterThan(2_048);
  socket.write(Buffer.concat([Buffer.from(head), frame]));
  await until(() => text().includes("connection_ack"));
  expect(text()).toMatch(/^HTTP\/1\.1 101 /);
  socket.destroy();
});
