/** Introspection: the same response as graphql-js, computed in pieces within the event loop's share. */
import { performance } from "node:perf_hooks";
import { afterEach, expect, jest, test } from "@jest/globals";
import { buildSchema, executeSync, getIntrospectionQuery, parse } from "postgraphile/graphql";
import { eventLoop } from "../../src/admission/eventLoop.ts";
import { asksForSchema, introspect } from "../../src/limits/introspection.ts";
import { partyOf } from "../../src/admission/party.ts";

afterEach(() => void jest.restoreAllMocks());

const types = Array.from({ length: 200 }, (_, n) => `type T${n} { a: Int b(c: Int = 1): [T${n}!] }`);
const fields = Array.from({ length: 100 }, (_, n) => `f${n}: T${n}`);
const schema = buildSchema(
  `${types.join(" ")} type Query { ${fields.join(" ")} } enum E { A B @deprecated }`,
);
const ann = partyOf("ann", undefined);

/** Each reading of the clock is a millisecond later. */
function tick(): void {
  let now = 1_000;
  jest.spyOn(performance, "now").mockImplementation(() => (now += 1));
}

test.each([
  ["the usual question", getIntrospectionQuery({ oneOf: true, specifiedByUrl: true }), undefined],
  [
    "fragments, names and variables",
    'query A { __typename } query B($d: Boolean) { ...F q: __type(name: "Query") { fields(includeDeprecated: $d) { name } } } fragment F on Query { __schema { types { name enumValues(includeDeprecated: $d) { name } } } }',
    { d: true },
  ],
  ["a type that is not there", 'query B { __type(name: "Nothing") { name fields { name } } }', undefined],
])("%s has the same response as in one piece", async (_, text, variableValues) => {
  const document = parse(text);
  const operationName = text.includes("query B") ? "B" : undefined;
  const args = { schema, document, operationName, variableValues };
  expect(asksForSchema(document, operationName)).toBe("alone");
  expect(await introspect(args, ann)).toEqual(executeSync(args));
});

test("other work is executed after some types, and after some fields of a type with many", async () => {
  tick();
  const ready = jest.spyOn(eventLoop, "ready").mockResolvedValue();
  const pieces = async (text: string) => {
    ready.mockClear();
    const { errors } = await introspect({ schema, document: parse(text) }, ann);
    expect(errors).toBeUndefined();
    expect(ready.mock.calls.every(([party]) => party === ann)).toBe(true);
    return ready.mock.calls.length;
  };
  // More than 200 types, with nine readings of the clock per piece.
  const ofTypes = await pieces("{ __schema { types { name } } }");
  expect(ofTypes).toBeGreaterThan(20);
  expect(ofTypes).toBeLessThan(40);
  expect(await pieces('{ __type(name: "Query") { fields { name } } }')).toBeGreaterThan(10);
  expect(await pieces('{ __type(name: "T1") { fields { name } } }')).toBe(0);
});

test("other callers of graphql-js are answered immediately", () => {
  tick();
  const ready = jest.spyOn(eventLoop, "ready");
  const { data } = executeSync({ schema, document: parse("{ __schema { types { fields { name } } } }") });
  expect(data).toHaveProperty("__schema.types.200");
  expect(ready).not.toHaveBeenCalled();
});

test.each<[string, ReturnType<typeof asksForSchema>]>([
  ["{ __schema { types { name } } }", "alone"],
  ['{ __typename a: __type(name: "T1") { name } }', "alone"],
  ["{ ...F } fragment F on Query { ... { __schema { types { name } } } }", "alone"],
  ["{ __typename }", "no"],
  ["{ f1 { a __typename } }", "no"],
  ["{ f1 { a } __schema { types { name } } }", "with data"],
  ["{ ...F __schema { types { name } } } fragment F on Query { f1 { a } }", "with data"],
  [
    "{ ...F ...F } fragment F on Query { f1 { a } ... on Query { ...G } } fragment G on Query { __schema { types { name } } }",
    "with data",
  ],
  [
    "query A { ...F } query B { ...G } fragment F on Query { f1 { a } } fragment G on Query { __schema { types { name } } }",
    "no",
  ],
  ["query A { ...F ...F } query B { f1 { a } } fragment F on Query { __schema { types { name } } }", "alone"],
  ["query A { f1 { a } } query B { __schema { types { name } } }", "no"],
])("%s is introspection: %s", (text, found) => {
  expect(asksForSchema(parse(text), text.startsWith("query A") ? "A" : undefined)).toBe(found);
});

test("a failure in one of the pieces rejects the response", async () => {
  jest.spyOn(eventLoop, "ready").mockRejectedValue(new Error("No."));
  const { errors } = await introspect({ schema, document: parse("{ __schema { types { name } } }") }, ann);
  expect(errors?.[0]?.message).toBe("No.");
});

test("an unknown operation is no introspection", () => {
  expect(asksForSchema(parse("query A { __schema { types { name } } }"), "B")).toBe("no");
});
