/** Small parts of the transport that are not visible in whole requests. */
import { EventEmitter } from "node:events";
import type { IncomingMessage } from "node:http";
import { PassThrough, Writable } from "node:stream";
import { gzipSync } from "node:zlib";
import { describe, expect, jest, test } from "@jest/globals";
import { buildSchema, GraphQLInputObjectType } from "graphql";
import { negotiate } from "../../src/http/accept.ts";
import { healthz, readyz } from "../../src/http/health.ts";
import { admitBody } from "../../src/http/body.ts";
import { endInChunks } from "../../src/http/endInChunks.ts";
import { turnOf } from "../../src/http/inTurn.ts";
import { keepPace } from "../../src/http/pace.ts";
import { idempotencyFacts } from "../../src/http/idempotencyFacts.ts";
import { beginner, requestId } from "../../src/http/requestId.ts";
import { beginRequest, requestState, type RequestState } from "../../src/http/requestState.ts";
import { uploadPlaces } from "../../src/http/uploadPlaces.ts";
import { uploads } from "../../src/http/uploads.ts";
import { requestBodies } from "../../src/admission/semaphores.ts";
import { FairSemaphore } from "../../src/admission/fairSemaphore.ts";
import { partyOf } from "../../src/admission/party.ts";
import { startServer } from "./server.ts";

const json = "application/json";
const graphql = "application/graphql-response+json";

test.each([
  [undefined, json],
  ["", json],
  ["  ", json],
  ["*/*", json],
  ["application/*", json],
  [json, json],
  [graphql, graphql],
  [`${graphql}, ${json}`, graphql],
  [`${json}, ${graphql}`, graphql],
  [`${graphql};q=0.5, ${json}`, json],
  [`${json};q=0.5, ${graphql};q=0.4`, json],
  [`${json};q=0.4, ${graphql};q=0.5`, graphql],
  [`${graphql};q=0, */*`, json],
  [`${json};q=0, */*`, graphql],
  [`${json};q=0, application/*`, graphql],
  [`*/*;q=0.1, application/*;q=0.5, ${graphql};q=0.2`, json],
  [`${graphql}, */*;q=0.5`, graphql],
  [`application/*;q=0.5, ${json};q=0.5`, json],
  ["text/html", undefined],
  ["text/*", undefined],
  ["*/*;q=0", undefined],
  [`${json};q=0`, undefined],
  [`${json};q=2`, undefined],
  [`${json};q=-1`, undefined],
  [`${json};q=x`, undefined],
  [`${json};charset=utf-8`, json],
  [`${json};charset=utf8`, json],
  [`${json};charset=latin1`, undefined],
  [`nonsense, ${graphql}`, graphql],
])("a client that accepts %j gets %s", (header, type) => {
  expect(negotiate(header)).toBe(type);
});

test("repeated requests are recognized by the key, and the body without extensions", () => {
  const facts = (body: unknown, key?: string | string[]) =>
    idempotencyFacts({ headers: { "idempotency-key": key }, body } as unknown as IncomingMessage & {
      body: unknown;
    });
  expect(facts({}, "a").header).toBe("a");
  expect(facts({}, ["a", "b"]).header).toBe("a, b");
  expect(facts({}).header).toBeUndefined();
  const query = "{ ok }";
  expect(facts({ query, extensions: { a: 1 } }).body()).toBe('["{ ok }",{},null]');
  expect(facts({ query, variables: { a: 1 }, operationName: "x" }).body()).toBe('["{ ok }",{"a":1},"x"]');
});

test("the process reports that it is alive, and which component is not ready", async () => {
  const report = { ready: true, checks: { database: "ok" } };
  await using server = await startServer({
    pages: { "/healthz": healthz, "/readyz": readyz({ report: async () => report } as never) },
  });
  const get = async (path: string) => {
    const { status, headers, json: body } = await server.send({ method: "GET", path });
    return [status, headers["cache-control"], body];
  };
  expect(await get("/healthz")).toEqual([200, "no-store", { status: "alive" }]);
  expect(await get("/readyz")).toEqual([200, "no-store", { status: "ready", checks: { database: "ok" } }]);
  report.ready = false;
  expect(await get("/readyz")).toEqual([
    503,
    "no-store",
    { status: "unavailable", checks: { database: "ok" } },
  ]);
});

describe("an operation that accepts files", () => {
  const schema = buildSchema(`
    scalar Upload
    input PictureInput { id: ID, file: Upload, other: Upload, name: String }
    input OtherInput { id: ID }
    type Query { ok: Boolean, read(input: PictureInput): Boolean }
    type Mutation { add(input: PictureInput, else: PictureInput): Boolean, touch(input: OtherInput): Boolean, count(input: Int): Boolean }
  `);
  const fields = (schema.getType("PictureInput") as GraphQLInputObjectType).getFields();
  Object.assign(fields.file!.extensions, { upload: "storeImage", uploadTarget: "app_public.pictures" });
  Object.assign(fields.other!.extensions, { upload: "storeFile" });
  Object.assign(fields.name!.extensions, { upload: "unknown", uploadTarget: "x" });
  const places = (query: string, variables: Record<string, unknown> = {}, operationName?: string) =>
    Object.fromEntries(uploadPlaces(schema, { query, variables, operationName } as never));
  const kind = { kind: "storeImage", target: "app_public.pictures" };

  test("as a field of a variable, or as a variable, with the input unchanged", () => {
    const input = { id: "1", file: null };
    expect(places("mutation ($i: PictureInput) { add(input: $i) }", { i: input })).toEqual({
      "variables.i.file": { ...kind, input },
    });
    expect(places("mutation ($f: Upload, $n: ID) { add(input: { id: $n, file: $f }) }", { n: "2" })).toEqual({
      "variables.f": { ...kind, input: { id: "2" } },
    });
    expect(places("mutation ($i: PictureInput) { add(input: $i) }")).toEqual({
      "variables.i.file": { ...kind, input: {} },
    });
  });

  test("through fragments, each visited once", () => {
    expect(
      places(
        "mutation ($i: PictureInput) { ...A ... on Mutation { ok: touch } } fragment A on Mutation { add(input: $i) ...A }",
      ),
    ).toEqual({
      "variables.i.file": { ...kind, input: {} },
    });
    expect(places("mutation ($i: PictureInput) { ... { add(input: $i) } }")).toHaveProperty([
      "variables.i.file",
    ]);
    expect(places("mutation ($i: PictureInput) { ...B } fragment A on Mutation { add(input: $i) }")).toEqual(
      {},
    );
  });

  test.each([
    ["a query", "query ($i: PictureInput) { read(input: $i) }"],
    ["another argument", "mutation ($i: PictureInput) { add(else: $i) }"],
    ["no argument", "mutation { add }"],
    ["an unknown operation", "mutation ($i: PictureInput) { remove(input: $i) }"],
    ["an input without files", "mutation ($i: OtherInput) { touch(input: $i) }"],
    ["a number", "mutation ($i: Int) { count(input: $i) }"],
    ["a literal", 'mutation { add(input: { file: "x" }) }'],
    ["a literal without the file", "mutation ($n: ID) { add(input: { id: $n }) }"],
    ["no object", "mutation { add(input: 1) }"],
    ["no document", "mutation {"],
  ])("%s accepts none", (_, query) => {
    expect(places(query)).toEqual({});
  });

  test("of several operations, the selected one", () => {
    const query =
      "mutation a($i: PictureInput) { add(input: $i) } mutation b($j: PictureInput) { add(input: $j) }";
    expect(Object.keys(places(query, {}, "b"))).toEqual(["variables.j.file"]);
    expect(Object.keys(places(query))).toEqual(["variables.i.file", "variables.j.file"]);
  });
});

describe("a reader of a response in pieces", () => {
  const text = "x".repeat(200_000);
  /** A response whose reader accepts a piece and then fails, or disconnects. */
  const reader = (end: (response: Writable) => void) => {
    const response: Writable = new Writable({
      write(_piece, _encoding, done) {
        done();
        end(response);
      },
    });
    response.on("error", () => {});
    return response as never;
  };

  test("may disconnect early", async () => {
    await expect(
      endInChunks(
        reader((response) => void response.destroy()),
        text,
      ),
    ).resolves.toBeUndefined();
  });

  test("with a connection error is a failure", async () => {
    const fault = new Error("The disk is full.");
    await expect(
      endInChunks(
        reader((response) => void response.destroy(fault)),
        text,
      ),
    ).rejects.toBe(fault);
  });
});

describe("waiting for a turn", () => {
  const party = partyOf(null, "192.0.2.1");

  test("ends when the client disconnects, and leaves no listeners", async () => {
    const semaphore = new FairSemaphore({ capacity: 1 });
    const response = new EventEmitter();
    const release = await turnOf(semaphore, party, response as never);
    expect(response.listenerCount("close")).toBe(0);
    const second = turnOf(semaphore, party, response as never);
    expect(response.listenerCount("close")).toBe(1);
    response.emit("close");
    expect(await second).toBeUndefined();
    expect(response.listenerCount("close")).toBe(0);
    release!();
    expect(semaphore.numbers).toEqual({ held: 0, waiting: 0 });
  });

  test("fails when there are too many, and leaves no listeners", async () => {
    const semaphore = new FairSemaphore({ capacity: 1, queuePerParty: 0 });
    const response = new EventEmitter();
    await turnOf(semaphore, party, response as never);
    await expect(turnOf(semaphore, party, response as never)).rejects.toMatchObject({ code: "RATE_LIMITED" });
    expect(response.listenerCount("close")).toBe(0);
  });

  test("releases the memory of a body immediately if the client has disconnected meanwhile", async () => {
    const headers = { "content-length": "500000" };
    const response = Object.assign(new EventEmitter(), { closed: true });
    const of = { userId: null, limit: 1_000_000 };
    expect(await admitBody({ headers, ip: "192.0.2.1" } as never, response as never, of)).toBe(500_000);
    expect(requestBodies.numbers.held).toBe(0);
    response.closed = false;
    await admitBody({ headers, ip: "192.0.2.1" } as never, response as never, of);
    expect(requestBodies.numbers.held).toBe(500_000);
    response.emit("close");
    expect(requestBodies.numbers.held).toBe(0);
  });
});

test("a stalled body has 20 seconds, and a second more for each 4,096 received bytes", () => {
  jest.useFakeTimers();
  try {
    for (const [bytes, seconds] of [
      [0, 20],
      [40_960, 30],
    ] as const) {
      const sent: string[] = [];
      const socket = {
        bytesRead: 100,
        bytesWritten: 0,
        writableLength: 0,
        end: (text: string) => void sent.push(text),
        destroy() {},
        resume() {},
        once() {},
        on() {},
        destroyed: false,
        writable: true,
      };
      const request = { socket, complete: false, readableLength: 0 };
      const { app, stop } = keepPace(() => {});
      const response = Object.assign(new EventEmitter(), { headersSent: false, writableLength: 0 });
      app(request as never, response as never);
      socket.bytesRead += bytes;
      jest.advanceTimersByTime(seconds * 1_000);
      expect(sent).toEqual([]);
      jest.advanceTimersByTime(2_000);
      expect(sent[0]).toMatch(/^HTTP\/1\.1 408 Request Timeout\r\n/);
      stop();
    }
  } finally {
    jest.useRealTimers();
  }
});

test("a notification without a body is empty, and a compressed one is refused", async () => {
  const bodies: unknown[] = [];
  await using server = await startServer({
    paymentsWebhook: (request, response) => {
      bodies.push(request.body);
      response.send("taken");
    },
  });
  const path = "/webhooks/payments";
  expect((await server.send({ path })).text).toBe("taken");
  expect((await server.send({ path, body: "{}" })).text).toBe("taken");
  expect(bodies).toEqual([Buffer.alloc(0), Buffer.from("{}")]);
  const packed = await server.send({
    path,
    headers: { "content-encoding": "gzip" },
    body: gzipSync("{}"),
  });
  expect([packed.status, packed.json.errors[0].extensions.code, packed.json.errors[0].message]).toEqual([
    400,
    "BAD_USER_INPUT",
    "The request body could not be read completely.",
  ]);
  expect(bodies).toHaveLength(2);
});

test("a request begins without a viewer, and the body of a refused one is not read", () => {
  const request = { headers: {}, path: "/graphql" } as never;
  const begin = beginner({ child: () => ({}) } as never, new Map());
  requestId(begin)(request, Object.assign(new EventEmitter(), { setHeader() {} }) as never, () => {});
  expect(requestState(request)).toMatchObject({
    schemaIsOpen: false,
    errorCodes: new Set(),
    sentFiles: [],
    isDrained: false,
  });
});

test.each([
  ["of a viewer", "user-1", true],
  ["of a visitor", null, false],
])(
  "the rest of a refused upload %s is read so that the client gets the response, or is not",
  async (_, userId, isRead) => {
    const request = Object.assign(new PassThrough(), {
      headers: { "content-type": "multipart/form-data; boundary=x", "graphql-preflight": "1" },
    });
    if (userId) Object.assign(request.headers, { "content-encoding": "gzip" });
    const state = { claims: { userId }, isDrained: false, sentFiles: [] } as unknown as RequestState;
    beginRequest(request as never, state);
    const handle = uploads({ files: { release: async () => {} } } as never);
    await expect(
      Promise.resolve(handle(request as never, new EventEmitter() as never, () => {})),
    ).rejects.toMatchObject({ code: isRead ? "BAD_USER_INPUT" : "UNAUTHENTICATED" });
    expect([state.isDrained, request.readableFlowing]).toEqual([isRead, isRead ? true : null]);
  },
);
