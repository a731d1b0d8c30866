import { afterAll, beforeAll, expect, jest, test } from "@jest/globals";
import { getIntrospectionQuery, parse } from "postgraphile/graphql";
import { CodedError, type ErrorCode } from "../../src/base/errors.ts";
import { limitExceeded, measureDocument } from "../../src/limits/measureDocument.ts";
import { LARGE_INPUT, operations, REFUSAL_HOLD_MS } from "../../src/admission/semaphores.ts";
import { eventLoop } from "../../src/admission/eventLoop.ts";
import { partyOf } from "../../src/admission/party.ts";
import { until } from "../harness/until.ts";
import { faults, startServer, tokens, type TestServer } from "./server.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startServer();
});
afterAll(async () => server[Symbol.asyncDispose]());

/** Each fragment spreads the previous one twice. */
function bomb(fragments: number, leaf: string, type: string, root: (spread: string) => string): string {
  let text = `fragment f0 on ${type} { ${leaf} }`;
  for (let i = 1; i < fragments; i++) text += ` fragment f${i} on ${type} { ...f${i - 1} ...f${i - 1} }`;
  return `${root(`...f${fragments - 1}`)} ${text}`;
}

/** `lead` and `notes` in turn, with this number of levels. */
function deep(levels: number): string {
  let text = "id";
  for (let level = levels - 1; level > 1; level--)
    text = level % 2 ? `lead { ${text} }` : `notes(first: 1) { ${text} }`;
  return `{ leads(first: 1) { ${text} } }`;
}

async function refused(query: string, variables?: unknown): Promise<Record<string, unknown>> {
  const answer = await server.graphql(query, variables);
  expect(answer.json).not.toHaveProperty("data");
  expect(answer.json.errors).toHaveLength(1);
  return answer.json.errors[0].extensions;
}

test("a bomb of 26 fragments in 940 bytes is refused", async () => {
  const query = bomb(26, "id", "Lead", (spread) => `{ leads { ${spread} } }`);
  expect(query.length).toBeLessThan(1_000);
  expect(await refused(query)).toMatchObject({ code: "LIMIT_EXCEEDED", limit: 2_000 });
});

test("so is one of 300 fragments, one through inline fragments and one through introspection", async () => {
  const wide = bomb(300, "id", "Lead", (spread) => `{ leads { ${spread} } }`);
  expect(await refused(wide)).toMatchObject({ code: "LIMIT_EXCEEDED" });
  const inline = bomb(26, "... on Lead { id }", "Lead", (spread) => `{ leads { ...on Lead { ${spread} } } }`);
  expect(await refused(inline)).toMatchObject({ code: "LIMIT_EXCEEDED" });
  const schema = bomb(26, "name", "__Type", (spread) => `{ __schema { types { ${spread} } } }`);
  expect(await refused(schema)).toMatchObject({ code: "LIMIT_EXCEEDED" });
});

test.each([
  ["open braces", "{a".repeat(10_000)],
  ["braces", `${"{a".repeat(10_000)}${"}".repeat(10_000)}`],
  ["braces within the tokens", `${"{a".repeat(1_000)}${"}".repeat(1_000)}`],
  ["lists", `{ echo(text: ${"[".repeat(3_000)}`],
  ["objects", `{ echo(text: ${"{a:".repeat(1_000)}`],
  ["list types", `query ($a: ${"[".repeat(3_000)}Int${"]".repeat(3_000)}) { ok }`],
  ["inline fragments", `{${"...{".repeat(1_500)}`],
  ["tokens", `{ ${"ok ".repeat(4_000)} }`],
])("nesting or length of %s never exhausts the stack", async (_name, query) => {
  expect((await refused(query)).code).toBe("LIMIT_EXCEEDED");
});

test("a document has at most 100,000 characters, of any kind; a variable may be longer", async () => {
  for (const query of [`{ ok } #${"x".repeat(100_000)}`, `{ echo(text: "${"x".repeat(100_000)}") }`])
    expect(await refused(query)).toMatchObject({ code: "LIMIT_EXCEEDED", limit: 100_000 });
  const text = "x".repeat(200_000);
  const answer = await server.graphql("query ($text: String) { echo(text: $text) }", { text });
  expect(answer.json.data).toEqual({ echo: text });
});

test("a long chain of fragments and cycles of them are refused with an error", async () => {
  let chain = "fragment f0 on Lead { id }";
  for (let i = 1; i < 450; i++) chain += ` fragment f${i} on Lead { ...f${i - 1} }`;
  const answer = await server.graphql(`{ leads { ...f449 } } ${chain}`);
  expect(answer.json.data).toEqual({ leads: [] });
  const cycle = "{ leads { ...a } } fragment a on Lead { ...b } fragment b on Lead { ...a }";
  expect((await refused(cycle)).code).toBe("BAD_USER_INPUT");
  const own = "{ leads { ...a } } fragment a on Lead { notes { lead { ...a } } }";
  expect((await refused(own)).code).toBe("BAD_USER_INPUT");
});

test("12 levels are accepted, 13 are not, also through fragments", async () => {
  expect((await server.graphql(deep(12))).json).toHaveProperty("data");
  expect(await refused(deep(13))).toMatchObject({ code: "LIMIT_EXCEEDED", limit: 12, depth: 13 });
  const hidden =
    "{ leads(first:1) { ...a } } fragment a on Lead { notes(first:1) { lead { ...b } } } fragment b on Lead ";
  const inner = deep(12).replace("{ leads(first: 1)", "").replace(/ }$/, "");
  expect(await refused(hidden + inner)).toMatchObject({ code: "LIMIT_EXCEEDED", depth: 14 });
});

test("30 aliases are accepted, 31 are not; a fragment counts each time it is spread", async () => {
  const aliases = (count: number) => Array.from({ length: count }, (_, i) => `a${i}: ok`).join(" ");
  expect((await server.graphql(`{ ${aliases(30)} }`)).json).toHaveProperty("data");
  expect(await refused(`{ ${aliases(31)} }`)).toMatchObject({
    code: "LIMIT_EXCEEDED",
    limit: 30,
    aliases: 31,
  });
  const spread = `{ ...f ... { ...f } } fragment f on Query { ${aliases(16)} }`;
  expect(await refused(spread)).toMatchObject({ code: "LIMIT_EXCEEDED", aliases: 32 });
});

test("50 directives are accepted, 51 are not", async () => {
  const directives = (count: number) => `{ ${"ok @skip(if: false) ".repeat(count)} }`;
  expect((await server.graphql(directives(50))).json).toHaveProperty("data");
  expect(await refused(directives(51))).toMatchObject({ code: "LIMIT_EXCEEDED", limit: 50, directives: 51 });
});

test("2,000 selections are accepted, 2,001 are not", async () => {
  const many = (count: number) => `{ ${"ok ".repeat(count)} }`;
  expect(limitExceeded(measureDocument(parse(many(2_000))))).toBeUndefined();
  expect(await refused(many(2_001))).toMatchObject({ code: "LIMIT_EXCEEDED", selections: 2_001 });
});

test("a document that takes long to plan is refused before it is validated or planned, with the most expensive part", async () => {
  const chain = (levels: number) =>
    `leads(first: 1) { id ${"notes(first: 1) { lead { id name ".repeat(levels)} ${"} }".repeat(levels)} }`;
  const wide = (count: number) =>
    `{ ${Array.from({ length: count }, (_, n) => `a${n}: ${chain(4)}`).join(" ")} unknown: leads(first: 1) { project { id } } }`;
  const answer = await server.graphql(wide(5));
  expect(answer.json.errors).toBeUndefined();
  expect(answer.json.extensions.cost.planning).toEqual({ requested: 622, limit: 1_000 });
  const invalid = wide(11).replace("unknown", "unknown: nothing unknown");
  expect(await refused(invalid)).toMatchObject({ code: "LIMIT_EXCEEDED", limit: 1_000, planning: 1_324 });
  const one = `{ ok viewer { id } leads { ${Array.from({ length: 29 }, (_, n) => `a${n}: notes { author { id } lead { project { id } } }`).join(" ")} } }`;
  expect(await refused(one)).toMatchObject({ limit: 1_000, part: "leads" });
});

test("one field selected many times is refused before it costs much", async () => {
  expect((await server.graphql(`{ ${"ok ".repeat(400)} }`)).json.data).toEqual({ ok: true });
  expect(await refused(`{ ${"ok ".repeat(1_900)} }`)).toMatchObject({ code: "LIMIT_EXCEEDED" });
});

test.each([
  ["{ ok }", 1],
  ["{ leads(first: 5) { id } }", 10],
  ["{ leads { id } }", 200],
  [
    "{ leads(first: 1000) { project { id } notes(first: 5) { links(first: 5) { links(first: 5) { id } } } } }",
    283_000,
  ],
  [
    "{ leadsConnection(first: 20) { totalCount nodes { id notes(first: 5) { id } } pageInfo { hasNextPage } } }",
    244,
  ],
  ["{ leads(first: 10) { ...n } } fragment n on Lead { notes(first: 2) { id } }", 50],
  ["{ leads(first: 0) { notes { id } } }", 0],
  ["{ tags }", 2],
  // A field that is selected twice counts once.
  ["{ leads(first: 5) { id id ...n } leads(first: 5) { id } } fragment n on Lead { id }", 10],
  // Lists of a record are assumed to be short; those of a record with many related ones count for each of
  // them.
  ["{ leads(first: 10) { notes { id } } }", 210],
  ["{ leads(first: 10) { project { leads { id } } } }", 2_020],
])("%s costs %i", async (query, requested) => {
  const answer = await server.graphql(query);
  expect(answer.json.errors).toBeUndefined();
  expect(answer.json.extensions.cost).toEqual({
    requested,
    limit: 1_000_000,
    planning: { requested: expect.any(Number), limit: 1_000 },
    bytes: { read: 0, limit: 3_000_000 },
  });
});

test("1000 × 1000 × 1000 is refused, by literals, variables and their defaults, with the most expensive part", async () => {
  const query = (first: string) =>
    `{ ok leads(first: ${first}) { id notes(first: ${first}) { links(first: ${first}) { id } } } }`;
  const expected = {
    code: "LIMIT_EXCEEDED",
    limit: 1_000_000,
    cost: 2_001_002_001,
    part: "leads.notes.links",
  };
  expect(await refused(query("1000"))).toMatchObject(expected);
  expect(await refused(`query ($n: Int) ${query("$n")}`, { n: 1000 })).toMatchObject(expected);
  expect(await refused(`query ($n: Int = 1000) ${query("$n")}`)).toMatchObject(expected);
  const answer = await server.graphql(`query ($n: Int) ${query("$n")}`, { n: 5 });
  expect(answer.json.extensions.cost.requested).toBe(286);
});

test("the usual introspection query is accepted, in any spelling", async () => {
  const all = { inputValueDeprecation: true, specifiedByUrl: true, schemaDescription: true, oneOf: true };
  for (const options of [{}, all]) {
    const answer = await server.graphql(getIntrospectionQuery(options));
    expect(answer.json.errors).toBeUndefined();
    expect(answer.json).toHaveProperty("data.__schema.queryType.name", "Query");
  }
});

test("introspection needs an operation of its own", async () => {
  for (const query of [
    "{ __schema { types { name } } ok }",
    '{ ...F ok } fragment F on Query { __type(name: "Lead") { name } }',
  ]) {
    const answer = await server.graphql(query);
    expect(answer.json.errors).toMatchObject([
      {
        message: "Query the schema in a separate operation, without data fields.",
        extensions: { code: "BAD_USER_INPUT" },
      },
    ]);
  }
  const both = "query A { ok } query B { __schema { queryType { name } } }";
  const ask = (operationName: string) =>
    server.send({
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ query: both, operationName }),
    });
  expect((await ask("A")).json.data).toEqual({ ok: true });
  expect((await ask("B")).json.data).toEqual({ __schema: { queryType: { name: "Query" } } });
});

test("an operation with large values starts in the share of the event loop, cached or not", async () => {
  const run = jest.spyOn(eventLoop, "run");
  const begun = async (length: number) => {
    run.mockClear();
    const answer = await server.graphql("{ long: ok }", { text: "x".repeat(length) });
    expect(answer.json.data).toEqual({ long: true });
    return run.mock.calls.length;
  };
  try {
    await begun(1);
    expect(await begun(1)).toBe(0);
    expect(await begun(LARGE_INPUT)).toBe(1);
  } finally {
    run.mockRestore();
  }
});

test("introspection nested in itself is refused", async () => {
  const lists =
    "{ __schema { types { fields { type { fields { type { fields { type { fields { name } } } } } } } } } }";
  expect((await refused(lists)).code).toMatch(/BAD_USER_INPUT|LIMIT_EXCEEDED/);
  const types = `{ __type(name: "Lead") { ${"ofType { ".repeat(30)} name ${"}".repeat(30)} } }`;
  expect(await refused(types)).toMatchObject({ code: "LIMIT_EXCEEDED", limit: 20 });
  const often = `{ ${Array.from({ length: 30 }, (_, i) => `s${i}: __schema { types { name } }`).join(" ")} ${"".padEnd(1)}
    ${Array.from({ length: 30 }, () => "... { __schema { types { name } } }").join(" ")} }`;
  expect((await refused(often)).code).toBe("LIMIT_EXCEEDED");
});

test("a viewer with too many waiting requests is refused with the time to wait, and nobody else is", async () => {
  const network = partyOf(null, "127.0.0.1");
  const held: (() => void)[] = [];
  for (let n = 0; n < 8; n += 1) held.push(await operations.acquire(network));
  const waiting = Array.from({ length: 256 }, () => operations.acquire(network));
  const answer = await server.graphql("{ ok }");
  expect(answer.status).toBe(429);
  expect(answer.headers["retry-after"]).toBe("1");
  expect(answer.json.errors[0].extensions).toMatchObject({ code: "RATE_LIMITED", retryAfterSeconds: 1 });
  const viewer = await server.graphql("{ ok }", {}, { authorization: `Bearer ${tokens.good}` });
  expect(viewer.json.data).toEqual({ ok: true });
  for (const leave of held) leave();
  for (const entered of waiting) (await entered)();
  expect((await server.graphql("{ ok }")).json.data).toEqual({ ok: true });
});

test("a rate-limited viewer, and a refused visitor, keeps the slot for a moment, so that repeating at once has no advantage", async () => {
  const timers = jest.spyOn(globalThis, "setTimeout");
  const viewer = { authorization: `Bearer ${tokens.good}` };
  const holds = async (query: string, code: ErrorCode, headers = {}) => {
    faults.resolver = () => new CodedError(code, "No.");
    timers.mockClear();
    await server.graphql(query, {}, headers);
    return timers.mock.calls.filter(([, ms]) => ms === REFUSAL_HOLD_MS).length;
  };
  try {
    expect(await holds("{ fault }", "RATE_LIMITED", viewer)).toBe(1);
    expect(await holds("{ fault }", "FORBIDDEN", viewer)).toBe(0);
    expect(await holds("{ nothing }", "FORBIDDEN", viewer)).toBe(0);
    for (const query of ["{ fault }", "{ nothing }", "{"]) expect(await holds(query, "FORBIDDEN")).toBe(1);
    expect(await holds("{ ok }", "RATE_LIMITED")).toBe(0);
  } finally {
    delete faults.resolver;
    timers.mockRestore();
  }
  await until(
    () => operations.numbers,
    ({ held }) => held === 0,
  );
});
