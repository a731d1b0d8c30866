/** Limits on the resources that a WebSocket client of /graphql can use. */
import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import type { Duplex } from "node:stream";
import { afterEach, expect, test } from "@jest/globals";
import { WebSocket } from "ws";
import { webSockets } from "../../src/http/webSocket.ts";
import { until } from "../harness/until.ts";

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

/** A server with WebSockets only, and the connections of its clients. */
async function start(app: RequestListener, readWithinMs?: number) {
  const sockets: Duplex[] = [];
  const service = webSockets(app, readWithinMs);
  const server = createServer().on("upgrade", (request, socket, head) => {
    sockets.push(socket);
    service.upgrade(request, socket, head);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  closing.push(() => new Promise((resolve) => server.close(resolve)));
  closing.push(() => service.close());
  const { port } = server.address() as AddressInfo;
  const connect = async () => {
    const client = new WebSocket(`ws://127.0.0.1:${port}/graphql`, "graphql-transport-ws");
    client.on("error", () => {});
    closing.push(async () => client.terminate());
    await once(client, "open");
    return { client, socket: sockets.at(-1)! };
  };
  return { connect };
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
