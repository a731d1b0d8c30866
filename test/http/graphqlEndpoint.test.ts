/** From the result of an operation to its response: status, headers, positions, limits, and what is released when. */
import type { ServerResponse } from "node:http";
import { request as ask } from "node:https";
import { afterEach, expect, jest, test } from "@jest/globals";
import type { Request } from "express";
import { operations } from "../../src/admission/semaphores.ts";
import type { OperationWork } from "../../src/admission/operationWork.ts";
import { partyOf } from "../../src/admission/party.ts";
import { queryLimits } from "../../src/admission/queryLimits.ts";
import { CodedError, internalMessage } from "../../src/base/errors.ts";
import type { CompiledQuery } from "../../src/compiled/compiledQueries.ts";
import { Positions } from "../../src/database/position.ts";
import type { AppDeps } from "../../src/http/app.ts";
import type { Grafserv } from "../../src/http/grafserv.ts";
import { answerInside, type GraphqlDeps } from "../../src/http/graphqlEndpoint.ts";
import { requestState } from "../../src/http/requestState.ts";
import { until } from "../harness/until.ts";
import { faults, startServer, tokens } from "./server.ts";

const closing: (() => PromiseLike<unknown>)[] = [];
afterEach(async () => {
  delete faults.resolver;
  jest.restoreAllMocks();
  for (const close of closing.splice(0)) await close();
});

async function start(deps: Partial<AppDeps> = {}) {
  const server = await startServer(deps);
  closing.push(() => server[Symbol.asyncDispose]());
  return server;
}

type Result = Record<string, unknown>;
/** grafserv with a given result, for those that a schema in memory does not have. */
const resulting = (result: (request: Request, work: OperationWork) => Result | undefined) =>
  ({ answerOperation: async (request: Request) => result(request, requestState(request).work!) }) as never;
const given = (...[result]: Parameters<typeof resulting>) =>
  start({ pgl: { createServ: () => resulting(result) } });
const json = (content: object, more: object = {}): Result => ({
  type: "json",
  statusCode: 200,
  headers: { "content-type": "application/json;charset=utf-8" },
  json: content,
  ...more,
});
const signedIn = { authorization: `Bearer ${tokens.good}` };
const lineOf = (log: Record<string, unknown>[]) =>
  until(
    () => log.find(({ event }) => event === "http.request"),
    (line) => line,
  );

test("status and type of a result are those of the response", async () => {
  const accepted = json({ data: { a: 1 } }, { statusCode: 202 });
  const server = await given(() => accepted);
  const answer = await server.graphql("{ ok }");
  expect([answer.status, answer.text]).toEqual([202, '{"data":{"a":1}}']);
  expect(answer.headers["content-type"]).toBe("application/json; charset=utf-8");
  expect(answer.headers).not.toHaveProperty("idempotency-replayed");
  expect(answer.headers).not.toHaveProperty("plat-position");
  accepted.headers = {};
  expect((await server.graphql("{ ok }")).headers["content-type"]).toBe("application/json");
});

test("errors without an id are internal: their message is not told; the others are kept", async () => {
  const server = await given(() =>
    json({
      errors: [
        { message: "The schema is being built." },
        { message: "secret", extensions: { code: "OTHER" } },
        { message: "Known.", extensions: { code: "FORBIDDEN", requestId: "r1" } },
      ],
    }),
  );
  const { json: body, headers } = await server.graphql("{ ok }");
  const internal = { code: "INTERNAL", requestId: headers["x-request-id"] };
  expect(body.errors).toMatchObject([
    { message: internalMessage, extensions: internal },
    { message: internalMessage, extensions: internal },
    { message: "Known.", extensions: { code: "FORBIDDEN", requestId: "r1" } },
  ]);
  expect(body.errors[1].extensions.code).toBe("INTERNAL");
  expect(await lineOf(server.log)).toMatchObject({ errorCodes: ["INTERNAL"] });
});

test("a buffer is sent as it is", async () => {
  const server = await given(() => ({
    type: "buffer",
    statusCode: 418,
    headers: { "content-type": "text/plain", "x-more": "1" },
    buffer: Buffer.from("bytes"),
  }));
  const { status, headers, text } = await server.graphql("{ ok }");
  expect([status, headers["content-type"], headers["x-more"], text]).toEqual([
    418,
    "text/plain",
    "1",
    "bytes",
  ]);
});

test("an error of grafserv is refused by its code, and an unknown result is an internal error", async () => {
  const results: (Result | undefined)[] = [
    { type: "error", error: new CodedError("NOT_FOUND", "There is none.") },
    { type: "raw" },
    undefined,
  ];
  const server = await given(() => results.shift());
  const codes: unknown[] = [];
  for (let n = 0; n < 3; n += 1) {
    const { status, json: body } = await server.graphql("{ ok }");
    codes.push([status, body.errors[0].extensions.code]);
  }
  expect(codes).toEqual([
    [404, "NOT_FOUND"],
    [500, "INTERNAL"],
    [500, "INTERNAL"],
  ]);
  const failures = server.log.filter(({ event }) => event === "http.failed");
  expect(failures.map(({ err }) => (err as Error).message)).toEqual([
    "An answer of type raw was not expected.",
    "An answer of type undefined was not expected.",
  ]);
});

/** The length of `{"data":{"text":""},"extensions":{"a":1}}`. */
const AROUND = 41;
const textOf = (length: number) => ({ data: { text: "x".repeat(length - AROUND) }, extensions: { a: 1 } });

test.each<[string, (work: OperationWork) => void]>([
  ["that was expected to be small", () => {}],
  ["of many bytes", (work) => (work.bytesRead = 100_000)],
  ["of a high cost", (work) => work.measured(5_000, ["leads", "notes"], 1)],
])("a response %s may have 3 MB, and is refused above that", async (_name, measure) => {
  let length: number = queryLimits.bytes;
  const server = await given((_request, work) => {
    measure(work);
    return json(textOf(length));
  });
  expect((await server.graphql("{ ok }")).text).toHaveLength(queryLimits.bytes);
  expect((await lineOf(server.log))!["errorCodes"]).toBeUndefined();
  server.log.length = 0;
  length += 1;
  const { status, json: body, headers } = await server.graphql("{ ok }");
  expect(status).toBe(200);
  expect(body).toEqual({
    data: null,
    errors: [
      {
        message: expect.stringMatching(/^The answer is over 3 MB/),
        extensions: expect.objectContaining({
          code: "LIMIT_EXCEEDED",
          limit: queryLimits.bytes,
          requestId: headers["x-request-id"],
        }),
      },
    ],
    extensions: { a: 1 },
  });
  expect(await lineOf(server.log)).toMatchObject({ errorCodes: ["LIMIT_EXCEEDED"] });
});

test("a change whose response is too large was carried out, and its refusal says so", async () => {
  const server = await given((request) => {
    requestState(request).operationType = "mutation";
    return json(textOf(queryLimits.bytes + 1));
  });
  expect((await server.graphql("{ ok }")).json.errors[0].message).toMatch(
    /^The operation was carried out, but its answer is over 3 MB/,
  );
});

test("a response from 100,000 bytes or a cost of 5,000 on is serialized in pieces", async () => {
  // The two ways to serialize an object read its members a different number of times.
  const reads = jest.fn();
  let measure: (work: OperationWork) => void = () => {};
  const readsOf = async () => {
    reads.mockClear();
    const server = await given((_request, work) => {
      measure(work);
      return json({ data: { a: { b: {} } }, extensions: new Proxy({}, { ownKeys: () => (reads(), []) }) });
    });
    await server.graphql("{ ok }");
    return reads.mock.calls.length;
  };
  const counts: number[] = [];
  for (const each of [
    (work: OperationWork) => (work.bytesRead = 99_999),
    (work: OperationWork) => (work.bytesRead = 100_000),
    (work: OperationWork) => work.measured(4_999, [], 1),
    (work: OperationWork) => work.measured(5_000, [], 1),
  ]) {
    measure = each;
    counts.push(await readsOf());
  }
  const [small, large] = counts as [number, number];
  expect(large).not.toBe(small);
  expect(counts).toEqual([small, large, small, large]);
});

test("a stored response of an idempotency key is marked", async () => {
  const server = await given((_request, work) => {
    work.isReplayed = true;
    return json({ data: null });
  });
  expect((await server.graphql("{ ok }")).headers["idempotency-replayed"]).toBe("true");
});

test("the position of the data is in a header and beside the other extensions, if anything was read", async () => {
  const positions = new Positions("1");
  const serv = resulting((request, work) => {
    if ((request.body as { query: string }).query !== "{ ok }") work.position = 7n;
    return json({ data: { a: 1 }, extensions: { cost: 1 } });
  });
  const server = await start({ positions, pgl: { createServ: () => serv } });
  const position = positions.write(7n);
  const read = await server.graphql("{ tags }");
  expect([read.headers["plat-position"], read.json]).toEqual([
    position,
    { data: { a: 1 }, extensions: { cost: 1, position } },
  ]);
  const nothing = await server.graphql("{ ok }");
  expect(nothing.headers).not.toHaveProperty("plat-position");
  expect(nothing.json).toEqual({ data: { a: 1 }, extensions: { cost: 1 } });
});

test("a client that accepts only events gets the response as one", async () => {
  const server = await given(() => json({ data: { a: 1 } }));
  const { status, headers, text } = await server.graphql("{ ok }", {}, { accept: "text/event-stream" });
  expect([status, headers["content-type"], text]).toEqual([
    200,
    "text/event-stream; charset=utf-8",
    'event: next\ndata: {"data":{"a":1}}\n\nevent: complete\ndata:\n\n',
  ]);
});

test.each<[string, string, boolean]>([
  ["{ ok }", "FORBIDDEN", true],
  ["{ fault }", "FORBIDDEN", true],
  ["{ fault }", "UNAVAILABLE", false],
  ["{ fault ok }", "UNAVAILABLE", true],
  ["{ fault viewer { id } }", "UNAVAILABLE", false],
])("for %s with an error %s, whether the token is verified: %s", async (query, code, isVerified) => {
  faults.resolver = () => new CodedError(code as "FORBIDDEN", "No.");
  const complete = jest.fn(async () => {});
  const server = await start({
    beforeGraphql: [
      (request, _response, next) => {
        requestState(request).tokenCheck = { complete } as never;
        next();
      },
    ],
  });
  expect((await server.graphql(query)).json).toHaveProperty("data");
  expect(complete).toHaveBeenCalledTimes(isVerified ? 1 : 0);
});

test("a token that turns out to be revoked is refused, without the data that were read", async () => {
  const revoked = new CodedError("UNAUTHENTICATED", "This token is revoked.");
  const server = await start({
    beforeGraphql: [
      (request, _response, next) => {
        requestState(request).tokenCheck = { complete: async () => Promise.reject(revoked) } as never;
        next();
      },
    ],
  });
  const { status, json: body } = await server.graphql("{ ok }");
  expect([status, body.errors[0].message, body.data]).toEqual([401, "This token is revoked.", undefined]);
  await until(() => operations.numbers.held === 0);
});

const compiled = (text: string | undefined, more: Partial<AppDeps> = {}): Partial<AppDeps> => ({
  findCompiled: (request) => {
    requestState(request).compiled = { label: "ok" } as CompiledQuery;
    return true;
  },
  answerCompiled: async () => text,
  ...more,
});

test("the response of a compiled query has its tag and position, unless its token was replaced meanwhile", async () => {
  const positions = new Positions("1");
  let isReplaced = false;
  const server = await start(
    compiled('{"data":{"ok":true}}', {
      positions,
      tagOf: async () => ({ text: 'W/"current"', reached: 5n }),
      answerCompiled: async (request, work) => {
        work.position = 5n;
        if (isReplaced) requestState(request).claims = { userId: "user-2" };
        return '{"data":{"ok":true}}';
      },
    }),
  );
  const send = () =>
    server.graphql("{ ok }", {}, { ...signedIn, "if-none-match": '""', accept: "application/json" });
  const answer = await send();
  expect([answer.status, answer.text]).toEqual([200, '{"data":{"ok":true}}']);
  expect(answer.headers).toMatchObject({
    "content-type": "application/json; charset=utf-8",
    etag: 'W/"current"',
    "plat-position": positions.write(5n),
  });
  isReplaced = true;
  const other = await send();
  expect([other.status, other.headers["plat-position"]]).toEqual([200, positions.write(5n)]);
  expect(other.headers).not.toHaveProperty("etag");
});

test("a client that has the current response is told so, and the query is not answered", async () => {
  const answerCompiled = jest.fn(async () => "{}");
  const tagOf = async () => ({ text: 'W/"current"', reached: 5n });
  const server = await start(compiled(undefined, { tagOf, answerCompiled }));
  const { status, text, headers } = await server.graphql("{ ok }", {}, { "if-none-match": 'W/"current"' });
  expect([status, text, headers.etag]).toEqual([304, "", 'W/"current"']);
  expect(answerCompiled).not.toHaveBeenCalled();
});

test("a query without a compiled form is neither looked up by tag nor answered without its plan", async () => {
  const tagOf = jest.fn(async () => ({ text: 'W/"current"', reached: 5n }));
  const answerCompiled = jest.fn(async () => "{}");
  const server = await start({ findCompiled: () => false, tagOf, answerCompiled });
  const { status, json: body } = await server.graphql("{ ok }", {}, { "if-none-match": 'W/"current"' });
  expect([status, body.data]).toEqual([200, { ok: true }]);
  expect([tagOf, answerCompiled].map(({ mock }) => mock.calls)).toEqual([[], []]);
});

test("an operation has the trace, transaction, input and minimum position of its request", async () => {
  const positions = new Positions("1");
  const trace = { ran() {} };
  const transaction = { isDry: true };
  const seen: Partial<OperationWork>[] = [];
  const held: unknown[] = [];
  const serv = resulting((_request, work) => {
    seen.push({ ...work, party: work.party, hasLargeInput: work.hasLargeInput });
    held.push(work);
    return json({ data: {} });
  });
  const ofWork: unknown[] = [];
  const server = await start({
    positions,
    pgl: { createServ: () => serv },
    beforeGraphql: [
      (request, _response, next) => {
        const state = requestState(request);
        state.trace = trace;
        state.held = (work) => {
          ofWork.push(work);
          return transaction;
        };
        next();
      },
    ],
  });
  const position = positions.write(5n);
  await server.graphql("{ ok }", { a: "x".repeat(40_000) }, { ...signedIn, "plat-position": position });
  expect(seen).toMatchObject([
    {
      trace,
      heldTransaction: transaction,
      hasLargeInput: true,
      notBefore: "0/5",
      party: partyOf("user-1", "127.0.0.1"),
    },
  ]);
  expect(ofWork).toEqual(held);
  await server.graphql("{ ok }");
  expect(seen[1]).toMatchObject({
    hasLargeInput: false,
    notBefore: undefined,
    party: partyOf(null, "127.0.0.1"),
  });
});

test("the use of the schema is noted after an answer, and not if there was none", async () => {
  const noteUse = jest.fn();
  let result: Result = json({ data: {} });
  const serv = resulting(() => result);
  const server = await start({ noteUse, pgl: { createServ: () => serv } });
  await server.graphql("{ ok }");
  await until(() => noteUse.mock.calls.length > 0);
  result = { type: "raw" };
  expect((await server.graphql("{ ok }")).status).toBe(500);
  expect(noteUse).toHaveBeenCalledTimes(1);
});

/** Adds to the list how many places are held when the response is sent. */
function noteHeldAtEnd(response: ServerResponse, held: number[]): void {
  const end = response.end.bind(response);
  response.end = ((...args: unknown[]) => {
    held.push(operations.numbers.held);
    return end(...(args as []));
  }) as never;
}

test("the place of an operation is free again before its response is sent, and after a failure", async () => {
  const held: number[] = [];
  const server = await start({
    ...compiled('{"data":{}}'),
    answerCompiled: async (request) => {
      held.push(operations.numbers.held);
      if ((request.body as { query: string }).query !== "{ ok }") throw new Error("A fault.");
      noteHeldAtEnd(request.res!, held);
      return '{"data":{}}';
    },
  });
  expect((await server.graphql("{ ok }")).status).toBe(200);
  expect(held.splice(0)).toEqual([1, 0]);
  expect((await server.graphql("{ tags }", {}, signedIn)).status).toBe(500);
  await until(() => operations.numbers.held === 0);
  expect(held).toEqual([1]);
});

test("the place of a planned operation is free again before its response is sent, too", async () => {
  const held: number[] = [];
  const server = await given((request) => {
    noteHeldAtEnd(request.res!, held);
    held.push(operations.numbers.held);
    return json({ data: {} });
  });
  await server.graphql("{ ok }");
  expect(held).toEqual([1, 0]);
});

test("an operation whose client leaves while it waits is not executed", async () => {
  const executed = jest.fn(() => json({ data: {} }));
  const server = await given(executed);
  const party = partyOf("user-1", undefined);
  const held = await Promise.all(Array.from({ length: 8 }, () => operations.acquire(party)));
  const leaving = ask({
    port: server.port,
    host: "127.0.0.1",
    path: "/graphql",
    method: "POST",
    rejectUnauthorized: false,
    headers: { "content-type": "application/json", ...signedIn },
  }).on("error", () => {});
  leaving.end('{"query":"{ ok }"}');
  await until(() => operations.numbers.waiting === 1);
  leaving.destroy();
  await until(() => operations.numbers.waiting === 0);
  for (const release of held) release();
  expect(await lineOf(server.log)).toMatchObject({ aborted: true });
  expect(operations.numbers.held).toBe(0);
  expect(executed).not.toHaveBeenCalled();
});

test("a response says that its encoding varies, unless it says already what it varies by", async () => {
  const serv = resulting((request) => {
    requestState(request).operationType = "query";
    return json({ data: { text: "x".repeat(5_000) } });
  });
  let vary: string | undefined;
  const server = await start({
    pgl: { createServ: () => serv },
    beforeGraphql: [
      (_request, response, next) => {
        if (vary) response.setHeader("Vary", vary);
        next();
      },
    ],
  });
  const headersOf = async (headers: Record<string, string>) => {
    const answer = await server.graphql("{ ok }", {}, headers);
    return [answer.headers.vary, answer.headers["content-encoding"]];
  };
  expect(await headersOf({ "accept-encoding": "gzip" })).toEqual(["Accept-Encoding", "gzip"]);
  expect(await headersOf({})).toEqual(["Accept-Encoding", undefined]);
  // Of a viewer, the length of a response could tell something.
  expect(await headersOf({ ...signedIn, "accept-encoding": "gzip" })).toEqual([undefined, undefined]);
  vary = "Accept";
  expect(await headersOf({ "accept-encoding": "gzip" })).toEqual(["Accept", "gzip"]);
});

test("an internal request gets the text of its response, without headers of positions and tags", async () => {
  const positions = new Positions("1");
  const serv = resulting((_request, work) => {
    work.position = 5n;
    return json({ data: { a: 1 } });
  }) as Grafserv;
  let deps: GraphqlDeps = { grafserv: serv, positions };
  const server = await start({
    pages: {
      "/inside": async (request, response) => {
        request.body = { query: "{ ok }" };
        const text = await answerInside(deps, request, response);
        response.send({
          text,
          position: response.getHeader("Plat-Position"),
          tag: response.getHeader("ETag"),
        });
      },
    },
  });
  const get = () => server.send({ method: "GET", path: "/inside" });
  expect((await get()).json).toEqual({ text: '{"data":{"a":1}}' });
  deps = {
    ...deps,
    ...(compiled('{"data":{"b":2}}') as GraphqlDeps),
    tagOf: async () => ({ text: 'W/"current"', reached: 5n }),
  };
  expect((await get()).json).toEqual({ text: '{"data":{"b":2}}' });
  deps = { grafserv: resulting(() => ({ type: "error", error: new CodedError("CONFLICT", "Twice.") })) };
  const failed = await get();
  expect([failed.status, failed.json.errors[0].extensions.code]).toEqual([409, "CONFLICT"]);
});
