/** What agents find in the schema, and the ids of what they propose. */
import { afterEach, beforeEach, expect, jest, test } from "@jest/globals";
import { buildSchema } from "postgraphile/graphql";
import type { ReviewedEvents } from "../../src/database/reviewedTransaction.ts";
import { createProposals, fingerprint, type Proposed } from "../../src/http/mcp/proposals.ts";
import { searchSchema } from "../../src/http/mcp/searchSchema.ts";

beforeEach(
  () => void jest.useFakeTimers({ now: 1_780_000_000_000, doNotFake: ["nextTick", "setImmediate"] }),
);
afterEach(() => void jest.useRealTimers());

const schema = buildSchema(/* GraphQL */ `
  type Query {
    "A lead by its id."
    lead(id: ID!): Lead
    leads(filter: LeadsFilter, first: Int): [Lead!]!
    reservations: [Reservation!]!
  }
  type Mutation {
    "Adds a lead."
    createLead(input: CreateLeadInput!): Lead
    reserveUnit: Reservation
  }
  "Somebody who may buy, or a prospect."
  type Lead implements Named {
    name: String
  }
  type LeadConnection {
    leads: [Lead]
  }
  interface Named {
    name: String
  }
  type Reservation {
    id: ID
  }
  input CreateLeadInput {
    name: String!
  }
  input LeadsFilter {
    name: String
  }
  enum LeadSort {
    NAME
  }
`);
const found = (query: string, kind?: "query" | "mutation" | "type") =>
  searchSchema(schema, query, kind).map((one) => `${one.kind} ${one.name}`);

test("a search finds the exact name first, then those with most of the words, then related ones", () => {
  expect(found("createLead")).toEqual(["mutation createLead", "query lead", "query leads", "type Lead"]);
  // Neither the connection, nor the filter, nor an enumeration.
  expect(found("leads").toSorted()).toEqual([
    "mutation createLead",
    "query lead",
    "query leads",
    "type Lead",
  ]);
  expect(found("leads")[0]).toBe("query leads");
  expect(found("LEAD", "type")).toEqual(["type Lead"]);
  expect(found("reserve a home")).toEqual(["mutation reserveUnit", "query reservations", "type Reservation"]);
  expect(found("named")).toEqual(["type Named"]);
  // A word of a description alone is too little, and nothing is found for nothing.
  expect(found("prospect")).toEqual([]);
  expect([found("zebra"), found(""), found("lead zebra", "mutation")]).toEqual([
    [],
    [],
    ["mutation createLead"],
  ]);
});

test("words are parts of names, in any number, of any case, also in descriptions", () => {
  const names = buildSchema(/* GraphQL */ `
    type Query {
      a: Int
    }
    type Mutation {
      "Sends a MAIL to the buyers."
      sendInvoice: Int
      call: Int
    }
    "Letters by POST."
    type PDFDocument {
      a: Int
    }
    type Version12 {
      a: Int
    }
    type Version1 {
      a: Int
    }
    type Address {
      a: Int
    }
    type ConnectionPool {
      a: Int
    }
    type My__Type {
      a: Int
    }
    type Release {
      a: Int
    }
    type Releasing {
      a: Int
    }
    type Tower {
      a: Int
    }
    type Towed {
      a: Int
    }
  `);
  const namesOf = (query: string) => searchSchema(names, query).map(({ name }) => name);
  // The exact name is first, whatever is around it, and only once.
  expect(namesOf("  version1 ")[0]).toBe("Version1");
  expect(namesOf("version 12")[0]).toBe("Version12");
  // An abbreviation is a word.
  expect(namesOf("document")).toEqual(["PDFDocument"]);
  expect(namesOf("PDF")).toEqual(["PDFDocument"]);
  // A word of the description decides between equal ones, in capitals too.
  expect(namesOf("invoice mail call")).toEqual(["sendInvoice", "call"]);
  expect(searchSchema(names, "post pdf").map(({ name }) => name)[0]).toBe("PDFDocument");
  // Nothing but a plural loses its last letter.
  for (const query of ["addresses", "address"]) expect(namesOf(query)).toEqual(["Address"]);
  // Suffixes of derived types are listed where they are no suffix.
  expect(namesOf("connection")).toEqual(["ConnectionPool"]);
  expect(namesOf("my type")).toEqual(["My__Type"]);
  // Words of more than five letters are related without their last one.
  expect(namesOf("releases")).toEqual(["Release", "Releasing"]);
  expect(namesOf("tower")).toEqual(["Tower"]);
  // Nothing is found for a text without words.
  expect(namesOf("?!")).toEqual([]);
});

test("operations have their inputs, and types their fields", () => {
  const [created] = searchSchema(schema, "createLead", "mutation");
  expect(created).toEqual({
    name: "createLead",
    kind: "mutation",
    sdl: '"""Adds a lead."""\ncreateLead(input: CreateLeadInput!): Lead\n\ninput CreateLeadInput {\n  name: String!\n}',
  });
  const [leads] = searchSchema(schema, "leads", "query");
  expect(leads!.sdl).toBe(
    '""""""\nleads(filter: LeadsFilter, first: Int): [Lead!]!\n\ninput LeadsFilter {\n  name: String\n}',
  );
  expect(searchSchema(schema, "reservations", "query")[0]!.sdl).toBe('""""""\nreservations: [Reservation!]!');
  expect(searchSchema(schema, "lead", "type")[0]!.sdl).toMatch(
    /^"""Somebody[^]*type Lead implements Named \{/,
  );
});

test("a search returns at most twelve results of 24,000 characters together", () => {
  const fields = (amount: number) =>
    Array.from({ length: amount }, (_, index) => `"${"x".repeat(60)}" f${index}: Int`).join("\n");
  const many = Array.from({ length: 20 }, (_, index) => `type Unit${index} { a: Int }`).join("\n");
  const large = buildSchema(`type Query { a: Int } ${many}`);
  expect(searchSchema(large, "unit")).toHaveLength(12);
  const long = buildSchema(
    `type Query { a: Int } type Lot { ${fields(500)} } type LotPlan { ${fields(500)} } type LotPlanSmall { a: Int }`,
  );
  const results = searchSchema(long, "lot");
  // The first one is cut, and there is room for no other.
  expect(results.map(({ name, sdl }) => [name, sdl.length])).toEqual([["Lot", 24_000]]);
  const fitting = buildSchema(
    `type Query { a: Int } type Lot { ${fields(200)} } type LotPlan { ${fields(200)} } type LotPlanSmall { a: Int }`,
  );
  expect(searchSchema(fitting, "lot").map(({ name }) => name)).toEqual(["Lot", "LotPlanSmall"]);
});

const secret = "a secret of the tests with at least 32 characters";
const proposed: Proposed = {
  userId: "1",
  tokenId: "2",
  mutation: "updateLead",
  input: { id: "3", name: "New", tags: ["a", "b"], note: undefined },
  selection: undefined,
};
const idOf = (ms: number, tail: string) => {
  const hex = ms.toString(16).padStart(12, "0");
  return `${hex.slice(0, 8)}-${hex.slice(8)}-7000-8000-${tail.padStart(12, "0")}`;
};
const old = idOf(1_700_000_000_000, "1");
const event = (name: string, subjectId: string, data: object = {}) => ({ name, subjectId, data });
const eventsOf = (...events: object[]): ReviewedEvents =>
  ({ events, moreEvents: false }) as unknown as ReviewedEvents;
const updated = eventsOf(event("lead.updated", old, { name: "New" }));

test("a proposal is committed by its author, for the same input, within ten minutes", () => {
  const proposals = createProposals(secret);
  const { proposal, expiresAt } = proposals.issue(proposed, updated);
  expect(proposal).toHaveLength(63);
  expect(Date.parse(expiresAt) - Date.now()).toBe(600_000);
  // The order of members does not matter, nor those that are undefined.
  const same = { ...proposed, input: { tags: ["a", "b"], name: "New", id: "3" } };
  expect(() => proposals.read(proposal, same)(updated)).not.toThrow();
  // Other processes have the same secret.
  expect(() => createProposals(secret).read(proposal, same)(updated)).not.toThrow();
  jest.advanceTimersByTime(600_000);
  expect(() => proposals.read(proposal, proposed)).not.toThrow();
  jest.advanceTimersByTime(1);
  expect(() => proposals.read(proposal, proposed)).toThrow(
    expect.objectContaining({
      code: "BAD_USER_INPUT",
      message: "The proposal has expired; propose it again.",
      extensions: { field: "proposal" },
    }),
  );
});

test.each<[string, Partial<Proposed>]>([
  ["user", { userId: "9" }],
  ["token", { tokenId: "9" }],
  ["session", { tokenId: undefined }],
  ["mutation", { mutation: "deleteLead" }],
  ["selection", { selection: "{ id }" }],
  ["input", { input: { ...proposed.input, name: "Other" } }],
  ["order of a list", { input: { ...proposed.input, tags: ["b", "a"] } }],
  ["input with null", { input: { ...proposed.input, note: null } }],
])("a proposal is refused for another %s", (_what, change) => {
  const proposals = createProposals(secret);
  const { proposal } = proposals.issue(proposed, updated);
  const refusal = expect.objectContaining({
    code: "BAD_USER_INPUT",
    message: expect.stringMatching(/^There is no such proposal/),
    extensions: { field: "proposal" },
  });
  expect(() => proposals.read(proposal, { ...proposed, ...change })).toThrow(refusal as never);
});

test("a changed id is refused, and so is one of another secret", () => {
  const proposals = createProposals(secret);
  const { proposal } = proposals.issue(proposed, updated);
  const later = (Date.now() + 3_600_000).toString(36).padStart(9, "0");
  const other = createProposals(`${secret}!`).issue(proposed, updated).proposal;
  const refused = [
    `${later}${proposal.slice(9)}`,
    `${proposal.slice(0, 9)}${"A".repeat(22)}${proposal.slice(31)}`,
    `${proposal.slice(0, -1)}${proposal.endsWith("A") ? "B" : "A"}`,
    `${proposal}A`,
    proposal.slice(0, 31),
    "",
    other,
  ];
  for (const one of refused) expect(() => proposals.read(one, proposed)).toThrow(/no such proposal/);
});

test("if the effects have changed, nothing is committed", () => {
  const proposals = createProposals(secret);
  const { proposal } = proposals.issue(proposed, updated);
  const commit = proposals.read(proposal, proposed);
  const others = [
    eventsOf(event("lead.updated", old, { name: "Other" })),
    eventsOf(event("lead.updated", idOf(1_700_000_000_000, "2"), { name: "New" })),
    eventsOf(event("lead.deleted", old, { name: "New" })),
    eventsOf(...updated.events, ...updated.events),
    eventsOf(),
    { ...updated, moreEvents: true } as never,
  ];
  for (const events of others)
    expect(() => commit(events)).toThrow(
      expect.objectContaining({
        code: "CONFLICT",
        message: expect.stringMatching(/^The data behind the proposal has changed/),
        extensions: { field: "proposal", retryable: false },
      }) as never,
    );
});

test("ids of new records and times differ each time, and do not count", () => {
  const created = (at: number, one: string, other: string, parent = old) =>
    eventsOf(
      event("lead.created", idOf(at, one), { parent, at: new Date(at).toISOString() }),
      event("task.created", idOf(at + 5, other), { lead: idOf(at, one) }),
    );
  const [first, second] = [1_780_000_000_000, 1_780_000_060_000];
  expect(fingerprint(created(first, "a", "b"))).toBe(fingerprint(created(second, "c", "d")));
  expect(fingerprint(created(first, "a", "b"))).toHaveLength(22);
  // Which of them refers to which does count, and so do records that existed.
  const turned = eventsOf(
    event("lead.created", idOf(first, "a"), { parent: old, at: new Date(first).toISOString() }),
    event("task.created", idOf(first + 5, "b"), { lead: idOf(first + 5, "b") }),
  );
  expect(fingerprint(turned)).not.toBe(fingerprint(created(first, "a", "b")));
  expect(fingerprint(created(first, "a", "b", idOf(1_700_000_000_000, "9")))).not.toBe(
    fingerprint(created(first, "a", "b")),
  );
  // Ids without a time belong to records without history, which are new each time.
  const without = (id: string) => eventsOf(event("lead.created", idOf(first, "a")), event("mail.sent", id));
  expect(fingerprint(without("00000000-0000-4000-8000-000000000001"))).toBe(
    fingerprint(without("00000000-0000-4000-8000-000000000002")),
  );
});

test("records that existed a second before the first new one are told apart", () => {
  const at = 1_780_000_000_000;
  const of = (ms: number, tail: string) =>
    fingerprint(eventsOf(event("lead.updated", idOf(ms, tail)), event("lead.created", idOf(at, "a"))));
  for (const existing of [at - 1_001, at - 10_000, at - 60_000])
    expect(of(existing, "1")).not.toBe(of(existing, "2"));
  expect(of(at - 1_000, "1")).toBe(of(at - 1_000, "2"));
});

test("effects are the same if their members have another order, but not if lists have other elements", () => {
  const of = (data: object) => fingerprint(eventsOf(event("lead.updated", old, data)));
  expect(of({ a: 1, b: 2, c: 3 })).toBe(of({ c: 3, a: 1, b: 2 }));
  expect(of({ a: 1, b: 2, c: 3 })).toBe(of({ b: 2, c: 3, a: 1 }));
  const all = [
    { list: [1, 23] },
    { list: [12, 3] },
    { list: { 0: 1, 1: 23 } },
    { list: [null] },
    { list: [] },
    { list: [[]] },
    { list: "2026-01-01" },
  ];
  expect(new Set(all.map(of)).size).toBe(all.length);
  // What JSON does not have is null in a list, and nothing in an object.
  expect(of({ list: [undefined] })).toBe(of({ list: [null] }));
  expect(of({ list: undefined })).toBe(of({}));
});

test("a moment is none other than a text that is a moment", () => {
  const of = (text: string) => fingerprint(eventsOf(event("lead.updated", old, { text })));
  expect(of("2026-01-02T03:04:05Z")).toBe(of("2027-11-12T13:14:15.678Z"));
  expect(of("at 2026-01-02T03:04:05Z")).not.toBe(of("at "));
  expect(of("2026-01-02T03:04Z")).not.toBe(of("2026-01-02T03:05Z"));
});
