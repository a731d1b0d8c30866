import { expect, test } from "@jest/globals";
import { parse } from "postgraphile/graphql";
import { Documents, KnownDocument, PLANS_PER_OPERATION } from "../../src/compiled/knownDocuments.ts";

const document = (text: string) => new KnownDocument(text, { document: parse(text) });

/** Processes a document like a request: found, or stored and planned. */
function ask(documents: Documents, text: string, steps: number): KnownDocument {
  const found = documents.find(text);
  if (found) return found;
  const made = document(text);
  documents.keep(made);
  made.addPlan("", {}, steps);
  documents.weigh(made);
  return made;
}

test("documents with their plans never exceed the allowed weight, and a flood of new ones only replaces itself", () => {
  const documents = new Documents(20_000_000);
  const honest = Array.from({ length: 20 }, (_, n) => `{ page${n} }`);
  for (let round = 0; round < 3; round += 1) for (const text of honest) ask(documents, text, 100);
  for (let n = 0; n < 500; n += 1) {
    ask(documents, `{ flood${n} }`, 1_200);
    expect(documents.size.bytes).toBeLessThanOrEqual(20_000_000);
  }
  for (const text of honest) expect(documents.find(text)).toBeDefined();
  expect(documents.find("{ flood0 }")).toBeUndefined();
  expect(documents.size.documents).toBeLessThan(25);
});

test("documents in use cannot occupy the whole cache", () => {
  const documents = new Documents(10_000_000);
  for (let n = 0; n < 10; n += 1)
    for (let again = 0; again < 3; again += 1) ask(documents, `{ page${n} }`, 400);
  ask(documents, "{ another }", 350);
  expect(documents.find("{ another }")).toBeDefined();
  expect(documents.find("{ page9 }")).toBeDefined();
  expect(documents.size.bytes).toBeLessThanOrEqual(10_000_000);
});

test("further plans and responses of a document count, and a document heavier than the cache is dropped", () => {
  const documents = new Documents(3_000_000);
  const made = ask(documents, "{ page }", 100);
  const before = documents.size.bytes;
  const again = {};
  for (let n = 0; n < 3; n += 1) made.addPlan("", again, 100);
  documents.weigh(made);
  expect(documents.size.bytes).toBe(before + 500_000);
  for (let n = 0; n < 20; n += 1) made.addPlan("", {}, 10);
  documents.weigh(made);
  expect(documents.size.bytes).toBe(before + 500_000 + (PLANS_PER_OPERATION - 2) * 50_000);
  made.keepAnswer("", {}, 4_000_000);
  documents.weigh(made);
  expect(documents.size).toEqual({ bytes: 0, documents: 0 });
});

test("an operation is cached when there is a plan for its conditions", () => {
  const made = document("query A($on: Boolean!) { a @include(if: $on) b @skip(if: true) } query B { b }");
  const plan = (operation: string, variables?: Record<string, unknown>) => {
    made.addPlan(operation, {}, 10);
    made.usedPlan(operation, variables);
  };
  plan("A", { on: true });
  const planned = () => [
    made.isPlanned("A", { on: true, other: 1 }),
    made.isPlanned("A", { on: false }),
    made.isPlanned("A"),
    made.isPlanned("B"),
  ];
  expect(planned()).toEqual([true, false, false, false]);
  plan("A", { on: false });
  plan("B");
  expect(planned()).toEqual([true, true, false, true]);
});

test("an operation with more plans than its conditions account for is planned each time, in turn", () => {
  const made = document("query A($on: Boolean!) { a @include(if: $on) }");
  made.addPlan("", {}, 10);
  made.usedPlan("", { on: true });
  expect(made.isPlanned("", { on: true })).toBe(true);
  made.addPlan("", {}, 10);
  made.usedPlan("", { on: true });
  expect(made.isPlanned("", { on: true })).toBe(false);
});

test("of an operation with many conditions, the plans used last are cached", () => {
  const names = ["a", "b", "c", "d"];
  const made = document(
    `query (${names.map((name) => `$${name}: Boolean!`).join(" ")}) { ${names.map((name) => `${name} @include(if: $${name})`).join(" ")} }`,
  );
  const values = (n: number) => Object.fromEntries(names.map((name, bit) => [name, Boolean(n & (1 << bit))]));
  for (let n = 0; n < PLANS_PER_OPERATION; n += 1) {
    made.addPlan("", {}, 10);
    made.usedPlan("", values(n));
  }
  expect(made.isPlanned("", values(0))).toBe(true);
  made.usedPlan("", values(PLANS_PER_OPERATION));
  expect(made.isPlanned("", values(0))).toBe(false);
  expect(made.isPlanned("", values(1))).toBe(true);
});
