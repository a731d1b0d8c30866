/**
 * Which rows of each table each viewer can reach, by command: viewers in every role that a person can have,
 * and tokens for one permission each. access.txt is the specification: for groups of tables with their
 * commands, it lists the viewers with the rows that they reach.
 *
 * Rows are named by their project and their assignee, such as View/seller, with variants in brackets. Harbour
 * owns the projects View (private; other organizations are affiliated), Quiet (members only see their own
 * leads), Park (public), Hidden (unlisted) and Old (archived); Summit owns Peak. Two more organizations have
 * roles in View that have every permission by rows of role_permissions, one for all records and one for own
 * ones.
 *
 * answers.txt specifies the same for computed fields, masked columns and functions that take an id: for which
 * rows each viewer gets a result. They are called for visible and for invisible rows.
 *
 * A new table or field, or a changed policy, appears as a difference. Review it as a change of access to
 * everybody's data; then update the files with WRITE_ACCESS=1 npm test -- test/schema/access.test.ts.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { Client } from "pg";
import { createTestDatabase, type TestDatabase } from "../harness/database.ts";
import {
  answersOf,
  differentSets,
  maskedOf,
  testedRows,
  startAnswers,
  type ViewerFunction,
} from "../harness/rowAnswers.ts";
import { reachOf, readOpenTables, startRows, describeReach, type Reach } from "../harness/rowReach.ts";
import type { RowWorld } from "../harness/rowWorld.ts";

const file = join(import.meta.dirname, "access.txt");
const answersFile = join(import.meta.dirname, "answers.txt");
let database: TestDatabase;
let client: Client;
let world: RowWorld;
let reach: Reach;
let answering: ViewerFunction[];
let answers: Reach;
let masked: Reach;

beforeAll(async () => {
  database = await createTestDatabase();
  client = new Client({ connectionString: database.ownerUrl });
  await client.connect();
  world = await startRows(client);
  answering = await startAnswers(client, world);
  // PERF: viewers execute the same statements one after the other.
  await client.query("begin; set local plan_cache_mode = force_generic_plan");
  reach = await reachOf(client, world);
  answers = await answersOf(client, world, answering);
  masked = await maskedOf(client, world);
  await client.query("rollback");
}, 300_000);
afterAll(async () => {
  await client?.end();
  await database?.drop();
});

/** Records that organizations show to everybody, independent of their projects. */
const ofOrganizations = /^app_public\.(organization_avatars|project_collections) select$/;

/** Cells that satisfy a condition, in a form that can be found in the file. */
function cells(is: (who: string, labels: string[], what: string) => boolean): string[] {
  return [...reach].flatMap(([what, byViewer]) =>
    [...byViewer]
      .filter(([who, labels]) => labels && is(who, labels, what))
      .map(([who, labels]) => `${what}, ${who}: ${labels!.slice(0, 3).join("; ")}`),
  );
}

test("each viewer reaches exactly the rows in access.txt", () => {
  const found = describeReach(reach, world);
  if (process.env.WRITE_ACCESS) writeFileSync(file, found);
  expect(found.split("\n")).toEqual(readFileSync(file, "utf8").split("\n"));
});

test("each viewer gets results exactly for the rows in answers.txt", () => {
  const found = describeReach(
    answers,
    world,
    new Map(answering.map((one) => [one.name, testedRows(world, one, {})])),
  );
  if (process.env.WRITE_ACCESS) writeFileSync(answersFile, found);
  expect(found.split("\n")).toEqual(readFileSync(answersFile, "utf8").split("\n"));
});

test("masking views return the results of the column functions for visible rows", () => {
  const different: string[] = [];
  let given = 0;
  for (const one of answering)
    for (const viewer of [...world.people, ...world.tokens]) {
      const inView = masked.get(one.name)?.get(viewer.name);
      if (!inView) continue;
      const seen = masked.get(one.table.replace("app_public.", "app_hidden.masked_"))!.get(viewer.name)!;
      const listed = answers.get(one.name)!.get(viewer.name) ?? [];
      const tested = testedRows(world, one, viewer);
      for (const label of seen.filter((row) => tested.has(row))) {
        if (inView.includes(label)) given += 1;
        if (inView.includes(label) !== listed.includes(label))
          different.push(`${one.name}, ${viewer.name}: ${label}`);
      }
    }
  expect(given).toBeGreaterThan(1000);
  expect(different).toEqual([]);
});

test("tables of values and other tables that are the same for everybody are readable as a whole", async () => {
  // Only signed-in users see the applications.
  const ofUsers = new Set(["app_public.integration_apps"]);
  await client.query("begin");
  const all = await readOpenTables(client, world, "plat_owner");
  const [byUser, byVisitor] = [
    await readOpenTables(client, world, "plat_user"),
    await readOpenTables(client, world, "plat_anonymous"),
  ];
  await client.query("rollback");
  expect(all.size).toBeGreaterThan(100);
  expect([...all].filter(([, count]) => count === 0)).toEqual([]);
  expect(byUser).toEqual(all);
  expect(byVisitor).toEqual(new Map([...all].map(([name, count]) => [name, ofUsers.has(name) ? 0 : count])));
});

// The following holds independent of the file.

test("deleted rows are invisible to everybody", () => {
  const isDeleted = /, deleted|^(account|organization|project) deleted$/;
  expect(
    cells((_who, labels, what) => what.endsWith(" select") && labels.some((label) => isDeleted.test(label))),
  ).toEqual([]);
});

test("visitors write nothing, and read public rows only", () => {
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

test("organizations only reach rows of each other that are public, or by an affiliation", () => {
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

test("permission checks in a project match the sets of organizations and projects, computed or passed, for every permission", async () => {
  await client.query("begin");
  const { different, allowed, handed } = await differentSets(client, world);
  await client.query("rollback");
  expect(allowed).toBeGreaterThan(1000);
  expect(handed).toBeGreaterThan(50);
  expect(different).toEqual([]);
});

test("a token with a read permission cannot write", () => {
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
