/** Limits on the resources that a WebSocket client of /graphql can use. */
import { once } from "node:events";
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from "node:http";
import { createServer as createHttpsServer } from "node:https";
import type { AddressInfo, Server, Socket } from "node:net";
import type { Duplex } from "node:stream";
import { text } from "node:stream/consumers";
import { Server as TlsServer } from "node:tls";
import { afterEach, expect, jest, test } from "@jest/globals";
import { WebSocket } from "ws";
import { partyOf } from "../../src/admission/party.ts";
import { webSocketMessages } from "../../src/admission/semaphores.ts";
import { asksForWebSocket, webSockets } from "../../src/http/webSocket.ts";
import { testCertificate } from "../harness/certificate.ts";
import { until } from "../harness/until.ts";

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

/** A server with WebSockets only, and the connections of its clients. */
async function start(
  app: RequestListener,
  readWithinMs?: number,
  { isProxy, server = createServer() }: { isProxy?: (address: string) => boolean; server?: Server } = {},
) {
  const sockets: Duplex[] = [];
  const service = webSockets(app, readWithinMs, isProxy);
  server.on("upgrade", (request, socket: Duplex, head) => {
    sockets.push(socket);
    service.upgrade(request, socket, head);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  closing.push(() => new Promise((resolve) => server.close(resolve)));
  closing.push(() => service.close());
  const { port } = server.address() as AddressInfo;
  const scheme = server instanceof TlsServer ? "wss" : "ws";
  const connect = async (
    headers: Record<string, string> = {},
    autoPong = true,
    protocol: string | [] = "graphql-transport-ws",
  ) => {
    const options = { headers, autoPong, rejectUnauthorized: false };
    const client = new WebSocket(`${scheme}://127.0.0.1:${port}/graphql`, protocol, options);
    client.on("error", () => {});
    closing.push(async () => client.terminate());
    const closed = new Promise<[code: number, reason: string]>((resolve) =>
      client.once("close", (code, reason) => resolve([code, String(reason)])),
    );
    await once(client, "open");
    return { client, closed, socket: sockets.at(-1)! };
  };
  return { connect, close: () => service.close() };
}

/** An endless stream of events for each subscriber. */
function endless() {
  const open = new Set<object>();
  const app: RequestListener = (request, response) => {
    request.resume();
    open.add(response);
    response.once("close", () => open.delete(response));
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.flushHeaders();
  };
  return { app, open };
}

const send = (client: WebSocket, message: object) => client.send(JSON.stringify(message));
const greet = async (client: WebSocket, payload?: object) => {
  send(client, { type: "connection_init", ...(payload && { payload }) });
  const [data] = (await once(client, "message")) as [Buffer];
  expect(JSON.parse(data.toString())).toEqual({ type: "connection_ack" });
};
const subscription = { query: "subscription { changed { ids } }" };

/** The next messages of a connection. */
async function read(client: WebSocket, amount: number): Promise<any[]> {
  const messages: any[] = [];
  const take = (data: Buffer) => void messages.push(JSON.parse(data.toString()));
  client.on("message", take);
  await until(() => messages.length >= amount);
  client.off("message", take);
  return messages;
}

test("messages of a client that does not read responses stay in its buffer, and are answered once it reads", async () => {
  const { connect } = await start(endless().app, 60_000);
  const { client, socket } = await connect();
  await greet(client);
  let pongs = 0;
  client.on("message", () => (pongs += 1));
  client.pause();
  const [messages, payload] = [500, { text: "x".repeat(60_000) }];
  for (let n = 0; n < messages; n += 1) send(client, { type: "ping", payload });
  // Pings of the protocol as well.
  for (let n = 0; n < messages; n += 1) client.ping("x".repeat(100));
  await until(() => socket.isPaused() && socket.writableLength > 0);
  expect(socket.writableLength).toBeLessThan(1_000_000);
  expect(client.bufferedAmount).toBeGreaterThan(4_000_000);
  client.resume();
  await until(() => pongs === messages);
  expect(socket.writableLength).toBeLessThan(1_000_000);
});

test("a client that does not resume reading is disconnected", async () => {
  const { connect } = await start(endless().app, 100);
  const { client, socket } = await connect();
  await greet(client);
  client.pause();
  for (let n = 0; n < 500; n += 1) send(client, { type: "ping", payload: { text: "x".repeat(60_000) } });
  await until(() => socket.destroyed);
  // Of 30 MB.
  expect((socket as Socket).bytesRead).toBeLessThan(26_000_000);
});

test.each([
  ["connection_init", { type: "connection_init", payload: { authorization: "x".repeat(10_000) } }],
  ["ping", { type: "ping", payload: { text: "x".repeat(10_000) } }],
])("a long %s of a visitor is refused", async (_name, message) => {
  const { connect } = await start(endless().app);
  const { client } = await connect();
  send(client, message);
  expect((await once(client, "close"))[0]).toBe(1009);
});

test("messages have a length limit, below which a document is read", async () => {
  const bodies: string[] = [];
  const { connect } = await start((request, response) => {
    let body = "";
    request.setEncoding("utf8").on("data", (chunk) => (body += chunk));
    request.on("end", () => {
      bodies.push(body);
      response.writeHead(200, { "content-type": "application/json" });
      response.end('{"errors":[{"message":"Refused."}]}');
    });
  });
  const { client } = await connect();
  await greet(client, { authorization: "Bearer x" });
  const long = { query: `${subscription.query} # ${"x".repeat(50_000)}` };
  send(client, { id: "1", type: "subscribe", payload: long });
  await until(() => bodies.length === 1);
  expect(JSON.parse(bodies[0]!)).toEqual(long);
  send(client, { id: "2", type: "subscribe", payload: { query: "x".repeat(70_000) } });
  expect((await once(client, "close"))[0]).toBe(1009);
});

test("a client that sends control frames or fragments all the time is disconnected with the reason", async () => {
  const { connect } = await start(endless().app);
  const pinging = await connect();
  const pinged = once(pinging.client, "close");
  for (let n = 0; n < 1_000; n += 1) pinging.client.ping();
  expect((await pinged).map(String)).toEqual(["1008", "Too many pings"]);
  const fragmenting = await connect();
  const fragmented = once(fragmenting.client, "close");
  for (let n = 0; n < 1_000; n += 1) fragmenting.client.send("", { fin: false });
  expect((await fragmented)[0]).toBe(1008);
});

test("subscriptions that end before their first event, or with the connection, release their slots", async () => {
  const { app, open } = endless();
  const { connect } = await start(app);
  const { client } = await connect();
  await greet(client);
  for (let n = 0; n < 50; n += 1) send(client, { id: `${n}`, type: "subscribe", payload: subscription });
  await until(() => open.size === 50);
  for (let n = 0; n < 50; n += 1) send(client, { id: `${n}`, type: "complete" });
  await until(() => open.size === 0);
  // Immediately, while the response has not begun.
  for (let n = 50; n < 100; n += 1) {
    send(client, { id: `${n}`, type: "subscribe", payload: subscription });
    send(client, { id: `${n}`, type: "complete" });
  }
  send(client, { id: "last", type: "subscribe", payload: subscription });
  await until(() => open.size === 1);
  const other = await connect();
  await greet(other.client);
  for (let n = 0; n < 50; n += 1)
    send(other.client, { id: `${n}`, type: "subscribe", payload: subscription });
  other.client.close();
  await once(other.client, "close");
  await until(() => open.size === 1);
  expect(client.readyState).toBe(WebSocket.OPEN);
});

test("a subscription is a request of its client, and its events become messages", async () => {
  const requests: Pick<IncomingMessage, "method" | "url" | "headers" | "socket">[] = [];
  const { connect } = await start((request, response) => {
    requests.push(request);
    request.resume();
    response.writeHead(200, { "content-type": "text/event-stream; charset=utf-8" });
    response.write('event: next\ndata: {"data":{"a":1}}\n\n:\n\nevent: next\nda');
    response.end('ta: {"data":{"a":"ü"}}\n\nevent: complete\ndata:\n\n');
  });
  const passedOn = {
    host: "plat.example",
    "accept-language": "de",
    "user-agent": "tests",
    "x-forwarded-for": "192.0.2.7",
    "x-forwarded-host": "public.example",
    "x-forwarded-proto": "https",
    traceparent: "00-1-2-01",
    tracestate: "a=1",
  };
  const { client } = await connect({ ...passedOn, cookie: "a=b", authorization: "Bearer handshake" });
  await greet(client);
  send(client, { id: "a", type: "subscribe", payload: subscription });
  expect(await read(client, 3)).toEqual([
    { id: "a", type: "next", payload: { data: { a: 1 } } },
    { id: "a", type: "next", payload: { data: { a: "ü" } } },
    { id: "a", type: "complete" },
  ]);
  const [{ method, url, headers, socket }] = requests as [IncomingMessage];
  expect([method, url, socket.remoteAddress]).toEqual(["POST", "/graphql", "127.0.0.1"]);
  expect(headers).toMatchObject({
    ...passedOn,
    authorization: "Bearer handshake",
    accept: "application/json, text/event-stream",
    "content-type": "application/json",
  });
  expect(headers).not.toHaveProperty("cookie");
});

test.each([
  ["the payload", { Authorization: "Bearer payload", headers: { authorization: "Bearer other" } }, "payload"],
  ["headers in the payload", { headers: { authorization: "Bearer inner" } }, "inner"],
  ["the handshake, if the payload has something else", { authorization: 1, headers: null }, "handshake"],
  ["the handshake, if the payload has another member", { token: "Bearer other" }, "handshake"],
])("the token is that of %s", async (_place, payload, token) => {
  const tokens: unknown[] = [];
  const { connect } = await start((request, response) => {
    tokens.push(request.headers.authorization);
    request.resume();
    response.end();
  });
  const { client } = await connect({ authorization: "Bearer handshake" });
  await greet(client, payload);
  send(client, { id: "a", type: "subscribe", payload: subscription });
  await until(() => tokens.length === 1);
  expect(tokens).toEqual([`Bearer ${token}`]);
});

test("a refusal has its errors, and an answer that is none has the code INTERNAL", async () => {
  const refusal = { message: "Sign in.", extensions: { code: "UNAUTHENTICATED" } };
  const answers = [{ errors: [refusal] }, { data: null }, undefined];
  const { connect } = await start((request, response) => {
    request.resume();
    const answer = answers.shift();
    if (answer) response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(answer));
    else response.destroy();
  });
  const { client } = await connect();
  await greet(client);
  const errors: unknown[] = [];
  for (const id of ["a", "b", "c"]) {
    send(client, { id, type: "subscribe", payload: subscription });
    errors.push(...(await read(client, 1)));
  }
  const internal = { message: expect.any(String), extensions: { code: "INTERNAL" } };
  expect(errors).toEqual([
    { id: "a", type: "error", payload: [refusal] },
    { id: "b", type: "error", payload: [internal] },
    { id: "c", type: "error", payload: [internal] },
  ]);
});

test("a registered document is sent by its id", async () => {
  const bodies: string[] = [];
  const { connect } = await start(async (request, response) => {
    bodies.push(await text(request));
    response.end();
  });
  const { client } = await connect();
  await greet(client);
  const payloads = [{ query: "", documentId: "a", variables: { b: 1 } }, { query: "" }, subscription];
  for (const [id, payload] of payloads.entries()) {
    send(client, { id: String(id), type: "subscribe", payload });
    await until(() => bodies.length === id + 1);
  }
  expect(bodies.map((body) => JSON.parse(body))).toEqual([
    { documentId: "a", variables: { b: 1 } },
    { query: "" },
    subscription,
  ]);
});

test("a connection has 100 subscriptions at most", async () => {
  const { app, open } = endless();
  const { connect } = await start(app);
  const { client } = await connect();
  await greet(client);
  for (let n = 0; n < 100; n += 1) send(client, { id: `${n}`, type: "subscribe", payload: subscription });
  await until(() => open.size === 100);
  send(client, { id: "more", type: "subscribe", payload: subscription });
  expect(await read(client, 1)).toEqual([
    {
      id: "more",
      type: "error",
      payload: [
        {
          message: "A connection can have 100 subscriptions; open another one.",
          extensions: { code: "LIMIT_EXCEEDED", limit: 100 },
        },
      ],
    },
  ]);
  expect(open.size).toBe(100);
});

test("a ping of the protocol is answered with its data", async () => {
  const { connect } = await start(endless().app);
  const { client } = await connect();
  client.ping("here");
  expect(String((await once(client, "pong"))[0])).toBe("here");
});

test("a connection without a subscription is closed after 65 seconds", async () => {
  const waits = jest.spyOn(globalThis, "setTimeout");
  const ends = jest.spyOn(globalThis, "clearTimeout");
  const { app, open } = endless();
  const { connect } = await start(app);
  const { client } = await connect();
  await greet(client);
  const idle = () => waits.mock.calls.filter(([, ms]) => ms === 65_000).map(([end]) => end);
  expect(idle()).toHaveLength(1);
  const first = waits.mock.results[waits.mock.calls.findIndex(([, ms]) => ms === 65_000)]!.value;
  send(client, { id: "a", type: "subscribe", payload: subscription });
  await until(() => open.size === 1);
  // Not while something runs.
  expect(ends.mock.calls).toContainEqual([first]);
  send(client, { id: "a", type: "complete" });
  // Again once nothing runs.
  await until(() => idle().length === 2);
  const [, end] = idle();
  jest.restoreAllMocks();
  end!();
  expect((await once(client, "close")).map(String)).toEqual(["1000", "Idle"]);
});

test("a client is pinged every 15 seconds, and disconnected if it has not answered the last ping", async () => {
  const beats = jest.spyOn(globalThis, "setInterval");
  const ends = jest.spyOn(globalThis, "clearInterval");
  const { connect } = await start(endless().app);
  const [answering, mute] = [await connect(), await connect({}, false)];
  const at = beats.mock.calls.flatMap(([, ms], index) => (ms === 15_000 ? [index] : []));
  expect(at).toHaveLength(2);
  const [ofAnswering, ofMute] = at.map((index) => beats.mock.calls[index]![0]);
  for (let beat = 0; beat < 3; beat += 1) {
    const pinged = once(answering.client, "ping");
    ofAnswering!();
    await pinged;
    // Its answer has arrived before what it sends next.
    answering.client.ping();
    await once(answering.client, "pong");
  }
  const pinged = once(mute.client, "ping");
  ofMute!();
  await pinged;
  const closed = once(mute.client, "close");
  ofMute!();
  expect((await closed)[0]).toBe(1006);
  await until(() => ends.mock.calls.some(([timer]) => timer === beats.mock.results[at[1]!]!.value));
  expect(answering.client.readyState).toBe(WebSocket.OPEN);
  jest.restoreAllMocks();
});

test("closing tells clients that the service goes away", async () => {
  const { connect, close } = await start(endless().app);
  const { client } = await connect();
  const closed = once(client, "close");
  await close();
  expect((await closed).map(String)).toEqual(["1001", "Going away"]);
});

test.each<[string, string | undefined, string | undefined, boolean]>([
  ["of another scheme", "/graphql", "h2c", false],
  ["without one", "/graphql", undefined, false],
  ["in any case", "/graphql", "WebSocket", true],
  ["with a query string", "/graphql?a=1", "websocket", true],
  ["of another path", "/graphql/more", "websocket", false],
  ["of no path", undefined, "websocket", false],
])("an upgrade %s asks for a WebSocket: %s, %s: %s", (_name, url, upgrade, asks) => {
  expect(asksForWebSocket({ url, headers: { upgrade } } as IncomingMessage)).toBe(asks);
});

test("a client without the protocol is disconnected with the code of the library", async () => {
  const { connect } = await start(endless().app);
  const { closed } = await connect({}, true, []);
  expect((await closed)[0]).toBe(4406);
  await expect(connect({}, true, "graphql-ws")).rejects.toThrow("Server sent no subprotocol");
});

test("a client that sends nothing for ten seconds is disconnected", async () => {
  const waits = jest.spyOn(globalThis, "setTimeout");
  const { connect } = await start(endless().app);
  const { client } = await connect();
  const end = await until(() => waits.mock.calls.find(([, ms]) => ms === 10_000)?.[0]);
  jest.restoreAllMocks();
  const closed = once(client, "close");
  end!();
  expect((await closed).map(String)).toEqual(["4408", "Connection initialisation timeout"]);
});

test.each([
  ["greets", 8_000, { type: "connection_init" }],
  ["has greeted", 64_000, { type: "ping" }],
])("a client that %s may send %d bytes in a message", async (when, most, message) => {
  const { connect } = await start(endless().app);
  const isGreeted = when === "has greeted";
  const ofLength = (length: number) => {
    const empty = JSON.stringify({ ...message, payload: { a: "" } });
    return JSON.stringify({ ...message, payload: { a: "x".repeat(length - empty.length) } });
  };
  const { client } = await connect();
  if (isGreeted) await greet(client);
  client.send(ofLength(most));
  expect(await read(client, 1)).toMatchObject([{ type: isGreeted ? "pong" : "connection_ack" }]);
  const other = await connect();
  if (isGreeted) await greet(other.client);
  other.client.send(ofLength(most + 1));
  const [code, reason] = (await once(other.client, "close")).map(String);
  expect([code, reason]).toEqual(["1009", isGreeted ? "" : "Send a short connection_init first"]);
  expect(client.readyState).toBe(WebSocket.OPEN);
});

test("a message may have 64 fragments", async () => {
  const { connect } = await start(endless().app);
  const { client } = await connect();
  await greet(client);
  const inFragments = (count: number) => {
    client.send('{"type":"ping"}', { fin: false });
    for (let n = 2; n < count; n += 1) client.send("", { fin: false });
    client.send("", { fin: true });
  };
  inFragments(64);
  expect(await read(client, 1)).toEqual([{ type: "pong" }]);
  inFragments(65);
  expect((await once(client, "close"))[0]).toBe(1008);
});

test("pings and pongs are counted between two pings of the service: 99 are accepted", async () => {
  const beats = jest.spyOn(globalThis, "setInterval");
  const { connect } = await start(endless().app);
  const { client } = await connect();
  const beat = beats.mock.calls.find(([, ms]) => ms === 15_000)![0];
  jest.restoreAllMocks();
  /** Sends this many frames, the last of which is a ping that is answered. */
  const frames = async (pongs: number, pings: number) => {
    for (let n = 0; n < pongs; n += 1) client.pong();
    for (let n = 1; n < pings; n += 1) client.ping();
    const answered = new Promise<void>((resolve) =>
      client.on("pong", (data) => String(data) === "last" && resolve()),
    );
    client.ping("last");
    await answered;
  };
  await frames(50, 49);
  const pinged = once(client, "ping");
  beat();
  await pinged;
  // The answer to the ping of the service counts, too.
  await frames(49, 49);
  expect(client.readyState).toBe(WebSocket.OPEN);
  const closed = once(client, "close");
  client.pong();
  expect((await closed).map(String)).toEqual(["1008", "Too many pings"]);
});

test("a subscription has no token if its client has none", async () => {
  const tokens: unknown[] = [];
  const { connect } = await start((request, response) => {
    tokens.push("authorization" in request.headers);
    request.resume();
    response.end();
  });
  const { client } = await connect();
  await greet(client);
  send(client, { id: "a", type: "subscribe", payload: subscription });
  await until(() => tokens.length === 1);
  expect(tokens).toEqual([false]);
});

test("a subscription is encrypted if its connection is", async () => {
  const encrypted: unknown[] = [];
  const app: RequestListener = (request, response) => {
    encrypted.push((request.socket as { encrypted?: true }).encrypted);
    request.resume();
    response.end();
  };
  const { cert, key } = await testCertificate();
  for (const server of [createServer(), createHttpsServer({ cert, key })]) {
    const { connect } = await start(app, undefined, { server });
    const { client } = await connect();
    await greet(client);
    send(client, { id: "a", type: "subscribe", payload: subscription });
    await read(client, 1);
  }
  expect(encrypted).toEqual([undefined, true]);
});

test("only events named next are results, and an answer that breaks off is an internal error", async () => {
  const answers: ServerResponse[] = [];
  const { connect } = await start((request, response) => {
    request.resume();
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write('event: other\ndata: {"a":0}\n\nevent: next\ndata: {"a":1}\n\nevent: next\ndata: {"a":2}');
    answers.push(response);
  });
  const { client } = await connect();
  await greet(client);
  send(client, { id: "a", type: "subscribe", payload: subscription });
  expect(await read(client, 1)).toEqual([{ id: "a", type: "next", payload: { a: 1 } }]);
  answers[0]!.destroy();
  const [error] = await read(client, 1);
  expect(error).toMatchObject({ id: "a", type: "error", payload: [{ extensions: { code: "INTERNAL" } }] });
  expect(client.readyState).toBe(WebSocket.OPEN);
});

test("a hundred subscriptions that failed leave place for others", async () => {
  let count = 0;
  const { app, open } = endless();
  const { connect } = await start((request, response) => {
    count += 1;
    if (count > 100) app(request, response);
    else response.destroy();
  });
  const { client } = await connect();
  await greet(client);
  for (let n = 0; n < 100; n += 1) send(client, { id: `${n}`, type: "subscribe", payload: subscription });
  const failed = await read(client, 100);
  expect(new Set(failed.map(({ payload }) => payload[0].extensions.code))).toEqual(new Set(["INTERNAL"]));
  for (let n = 0; n < 100; n += 1) send(client, { id: `${n}`, type: "subscribe", payload: subscription });
  await until(() => open.size === 100);
  expect(client.readyState).toBe(WebSocket.OPEN);
});

test("a connection that never has a subscription is closed with the reason", async () => {
  const waits = jest.spyOn(globalThis, "setTimeout");
  const { connect } = await start(endless().app);
  const { client, closed } = await connect();
  await greet(client);
  const end = waits.mock.calls.find(([, ms]) => ms === 65_000)![0];
  jest.restoreAllMocks();
  end();
  expect(await closed).toEqual([1000, "Idle"]);
});

test("a connection that closes leaves no timer of its idleness behind", async () => {
  const waits = jest.spyOn(globalThis, "setTimeout");
  const ends = jest.spyOn(globalThis, "clearTimeout");
  const { connect } = await start(endless().app);
  const { client } = await connect();
  await greet(client);
  const idle = waits.mock.results[waits.mock.calls.findIndex(([, ms]) => ms === 65_000)]!.value;
  client.close();
  await until(() => ends.mock.calls.some(([timer]) => timer === idle));
  expect(waits.mock.calls.filter(([, ms]) => ms === 65_000)).toHaveLength(1);
  jest.restoreAllMocks();
});

test("messages take turns by the network of their client, behind a proxy by that of the header", async () => {
  const acquire = jest.spyOn(webSocketMessages, "acquire");
  const groups: unknown[] = [];
  for (const isProxy of [undefined, (address: string) => address.endsWith("127.0.0.1")]) {
    const { connect } = await start(endless().app, undefined, isProxy && { isProxy });
    const { client } = await connect({ "x-forwarded-for": "192.0.2.7" });
    acquire.mockClear();
    await greet(client);
    groups.push(...acquire.mock.calls.map(([{ group }]) => group));
  }
  jest.restoreAllMocks();
  expect(groups).toEqual([partyOf(null, "127.0.0.1").group, partyOf(null, "192.0.2.7").group]);
});

test("what is no JSON closes its connection", async () => {
  const { connect } = await start(endless().app);
  const { client } = await connect();
  await greet(client);
  client.send("{");
  expect((await once(client, "close"))[0]).toBe(4400);
});
