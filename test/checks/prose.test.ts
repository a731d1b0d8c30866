import { readFile } from "node:fs/promises";
import { expect, test } from "@jest/globals";
import {
  descriptions,
  glossaryTerms,
  proseFaults,
  repeatedParagraphs,
  repetitions,
  sourceProse,
} from "../../src/checks/prose.ts";

test("forbidden words are read from the glossary, except for those that depend on the meaning", async () => {
  const terms = glossaryTerms(await readFile("CONTRIBUTING.md", "utf8"));
  expect(terms).toContainEqual(["chapter", "migration"]);
  expect(terms.some(([wrong]) => wrong.includes("("))).toBe(false);
  expect(
    await proseFaults(
      [
        { name: "docs/a.md", text: "# A\n\nThe first chapter.\n\n`chapter` in code.\n" },
        { name: "Lead.email", text: "His Javascript." },
      ],
      terms,
    ),
  ).toEqual([
    "docs/a.md:3: Incorrect term: “chapter”, use “migration” instead.",
    "Lead.email: Incorrect term: “Javascript”, use “JavaScript” instead.",
  ]);
});

test("finds forbidden words in comments and messages, and not in code", () => {
  const files = [
    { name: "a.ts", text: "/** Begins anew. */\nconst anew = 1;\n" },
    { name: "a.sql", text: "-- Anew.\nselect 'anew';\ncomment on table t is\n  'Made '\n  'anew.';\n" },
    { name: "en.json", text: '{"errors": {"a": "Start anew.", "b": "Renewed."}}' },
  ];
  expect(sourceProse(files, [["anew", "again"]])).toEqual([
    "a.ts:1: Use “again” instead of “anew”.",
    "a.sql:1: Use “again” instead of “anew”.",
    "a.sql:5: Use “again” instead of “anew”.",
    "en.json a: Use “again” instead of “anew”.",
  ]);
});

test("every kind of description is checked", () => {
  const sdl = `"A" type Query { "B" field("C" argument: Input): Kind } "D" input Input { "E" member: Int } "F" enum Kind { "G" ONE }`;
  expect(
    descriptions(sdl)
      .map(({ name, text }) => `${text} ${name}`)
      .filter((one) => !one.includes(" __") && /^[A-G] /.test(one)),
  ).toEqual([
    "A Query",
    "B Query.field",
    "C Query.field(argument:)",
    "D Input",
    "E Input.member",
    "F Kind",
    "G Kind.ONE",
  ]);
});

test("a description must add to the name, the type and the parent", () => {
  const sdl = `"All there is to read." type Query {
    "The status of the query." status: Kind
    "Its kinds." all("In cents." amount: Int): [Kind!]
    "When the query was closed." closedAt: String
    "When the query was closed; null until then." reopenedAt: String
  }
  "State of a thing." enum Kind { "One." ONE "Sold to a buyer." TWO }`;
  expect(repetitions(descriptions(sdl)).map((finding) => finding.split(":")[0])).toEqual([
    "Query.status",
    "Query.all",
    "Query.closedAt",
    "Kind.ONE",
  ]);
});

test("a paragraph that a merge duplicated is found, also with changed words", () => {
  const now =
    "Plans are made once per statement and connection, for any values, since planning a list takes several times as long as running it.";
  const before =
    "Plans are made once for a statement and connection, for any values: planning a list takes several times as long as running it.";
  const other =
    "A single record beside those of a list, such as the reservation of a unit, is joined in the statement of that list.";
  expect(repeatedParagraphs({ name: "docs/a.md", text: `${now}\n\n${other}\n` })).toEqual([]);
  expect(repeatedParagraphs({ name: "docs/a.md", text: `${now}\n\n${other}\n\n${before}\n` })).toEqual([
    `docs/a.md: Remove or rewrite “${before}”: it repeats “${now}”.`,
  ]);
});
