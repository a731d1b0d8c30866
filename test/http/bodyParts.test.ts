/** Bodies in many small parts. */
import { once } from "node:events";
import type { RequestListener } from "node:http";
import { connect } from "node:net";
import { expect, test } from "@jest/globals";
import { listen } from "../../src/http/listen.ts";
import { testCertificate } from "../harness/certificate.ts";

/** A service that returns the length of bodies. */
async function start() {
  let parts = 0;
  const app: RequestListener = (request, response) => {
    let length = 0;
    request.on("data", (part: Buffer) => {
      length += part.length;
      parts += 1;
    });
    request.on("end", () => response.end(`length ${length}`));
  };
  const { cert, key } = await testCertificate();
  const server = await listen(app, { port: 0, host: "127.0.0.1", cert, key });
  return { port: server.port, parts: () => parts, [Symbol.asyncDispose]: () => server.close(0) };
}

const chunks = (length: number, count: number) =>
  `${length.toString(16)}\r\n${"x".repeat(length)}\r\n`.repeat(count);

/** The answer to a body in chunks. */
async function send(port: number, body: string): Promise<string> {
  const socket = connect(port, "127.0.0.1");
  let text = "";
  socket.setEncoding("utf8").on("data", (part: string) => (text += part));
  socket.on("error", () => {});
  socket.write("POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n");
  socket.write(body);
  await once(socket, "close");
  return text;
}

test("a body in chunks of one byte is refused with instructions, and not read", async () => {
  await using service = await start();
  const text = await send(service.port, chunks(1, 20_000));
  expect(text).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n/);
  expect(JSON.parse(text.split("\r\n\r\n")[1]!)).toMatchObject({
    errors: [{ message: expect.stringContaining("64 bytes"), extensions: { code: "BAD_USER_INPUT" } }],
  });
  expect(service.parts()).toBeLessThan(1_100);
});

test.each([
  ["a few bytes each", 3, 900],
  ["a line each", 100, 10_000],
])("a body with chunks of %s is read", async (_name, length, count) => {
  await using service = await start();
  const text = await send(service.port, `${chunks(length, count)}0\r\n\r\n`);
  expect(text).toContain(`length ${length * count}`);
});
