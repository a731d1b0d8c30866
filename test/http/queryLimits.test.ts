/** What an operation's cost, its document and its kind lead to: waiting, caches, and what is reported beside the data. */
import { afterEach, beforeEach, expect, jest, test } from "@jest/globals";
import { makeGrafastSchema } from "postgraphile/grafast";
import { getIntrospectionQuery, type GraphQLSchema } from "postgraphile/graphql";
import { INTROSPECTION_HOLD_MS, introspections, largeOperations } from "../../src/admission/semaphores.ts";
import type { OperationWork } from "../../src/admission/operationWork.ts";
import { partyOf } from "../../src/admission/party.ts";
import type { AppDeps } from "../../src/http/app.ts";
import {
  cachedDocument,
  documentCache,
  documentLookups,
  findCompiled,
} from "../../src/http/plugins/QueryLimitsPlugin.ts";
import { requestState } from "../../src/http/requestState.ts";
import { transportPreset } from "../../src/http/transportPreset.ts";
import { until } from "../harness/until.ts";
import { startServer, tokens, type TestServer } from "./server.ts";

const typeDefs = /* GraphQL */ `
  type Query {
    ok: Boolean
    few(first: Int = 2): [Lead!]
    many(first: Int): [Lead!]
    required: String!
  }
  type Mutation {
    add(n: Int): Boolean
  }
  type Lead {
    id: ID!
    a: String
    b: Int
  }
`;
const newSchema = () =>
  makeGrafastSchema({
    typeDefs,
    enableDeferStream: false,
    objects: {
      Query: {
        plans: {
          ok: { resolve: () => true },
          few: { resolve: () => [{ id: "1" }, { id: "2" }] },
          many: { resolve: () => [] },
          required: { resolve: () => null },
        } as never,
      },
      Mutation: { plans: { add: { resolve: () => true } } as never },
    },
  });

let schema: GraphQLSchema;
const closing: (() => PromiseLike<unknown>)[] = [];
beforeEach(() => {
  schema = newSchema();
});
afterEach(async () => {
  jest.restoreAllMocks();
  for (const close of closing.splice(0)) await close();
});

/** A service with its own schema, and the work of its operations. */
async function start(plat: GraphileConfig.PlatOptions = {}, deps: Partial<AppDeps> = {}) {
  const works: OperationWork[] = [];
  const preset: GraphileConfig.Preset = {
    extends: [transportPreset],
    grafast: { context: () => ({}) },
    plat,
  };
  const server: TestServer = await startServer({
    pgl: { createServ: (grafserv) => grafserv({ schema, preset }) as never },
    noteUse: (request) => void works.push(requestState(request).work!),
    ...deps,
  });
  closing.push(() => server[Symbol.asyncDispose]());
  return Object.assign(server, { works });
}
const quick = { introspectionHoldMs: 0 };

test("an operation has its cost and kind, and a change its own limit of bytes", async () => {
  const { graphql, works } = await start();
  await graphql("{ many(first: 7) { id } }");
  await graphql("mutation { add(n: 1) }");
  await until(() => works.length === 2);
  expect(works).toMatchObject([
    { cost: 14, isQuery: true, changes: false, tellsSchema: false },
    { isQuery: false, changes: true, tellsSchema: false },
  ]);
  // Between the limits of queries and changes.
  expect(works.map((work) => work.read(4_000_000)?.code)).toEqual(["LIMIT_EXCEEDED", undefined]);
});

test("operations that cost more than 5,000 take turns until their response", async () => {
  const { graphql } = await start();
  const acquire = jest.spyOn(largeOperations, "acquire");
  const cost = async (more: string) =>
    (await graphql(`{ many(first: 1000) { id a b } ${more} }`)).json.extensions.cost.requested;
  expect([await cost(""), acquire.mock.calls.length]).toEqual([5_000, 0]);
  expect([await cost("ok"), acquire.mock.calls]).toEqual([5_001, [[partyOf(null, "127.0.0.1")]]]);
  expect(largeOperations.numbers).toEqual({ held: 0, waiting: 0 });
});

test("the response of a query that only asks for the schema is kept with its document", async () => {
  const { graphql, works } = await start(quick);
  const acquire = jest.spyOn(introspections, "acquire");
  const query = getIntrospectionQuery();
  const headers = { authorization: `Bearer ${tokens.good}`, "accept-encoding": "gzip" };
  const before = documentCache(schema);
  const first = await graphql(query);
  const once = documentCache(schema);
  expect(acquire).toHaveBeenCalledTimes(1);
  expect(cachedDocument(schema, query)!.answers.size).toBe(1);
  const second = await graphql(query);
  expect(acquire).toHaveBeenCalledTimes(1);
  expect(second.text).toBe(first.text);
  expect(first.json).toHaveProperty("data.__schema.queryType.name", "Query");
  expect(first.json.extensions.cost).toMatchObject({ requested: 50_000, limit: 1_000_000 });
  expect(before).toEqual({ bytes: 0, documents: 0 });
  // The document, and the text of its response.
  expect(once.documents).toBe(1);
  expect(once.bytes).toBeGreaterThan(2_000 + 80 * query.length + JSON.stringify(first.json.data).length - 1);
  expect(documentCache(schema)).toEqual(once);
  // It has no secrets, so that a viewer gets it compressed.
  expect((await graphql(query, {}, headers)).headers["content-encoding"]).toBe("gzip");
  await until(() => works.length === 3);
  expect(works).toMatchObject(Array(3).fill({ cost: 50_000, tellsSchema: true }));
});

test.each([
  ["{ __schema { queryType { name } } }", true],
  ["{ __schema { queryType { ...N } } } fragment N on __Type { name }", true],
  ['{ __typename __type(name: "Lead") { name } }', true],
  ['query ($n: String = "Lead") { __type(name: $n) { name } }', false],
  ["query A { __schema { queryType { name } } } query B { ok }", false],
  ["query A { __schema { queryType { name } } } mutation B { add }", false],
  ["{ ... { __schema { queryType { name } } } }", false],
  ["{ ...S } fragment S on Query { __schema { queryType { name } } }", false],
  ["{ __typename }", false],
  ["{ ok }", false],
])("whether the response of %s is kept: %s", async (query, isKept) => {
  const { send } = await start(quick);
  const operationName = query.startsWith("query A") ? "A" : undefined;
  const answer = await send({
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ query, operationName }),
  });
  expect(answer.json.errors).toBeUndefined();
  expect([...cachedDocument(schema, query)!.answers.keys()]).toEqual(isKept ? [""] : []);
});

test.each([
  ["four seconds", {}, INTROSPECTION_HOLD_MS],
  ["as long as it is configured", { introspectionHoldMs: 7 }, 7],
])("after an introspection query, the next one waits for %s", async (_name, plat, ms) => {
  const { graphql } = await start(plat);
  const timers = jest.spyOn(globalThis, "setTimeout");
  await graphql("{ __schema { queryType { name } } }");
  const held = timers.mock.calls.findIndex(([, after]) => after === ms);
  expect(held).toBeGreaterThanOrEqual(0);
  // Which keeps the process from nothing.
  expect((timers.mock.results[held]!.value as NodeJS.Timeout).hasRef()).toBe(false);
  if (ms > 1_000) timers.mock.calls[held]![0]();
  await until(() => introspections.numbers.held === 0);
});

test("an operation that asks for the schema besides data is refused before it waits", async () => {
  const { graphql } = await start(quick);
  const acquire = jest.spyOn(introspections, "acquire");
  const { json } = await graphql("{ ok __schema { queryType { name } } }");
  expect(json.errors[0]).toMatchObject({
    message: "Query the schema in a separate operation, without data fields.",
    extensions: { code: "BAD_USER_INPUT" },
  });
  expect(json.data ?? null).toBeNull();
  expect(acquire).not.toHaveBeenCalled();
  const often = `{ ${Array.from({ length: 21 }, (_, n) => `a${n}: __schema { queryType { name } }`).join(" ")} }`;
  // Without a part that costs most of it.
  expect((await graphql(often)).json.errors[0]).toMatchObject({
    message: expect.stringMatching(/; this one costs \d+\. Ask for fewer records/),
    extensions: { code: "LIMIT_EXCEEDED", cost: expect.any(Number), limit: 1_000_000 },
  });
});

test("lists that were cut at their default size are reported", async () => {
  const { graphql } = await start();
  const full = async (query: string, variables?: object) =>
    (await graphql(query, variables)).json.extensions.fullPages;
  expect(await full("{ few { id } }")).toEqual([{ path: ["few"], first: 2 }]);
  expect(await full("{ few(first: 2) { id } }")).toBeUndefined();
  const query = "query ($n: Int) { few(first: $n) { id } }";
  expect(await full(query)).toEqual([{ path: ["few"], first: 2 }]);
  expect(await full(query, { n: 2 })).toBeUndefined();
  expect(await full("{ ok }")).toBeUndefined();
});

test("a document is read once, unless it is unknown; hits and misses are counted", async () => {
  const { graphql } = await start();
  const counted = async (query: string) => {
    const { hits, misses } = documentLookups;
    const { status } = await graphql(query);
    expect(status).toBe(200);
    return [documentLookups.hits - hits, documentLookups.misses - misses];
  };
  expect(cachedDocument(schema, "{ ok }")).toBeUndefined();
  expect(await counted("{ ok }")).toEqual([0, 1]);
  const known = cachedDocument(schema, "{ ok }");
  expect(known).toBeDefined();
  expect(await counted("{ ok }")).toEqual([1, 0]);
  expect(cachedDocument(schema, "{ ok }")).toBe(known);
  // Refused ones, too.
  expect(await counted("{ nothing }")).toEqual([0, 1]);
  expect(await counted("{ nothing }")).toEqual([1, 0]);
  expect(documentCache(schema).documents).toBe(2);
  expect(documentCache(newSchema())).toEqual({ bytes: 0, documents: 0 });
  expect(cachedDocument(newSchema(), "{ ok }")).toBeUndefined();
});

test("documents are kept up to a number of bytes, 32 MB if none is configured", async () => {
  const { graphql } = await start({ documentBytes: 10_000 });
  const queries = ["{ ok }", "{ a: ok }", "{ b: ok }", "{ c: ok }"];
  for (const query of queries) await graphql(query);
  expect(documentCache(schema).bytes).toBeLessThanOrEqual(10_000);
  expect(queries.map((query) => cachedDocument(schema, query) !== undefined)).toContain(false);
  schema = newSchema();
  const other = await start();
  for (const query of queries) await other.graphql(query);
  // With the plans, of some kilobytes each.
  expect(documentCache(schema).documents).toBe(4);
  expect(documentCache(schema).bytes).toBeGreaterThan(4 * 2_000 + 4 * 5_000);
  const comment = `#${"x".repeat(99_000)}`;
  for (let n = 0; n < 6; n += 1) await other.graphql(`{ d${n}: ok } ${comment}`);
  expect(documentCache(schema).bytes).toBeGreaterThan(24_000_000);
  expect(documentCache(schema).bytes).toBeLessThanOrEqual(32_000_000);
});

test("plans live as long as their document, eight of each operation at most", async () => {
  const { graphql } = await start();
  const grafast = () => schema.extensions.grafast as Record<PropertyKey, unknown>;
  const cacheOf = () => {
    const key = Object.getOwnPropertySymbols(grafast()).find(
      ({ description }) => description === "cacheByOperation",
    )!;
    return grafast()[key] as WeakMap<object, unknown>;
  };
  const planned = async (query: string) => {
    await graphql(query);
    const { result } = cachedDocument(schema, query)!;
    const [operation] = "document" in result ? result.document.definitions : [];
    return cacheOf().get(operation!);
  };
  // The first one, too, which was made before the cache was replaced.
  const first = await planned("{ ok }");
  expect(first).toBeDefined();
  const cache = cacheOf();
  expect(cache).toBeInstanceOf(WeakMap);
  expect(grafast()["operationOperationPlansCacheMaxLength"]).toBe(8);
  expect(await planned("{ a: ok }")).toBeDefined();
  expect(await planned("{ ok }")).toBe(first);
  expect(cacheOf()).toBe(cache);
});

test("a query that never ran has no compiled form", async () => {
  const { graphql } = await start();
  const { hits } = documentLookups;
  const find = (query: string) =>
    findCompiled(schema, { query, operationName: undefined, variables: undefined }, true);
  expect(find("{ ok }")).toBeUndefined();
  await graphql("{ ok }");
  expect(find("{ ok }")).toBeUndefined();
  expect(documentLookups.hits).toBe(hits);
});

test("a document with several operations is measured for the one that is asked for", async () => {
  const { send } = await start();
  const ask = async (operationName?: string) =>
    (
      await send({
        headers: { "content-type": "application/json" },
        body: JSON.stringify({
          query: "query A { ok } query B { many(first: 10) { id } }",
          operationName,
        }),
      })
    ).json;
  const [a, b] = [await ask("A"), await ask("B")];
  expect([a, b].map(({ extensions }) => extensions.cost.requested)).toEqual([1, 20]);
  expect(a.extensions.cost.planning.requested).toBeLessThan(b.extensions.cost.planning.requested);
  for (const name of [undefined, "C"])
    expect(await ask(name)).toMatchObject({ errors: [{ extensions: { code: "BAD_USER_INPUT" } }] });
});

test("of one operation that is too large, the document is refused with all of its operations", async () => {
  const { send } = await start();
  const large = Array.from({ length: 30 }, (_, n) => `a${n}: ok ...F`).join(" ");
  const aliases = await send({
    headers: { "content-type": "application/json" },
    body: JSON.stringify({
      query: `query A { ok } query B { ${large} } fragment F on Query { b: ok }`,
      operationName: "A",
    }),
  });
  expect(aliases.json.errors[0].extensions).toMatchObject({ code: "LIMIT_EXCEEDED", limit: 30 });
  expect(aliases.json.errors[0].message).toMatch(
    /^An operation may have 30 aliases at most; this one has \d+\.$/,
  );
});

test("the results of a subscription are passed on one by one", async () => {
  schema = makeGrafastSchema({
    typeDefs: "type Query { ok: Boolean } type Subscription { ticked: Int }",
    enableDeferStream: false,
    objects: {
      Subscription: {
        plans: {
          ticked: {
            async *subscribe() {
              yield* [1, 2];
            },
            resolve: (tick: number) => tick,
          },
        } as never,
      },
    },
  });
  const { graphql, works } = await start();
  const { status, text } = await graphql("subscription { ticked }", {}, { accept: "text/event-stream" });
  expect(status).toBe(200);
  expect(text.split("\n").filter((line) => line.startsWith("data: "))).toEqual([
    'data: {"data":{"ticked":1}}',
    'data: {"data":{"ticked":2}}',
  ]);
  await until(() => works.length === 1);
  expect(works[0]).toMatchObject({ isQuery: false, changes: false });
});
