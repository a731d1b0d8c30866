import { beforeAll, afterAll, expect, test } from "@jest/globals";
import { Client } from "pg";
import { readCatalog, type CatalogObject } from "../../src/database/catalog.ts";
import { filledTables } from "../../src/database/catalogRows.ts";
import { commentLines } from "../../src/docs/schemaSql/commentLines.ts";
import { grantStatements } from "../../src/docs/schemaSql/grantStatements.ts";
import { format } from "../../src/docs/schemaSql/sqlLayout.ts";
import { renderSchema } from "../../src/docs/schemaSql/renderSchema.ts";
import { createTestDatabase, type TestDatabase } from "../harness/database.ts";

let database: TestDatabase;
let catalog: CatalogObject[];
beforeAll(async () => {
  database = await createTestDatabase();
  const client = new Client({ connectionString: database.ownerUrl });
  await client.connect();
  catalog = await readCatalog(client, { rowsOf: await filledTables(client) });
  await client.end();
});
afterAll(() => database.drop());

/** Tables of every kind, two enumerations, a domain, a type, a view, and everything that belongs to them. */
const sample =
  /\b(?:app_public\.(?:leads|lead_notes|lead_status|lead_status_values|note_visibility|note_visibility_values|short_text|address|binding_offers)|app_private\.(?:search_texts|search_leads|tracker_hits)|app_hidden\.(?:transitions|report_columns))\b/;

function sampled(): CatalogObject[] {
  const own = catalog.filter(
    ({ kind, identity, on }) =>
      sample.test(on ?? identity) || ["extension", "schema", "default privileges"].includes(kind),
  );
  // Of many rows, only some.
  return own.filter((object, index) => object.kind !== "row" || own[index - 3]?.on !== object.on);
}

test("contains every object once", () => {
  const objects = sampled();
  expect(new Set(objects.map(({ kind }) => kind)).size).toBeGreaterThanOrEqual(17);
  const sections = (all: CatalogObject[]) => renderSchema(all).split(/^-{100}\n/m);
  const before = sections(objects);
  for (const object of objects) {
    const after = sections(objects.filter((other) => other !== object));
    const [gone, come] = [
      before.filter((part) => !after.includes(part)),
      after.filter((part) => !before.includes(part)),
    ];
    expect([object.identity, gone.length > 0 || come.length > 0]).toEqual([object.identity, true]);
    // A table without a row and a function without a trigger are written in another place.
    expect([object.identity, gone.length <= 3]).toEqual([object.identity, true]);
  }
});

test("has lines of at most 120 characters, except for bodies of functions and long literals", () => {
  const [declarations, rows] = renderSchema(catalog)
    .replaceAll(/\$(\w+)\$[\s\S]*?\$\1\$/g, "$body$")
    .split(/^-- Rows$/m);
  const long = (text: string) => text.split("\n").filter((line) => line.length > 120);
  expect(long(declarations!)).toEqual([]);
  // Rows are not wrapped, but each begins on a line of its own.
  expect(long(rows!).filter((line) => !/^ *\(?(?:'|select |"|[^']*'')/.test(line))).toEqual([]);
});

test.each([
  ["CHECK (((a > 0) AND ((b IS NULL) OR (c = 'x'::text))))", "check (a > 0 and (b is null or c = 'x'))"],
  [
    "using ((x = ANY (ARRAY( SELECT app_hidden.f('p'::text) AS f))))",
    "using (x = any (array(select app_hidden.f('p'))))",
  ],
  ["CHECK (((name)::text <> 'AND (OR'::text))", "check (name::text <> 'AND (OR')"],
  ["CHECK ((((a || ' '::text) || b) <> ''::text))", "check ((a || ' ' || b) <> '')"],
  ["CHECK ((NOT (a AND b)))", "check (not (a and b))"],
  ["CHECK ((tags <> '{}'::text[]))", "check (tags <> '{}'::text[])"],
])("writes %s as %s", (sql, formatted) => {
  expect(format(sql)).toBe(formatted);
});

test("breaks long expressions at their operators", () => {
  const part = (name: string) => `(${name.repeat(40)} IS DISTINCT FROM 1)`;
  expect(format(`CHECK ((${part("a")} AND (${part("b")} OR ${part("c")})))`).split("\n")).toEqual([
    "check (",
    `  ${"a".repeat(40)} is distinct from 1`,
    "  and (",
    `    ${"b".repeat(40)} is distinct from 1`,
    `    or ${"c".repeat(40)} is distinct from 1`,
    "  )",
    ")",
  ]);
});

test("combines grants to the same roles in one statement", () => {
  const grant = (text: string) =>
    ({ kind: "grant", identity: text, definition: text, create: "", drop: "" }) as const;
  const grants = [
    "grant select on a.t to one",
    "grant select on a.t to two",
    "grant delete on a.t to one",
    "grant update (b) on a.t to one",
    "grant update (a) on a.t to one",
    "revoke insert on a.t from current_user",
  ].map(grant);
  expect(grantStatements(grants, ["a", "b"])).toEqual([
    "grant select on a.t to one, two;",
    "grant delete on a.t to one;",
    "grant update (a, b) on a.t to one;",
    "revoke insert on a.t from current_user;",
  ]);
});

test("line breaks of a comment can be distinguished from continuations", () => {
  const lines = commentLines(`@tag value\n\n${"word ".repeat(30).trim()}`);
  expect(lines.slice(0, 2)).toEqual(["-- @tag value", "--"]);
  expect(lines[2]).toMatch(/^-- word .* word$/);
  expect(lines[3]).toMatch(/^-- {3}word /);
});
