/**
 * The fast path of `npm run dev`, on a database alone: afterwards, the database matches the files, and nothing of
 * their former content remains.
 */
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { migrationsFolder } from "../../src/database/committed.ts";
import { readCatalog } from "../../src/database/catalog.ts";
import { differences } from "../../src/database/differences.ts";
import { migrateOn } from "../../src/database/onConnection.ts";
import { readObjects, type ObjectFile } from "../../src/database/objects.ts";
import { ownerUrl } from "../../src/database/roles.ts";
import { splitStatements } from "../../src/database/sqlStatements.ts";
import { applyChanges, textsOf } from "../../src/dev/quickApply.ts";
import { createTestDatabase, type TestDatabase } from "../harness/database.ts";

let database: TestDatabase;
let files: ObjectFile[];
beforeAll(async () => {
  database = await createTestDatabase("template");
  files = await readObjects();
});
afterAll(() => database.drop());

const fileOf = (text: string): ObjectFile => ({
  path: "signs.sql",
  text,
  area: "03-projects",
  definitions: [],
  rest: splitStatements(text),
});
let [before, applied] = [fileOf(""), ""];

/**
 * Saves the file of objects and current.sql.
 * @returns the catalog, with the rows that the call of a generator writes.
 */
async function save(objects: string, current: string) {
  const file = fileOf(objects);
  return await migrateOn(ownerUrl(database.ownerUrl), async (owner) => {
    const change = { file, before: textsOf(before) };
    const whole = { folder: migrationsFolder, text: current, applied };
    expect(await applyChanges(owner, [...files, file], [change], whole)).toBe(true);
    [before, applied] = [file, current];
    return await readCatalog(owner, { rowsOf: ["app_hidden.record_types"] });
  });
}

const table = (columns: string) => `
create table app_public.signs (
  like app_private.project_record including all,
  ${columns},
  constraint signs_project_id_fkey foreign key (project_id, organization_id)
    references app_public.projects (id, organization_id) on delete cascade
);
create index signs_organization on app_public.signs (organization_id, id desc) where deleted_at is null;
alter table app_public.signs enable row level security;
`;
const call = (readers: string) =>
  `select app_private.make_project_table('signs', 'sign', '${readers}', 'marketing.manage');`;
const comment = `comment on table app_public.signs is 'A sign.';
comment on index app_public.signs_organization is 'An index.';
grant insert (project_id) on app_public.signs to plat_user;
`;

test("changed, removed and restored calls of a generator, and an edited and removed table, leave nothing behind", async () => {
  const none = await save("", "");
  const made = await save(comment + call("marketing.read"), table("label text"));
  const other = await save(comment + call("units.read"), applied);
  const changed = differences(other, made);
  expect(changed.map(({ identity }) => identity)).toEqual([
    "policy readers on app_public.signs",
    "comment on constraint signs_project_id_fkey on app_public.signs",
  ]);
  expect(differences(await save(comment + call("marketing.read"), applied), made)).toEqual([]);

  const without = await save(comment, applied);
  const kinds = new Set(without.filter(({ identity }) => /\bsigns\b/.test(identity)).map(({ kind }) => kind));
  expect(["policy", "trigger", "function", "row"].filter((kind) => kinds.has(kind as "row"))).toEqual([]);
  expect(differences(await save(comment + call("marketing.read"), applied), made)).toEqual([]);

  const edited = await save(before.text, table("label text, colour text"));
  expect(differences(edited, made).map(({ identity }) => identity)).toEqual([
    "column app_public.signs.colour",
  ]);
  expect(differences(await save(before.text, table("label text")), made)).toEqual([]);
  expect(differences(await save("", ""), none)).toEqual([]);
});
