/** Checks of the text of migrations/, and of the chain by squawk. Needs no database. */
import { expect, test } from "@jest/globals";
import { mkdtemp, rm, writeFile, mkdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { checkChain } from "../../src/checks/checkChain.ts";
import { checkFiles, readSqlFiles, type SqlFile } from "../../src/checks/checkFiles.ts";

test("the files follow every rule", async () => {
  const files = await readSqlFiles();
  expect(files.length).toBeGreaterThan(100);
  expect(checkFiles(files)).toEqual([]);
});

test("so does the chain, by squawk", async () => {
  expect(await checkChain(await readSqlFiles())).toEqual([]);
});

const objects = "migrations/objects/leads.sql";
const file = (text: string, path = objects): SqlFile => ({ path, text });

test.each([
  ["file-width", `comment on table app_public.leads is '${"é".repeat(90)}';`, 1, /it has 130 columns of 120/],
  ["file-tab", "select\n\t1;", 2, /two spaces/],
  ["file-trailing-space", "select 1; \n", 1, /trailing space/],
  [
    "function-volatility",
    "\n\ncreate function app_hidden.f(a int default 1)\nreturns int language sql as $$ select 'stable' $$;",
    3,
    /Write immutable, stable or volatile after the language of app_hidden\.f/,
  ],
])("%s is reported with its line", (rule, text, line, says) => {
  expect(checkFiles([file(text)])).toEqual([
    { rule, object: `${objects}:${line}`, write: expect.stringMatching(says) },
  ]);
});

test("an enumeration without a description in the files of objects is reported", () => {
  const created = file(
    "\nselect app_private.create_enum('mood', array['GOOD', 'BAD']);",
    "migrations/current.sql",
  );
  const described = file(
    "select app_private.describe_enum('mood', 'Mood of a person.', array[['GOOD', 'Happy.'], ['BAD', 'Sad.']]);",
  );
  expect(checkFiles([created])).toEqual([
    {
      rule: "enum-described",
      object: "migrations/current.sql:2",
      write: expect.stringContaining("describe_enum('mood', …)"),
    },
  ]);
  expect(checkFiles([created, described])).toEqual([]);
});

test.each([
  [
    "create function app_public.f(a int) returns int stable;",
    "create or replace function app_public.f(a  int\n) returns int stable;",
  ],
  ["create table app_public.a (id int);", "create table app_public.a (name text);"],
  [
    "create policy p on app_public.a using (true);",
    "create policy p on app_public.a for select using (false);",
  ],
  ["create view app_public.v as select 1;", "create or replace view app_public.v as select 2;"],
])("an object that is declared twice is reported: %s", (first, second) => {
  const [finding, ...more] = checkFiles([file(first, "migrations/objects/a.sql"), file(`\n${second}`)]);
  expect(more).toEqual([]);
  expect(finding).toMatchObject({ rule: "object-twice", object: `${objects}:2` });
  expect(finding!.write).toContain("migrations/objects/a.sql:1");
});

test.each([
  [
    "functions of one name with other arguments",
    "create function f(a int) stable;",
    "create function f(a text) stable;",
  ],
  [
    "policies of one name on other tables",
    "create policy p on a using (true);",
    "create policy p on b using (true);",
  ],
  [
    "objects of a generator",
    "create trigger t on a;",
    "do $$ begin\n  execute 'create trigger t on a;';\nend $$;",
  ],
  [
    "statements in a body",
    "create table a (id int);",
    "create function g() returns void volatile as $$\n  create table a (id int);\n$$;",
  ],
])("no violations are %s", (_what, first, second) => {
  expect(checkFiles([file(first, "migrations/objects/a.sql"), file(second)])).toEqual([]);
});

test("a migration may replace a function of a committed one, which is not changed", () => {
  const committed = file("create function f() returns int stable;", "migrations/committed/000001-f.sql");
  const replaced = "create or replace function f() returns int immutable;";
  expect(checkFiles([committed, file(replaced, "migrations/current.sql")])).toEqual([]);
  expect(checkFiles([committed, file(replaced, "migrations/objects/f.sql")])).toMatchObject([
    { rule: "object-twice" },
  ]);
});

/** Written to files, because squawk reads files. */
async function chain(texts: Record<string, string>): Promise<string[]> {
  const folder = await mkdtemp(join(tmpdir(), "plat-chain-"));
  try {
    await mkdir(join(folder, "migrations/committed"), { recursive: true });
    const files: SqlFile[] = [];
    for (const [path, text] of Object.entries(texts)) {
      await writeFile(join(folder, path), text);
      files.push({ path, text });
    }
    const findings = await checkChain(files, folder);
    return findings.map(({ rule, object }) => `${rule} ${object}`);
  } finally {
    await rm(folder, { recursive: true });
  }
}

const blocking = "create index leads_name on app_public.leads (name);\n";
const concurrent = "create index concurrently if not exists leads_name on app_public.leads (name);\n";
const baseline = "--! Replaces: 000195-x.sql sha1:0\n--! Through: 000002-b.sql\n";

test("blocking statements are only reported after the baseline", async () => {
  expect(
    await chain({
      "migrations/baseline.sql": baseline,
      "migrations/committed/000002-b.sql": blocking,
      "migrations/committed/000003-c.sql": blocking,
      "migrations/current.sql": blocking,
    }),
  ).toEqual([
    "require-concurrent-index-creation migrations/committed/000003-c.sql:1",
    "require-concurrent-index-creation migrations/current.sql:1",
  ]);
});

test("an index is created concurrently outside of a transaction", async () => {
  expect(
    await chain({
      "migrations/baseline.sql": baseline,
      "migrations/committed/000003-c.sql": `select 1;\n${concurrent}`,
      "migrations/committed/000004-d.sql": `--! no-transaction\n${concurrent}`,
    }),
  ).toEqual(["ban-concurrent-index-creation-in-transaction migrations/committed/000003-c.sql:2"]);
});

test("a migration can declare an exception above the statement", async () => {
  const reason = "-- The table has ten rows.\n-- squawk-ignore require-concurrent-index-creation\n";
  expect(
    await chain({ "migrations/baseline.sql": baseline, "migrations/current.sql": reason + blocking }),
  ).toEqual([]);
});

test("other violations are reported everywhere", async () => {
  expect(
    await chain({ "migrations/committed/000001-a.sql": "create table leads (name varchar(10));\n" }),
  ).toEqual([
    "require-table-schema migrations/committed/000001-a.sql:1",
    "prefer-text-field migrations/committed/000001-a.sql:1",
  ]);
});
