/**
 * Which rows of each table whom the policies let reach, and by which command: by every part that somebody can have, and by tokens for
 * one permission each. access.txt is the specification: below tables with their commands the viewers, each with the rows they reach.
 *
 * Rows are named by their project and by whom they are assigned to, such as View/seller; in brackets what varies. Harbour owns the
 * projects View (private; other organizations have parts in it), Quiet (leads are one's own), Park (public), Hidden (unlisted) and Old
 * (archived); Summit owns Peak. Two more organizations have roles in View to which rows of role_permissions give every permission,
 * for all records and for own ones.
 *
 * A new table, or a policy that was changed, shows as a difference. Read it as the change that it is to everybody's data; then write the
 * file anew by WRITE_ACCESS=1 npm test -- test/schema/access.test.ts.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { Client } from "pg";
import { createTestDatabase, type TestDatabase } from "../harness/database.ts";
import { reachOf, readWhole, startRows, tell, type Reach } from "../harness/rowReach.ts";
import type { RowWorld } from "../harness/rowWorld.ts";

const file = join(import.meta.dirname, "access.txt");
let database: TestDatabase;
let client: Client;
let world: RowWorld;
let reach: Reach;

beforeAll(async () => {
  database = await createTestDatabase();
  client = new Client({ connectionString: database.ownerUrl });
  await client.connect();
  world = await startRows(client);
  await client.query("begin");
  reach = await reachOf(client, world);
  await client.query("rollback");
}, 300_000);
afterAll(async () => {
  await client?.end();
  await database?.drop();
});

/** What organizations show to everybody, whatever their projects. */
const ofOrganizations = /^app_public\.(organization_avatars|project_collections) select$/;

/** Cells for which something holds, as they would be looked for in the file. */
function cells(is: (who: string, labels: string[], what: string) => boolean): string[] {
  return [...reach].flatMap(([what, byViewer]) =>
    [...byViewer]
      .filter(([who, labels]) => labels && is(who, labels, what))
      .map(([who, labels]) => `${what}, ${who}: ${labels!.slice(0, 3).join("; ")}`),
  );
}

test("everybody reaches the rows that access.txt says, and no others", () => {
  const found = tell(reach, world);
  if (process.env.WRITE_ACCESS) writeFileSync(file, found);
  expect(found.split("\n")).toEqual(readFileSync(file, "utf8").split("\n"));
});

test("lists of values and other tables that are the same for everybody are read whole by everybody", async () => {
  // Apps are offered to whoever is signed in.
  const ofUsers = new Set(["app_public.integration_apps"]);
  await client.query("begin");
  const all = await readWhole(client, world, "plat_owner");
  const [byUser, byVisitor] = [
    await readWhole(client, world, "plat_user"),
    await readWhole(client, world, "plat_anonymous"),
  ];
  await client.query("rollback");
  expect(all.size).toBeGreaterThan(100);
  expect([...all].filter(([, count]) => count === 0)).toEqual([]);
  expect(byUser).toEqual(all);
  expect(byVisitor).toEqual(new Map([...all].map(([name, count]) => [name, ofUsers.has(name) ? 0 : count])));
});

// What follows holds whatever the file says.

test("nobody reads what is deleted", () => {
  const isDeleted = /, deleted|^(account|organization|project) deleted$/;
  expect(
    cells((_who, labels, what) => what.endsWith(" select") && labels.some((label) => isDeleted.test(label))),
  ).toEqual([]);
});

test("visitors write nothing, and read what is public", () => {
  const isPublic = /^(Park|Hidden|project (Park|Hidden)|organization Harbour)/;
  expect(
    cells((who, labels, what) => who === "visitor" && !what.endsWith(" select") && labels.length > 0),
  ).toEqual([]);
  expect(
    cells(
      (who, labels, what) =>
        who === "visitor" &&
        what.endsWith(" select") &&
        !ofOrganizations.test(what) &&
        !labels.every((label) => isPublic.test(label)),
    ),
  ).toEqual([]);
});

test("organizations reach nothing of each other but what is public, or a part in a project gives them", () => {
  const outsiders = /^(outsider|outside member)$/;
  const inOther = /^(View|Quiet|Old|project (View|Quiet|Old))/;
  expect(
    cells(
      (who, labels, what) =>
        outsiders.test(who) && !ofOrganizations.test(what) && labels.some((label) => inOther.test(label)),
    ),
  ).toEqual([]);
  expect(
    cells(
      (who, labels, what) =>
        outsiders.test(who) &&
        !what.endsWith(" select") &&
        labels.some((label) => /^(Park|Hidden)/.test(label)),
    ),
  ).toEqual([]);
  expect(
    cells(
      (who, labels) =>
        !outsiders.test(who) &&
        labels.some((label) => /^(Peak|project Peak|organization Summit)/.test(label)),
    ),
  ).toEqual([]);
  const parts = /^(seller|builder|marketer|role with all|role with own)$/;
  expect(
    cells(
      (who, labels, what) =>
        parts.test(who) &&
        !what.endsWith(" select") &&
        labels.some((label) => /^(Quiet|Hidden|Old)/.test(label)),
    ),
  ).toEqual([]);
});

test("whether somebody may do something in a project is what the sets of organizations and projects say, for every permission", async () => {
  const different: string[] = [];
  let allowed = 0;
  await client.query("begin");
  for (const { name, user, settings } of [...world.people, ...world.tokens]) {
    const all = { user_id: user ?? "", scopes: "", organization_id: "", token_id: "", ...settings };
    for (const [key, value] of Object.entries(all))
      await client.query("select set_config($1, $2, true)", [`plat.${key}`, value]);
    const { rows } = await client.query<{ what: string; says: boolean; sets: boolean }>(
      `select p.title || ' ' || s.permission as what, app_hidden.project_can(p.id, p.organization_id, s.permission) as says,
         p.organization_id = any (s.organizations) or p.id = any (s.projects) or p.id = any (s.own) as sets
       from app_public.projects p cross join (
         select permission, app_hidden.viewer_organizations(permission) as organizations,
           app_hidden.viewer_projects(permission) as projects, app_hidden.viewer_own_projects(permission) as own
         from (select distinct permission from app_private.role_permissions) r offset 0) s
       where p.deleted_at is null`,
    );
    allowed += rows.filter(({ says }) => says).length;
    different.push(...rows.filter(({ says, sets }) => says !== sets).map(({ what }) => `${name}: ${what}`));
  }
  await client.query("rollback");
  expect(allowed).toBeGreaterThan(500);
  expect(different).toEqual([]);
});

test("a token with a permission to read writes nothing", () => {
  const reads = /'s token for (\w+\.read,?)+$/;
  expect(
    cells((who, labels, what) => reads.test(who) && !what.endsWith(" select") && labels.length > 0),
  ).toEqual([]);
});

test("a token reaches nothing that its user does not", () => {
  expect(
    cells((who, labels, what) => {
      const [, owner] = /^(.*)'s token/.exec(who) ?? [];
      const owned = owner ? reach.get(what)!.get(owner) : undefined;
      return Boolean(owner) && !labels.every((label) => owned!.includes(label));
    }),
  ).toEqual([]);
});
