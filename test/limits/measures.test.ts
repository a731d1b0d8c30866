/**
 * Measures of a document before it is planned, as tables: its size, the steps of its plan, and the cost of its
 * response.
 */
import { describe, expect, test } from "@jest/globals";
import { buildSchema, getOperationAST, parse, print } from "postgraphile/graphql";
import { Weighing } from "../../src/limits/heaviestPart.ts";
import { hasFragmentCycle, limitExceeded, measureDocument } from "../../src/limits/measureDocument.ts";
import { checkDocument } from "../../src/http/plugins/QueryLimitsPlugin.ts";
import { operationCost } from "../../src/limits/operationCost.ts";
import { OperationWork, withWork, workOf } from "../../src/admission/operationWork.ts";
import { isVisitor, partyOf } from "../../src/admission/party.ts";
import { planningSteps } from "../../src/limits/planningSteps.ts";
import { queryLimits } from "../../src/admission/queryLimits.ts";
import { scanTokens } from "../../src/limits/scanTokens.ts";

const schema = buildSchema(`
  scalar JSON
  scalar URL
  interface Named { name: String, count: Int }
  type Query {
    ok: Boolean, text: String, url: URL, json: JSON
    lead(id: ID): Lead
    leads(first: Int, last: Int): [Lead!]
    few(first: Int = 7): [Lead!]!
    tags: [String]
    plain: [Lead]
    page(first: Int, last: Int): LeadsConnection
    short(first: Int = 20): LeadsConnection
    any: Subject
    anys: [Subject]
    named: Named
    edge: LeadEdge
    node: Edgeless
  }
  type Mutation { add(n: Int): Lead, json: JSON, touch: LeadsConnection }
  type Lead implements Named { id: ID, name: String, count: Int, url: URL, json: JSON, project: Project, notes(first: Int): [Note], plainNotes: [Note], page(first: Int): LeadsConnection }
  type Project implements Named { id: ID, name: String, count: Int, leads(first: Int): [Lead] }
  type Note { id: ID, lead: Lead }
  type LeadsConnection { nodes: [Lead], edges: [LeadEdge], pageInfo: PageInfo, totalCount: Int }
  type LeadEdge { cursor: String, node: Lead }
  type Edgeless { node: Lead, notes: [Note] }
  type PageInfo { hasNextPage: Boolean }
  union Subject = Lead | Project | Note
`);
const cost = (query: string, variables: Record<string, unknown> = {}, name?: string) =>
  operationCost(schema, parse(query), name, variables);
const steps = (query: string, name?: string) => {
  const document = parse(query);
  return planningSteps(schema, document, getOperationAST(document, name)!);
};

test.each([
  ["{ ok }", 1],
  ["{ text url json }", 24],
  ["{ ok: text }", 2],
  ["{ unknown ok __typename }", 1],
  ["{ lead { id } }", 2],
  ["{ lead { id name count } }", 5],
  ["{ tags }", 2],
  // A list in full, by its default, and by the requested size; of two sizes the larger counts.
  ["{ leads { id } }", 200],
  ["{ few { id } }", 14],
  ["{ few(first: 3) { id } }", 6],
  ["{ leads(first: 3) { id } }", 6],
  ["{ leads(last: 3) { id } }", 6],
  ["{ leads(first: 5, last: 3) { id } }", 6],
  ["{ leads(first: -1) { id } }", 0],
  ["{ leads(first: 1000) { id } }", 2_000],
  ["{ leads(first: 5000) { id } }", 2_000],
  ["{ leads(first: null) { id } }", 200],
  ['{ leads(first: "3") { id } }', 200],
  // A list without an argument for its size.
  ["{ plain { id } }", 20],
  // Inside the records of a list, lists are assumed to be short unless a size is requested.
  ["{ leads(first: 2) { notes { id } } }", 2 * (1 + 10 * 2)],
  ["{ leads(first: 2) { notes(first: 50) { id } } }", 2 * (1 + 50 * 2)],
  ["{ leads(first: 2) { notes(first: 3) { id } } }", 2 * (1 + 3 * 2)],
  ["{ leads(first: 2) { plainNotes { id } } }", 2 * (1 + 10 * 2)],
  ["{ lead { notes { id } } }", 1 + 100 * 2],
  // Selections of a record with many related ones count for each of them.
  ["{ leads(first: 2) { project { leads { id } } } }", 2 * (1 + 1 + 100 * 2)],
  ["{ leads(first: 2) { notes(first: 1) { lead { notes { id } } } } }", 2 * (1 + 1 + 1 + 100 * 2)],
  // A connection has one size, for nodes and edges alike.
  ["{ page { nodes { id } } }", 1 + 100 * 2],
  ["{ page(first: 5) { totalCount nodes { id } pageInfo { hasNextPage } } }", 1 + 1 + 5 * 2 + 2],
  ["{ page(last: 5) { edges { cursor node { id } } } }", 1 + 5 * (1 + 2 + 2)],
  ["{ short { nodes { id } } }", 1 + 20 * 2],
  ["{ page(first: 5) { edges { node { notes { id } } } } }", 1 + 5 * (1 + 1 + 10 * 2)],
  ["{ leads(first: 2) { page { nodes { id } } } }", 2 * (1 + 1 + 10 * 2)],
  ["{ leads(first: 2) { page(first: 50) { nodes { id } } } }", 2 * (1 + 1 + 50 * 2)],
  ["{ edge { node { notes { id } } } }", 1 + 1 + 100 * 2],
  ["{ node { node { id } notes { id } } }", 1 + 2 + 10 * 2],
  // Fragments, for all types of a union; a field that is selected twice counts once.
  ["{ any { ... on Lead { id } ... on Project { id name } } }", 1 + 1 + 1 + 2],
  ["{ anys { ... on Lead { id } } }", 10 * 2],
  ["{ named { name count } }", 4],
  ["{ ...f ...f ok } fragment f on Query { ok lead { id } lead { name } }", 1 + 1 + 1 + 2],
  ["{ ...missing ok }", 1],
  ["{ a: ok b: ok }", 2],
  ["mutation { add { id } json }", 2 + 20],
])("%s costs %i", (query, total) => {
  expect(cost(query).total).toBe(total);
});

test("the cost of a document is cached for the same variables only", () => {
  const document = parse(
    "query ($first: Int = 7, $id: ID) { leads(first: $first) { id } lead(id: $id) { id } }",
  );
  const of = (variables: Record<string, unknown>) =>
    operationCost(schema, document, undefined, variables).total;
  const fresh = (variables: Record<string, unknown>) =>
    operationCost(schema, parse(print(document)), undefined, variables).total;
  const all = [{ first: 10 }, { first: 20 }, {}, { first: null }, { first: 10, id: "a" }, { id: "b" }];
  for (const variables of [...all, ...all]) expect(of(variables)).toBe(fresh(variables));
  expect(of({ first: 20 })).toBeGreaterThan(of({ first: 10 }));
});

test("sizes come from variables, their defaults, and the values sent instead", () => {
  const query = "query ($n: Int = 5) { leads(first: $n) { id } }";
  expect(cost(query).total).toBe(10);
  expect(cost(query, { n: 3 }).total).toBe(6);
  expect(cost(query, { n: null }).total).toBe(200);
  // Coercion refuses it.
  expect(cost(query, { n: "3" }).total).toBe(20);
  expect(cost('query ($n: Int = "5") { leads(first: $n) { id } }').total).toBe(200);
});

test("of several operations the selected one is measured, and none if it does not exist", () => {
  const query = "query a { ok } query b { text }";
  expect([cost(query, {}, "a").total, cost(query, {}, "b").total]).toEqual([1, 2]);
  expect(cost(query)).toEqual({ total: 0, part: [] });
  expect(cost("subscription { ok }")).toEqual({ total: 0, part: [] });
});

test("the most expensive part is named, as deep as one part dominates", () => {
  expect(cost("{ ok leads { notes { id } } }").part).toEqual(["leads", "notes"]);
  expect(cost("{ a: leads { id } b: leads { id } }").part).toEqual([]);
  expect(cost("{ page { nodes { notes { id } } } }").part).toEqual(["page", "nodes", "notes"]);
  const weighing = new Weighing();
  weighing.add(1);
  expect(weighing.sum).toEqual({ total: 1, part: [] });
  weighing.add(2, "a", ["b"]);
  expect(weighing.sum).toEqual({ total: 3, part: ["a", "b"] });
  weighing.add(1);
  // Half is not most.
  expect(weighing.sum).toEqual({ total: 4, part: [] });
  weighing.add(2, "c");
  weighing.add(10, "d");
  expect(weighing.sum).toEqual({ total: 16, part: ["d"] });
});

test.each([
  ["{ ok text }", 12 + 2],
  ["{ lead { id } }", 12 + 12 + 1],
  ["{ leads { id notes { id } } }", 12 + 12 + 1 + 12 + 1],
  ["{ page { totalCount } }", 12 + 19 + 1],
  ["{ page { nodes { id } } }", 12 + 19 + 12 + 1],
  ["{ any { ... on Lead { id } } }", 12 + 12 + 3 * 9 + 1],
  ["{ named { name } }", 12 + 12 + 2 * 9 + 1],
  ["mutation { add { id } }", 12 + 20 + 1],
  ["mutation { touch { totalCount } }", 12 + 20 + 1],
  ["mutation { add { project { id } } }", 12 + 20 + 12 + 1],
  ["{ unknown { id } }", 12],
])("%s takes %i steps", (query, total) => {
  expect(steps(query).steps.total).toBe(total);
});

test.each([
  ["{ ok }", 1],
  ["{ a: ok b: ok }", 2],
  ["{ a: lead(id: 1) { id } b: lead(id: 2) { id } }", 1],
  ["{ a: lead(id: 1) { id } b: lead(id: 1) { id } c: lead { id } }", 2],
  ["{ a: lead { x: id y: id } b: lead { id } }", 4],
  ["{ a: lead { x: id y: id z: id } ok }", 3],
  ["{ a: lead { project { x: id y: id } } b: lead { project { x: id y: id z: id } } }", 6],
])("the response to %s can repeat read data %i times", (query, copies) => {
  expect(steps(query).copies).toBe(copies);
});

test("introspection counts, in fragments too", () => {
  expect(steps("{ ok }").introspections).toBe(0);
  expect(
    steps('{ a: __schema { types { name } } __type(name: "A") { name } __typename }').introspections,
  ).toBe(2);
  expect(
    steps(
      "query a { ...f } fragment f on Query { __schema { types { name } } } query b { __schema { types { name } } }",
      "a",
    ).introspections,
  ).toBe(1);
  expect(steps('{ ok lead { ... { __type(name: "A") { name } } } }').introspections).toBe(1);
});

test("the dominant part of the plan is named; an operation of a type that the schema lacks has no steps", () => {
  expect(steps("{ ok leads { notes { lead { id } } } }").steps.part).toEqual(["leads", "notes", "lead"]);
  expect(steps("subscription { ok }")).toEqual({
    steps: { total: 0, part: [] },
    copies: 1,
    introspections: 0,
  });
});

test.each([
  ["{ a }", { depth: 1, selections: 1 }],
  ["{ a { b { c } } d }", { depth: 3, selections: 4 }],
  ["{ x: a y: b c }", { depth: 1, selections: 3, aliases: 2 }],
  [
    "query @a @b { a @c ...f @d ... @e { b @f } } fragment f on Q @g { c @h }",
    { depth: 1, selections: 5, directives: 8 },
  ],
  ["{ ... { a { b } } }", { depth: 2, selections: 3 }],
  ["{ ...f ...f } fragment f on Q { x: a { b } }", { depth: 2, selections: 6, aliases: 2 }],
  ["{ ...f } fragment f on Q { ...f a }", { depth: 1, selections: 3 }],
  ["{ ...f }", { selections: 1 }],
  ["{ __schema { types { name } } }", { depth: 1, introspectionDepth: 3, selections: 3 }],
  ["{ __type { name } a { __schema { b } } }", { depth: 2, introspectionDepth: 2, selections: 5 }],
  [
    "{ ... { __schema { types { name } } } ...f } fragment f on Q { __type { name } }",
    { depth: 1, introspectionDepth: 3, selections: 7 },
  ],
  // Of several operations, the maximum of each figure.
  ["query a { x: a } query b { a { b } }", { depth: 2, selections: 2, aliases: 1 }],
])("%s measures", (query, measure) => {
  const nothing = { depth: 0, introspectionDepth: 0, selections: 0, aliases: 0, directives: 0 };
  expect(measureDocument(parse(query))).toEqual({ ...nothing, ...measure });
});

test("a limit may be reached but not exceeded", () => {
  const { depth, introspectionDepth, selections, aliases, directives } = queryLimits;
  const largest = { depth, introspectionDepth, selections, aliases, directives };
  expect(limitExceeded(largest)).toBeUndefined();
  for (const key of Object.keys(largest) as (keyof typeof largest)[])
    expect(limitExceeded({ ...largest, [key]: largest[key] + 1 })).toBe(key);
});

test.each([
  ["{ ...a } fragment a on Q { ...b } fragment b on Q { c }", false],
  ["{ ...a } fragment a on Q { ...missing }", false],
  ["{ ...a } fragment a on Q { ...a }", true],
  [
    "{ a } fragment a on Q { b { ... { ...b } } } fragment b on Q { ...c } fragment c on Q { ...a ...d } fragment d on Q { e }",
    true,
  ],
  ["{ a }", false],
])("%s contains itself: %s", (query, is) => {
  expect(hasFragmentCycle(parse(query))).toBe(is);
});

describe("tokens", () => {
  const { tokens, nesting, characters } = queryLimits;
  test.each([
    ["as many tokens as allowed", `{${" a".repeat(tokens - 2)} }`, undefined],
    ["one more", `{${" a".repeat(tokens - 1)} }`, "tokens"],
    ["as many characters as allowed", `{ a } #${"x".repeat(characters - 7)}`, undefined],
    ["one more", `{ a } #${"x".repeat(characters - 6)}`, "characters"],
    ["as deep as allowed", `${"{a".repeat(nesting)}${"}".repeat(nesting)}`, undefined],
    ["one deeper", `${"{a".repeat(nesting + 1)}${"}".repeat(nesting + 1)}`, "nesting"],
    ["in all brackets", `${"[({a".repeat(67)}`, "nesting"],
    ["one beside the other", "{a}[b](c)".repeat(nesting), undefined],
    ["no tokens", `{ "${"x".repeat(nesting)}`, undefined],
    ["a short text", "{".repeat(nesting), undefined],
  ])("%s", (_, query, limit) => {
    expect(scanTokens(query)).toBe(limit);
  });
});

test("a party is a viewer, or the network of a visitor; all visitors are one group", () => {
  expect(partyOf("u1", "203.0.113.7")).toEqual({ key: "viewer u1", group: "viewer u1" });
  const stranger = partyOf(null, "2001:db8::1");
  expect(stranger).toEqual({ key: "network 2001:db8::/64", group: "visitors" });
  expect(partyOf(null, undefined)).toEqual({ key: "network unknown", group: "visitors" });
  expect([isVisitor(stranger), isVisitor(partyOf("u1", undefined))]).toEqual([true, false]);
});

describe("the work of an operation", () => {
  const work = () => new OperationWork(partyOf("u1", undefined));
  const message = (subject: string, part = "") =>
    `${subject} is over 3 MB${part}. Ask for fewer records with first, or for fewer fields, and for the rest in further requests.`;

  test("the number of bytes from the database is limited, less for repeated data, more for changes by a mutation", () => {
    const plain = work();
    expect(plain.read(3_000_000)).toBeUndefined();
    expect(plain.read(1)).toMatchObject({
      code: "LIMIT_EXCEEDED",
      message: message("The answer"),
      extensions: { limit: 3_000_000 },
    });
    expect(plain.bytesRead).toBe(3_000_001);
    const copied = work();
    copied.measured(7, ["leads", "notes"], 4);
    expect(copied.cost).toBe(7);
    expect(copied.read(750_000)).toBeUndefined();
    expect(copied.read(1)).toMatchObject({
      message: message("The answer", ", most of it probably in leads.notes"),
      extensions: { limit: 3_000_000, part: "leads.notes" },
    });
    const change = work();
    change.measured(1, [], 4, true);
    expect(change.read(12_000_000)).toBeUndefined();
    expect(change.read(1)).toBeDefined();
  });

  test("a refusal says whether the operation was executed", () => {
    expect(work().tooLarge(true).message).toBe(message("The operation was carried out, but its answer"));
    expect(work().tooLarge().extensions).toEqual({ limit: 3_000_000 });
  });

  test("slots are released once", () => {
    const one = work();
    const left: string[] = [];
    one.holds(() => void left.push("a"));
    one.holds(() => void left.push("b"));
    one.end();
    one.end();
    expect(left).toEqual(["a", "b"]);
  });

  test("settings contain their operation", () => {
    const one = work();
    const settings = { role: "plat_user" };
    expect(workOf(withWork(settings, undefined))).toBeUndefined();
    expect(withWork(settings, one)).toBe(settings);
    expect(workOf(settings)).toBe(one);
    expect(Object.keys(settings)).toEqual(["role"]);
    expect([workOf(null), workOf(undefined)]).toEqual([undefined, undefined]);
  });
});

test("a document is checked without executing it: its errors with their codes, and its cost", () => {
  const { cost: limit } = queryLimits;
  expect(checkDocument(schema, "{ lead { id } }")).toEqual({
    valid: true,
    errors: [],
    cost: { requested: 2, limit },
  });
  const many = "query ($first: Int) { leads(first: $first) { page(first: 1000) { nodes { id } } } }";
  expect(checkDocument(schema, many, { first: 1 })).toMatchObject({ valid: true, errors: [] });
  const costly = checkDocument(schema, many, { first: 1000 });
  expect(costly).toEqual({
    valid: false,
    errors: [{ message: expect.stringMatching(/cost/i), code: "LIMIT_EXCEEDED" }],
    cost: { requested: expect.any(Number), limit },
  });
  expect(costly.cost!.requested).toBeGreaterThan(limit);
  expect(checkDocument(schema, "{ lead { shoeSize } }")).toEqual({
    valid: false,
    errors: [
      {
        message: expect.stringContaining("shoeSize"),
        code: "BAD_USER_INPUT",
        locations: [{ line: 1, column: 10 }],
      },
    ],
  });
  expect(checkDocument(schema, "{ lead {")).toMatchObject({
    valid: false,
    errors: [{ code: "BAD_USER_INPUT" }],
  });
  expect(checkDocument(schema, "{".repeat(201))).toMatchObject({
    valid: false,
    errors: [{ code: "LIMIT_EXCEEDED" }],
  });
});
