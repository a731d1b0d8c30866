/** Small parts of the transport that requests over the test server do not tell apart. */
import type { IncomingMessage } from "node:http";
import { describe, expect, test } from "@jest/globals";
import { buildSchema, GraphQLInputObjectType } from "graphql";
import { negotiate } from "../../src/http/accept.ts";
import { healthz, readyz } from "../../src/http/health.ts";
import { repeatFacts } from "../../src/http/repeatFacts.ts";
import { uploadPlaces } from "../../src/http/uploadPlaces.ts";
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
])("who accepts %j gets %s", (header, type) => {
  expect(negotiate(header)).toBe(type);
});

test("what tells a repeat apart: the key, and the body without extensions", () => {
  const facts = (body: unknown, key?: string | string[]) =>
    repeatFacts({ headers: { "idempotency-key": key }, body } as unknown as IncomingMessage & {
      body: unknown;
    });
  expect(facts({}, "a").header).toBe("a");
  expect(facts({}, ["a", "b"]).header).toBe("a, b");
  expect(facts({}).header).toBeUndefined();
  const query = "{ ok }";
  expect(facts({ query, extensions: { a: 1 } }).body()).toBe('["{ ok }",{},null]');
  expect(facts({ query, variables: { a: 1 }, operationName: "x" }).body()).toBe('["{ ok }",{"a":1},"x"]');
});

test("the process says that it lives, and which part of it is not ready", async () => {
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

describe("where an operation takes files", () => {
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

  test("as a member of a variable, or as a variable of its own, with the input as it came", () => {
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

  test("through fragments, each looked at once", () => {
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
  ])("%s takes none", (_, query) => {
    expect(places(query)).toEqual({});
  });

  test("of several operations, that which is asked for", () => {
    const query =
      "mutation a($i: PictureInput) { add(input: $i) } mutation b($j: PictureInput) { add(input: $j) }";
    expect(Object.keys(places(query, {}, "b"))).toEqual(["variables.j.file"]);
    expect(Object.keys(places(query))).toEqual(["variables.i.file", "variables.j.file"]);
  });
});
