import { expect, test } from "@jest/globals";
import type { CatalogObject } from "../../src/database/catalog.ts";
import {
  compareCatalogs,
  printDifferences,
  type CompareOptions,
} from "../../src/cli/schemaCompare/report.ts";

function object(kind: CatalogObject["kind"], name: string, definition: string, on?: string): CatalogObject {
  return { kind, identity: `${kind} ${name}`, definition, create: "", drop: "", ...(on && { on }) };
}

function report(from: CatalogObject[], to: CatalogObject[], options?: CompareOptions): string[] {
  return printDifferences(compareCatalogs(from, to, options))
    .split("\n")
    .filter((line) => line !== "");
}

function bodies(from: string, to: string, options?: CompareOptions): string[] {
  const make = (body: string) => [
    object("function", "f()", `CREATE FUNCTION f()\nAS $function$${body}$function$`),
  ];
  return report(make(from), make(to), options);
}

test("equal catalogs have no differences", () => {
  const catalog = [
    object("table", "a.t", "create table a.t ()"),
    object("column", "a.t.id", "id uuid", "a.t"),
  ];
  expect(compareCatalogs(catalog, structuredClone(catalog))).toEqual([]);
});

test("lists added, removed and changed objects, with the words that changed", () => {
  const from = [
    object("index", "a.gone", "create index gone", "a.t"),
    object("policy", "p on a.t", "using (a = 1)", "a.t"),
  ];
  const to = [
    object("index", "a.new", "create index new", "a.t"),
    object("policy", "p on a.t", "using (a = 2)", "a.t"),
  ];
  expect(report(from, to)).toEqual([
    "## index: 1 only before, 1 only after, 0 changed",
    "- index a.gone",
    "    create index gone",
    "+ index a.new",
    "    create index new",
    "## policy: 0 only before, 0 only after, 1 changed",
    "~ policy p on a.t",
    "    using (a =  [-1-] {+2+} )",
  ]);
});

test("reports a new table as one difference with the number of its objects", () => {
  const to = [
    object("table", "a.t", "table a.t"),
    object("column", "a.t.id", "id uuid", "a.t"),
    object("column", "a.t.name", "name text", "a.t"),
    object("comment", "on table a.t", "Words.", "a.t"),
  ];
  expect(report([], to)).toEqual([
    "## table: 0 only before, 1 only after, 0 changed",
    "+ table a.t",
    "    and of it: column (2), comment (1)",
  ]);
});

test("reports another order of columns", () => {
  const column = (name: string) => object("column", `a.t.${name}`, name, "a.t");
  const lines = report([column("a"), column("b"), column("c")], [column("c"), column("a"), column("b")]);
  expect(lines.slice(1)).toEqual(["~ columns of a.t", "    from a, b, c", "    to   c, a, b"]);
});

const wrapped = "\n  select 'one ' -- why\n    'two',\n    f( a )\n";
const unwrapped = " select 'one two', f(a) /* no */";

test("white space, comments and the wrapping of strings count unless they are ignored", () => {
  expect(bodies(wrapped, unwrapped)).not.toEqual([]);
  expect(bodies(wrapped, unwrapped, { ignoreSpace: true })).toEqual([]);
});

test("two strings in one line are not one", () => {
  expect(bodies("select 'a' 'b'", "select 'ab'", { ignoreSpace: true })).not.toEqual([]);
});

test("white space inside of a literal counts unless it is ignored, too", () => {
  const [from, to] = ["execute 'select  1 -- why\n'", "execute 'select 1'"];
  expect(bodies(from, to, { ignoreSpace: true })).not.toEqual([]);
  expect(bodies(from, to, { ignoreSpaceInLiterals: true })).toEqual([]);
  expect(bodies(from, "execute 'select 2'", { ignoreSpaceInLiterals: true })).not.toEqual([]);
});

test("every character of a comment on an object counts", () => {
  const [from, to] = [[object("comment", "on x", "A  b.")], [object("comment", "on x", "A b.")]];
  expect(report(from, to, { ignoreSpace: true, ignoreSpaceInLiterals: true })).toHaveLength(3);
});
