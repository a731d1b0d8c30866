/** Mail servers of users, which answer so that nobody gets further. */
import { once } from "node:events";
import { createServer, type AddressInfo, type Socket } from "node:net";
import { promisify } from "node:util";
import { expect, test } from "@jest/globals";
import { openMailAccount, toFailure } from "../../src/integrations/apps/mail_account.ts";

/** A server that greets, and answers the first command by itself. */
async function startServer(answer: (socket: Socket) => void) {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket)).on("error", () => {});
    socket.once("data", () => answer(socket));
    socket.write("220 mail.example ESMTP\r\n");
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    /** Why no mail can be sent. */
    failure: async (withinMs?: number) => {
      const transport = await openMailAccount(
        { host: "localhost", port },
        { username: "ada", password: "secret" },
        { loopback: true },
        withinMs,
      );
      try {
        return await transport.verify().then(() => undefined, toFailure);
      } finally {
        transport.close();
      }
    },
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy();
      await promisify(server.close.bind(server))();
    },
  };
}

test("a server that answers a byte at a time is given up after a while", async () => {
  let connected = 0;
  await using server = await startServer((socket) => {
    connected += 1;
    socket.write("250-mail.example");
    const trickle = setInterval(() => socket.write("x"), 10);
    socket.once("close", () => clearInterval(trickle));
  });
  const start = performance.now();
  expect(await server.failure(500)).toMatchObject({ name: "ConnectionFailed", retryable: true });
  // No earlier, although there was an answer. How much of it depends on how busy the machine is.
  expect(performance.now() - start).toBeGreaterThan(490);
  expect(connected).toBe(1);
});

test.each([
  ["without a line break", "x".repeat(10_000)],
  ["with a continuation in each line", "250-x\r\n".repeat(2_000)],
  ["with complete lines", "250 x\r\n".repeat(2_000)],
])("a reply without end %s is not read for long", async (_name, part) => {
  let bytes = 0;
  await using server = await startServer((socket) => {
    const more = () => {
      while (!socket.destroyed && bytes < 100_000_000) {
        bytes += part.length;
        if (!socket.write(part)) return void socket.once("drain", more);
      }
    };
    more();
  });
  expect(await server.failure(10_000)).toMatchObject({ name: "ConnectionFailed" });
  expect(bytes).toBeLessThan(20_000_000);
});
