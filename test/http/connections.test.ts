/** Connections of clients that stall, and of slow but well-behaved ones. */
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { expect, test } from "@jest/globals";
import { connectionLimits, countByAddress } from "../../src/http/connectionLimits.ts";
import { endInChunks } from "../../src/http/endInChunks.ts";
import { listen, type ListenOptions } from "../../src/http/listen.ts";
import { handshakes } from "../../src/admission/semaphores.ts";
import { testCertificate } from "../harness/certificate.ts";
import { until } from "../harness/until.ts";

const MB = 1_000_000;

/** A server that answers with the number of bytes in the path, after it has read the body. */
async function start(options: Partial<ListenOptions> = {}) {
  const { cert, key } = await testCertificate();
  const server = await listen(
    async (request, response) => {
      let received = 0;
      try {
        for await (const chunk of request) received += (chunk as Buffer).length;
      } catch {
        return; // The connection was closed.
      }
      await endInChunks(response, String(received)[0]!.repeat(Number(request.url!.slice(1))));
    },
    { port: 0, host: "127.0.0.1", cert, key, ...options },
  );
  return {
    port: server.port,
    [Symbol.asyncDispose]: () => server.close(0),
  };
}

/** The data received until the server closed the connection. */
async function untilClosed(socket: Socket): Promise<string> {
  let text = "";
  socket.on("error", () => {});
  socket.on("data", (chunk: Buffer) => {
    if (text.length < 1_000) text += chunk.toString("latin1");
  });
  await once(socket, "close");
  return text;
}

const open = async (port: number): Promise<Socket> => {
  const socket = connect(port, "127.0.0.1");
  await once(socket, "connect");
  return socket;
};

const openTls = async (port: number): Promise<Socket> => {
  const socket = connectTls({ port, host: "127.0.0.1", rejectUnauthorized: false });
  socket.on("error", () => {});
  await once(socket, "secureConnect");
  return socket;
};

test("Node checks for late headers often enough", async () => {
  await using server = await start({ headersWithin: 300 });
  for (const socket of [await open(server.port), await openTls(server.port)]) {
    socket.write("POST /1 HTTP/1.1\r\nHost: a\r\nX-Slow: ");
    expect(await untilClosed(socket)).toMatch(/^HTTP\/1\.1 408 [\s\S]*did not arrive in time/);
  }
});

test("a TLS connection without any data, or with an unfinished handshake, is closed", async () => {
  await using server = await start({ headersWithin: 300 });
  expect(await untilClosed(await openTls(server.port))).toMatch(/^(HTTP\/1\.1 408|$)/);
  const halfway = await open(server.port);
  halfway.write(Buffer.from([0x16, 0x03, 0x01]));
  expect(await untilClosed(halfway)).not.toMatch(/HTTP/);
});

test("new connections of one network do not wait for those of another", async () => {
  await using server = await start();
  const order: string[] = [];
  const ask = (name: string, localAddress: string) => {
    const socket = connect({ port: server.port, host: "127.0.0.1", localAddress });
    socket.write("GET /1 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    socket.once("data", () => order.push(name));
    return once(socket, "close");
  };
  const queued = (count: number) =>
    until(
      async () => handshakes.numbers.waiting,
      (waiting) => waiting === count,
    );
  const release = await handshakes.acquire({ group: "test", key: "test" });
  const all = Array.from({ length: 30 }, () => ask("one of many", "127.0.0.1"));
  await queued(30);
  all.push(ask("another", "127.0.0.9"));
  await queued(31);
  release();
  await Promise.all(all);
  expect(order.indexOf("another")).toBeLessThan(15);
});

test("a client that neither reads its refusal nor disconnects loses its connection", async () => {
  await using server = await start();
  const socket = await open(server.port);
  // While it is paused, the client does not notice the end of the connection.
  socket.pause();
  socket.write("this is no HTTP\r\n\r\n");
  const reset = once(socket, "error").then(([error]) => (error as NodeJS.ErrnoException).code);
  // The service has closed its end when data sent there is answered with a reset.
  const writing = setInterval(() => socket.write("more"), 50);
  try {
    expect(await reset).toMatch(/ECONNRESET|EPIPE/);
  } finally {
    clearInterval(writing);
    socket.destroy();
  }
});

test("a client that requests much data and does not read loses its connection", async () => {
  await using server = await start({ pace: { rate: 1_000_000_000, grace: 300 } });
  for (const socket of [await open(server.port), await openTls(server.port)]) {
    socket.pause();
    socket.write(`GET /${50 * MB} HTTP/1.1\r\nHost: a\r\n\r\n`);
    socket.on("error", () => {});
    const closed = new Promise<"closed">((resolve) => socket.once("close", () => resolve("closed")));
    const writing = setInterval(() => socket.write("x"), 50);
    expect(await closed.finally(() => clearInterval(writing))).toBe("closed");
  }
});

test("a stalled body is refused with 408, a slow one is accepted", async () => {
  await using server = await start({ pace: { rate: 1_000, grace: 400 } });
  for (const socket of [await open(server.port), await openTls(server.port)]) {
    socket.write("POST /1 HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\nabc");
    expect(await untilClosed(socket)).toMatch(/^HTTP\/1\.1 408 [\s\S]*"BAD_USER_INPUT"/);
  }
  // 200 bytes at a time, for longer than the time limit of a stalled body.
  for (const socket of [await open(server.port), await openTls(server.port)]) {
    socket.write("POST /3 HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 4000\r\n\r\n");
    const answer = untilClosed(socket);
    let sent = 0;
    const writing = setInterval(() => {
      socket.write("x".repeat(200));
      if ((sent += 200) >= 4_000) clearInterval(writing);
    }, 50);
    expect(await answer).toMatch(/^HTTP\/1\.1 200 [\s\S]*444$/);
  }
});

test("a response that is read slowly arrives completely", async () => {
  await using server = await start({ pace: { rate: 1_000, grace: 400 } });
  const size = 14 * MB;
  for (const socket of [await open(server.port), await openTls(server.port)]) {
    socket.write(`GET /${size} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`);
    let received = 0;
    socket.on("data", (chunk: Buffer) => {
      const before = Math.floor(received / (2 * MB));
      received += chunk.length;
      if (Math.floor(received / (2 * MB)) === before) return;
      // Reads in bursts, for longer than the time limit of a stalled response.
      socket.pause();
      // oxlint-disable-next-line no-restricted-globals -- how slow this reader is
      setTimeout(() => socket.resume(), 100);
    });
    await once(socket, "close");
    expect(received).toBeGreaterThan(size);
  }
});

test("the number of connections is limited for one address and in total; a proxy may have all", async () => {
  const limits = { total: 12, ofAddress: 8 };
  await using server = await start({ limits });
  const sockets = await Promise.all(Array.from({ length: 8 }, () => open(server.port)));
  expect(await untilClosed(await open(server.port))).toBe("");
  sockets.pop()!.destroy();
  await until(async () => {
    const socket = await open(server.port);
    socket.write("GET /1 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    return (await untilClosed(socket)).startsWith("HTTP/1.1 200");
  });
  for (const socket of sockets) socket.destroy();

  await using behind = await start({ limits, isProxy: (address) => address === "127.0.0.1" });
  const kept = await Promise.all(Array.from({ length: 12 }, () => open(behind.port)));
  // They are kept alive after a request, and closed when a new connection needs their place.
  for (const socket of kept) {
    socket.write("GET /1 HTTP/1.1\r\nHost: a\r\n\r\n");
    await once(socket, "data");
  }
  await until(async () => {
    const socket = await open(behind.port);
    socket.write("GET /1 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    return (await untilClosed(socket)).startsWith("HTTP/1.1 200");
  });
});

test("limits follow from the number of file descriptors of the process", () => {
  expect(connectionLimits(1_048_576)).toEqual({ total: 4_096, ofAddress: 1_024 });
  expect(connectionLimits(1_024)).toEqual({ total: 512, ofAddress: 128 });
  // Event streams need no other descriptor.
  expect(connectionLimits(20_000, 1, 10_000)).toEqual({ total: 11_024, ofAddress: 1_024 });
  expect(connectionLimits(1_024, 1, 2_000)).toEqual({ total: 768, ofAddress: 192 });
  expect(connectionLimits(20)).toEqual({ total: 16, ofAddress: 8 });
  const { take } = countByAddress(1, () => false);
  const back = take("2001:db8::1")!;
  // All addresses of an IPv6 network count as one.
  expect(take("2001:db8::2")).toBeUndefined();
  expect(take("2001:db8:0:1::1")).toBeDefined();
  back();
  expect(take("2001:db8::2")).toBeDefined();
});
