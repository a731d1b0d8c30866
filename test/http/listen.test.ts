/** Timeouts of the phases of a connection, responses to invalid requests, and how the service stops listening. */
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import type { RequestListener } from "node:http";
import { connect, Socket } from "node:net";
import { PassThrough } from "node:stream";
import { connect as connectTls, type TLSSocket } from "node:tls";
import { Worker } from "node:worker_threads";
import { afterEach, expect, jest, test } from "@jest/globals";
import { WebSocket } from "ws";
import { listen, type ListenOptions } from "../../src/http/listen.ts";
import { testCertificate } from "../harness/certificate.ts";
import { until } from "../harness/until.ts";

afterEach(() => {
  jest.restoreAllMocks();
});

const hello: RequestListener = (_request, response) => void response.end("hello");

async function start(app: RequestListener = hello, options: Partial<ListenOptions> = {}) {
  const { cert, key } = await testCertificate();
  const server = await listen(app, { port: 0, host: "127.0.0.1", cert, key, ...options });
  return { ...server, [Symbol.asyncDispose]: () => server.close(0) };
}

/** A connection, and the received data. */
async function open(port: number, isTls = false) {
  const socket = isTls
    ? connectTls({ port, host: "127.0.0.1", rejectUnauthorized: false })
    : connect(port, "127.0.0.1");
  let text = "";
  socket.on("error", () => {}).on("data", (chunk) => (text += chunk));
  const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()));
  await once(socket, isTls ? "secureConnect" : "connect");
  return {
    socket,
    text: () => text,
    /** All received data, once the service has closed the connection. */
    untilClosed: () => closed.then(() => text),
  };
}
/** Internal properties of a socket in Node. */
const inside = (socket: Socket, name: string) =>
  Reflect.get(
    socket,
    Object.getOwnPropertySymbols(socket).find(({ description }) => description === name)!,
  );

const GET = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

test.each<[number, Partial<ListenOptions>, number]>([
  [15_000, {}, 1_000],
  [400, { headersWithin: 400 }, 100],
])(
  "headers have %d ms, and a connection is kept alive for longer than a minute",
  async (headersTimeout, options, connectionsCheckingInterval) => {
    const servers: Record<string, unknown>[] = [];
    await using server = await start((request, response) => {
      servers.push((request.socket as unknown as { server: Record<string, unknown> }).server);
      response.end();
    }, options);
    for (const isTls of [false, true]) {
      const { socket } = await open(server.port, isTls);
      socket.write(GET);
      await once(socket, "data");
      socket.destroy();
    }
    expect(servers).toHaveLength(2);
    expect(servers[0]).not.toBe(servers[1]);
    for (const its of servers)
      expect(its).toMatchObject({
        headersTimeout,
        connectionsCheckingInterval,
        requestTimeout: 3_600_000,
        keepAliveTimeout: 65_000,
      });
  },
);

test("a connection has ten seconds for its first byte, and no such limit afterwards", async () => {
  const timers = jest.spyOn(Socket.prototype, "setTimeout");
  await using server = await start();
  /** The service's ends of connections, with the timeouts that they were given. */
  const accepted = () =>
    timers.mock.contexts.flatMap((socket, at) =>
      timers.mock.calls[at]![0] === 10_000 ? [socket as Socket] : [],
    );
  const silent = await open(server.port);
  const [own] = await until(accepted, (sockets) => sockets.length === 1);
  expect([own!.listenerCount("timeout"), own!.listenerCount("error")]).toEqual([1, 1]);
  // A response is sent as soon as it is written.
  expect(inside(own!, "kSetNoDelay")).toBe(true);
  own!.emit("timeout");
  expect(await silent.untilClosed()).toBe("");

  const speaking = await open(server.port);
  speaking.socket.write(GET);
  await until(speaking.text, (text) => text.endsWith("hello"));
  const its = accepted()[1]!;
  const given = timers.mock.calls.filter((_, at) => timers.mock.contexts[at] === its);
  expect(given.slice(0, 2)).toEqual([[10_000, expect.any(Function)], [0]]);
  expect(its.listeners("timeout")).not.toContain(given[0]![1]);
  speaking.socket.destroy();

  // A connection that is closed without data leaves nothing behind.
  const leaving = await open(server.port);
  leaving.socket.end();
  expect(await leaving.untilClosed()).toBe("");
});

test("a connection that breaks before its first byte is closed, without other effects", async () => {
  const timers = jest.spyOn(Socket.prototype, "setTimeout");
  await using server = await start();
  const broken = await open(server.port);
  const [own] = await until(
    () => timers.mock.contexts as Socket[],
    (sockets) => sockets.length > 0,
  );
  own!.emit("error", new Error("read ECONNRESET"));
  expect(await broken.untilClosed()).toBe("");
});

test("the number of connections of one address is limited, unless it is that of a proxy", async () => {
  const limits = { total: 10, ofAddress: 1 };
  await using server = await start(hello, { limits });
  await using behindProxy = await start(hello, { limits, isProxy: (address) => address === "127.0.0.1" });
  const answerOf = async (port: number) => {
    const { socket, text, untilClosed } = await open(port);
    socket.write(GET);
    await Promise.race([untilClosed(), until(text, (has) => has.endsWith("hello"))]);
    return { socket, answered: text().endsWith("hello") };
  };
  for (const [port, second] of [
    [server.port, false],
    [behindProxy.port, true],
  ] as const) {
    const both = [await answerOf(port), await answerOf(port)];
    expect(both.map(({ answered }) => answered)).toEqual([true, second]);
    for (const { socket } of both) socket.destroy();
  }
});

const refusal = (status: string, message: string) =>
  new RegExp(`^HTTP/1\\.1 ${status}\\r\\n[^]*"message":"${message}"[^]*"code":"BAD_USER_INPUT"`);
test.each([
  [
    "bytes that are no HTTP",
    "nonsense\r\n\r\n",
    refusal("400 Bad Request", "This is not a valid HTTP request\\."),
  ],
  [
    "headers of 20 kB",
    `GET / HTTP/1.1\r\nX-Big: ${"x".repeat(20_000)}\r\n\r\n`,
    refusal("431 Request Header Fields Too Large", "The headers are too large\\."),
  ],
  [
    "headers that do not end",
    "GET / HTTP/1.1\r\nX-Slow: ",
    refusal("408 Request Timeout", "The request did not arrive in time\\."),
  ],
])("%s are answered in the format of all refusals", async (_name, bytes, expected) => {
  await using server = await start(hello, { headersWithin: 300 });
  for (const isTls of [false, true]) {
    const { socket, untilClosed } = await open(server.port, isTls);
    socket.write(bytes);
    expect(await untilClosed()).toMatch(expected);
  }
});

test("a client that disconnects or does not speak TLS loses its connection without a response, and others are not affected", async () => {
  await using server = await start();
  const kept = await open(server.port, true);
  const noTls = await open(server.port);
  noTls.socket.write(Buffer.from([0x16, 0, 0, 0, 0, 0, 0, 0]));
  expect(await noTls.untilClosed()).not.toMatch(/HTTP/);
  const gone = await open(server.port);
  await new Promise((resolve) => gone.socket.write("GET / HTTP/1.1\r\nX-Half: ", resolve));
  gone.socket.resetAndDestroy();
  kept.socket.write(GET);
  await until(kept.text, (text) => text.endsWith("hello"));
  kept.socket.destroy();
});

test("a failed handshake closes its connection immediately", async () => {
  const servers: any[] = [];
  await using server = await start((request, response) => {
    servers.push((request.socket as any).server);
    response.end("hello");
  });
  const asking = await open(server.port, true);
  asking.socket.write(GET);
  await until(asking.text, (text) => text.endsWith("hello"));
  asking.socket.destroy();
  const socket = new PassThrough();
  servers[0].emit("tlsClientError", new Error("wrong version number"), socket);
  expect(socket.destroyed).toBe(true);
});

test("nothing is written to a connection that is broken or no longer writable", async () => {
  const servers = new Set<any>();
  await using server = await start((request, response) => {
    servers.add((request.socket as any).server);
    response.end("hello");
  });
  const asking = await open(server.port);
  asking.socket.write(GET);
  await until(asking.text, (text) => text.endsWith("hello"));
  asking.socket.destroy();
  const [its] = servers;
  const after = (code: string | undefined, before = (_socket: PassThrough) => {}) => {
    const socket = new PassThrough();
    before(socket);
    its.emit("clientError", Object.assign(new Error("x"), { code }), socket);
    return [socket.destroyed, socket.readableLength > 0 || socket.readableFlowing === true];
  };
  expect(after("ECONNRESET")).toEqual([true, false]);
  expect(after("HPE_INVALID_METHOD", (socket) => void socket.end())).toEqual([true, false]);
  expect(after(undefined)).toEqual([false, true]);
});

test("an address in use is an error, after which no timer remains", async () => {
  await using server = await start();
  const begun = jest.spyOn(globalThis, "setInterval");
  const ended = jest.spyOn(globalThis, "clearInterval");
  await expect(start(hello, { port: server.port })).rejects.toMatchObject({ code: "EADDRINUSE" });
  const stopped = new Set<unknown>(ended.mock.calls.map(([timer]) => timer));
  expect(begun.mock.results.filter(({ value }) => !stopped.has(value))).toEqual([]);
});

test("to stop listening closes silent and idle connections immediately, and others after their response", async () => {
  const begun = jest.spyOn(globalThis, "setInterval");
  const ended = jest.spyOn(globalThis, "clearInterval");
  // The timeout for the first byte closes nothing here.
  jest.spyOn(Socket.prototype, "setTimeout").mockReturnThis();
  const answers: (() => void)[] = [];
  const server = await start((request, response) => {
    if (request.url === "/") response.end("hello");
    else answers.push(() => response.end("late"));
  });
  const silent = await open(server.port);
  const idle = [await open(server.port), await open(server.port, true)];
  for (const { socket, text } of idle) {
    socket.write(GET);
    await until(text, (has) => has.endsWith("hello"));
  }
  const running = [await open(server.port), await open(server.port, true)];
  for (const { socket } of running) socket.write("GET /late HTTP/1.1\r\nHost: a\r\n\r\n");
  await until(() => answers.length === 2);
  let isClosed = false;
  // Longer than the test may take, so that nothing is aborted here.
  const closed = server.close(600_000).then(() => (isClosed = true));
  expect(await silent.untilClosed()).toBe("");
  for (const { untilClosed } of idle) expect(await untilClosed()).toMatch(/hello$/);
  await expect(open(server.port)).rejects.toMatchObject({ code: "ECONNREFUSED" });
  expect([isClosed, ...running.map(({ text }) => text())]).toEqual([false, "", ""]);
  for (const answer of answers) answer();
  for (const { untilClosed } of running) expect(await untilClosed()).toMatch(/late$/);
  await closed;
  for (const { value } of begun.mock.results) expect(ended.mock.calls).toContainEqual([value]);
});

test("requests that are running at the time limit are aborted", async () => {
  let begun = 0;
  const server = await start(() => void begun++);
  const running = [await open(server.port), await open(server.port, true)];
  for (const { socket } of running) socket.write(GET);
  await until(() => begun === 2);
  const timers = jest.spyOn(globalThis, "setTimeout");
  const cleared = jest.spyOn(globalThis, "clearTimeout");
  await server.close(50);
  for (const { untilClosed } of running) expect(await untilClosed()).toBe("");
  const cut = timers.mock.calls.findIndex(([, ms]) => ms === 50);
  expect(cleared.mock.calls).toContainEqual([timers.mock.results[cut]!.value]);
});

test("closed connections are removed, silent ones and those that were answered", async () => {
  const accepted = jest.spyOn(Socket.prototype, "setTimeout");
  let begun = 0;
  const server = await start((request, response) => {
    begun += 1;
    if (request.url === "/") response.end("hello");
  });
  const own = () =>
    accepted.mock.contexts.filter((_, at) => accepted.mock.calls[at]![0] === 10_000) as Socket[];
  const silent = await open(server.port);
  const answered = await open(server.port);
  answered.socket.write(GET);
  await until(answered.text, (text) => text.endsWith("hello"));
  const running = await open(server.port);
  running.socket.write("GET /late HTTP/1.1\r\nHost: a\r\n\r\n");
  await until(() => begun === 2);
  for (const { socket } of [silent, answered]) socket.end();
  const [first, second, third] = await until(
    own,
    (sockets) => sockets.filter(({ closed }) => closed).length === 2,
  );
  const destroyed = jest.spyOn(Socket.prototype, "destroy");
  await server.close(50);
  expect(await running.untilClosed()).toBe("");
  const ends = destroyed.mock.contexts as Socket[];
  expect([first, second, third].map((socket) => ends.includes(socket!))).toEqual([false, false, true]);
});

/** A thread that opens connections, and says when all of them are. */
const opener = `
  const { workerData: { port, count, opened } } = require("node:worker_threads");
  const { connect } = require("node:net");
  let connected = 0;
  for (let n = 0; n < count; n += 1)
    connect(port, "127.0.0.1", () => {
      connected += 1;
      if (connected < count) return;
      Atomics.store(opened, 0, 1);
      Atomics.notify(opened, 0);
    }).on("error", () => {});
`;

test("a thousand connections are opened at once while none is accepted", async () => {
  const most = Number(await readFile("/proc/sys/net/core/somaxconn", "utf8").catch(() => 128));
  const count = Math.min(1_000, most);
  await using server = await start();
  const opened = new Int32Array(new SharedArrayBuffer(4));
  const thread = new Worker(opener, { eval: true, workerData: { port: server.port, count, opened } });
  // The event loop of the service is busy.
  expect(Atomics.wait(opened, 0, 0, 20_000)).toBe("ok");
  await thread.terminate();
});

test("a renewed certificate is used for new connections, and open ones continue", async () => {
  const { generate } = await import("selfsigned");
  const renewed = await generate([{ name: "commonName", value: "renewed" }], { keySize: 2048 });
  await using server = await start();
  const subject = ({ socket }: Awaited<ReturnType<typeof open>>) =>
    (socket as TLSSocket).getPeerCertificate().subject.CN;
  const before = await open(server.port, true);
  server.renew(renewed.cert, renewed.private);
  const after = await open(server.port, true);
  expect([subject(before), subject(after)]).toEqual(["localhost", "renewed"]);
  before.socket.write(GET);
  await until(before.text, (text) => text.endsWith("hello"));
  for (const { socket } of [before, after]) socket.destroy();
});

const answered = async (connection: Awaited<ReturnType<typeof open>>) => {
  connection.socket.write(GET);
  await until(connection.text, (text) => text.endsWith("hello"));
  return /\r\nConnection: (.*)\r\n/i.exec(connection.text())![1];
};

test("while the service drains, connections are accepted, and closed after their next response", async () => {
  await using server = await start();
  const kept = await open(server.port, true);
  expect(await answered(kept)).toBe("keep-alive");
  server.drain();
  for (const isTls of [true, false]) {
    const other = await open(server.port, isTls);
    expect(await answered(other)).toBe("close");
    await other.untilClosed();
  }
  kept.socket.write(GET);
  expect(await kept.untilClosed()).toMatch(/hello[^]*\r\nConnection: close\r\n[^]*hello$/);
});

test("a response that is running when the service stops closes its connection", async () => {
  const answers: (() => void)[] = [];
  const server = await start((request, response) => {
    if (request.url === "/late") answers.push(() => response.end("late"));
    else response.end("hello");
  });
  const { socket, untilClosed } = await open(server.port);
  socket.write("GET /late HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n");
  await until(() => answers.length === 1);
  const closed = server.close(600_000);
  answers[0]!();
  expect(await untilClosed()).toMatch(/late/);
  await closed;
});

/** The session of a TLS connection to this port, and whether it continues the given one. */
async function session(port: number, before?: Buffer) {
  const socket = connectTls({
    port,
    host: "127.0.0.1",
    rejectUnauthorized: false,
    maxVersion: "TLSv1.2",
    ...(before && { session: before }),
  }).on("error", () => {});
  await once(socket, "secureConnect");
  const found = { isReused: socket.isSessionReused(), session: socket.getSession()! };
  socket.destroy();
  return found;
}

test("processes with the same ticket keys continue the TLS sessions of each other, and others do not", async () => {
  const ticketKeys = Buffer.alloc(48, 7);
  await using first = await start(hello, { ticketKeys });
  await using second = await start(hello, { ticketKeys });
  await using other = await start();
  const begun = await session(first.port);
  expect(begun.isReused).toBe(false);
  const continued = [first, second, other].map(({ port }) => session(port, begun.session));
  expect((await Promise.all(continued)).map(({ isReused }) => isReused)).toEqual([true, true, false]);
});

test("a WebSocket is opened at its path only; other upgrades are answered as plain requests", async () => {
  await using server = await start();
  for (const isTls of [true, false]) {
    const url = `${isTls ? "wss" : "ws"}://127.0.0.1:${server.port}`;
    const options = { rejectUnauthorized: false };
    const client = new WebSocket(`${url}/graphql`, "graphql-transport-ws", options);
    await once(client, "open");
    client.send('{"type":"connection_init"}');
    expect(String((await once(client, "message"))[0])).toBe('{"type":"connection_ack"}');
    client.terminate();
    const other = new WebSocket(`${url}/other`, "graphql-transport-ws", options);
    const [error] = await once(other, "error");
    expect(error.message).toBe("Unexpected server response: 200");
  }
});

test("to stop listening closes WebSockets with the code for it", async () => {
  const server = await start();
  const client = new WebSocket(`wss://127.0.0.1:${server.port}/graphql`, "graphql-transport-ws", {
    rejectUnauthorized: false,
  });
  await once(client, "open");
  const closed = once(client, "close");
  await server.close(600_000);
  expect((await closed).map(String)).toEqual(["1001", "Going away"]);
});

test("the traces of errors are kept after a connection has ended", async () => {
  await using server = await start();
  const limit = Error.stackTraceLimit;
  const { socket, text, untilClosed } = await open(server.port);
  socket.write(GET);
  await until(text, (has) => has.endsWith("hello"));
  socket.end();
  await untilClosed();
  expect(Error.stackTraceLimit).toBe(limit);
});
