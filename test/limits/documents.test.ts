import { expect, test } from "@jest/globals";
import { parse } from "postgraphile/graphql";
import { Documents, KnownDocument, PLANS_PER_OPERATION } from "../../src/limits/documents.ts";

const document = (text: string) => new KnownDocument(text, { document: parse(text) });

/** Takes a document in as a request does: found, or kept and planned. */
function ask(documents: Documents, text: string, steps: number): KnownDocument {
  const found = documents.find(text);
  if (found) return found;
  const made = document(text);
  documents.keep(made);
  made.addPlan("", {}, steps);
  documents.weigh(made);
  return made;
}

test("documents with their plans never weigh more than allowed, and a flood of new ones replaces only itself", () => {
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

test("what is used again cannot take all of the room", () => {
  const documents = new Documents(10_000_000);
  for (let n = 0; n < 10; n += 1)
    for (let again = 0; again < 3; again += 1) ask(documents, `{ page${n} }`, 400);
  ask(documents, "{ another }", 350);
  expect(documents.find("{ another }")).toBeDefined();
  expect(documents.find("{ page9 }")).toBeDefined();
  expect(documents.size.bytes).toBeLessThanOrEqual(10_000_000);
});

test("further plans and answers of a document count, and a document heavier than everything is dropped", () => {
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

test("an operation with several plans is planned by turns each time", () => {
  const made = document("query A { a } query B { b }");
  made.addPlan("A", {}, 10);
  expect([made.isPlanned("A"), made.isPlanned("B")]).toEqual([true, false]);
  made.addPlan("A", {}, 10);
  made.addPlan("B", {}, 10);
  expect([made.isPlanned("A"), made.isPlanned("B")]).toEqual([false, true]);
});
