/**
 * Adding a table with grants and comments in a migration provides its whole API, with filters, events and
 * permissions: executes the SQL of docs/adding-a-table.md on a scratch database, and checks the claims of the guide.
 */
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { Client } from "pg";
import { ownerUrl } from "../../src/database/roles.ts";
import { createTestDatabase, type TestDatabase } from "../harness/database.ts";
import { runGuide } from "../harness/guide.ts";
import { affiliate, startWorld, type World } from "../harness/world.ts";

let world: World;
let database: TestDatabase;

beforeAll(async () => {
  database = await createTestDatabase();
  const owner = new Client({ connectionString: ownerUrl(database.ownerUrl) });
  await owner.connect();
  await runGuide("docs/adding-a-table.md", owner);
  await owner.end();
  world = await startWorld(database);
});

afterAll(async () => {
  await world?.stop();
  await database?.drop();
});

const create = (input: Record<string, unknown>) =>
  [
    `mutation ($input: CreateBillboardInput!) {
      createBillboard(input: $input) { id name size monthlyRent contactEmail putUpOn version project { slug } }
    }`,
    { input: { projectId: world.project.slug, ...input } },
  ] as const;

const billboard = async (input: Record<string, unknown>): Promise<any> =>
  (await world.owen.get(...create(input))).createBillboard;

test("creates records with defaults, an enumeration, exact decimals, and a project given by slug", async () => {
  expect(
    await billboard({
      name: " Corner of King ",
      monthlyRent: 1250.5,
      contactEmail: "Signs@Example.com",
      putUpOn: "2026-03-01",
    }),
  ).toMatchObject({
    name: "Corner of King",
    size: "MEDIUM",
    monthlyRent: "1250.5",
    contactEmail: "Signs@Example.com",
    putUpOn: "2026-03-01",
    version: 1,
    project: { slug: world.project.slug },
  });
});

test.each([
  [{}, /"name"/],
  [{ name: "x".repeat(301) }, /name .*Must have 1 to 300 characters/],
  [{ name: "A", contactEmail: "not an address" }, /contactEmail Not a valid email address/],
  [{ name: "A", monthlyRent: -1 }, /monthlyRent .*The amount must be between 0/],
  [{ name: "A", size: "HUGE" }, /HUGE/],
  [{ name: "A", putUpOn: "2026-02-30" }, /Not a valid date/],
  [{ name: "A", size: "LARGE" }, /A large billboard needs its monthly rent/],
])("refuses %j with BAD_USER_INPUT", async (input, expected) => {
  const { code, field, message } = await world.owen.refused(...create(input));
  expect([code, `${field} ${message}`]).toEqual(["BAD_USER_INPUT", expect.stringMatching(expected)]);
});

test("updates given fields, and refuses a lost update", async () => {
  const { id } = await billboard({ name: "Before", monthlyRent: "900" });
  const update = `mutation ($input: UpdateBillboardInput!) { updateBillboard(input: $input) { name monthlyRent version } }`;
  const { updateBillboard } = await world.ada.get(update, {
    input: { id, name: "After", expectedVersion: 1 },
  });
  expect(updateBillboard).toEqual({ name: "After", monthlyRent: "900", version: 2 });
  expect(await world.owen.refused(update, { input: { id, name: "Late", expectedVersion: 1 } })).toMatchObject(
    {
      code: "VERSION_MISMATCH",
      currentVersion: 2,
    },
  );
  expect(await world.owen.refused(update, { input: { id, name: null } })).toMatchObject({
    code: "BAD_USER_INPUT",
    field: "name",
  });
  expect(
    (await world.owen.get(update, { input: { id, monthlyRent: null } })).updateBillboard.monthlyRent,
  ).toBeNull();
});

test("deletes softly: not in any list or look-up, but its row and its history remain", async () => {
  const { id } = await billboard({ name: "Rotten" });
  const data = await world.owen.get(
    `mutation ($id: ID!) { deleteBillboard(input: { id: $id }) { id deleted project { slug } } }`,
    { id },
  );
  expect(data.deleteBillboard).toEqual({ id, deleted: true, project: { slug: world.project.slug } });
  const after = await world.owen.get(
    `query ($id: ID!) { billboard(id: $id) { id } billboards(first: 1000) { id } billboardsConnection { nodes { id } } }`,
    { id },
  );
  expect(after.billboard).toBeNull();
  expect(JSON.stringify(after)).not.toContain(id);
  const { rows } = await world.owner.query("select deleted_at from app_public.billboards where id = $1", [
    id,
  ]);
  expect(rows[0].deleted_at).toBeInstanceOf(Date);
  expect(
    await world.owen.refused(`mutation ($id: ID!) { deleteBillboard(input: { id: $id }) { id } }`, { id }),
  ).toMatchObject({ code: "NOT_FOUND" });
});

describe("lists", () => {
  let projectId: string;

  beforeAll(async () => {
    const { createProject } = await world.owen.get(
      `mutation ($id: ID!) { createProject(input: { organizationId: $id, title: "Signs" }) { id } }`,
      { id: world.harbour.id },
    );
    projectId = createProject.id;
    for (const [name, size, monthlyRent, putUpOn] of [
      ["a", "SMALL", "100", "2026-01-10"],
      ["b", "SMALL", "300", "2026-01-20"],
      ["c", "LARGE", "800", "2026-02-10"],
      ["d", "MEDIUM", "500", null],
    ])
      await billboard({ projectId, name, size, monthlyRent, putUpOn });
  });

  const names = async (args: string): Promise<string> => {
    const { billboards } = await world.max.get(`{ billboards(${args}) { name } }`);
    return billboards.map((b: { name: string }) => b.name).join("");
  };
  const here = () => `projectIds: ["${projectId}"]`;

  test("newest first, with first and offset", async () => {
    expect(await names(`filter: { ${here()} }`)).toBe("dcba");
    expect(await names(`filter: { ${here()} }, first: 2, offset: 1`)).toBe("cb");
    expect(await world.max.refused("{ billboards(first: 1001) { id } }")).toMatchObject({
      code: "LIMIT_EXCEEDED",
      limit: 1000,
    });
    expect(await world.max.refused("{ billboards(first: -1) { id } }")).toMatchObject({
      code: "BAD_USER_INPUT",
      field: "first",
    });
  });

  test("filtered by enumeration, money and day", async () => {
    expect(await names(`filter: { ${here()}, size: [SMALL, LARGE] }`)).toBe("cba");
    expect(await names(`filter: { ${here()}, size: [] }`)).toBe("");
    expect(await names(`filter: { ${here()}, monthlyRent: { min: 300, max: "500" } }`)).toBe("db");
    expect(await names(`filter: { ${here()}, putUpOn: { from: "2026-01-20", to: "2026-02-10" } }`)).toBe(
      "cb",
    );
  });

  test("ordered by an indexed column", async () => {
    expect(await names(`filter: { ${here()} }, orderBy: [MONTHLY_RENT_DESC]`)).toBe("cdba");
    expect(await names(`filter: { ${here()} }, orderBy: [MONTHLY_RENT_ASC], first: 1`)).toBe("a");
  });

  test("as a connection with totals, aggregates and groups", async () => {
    const { billboardsConnection: all } = await world.max.get(`{
      billboardsConnection(filter: { ${here()} }, first: 2) {
        nodes { name }
        pageInfo { hasNextPage endCursor }
        totalCount
        aggregates { sum { monthlyRent } max { monthlyRent } average { monthlyRent } distinctCount { size } }
        groupedAggregates(groupBy: [SIZE]) { keys sum { monthlyRent } }
        byMonth: groupedAggregates(groupBy: [PUT_UP_ON_TRUNCATED_TO_MONTH]) { keys sum { monthlyRent } }
      }
    }`);
    expect(all).toMatchObject({
      nodes: [{ name: "d" }, { name: "c" }],
      pageInfo: { hasNextPage: true },
      totalCount: 4,
      aggregates: { sum: { monthlyRent: "1700" }, max: { monthlyRent: "800" }, distinctCount: { size: "3" } },
    });
    expect(Number(all.aggregates.average.monthlyRent)).toBe(425);
    expect(
      Object.fromEntries(all.groupedAggregates.map((group: any) => [group.keys[0], group.sum.monthlyRent])),
    ).toEqual({ SMALL: "400", MEDIUM: "500", LARGE: "800" });
    expect(all.byMonth.map((group: any) => [group.keys[0], group.sum.monthlyRent])).toEqual(
      expect.arrayContaining([
        ["2026-01-01", "400"],
        ["2026-02-01", "800"],
        [null, "500"],
      ]),
    );
    const next = await world.max.get(
      `query ($after: Cursor) { billboardsConnection(filter: { ${here()} }, first: 2, after: $after) { nodes { name } } }`,
      { after: all.pageInfo.endCursor },
    );
    expect(next.billboardsConnection.nodes).toEqual([{ name: "b" }, { name: "a" }]);
  });

  test("on the project, with the same number of statements for many as for one", async () => {
    const { result, count } = await world.statements(() =>
      world.max.get(
        `query ($id: ID!) { project(id: $id) { billboards(filter: { size: [SMALL] }, orderBy: [ID_ASC]) { name } } }`,
        { id: projectId },
      ),
    );
    expect(result.project.billboards).toEqual([{ name: "a" }, { name: "b" }]);
    expect(count).toBeLessThan(8);
  });
});

test("writes events of changes, and shows them as the record's history", async () => {
  const { id } = await billboard({ name: "Old", monthlyRent: "10" });
  await world.ada.get(`mutation ($id: ID!) { updateBillboard(input: { id: $id, name: "New" }) { id } }`, {
    id,
  });
  const { billboard: record } = await world.owen.get(
    `query ($id: ID!) { billboard(id: $id) { events { name changes actor { id } subject { __typename ... on Billboard { name } } } } }`,
    { id },
  );
  expect(record.events).toEqual([
    {
      name: "billboard.updated",
      changes: { name: ["Old", "New"] },
      actor: { id: world.ada.id },
      subject: { __typename: "Billboard", name: "New" },
    },
    {
      name: "billboard.created",
      changes: null,
      actor: { id: world.owen.id },
      subject: { __typename: "Billboard", name: "New" },
    },
  ]);
  await world.owen.get(`mutation ($id: ID!) { deleteBillboard(input: { id: $id }) { id } }`, { id });
  const { eventsConnection } = await world.owen.get(
    `query ($id: ID!) { eventsConnection(filter: { names: ["billboard.*"], subjectId: $id }) { nodes { name sequence } } }`,
    { id },
  );
  expect(eventsConnection.nodes.map((event: { name: string }) => event.name)).toEqual([
    "billboard.created",
    "billboard.updated",
    "billboard.deleted",
  ]);
});

describe("permissions", () => {
  const query = `query ($id: ID!, $project: ID!) {
    billboard(id: $id) { name } billboards { id } project(id: $project) { billboards { id } }
  }`;

  test("a member can read but not write", async () => {
    const { id } = await billboard({ name: "Seen" });
    const seen = await world.max.get(query, { id, project: world.project.id });
    expect(seen.billboard).toEqual({ name: "Seen" });
    expect(seen.project.billboards.length).toBeGreaterThan(0);
    expect(await world.max.refused(...create({ name: "Mine" }))).toMatchObject({
      code: "FORBIDDEN",
      permission: "marketing.manage",
    });
    for (const operation of [
      `updateBillboard(input: { id: $id, name: "x" })`,
      `deleteBillboard(input: { id: $id })`,
    ])
      expect(await world.max.refused(`mutation ($id: ID!) { ${operation} { id } }`, { id })).toMatchObject({
        code: "FORBIDDEN",
      });
    expect((await world.owen.get(query, { id, project: world.project.id })).billboard).toEqual({
      name: "Seen",
    });
  });

  test("another organization sees nothing", async () => {
    const { id } = await billboard({ name: "Hidden" });
    const seen = await world.olga.get(query, { id, project: world.project.id });
    expect(seen).toEqual({ billboard: null, billboards: [], project: null });
    expect(
      (await world.olga.get("{ billboardsConnection { totalCount } }")).billboardsConnection.totalCount,
    ).toBe(0);
    expect(await world.olga.refused(...create({ name: "Intruder" }))).toMatchObject({ code: "NOT_FOUND" });
    for (const operation of [
      `updateBillboard(input: { id: $id, name: "x" })`,
      `deleteBillboard(input: { id: $id })`,
    ])
      expect(await world.olga.refused(`mutation ($id: ID!) { ${operation} { id } }`, { id })).toMatchObject({
        code: "NOT_FOUND",
      });
  });

  test("visitors cannot read any, even of a public project, or write", async () => {
    const { id } = await billboard({ name: "On the street" });
    await world.owen.get(
      `mutation ($id: ID!) { updateProject(input: { id: $id, visibility: PUBLIC }) { id } }`,
      { id: world.project.id },
    );
    const { data, errors } = await world.anonymous.ask(query, { id, project: world.project.id });
    // No policy permits visitors to read any, so they are asked to sign in; for a public project, the field
    // is null.
    expect(data).toEqual({ billboard: null, billboards: null, project: { billboards: null } });
    expect(errors!.map(({ path, extensions }) => [path, extensions.code])).toEqual([
      [["billboard"], "UNAUTHENTICATED"],
      [["billboards"], "UNAUTHENTICATED"],
    ]);
    expect(await world.anonymous.refused(...create({ name: "Graffiti" }))).toMatchObject({
      code: "UNAUTHENTICATED",
    });
  });

  test("records of an archived project are read-only", async () => {
    const { createProject } = await world.owen.get(
      `mutation ($id: ID!) { createProject(input: { organizationId: $id, title: "Closed" }) { id } }`,
      { id: world.harbour.id },
    );
    const { id } = await billboard({ projectId: createProject.id, name: "Left over" });
    await world.owen.get(
      `mutation ($id: ID!) { updateProject(input: { id: $id, status: ARCHIVED }) { id } }`,
      createProject,
    );
    expect(
      await world.owen.refused(
        `mutation ($id: ID!) { updateBillboard(input: { id: $id, name: "x" }) { id } }`,
        { id },
      ),
    ).toMatchObject({ code: "PROJECT_ARCHIVED" });
    expect(
      (await world.max.get(`query ($id: ID!) { billboard(id: $id) { name } }`, { id })).billboard,
    ).toEqual({ name: "Left over" });
  });
});

test("a masked note is hidden from an agency in its field and its history", async () => {
  const { id } = await billboard({ name: "Noted" });
  await world.owen.get(
    `mutation ($id: ID!) { updateBillboard(input: { id: $id, notes: "They will go lower" }) { id } }`,
    { id },
  );
  await affiliate(world, world.project, world.summit, "MARKETER");
  const query = `query ($id: ID!) {
    billboard(id: $id) { name notes events { name changes data } }
    events(filter: { subjectId: $id }) { changes data }
  }`;
  const own = await world.owen.get(query, { id });
  expect(own.billboard.notes).toBe("They will go lower");
  expect(own.billboard.events[0].changes).toEqual({ notes: [null, "They will go lower"] });
  const theirs = await world.olga.get(query, { id });
  expect(theirs.billboard).toMatchObject({ name: "Noted", notes: null });
  expect(theirs.billboard.events.map((event: any) => [event.name, event.changes, event.data.notes])).toEqual([
    ["billboard.updated", {}, null],
    ["billboard.created", null, null],
  ]);
  expect(JSON.stringify(theirs)).not.toContain("lower");
  for (const argument of [`filter: { notes: "They will go lower" }`, "orderBy: [NOTES_ASC]"])
    expect(await world.olga.refused(`{ billboards(${argument}) { id } }`)).toMatchObject({
      message: expect.stringMatching(/notes/i),
    });
});

test("all of it has descriptions", async () => {
  const { __type: type } = await world.owen.get(
    `{ __type(name: "Billboard") { description fields { name description } } }`,
  );
  expect(type.description).toBe("A sign on the street that advertises a project.");
  expect(type.fields.filter((field: any) => !field.description)).toEqual([]);
});
