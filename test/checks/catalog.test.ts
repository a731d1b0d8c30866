/**
 * The rules for the catalog: the schema follows all of them, and each rule finds the violation that is inserted for
 * it. All violations are in one transaction, each with objects of its own.
 */
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { Client } from "pg";
import { checkCatalog, prepareChecks } from "../../src/checks/checkCatalog.ts";
import { rules } from "../../src/checks/index.ts";
import type { Finding } from "../../src/checks/rule.ts";
import { sourceWords, type SourceWords } from "../../src/checks/sources.ts";
import { ownerUrl } from "../../src/database/roles.ts";
import { createTestDatabase, type TestDatabase } from "../harness/database.ts";
import { checkFiles } from "../../src/checks/checkFiles.ts";
import { guideBlocks } from "../harness/guide.ts";
import { faults } from "./faults.ts";

let database: TestDatabase;
let client: Client;
let words: SourceWords;

beforeAll(async () => {
  database = await createTestDatabase();
  client = new Client({ connectionString: ownerUrl(database.ownerUrl) });
  await client.connect();
  await prepareChecks(client);
  words = await sourceWords();
});
afterAll(async () => {
  await client.end();
  await database.drop();
});

/** Findings of the rules with the statements applied, which are rolled back. */
async function found(statements: readonly string[]): Promise<Finding[]> {
  await client.query("begin");
  try {
    for (const statement of statements) await client.query(statement);
    return await checkCatalog(client, words);
  } finally {
    await client.query("rollback");
  }
}

/** A table without violations. */
const soundTable = (name: string) => `
  create table app_public.${name} (
    like app_private.project_record including all,
    name app_public.short_text not null,
    constraint ${name}_project_id_fkey foreign key (project_id, organization_id)
      references app_public.projects (id, organization_id) on delete cascade
  );
  create index ${name}_organization on app_public.${name} (organization_id, id desc) where deleted_at is null;
  create index ${name}_project on app_public.${name} (project_id, id desc) where deleted_at is null;
  alter table app_public.${name} enable row level security;
  select app_private.make_project_table('${name}', '${name}_subject', 'marketing.read', 'marketing.manage');
  grant insert (project_id, name), update (name), delete on app_public.${name} to plat_user;
  comment on table app_public.${name} is E'@portfolio marketing.read\\n\\nA part of a building.';
  comment on column app_public.${name}.name is 'What it is called.';`;

test("the schema follows every rule", async () => {
  expect(await found([])).toEqual([]);
});

test("so do the tables of the guides", async () => {
  for (const guide of ["docs/adding-a-table.md", "docs/adding-files.md"]) {
    const blocks = await guideBlocks(guide);
    const sql = blocks.filter(({ language }) => language === "sql").map(({ text }) => text);
    expect(await found([...sql, "select app_private.make_masked_views()"])).toEqual([]);
    expect(checkFiles(sql.map((text, index) => ({ path: `${guide} ${index}`, text })))).toEqual([]);
  }
});

test("every rule has a violation in faults.ts", () => {
  expect(new Set(faults.map(({ rule }) => rule))).toEqual(new Set(rules.map(({ name }) => name)));
});

test("each violation is found only by its rule, with a remedy", async () => {
  const planted = faults.flatMap(({ table, sql }) => [...(table ? [soundTable(table)] : []), sql]);
  const findings = await found(planted);
  const objectOf = ({ object, table }: (typeof faults)[number]) => object ?? `app_public.${table}`;
  const key = ({ rule, object }: { rule: string; object: string }) => `${rule}: ${object}`;
  expect(findings.map(key).toSorted()).toEqual(
    faults.map((fault) => key({ rule: fault.rule, object: objectOf(fault) })).toSorted(),
  );
  for (const fault of faults)
    expect(
      findings.find((finding) => key(finding) === key({ ...fault, object: objectOf(fault) }))?.write,
    ).toMatch(fault.says);
});

test("declared exceptions are not reported", async () => {
  const declared = [
    soundTable("parlors"),
    `create policy seers on app_public.parlors for select to plat_user
       using (app_hidden.project_can(project_id, organization_id, 'lead.read'));
     comment on policy seers on app_public.parlors is '@perRow There are three of them.'`,
    `create function app_public.greet() returns boolean language sql volatile as $$ select true $$;
     grant execute on function app_public.greet to plat_user, plat_anonymous;
     comment on function app_public.greet is E'@withoutViewer Everybody is greeted.\\n\\nSays hello.'`,
    `create table app_public.shelves (id uuid primary key default uuidv7(),
       parlor_id uuid not null references app_public.parlors on delete cascade);
     create index shelves_parlor on app_public.shelves (parlor_id);
     alter table app_public.shelves enable row level security;
     create policy seers on app_public.shelves for select to plat_user using (true);
     grant select on app_public.shelves to plat_user;
     comment on table app_public.shelves is E'@partOf parlor_id\\n\\nA board.';
     comment on column app_public.shelves.parlor_id is 'Where it is.';
     comment on constraint shelves_parlor_id_fkey on app_public.shelves is E'@backwardBehavior -*\\n\\nWhere it is.'`,
  ];
  expect(await found(declared)).toEqual([]);
});
