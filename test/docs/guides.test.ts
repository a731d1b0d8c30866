/** The guides agree with the code and the migrations. */
import { access, readdir, readFile } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { Client } from "pg";
import { buildSchema, parse, validate } from "postgraphile/graphql";
import { guides, repository } from "../../src/docs/generated.ts";
import { errorCodes } from "../../src/base/errors.ts";
import { logEvents } from "../../src/base/logEvents.ts";
import { createTestDatabase, type TestDatabase } from "../harness/database.ts";
import { guideBlocks } from "../harness/guide.ts";

let database: TestDatabase;
let owner: Client;

beforeAll(async () => {
  database = await createTestDatabase();
  owner = new Client({ connectionString: database.ownerUrl });
  await owner.connect();
});

afterAll(async () => {
  await owner?.end();
  await database?.drop();
});

const read = (file: string) => readFile(join(repository, file), "utf8");

test("generated parts agree with the database", async () => {
  for (const [file, { is, shall }] of await guides(owner)) expect([file, is]).toEqual([file, shall]);
});

test("the guide of states distinguishes manual transitions from those of the service", async () => {
  const states = await read("docs/states.md");
  expect(states).toMatch(/^\| NEW +\| .*CONTACTED.* \| CONVERTED +\|$/m);
});

test("codes of errors are the same in the code, in the database and in the guide", async () => {
  const { rows } = await owner.query<{ code: string; description: string }>(
    "select code, description from app_private.error_codes",
  );
  const inDatabase = Object.fromEntries(rows.map(({ code, description }) => [code, description]));
  const inCode = Object.fromEntries(
    Object.entries(errorCodes).map(([code, { description }]) => [code, description]),
  );
  const inGuide = Object.fromEntries(
    [...(await read("docs/errors.md")).matchAll(/^\| `([A-Z_]+)` +\| \d{3} +\| (.*?) +\|$/gm)].map(
      ([, code, description]) => [code, description],
    ),
  );
  expect(inDatabase).toEqual(inCode);
  expect(inGuide).toEqual(inCode);
});

test("SQL only raises codes of the registry", async () => {
  const { rows } = await owner.query<{ name: string; code: string }>(
    `select p.oid::regproc::text as name, m[1] as code
     from pg_proc p join pg_namespace n on n.oid = p.pronamespace, regexp_matches(p.prosrc, 'app_hidden\\.fail\\(\\s*''([^'']*)''', 'g') m
     where n.nspname like 'app\\_%'`,
  );
  expect(rows.length).toBeGreaterThan(20);
  expect(rows.filter(({ code }) => !Object.hasOwn(errorCodes, code))).toEqual([]);
});

test("every event of the log is written somewhere", async () => {
  const files = await readdir(join(repository, "src"), { recursive: true });
  let text = "";
  for (const file of files.filter((name) => name.endsWith(".ts") && name !== join("base", "logEvents.ts")))
    text += await read(join("src", file));
  expect(Object.keys(logEvents).filter((event) => !text.includes(`"${event}"`))).toEqual([]);
});

test("the guide of comments lists the tags that the schema uses, and no others", async () => {
  const { rows } = await owner.query<{ tag: string }>(
    `select distinct m[1] as tag from pg_description d, regexp_matches(d.description, '(?:^|\\n|\\|)@([a-zA-Z]+)', 'g') m
     where d.description like '%@%'`,
  );
  const used = new Set(rows.map(({ tag }) => tag));
  const documented = new Set(
    [...(await read("docs/comments.md")).matchAll(/(?:`|\|)@([a-zA-Z]+)/g)].map(([, tag]) => tag!),
  );
  expect([...used].filter((tag) => !documented.has(tag))).toEqual([]);
  const plugins = await sources(["src/plugins", "src/operations", "src/lists"]);
  expect([...documented].filter((tag) => !used.has(tag) && !plugins.includes(tag))).toEqual([]);
});

async function sources(folders: string[]): Promise<string> {
  let text = "";
  for (const folder of folders)
    for (const file of await readdir(join(repository, folder)))
      if (file.endsWith(".ts")) text += await read(join(folder, file));
  return text;
}

test("the SQL of CONTRIBUTING.md runs as described", async () => {
  const blocks = (await guideBlocks("CONTRIBUTING.md")).filter(({ language }) => language === "sql");
  expect(blocks.length).toBeGreaterThan(0);
  for (const { text } of blocks) await owner.query(`begin; ${text}; rollback`);
  const [, enumeration] = /`(select app_private\.add_enum_values[^`]*)`/.exec(await read("CONTRIBUTING.md"))!;
  await owner.query(`begin; ${enumeration}`);
  expect((await owner.query("select 'FAX'::app_public.lead_origin as value")).rows).toEqual([
    { value: "FAX" },
  ]);
  await owner.query("rollback");
});

/** All documents, relative to the repository. */
async function documents(): Promise<string[]> {
  const inFolder = async (folder: string) =>
    (await readdir(join(repository, folder)))
      .filter((file) => file.endsWith(".md"))
      .map((file) => join(folder, file));
  return [...(await inFolder(".")), ...(await inFolder("docs"))];
}

/** The anchors of a document's headings, derived from their texts. */
const anchorsOf = (markdown: string): Set<string> =>
  new Set(
    [...markdown.matchAll(/^#+ (.*)$/gm)].map(([, title]) =>
      title!
        .toLowerCase()
        .replaceAll(/[^\p{L}\p{N} _-]/gu, "")
        .replaceAll(" ", "-"),
    ),
  );

test("the links of all documents have existing targets", async () => {
  const broken: string[] = [];
  for (const file of await documents()) {
    for (const [, link] of (await read(file)).matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^https?:/.test(link!)) continue;
      const [path, anchor] = link!.split("#") as [string, string?];
      const target = path === "" ? file : join(dirname(file), path);
      const exists = await access(join(repository, target)).then(
        () => true,
        () => false,
      );
      if (!exists || (anchor !== undefined && !anchorsOf(await read(target)).has(anchor)))
        broken.push(`${file}: ${link}`);
    }
  }
  expect(broken).toEqual([]);
});

test("docs/README.md lists every document", async () => {
  const index = await read("docs/README.md");
  const missing = (await documents()).filter(
    (file) =>
      !["docs/README.md", "README.md", "CHANGELOG.md"].includes(file) &&
      !index.includes(`(${relative("docs", file)}`),
  );
  expect(missing).toEqual([]);
});

test("the README is short", async () => {
  expect((await read("README.md")).split("\n").length).toBeLessThan(150);
});

test("docs/architecture.md has every folder, and names none that does not exist", async () => {
  const text = await read("docs/architecture.md");
  const map = text.slice(text.indexOf("## Files"));
  const paths = [
    ...map.matchAll(/`((?:(?:src|migrations|test)\/[\w/.-]+)|test|bench|docs|schema\.graphql)`/g),
  ].map(([, path]) => path!);
  for (const path of paths)
    expect([path, await access(join(repository, path)).catch((error) => error.code)]).toEqual([
      path,
      undefined,
    ]);
  const folders = (await readdir(join(repository, "src"), { withFileTypes: true })).filter((entry) =>
    entry.isDirectory(),
  );
  expect(folders.map(({ name }) => `src/${name}`).filter((name) => !map.includes(`\`${name}\``))).toEqual([]);
});

test("the commands that the guides name exist", async () => {
  const { scripts } = JSON.parse(await read("package.json"));
  for (const file of await documents())
    for (const [, name] of (await read(file)).matchAll(/npm run (?:-s |--silent )?([\w:]+)/g))
      expect([file, Object.keys(scripts)]).toEqual([file, expect.arrayContaining([name])]);
});

test("GraphQL documents in the guides are valid", async () => {
  const schema = buildSchema(await read("schema.graphql"));
  const files = (await readdir(join(repository, "docs"))).filter((file) => file.endsWith(".md"));
  const faults: string[] = [];
  let found = 0;
  for (const file of files)
    for (const { text } of (await guideBlocks(`docs/${file}`)).filter(
      ({ language }) => language === "graphql",
    )) {
      found += 1;
      for (const { message } of validate(schema, parse(text))) faults.push(`docs/${file}: ${message}`);
    }
  expect(found).toBeGreaterThan(5);
  expect(faults).toEqual([]);
});
