/** Receivers that answer so that reading the answer takes as long as possible. */
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { createServer, type TLSSocket } from "node:tls";
import { promisify } from "node:util";
import { expect, test } from "@jest/globals";
import { PublicAgent } from "../../src/network/agent.ts";
import { postPublicly } from "../../src/network/publicPost.ts";
import { testCertificate } from "../harness/certificate.ts";

/** A server that writes an answer by itself once a request has arrived. */
async function startReceiver(answer: (socket: TLSSocket) => void) {
  const { cert, key } = await testCertificate();
  const sockets = new Set<TLSSocket>();
  const server = createServer({ cert, key, noDelay: true }, (socket) => {
    sockets.add(socket);
    socket.on("error", () => {}).on("data", () => answer(socket));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `https://localhost:${(server.address() as AddressInfo).port}/`,
    connections: () => sockets.size,
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy();
      await promisify(server.close.bind(server))();
    },
  };
}

const post = (url: string, agent?: PublicAgent) =>
  postPublicly(url, {
    headers: {},
    body: "{}",
    timeoutMs: 10_000,
    answerLimit: 65_536,
    textLimit: 65_536,
    loopback: true,
    ...(agent && { agent }),
  });

test("of informational responses without end, few are read", async () => {
  await using receiver = await startReceiver((socket) =>
    socket.write("HTTP/1.1 103 Early Hints\r\n\r\n".repeat(50_000)),
  );
  const { answer, failure } = await post(receiver.url);
  expect(answer).toBeUndefined();
  expect(failure).toContain("more than 10 informational responses");
});

test("a few informational responses before the response are allowed", async () => {
  await using receiver = await startReceiver((socket) =>
    socket.write(`${"HTTP/1.1 103 Early Hints\r\n\r\n".repeat(5)}HTTP/1.1 204 No Content\r\n\r\n`),
  );
  expect(await post(receiver.url)).toMatchObject({ answer: { status: 204 }, failure: undefined });
});

test("a body in chunks of one byte is cut after a thousand", async () => {
  await using receiver = await startReceiver((socket) =>
    socket.write(`HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${"1\r\nx\r\n".repeat(60_000)}`),
  );
  const { answer } = await post(receiver.url);
  expect(answer?.status).toBe(200);
  expect(answer?.text).toMatch(/^x+$/);
  expect(answer!.text.length).toBeLessThan(1_100);
});

test("a response in TLS records of one byte is not read to its end", async () => {
  await using receiver = await startReceiver(async (socket) => {
    const write = promisify((part: string, done: (error?: Error | null) => void) => socket.write(part, done));
    for (const byte of `HTTP/1.1 200 OK\r\nX: ${"x".repeat(3_000)}`) await write(byte).catch(() => {});
  });
  const { failure } = await post(receiver.url);
  expect(failure).toContain("too many small TLS records");
});

test("a connection is used for many responses, also for those longer than a slice", async () => {
  const body = "x".repeat(30_000);
  await using receiver = await startReceiver((socket) =>
    socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n${body}`),
  );
  const agent = new PublicAgent();
  try {
    for (let n = 0; n < 20; n++) expect((await post(receiver.url, agent)).answer?.text).toBe(body);
    expect(receiver.connections()).toBe(1);
  } finally {
    agent.destroy();
  }
});
