import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import type { Person } from "../harness/api.ts";
import { createBuyer } from "../harness/deals.ts";
import { createLead, createProject, type Portfolio, startPortfolio } from "../harness/portfolio.ts";
import { programOf } from "../harness/world.ts";

// Reports over columns that are rows: each shows what its reader may see, and refusals have the path of the
// fault. Permissions: outsideMatrix.test.ts.

let world: Portfolio;

beforeAll(async () => {
  world = await startPortfolio();
  const { owen, project, owner } = world;
  const purchase = await createBuyer(owen, project);
  await owner.query("update app_public.buyers set dob = '1990-05-31' where id = $1", [purchase]);
  for (const [title, status, price] of [
    ["One", "AVAILABLE", "400000.00"],
    ["Two", "AVAILABLE", "500000.50"],
    ["Three", "UNRELEASED", "250000.00"],
  ])
    await owen.get("mutation ($input: CreateUnitInput!) { createUnit(input: $input) { id } }", {
      input: { projectId: project.id, title, status, price },
    });
  // In February in the time zone of the project, in March in UTC.
  await owner.query("update app_public.leads set registered_at = '2026-03-01T02:00:00Z' where id = $1", [
    world.leads.open.id,
  ]);
  await owner.query("update app_public.leads set registered_at = '2026-03-09T02:00:00Z' where id = $1", [
    world.leads.sams.id,
  ]);
});
afterAll(() => world.stop());

const creation =
  "mutation ($input: CreateCustomReportInput!) { createCustomReport(input: $input) { id columns groupBy filter definition visibility kind version } }";
const input = (rest: Record<string, unknown> = {}) => ({
  input: {
    organizationId: world.harbour.id,
    name: "Leads",
    subject: "LEADS",
    visibility: "ORGANIZATION",
    ...rest,
  },
});
const create = async (rest?: Record<string, unknown>, person = world.owen) =>
  (await person.get(creation, input(rest))).createCustomReport as {
    id: string;
    columns: unknown;
    groupBy: string[];
    definition: any;
  };
const reading =
  "query ($id: ID!, $first: Int, $after: String) { customReport(id: $id) { lastRunAt rows(first: $first, after: $after) } }";
const rowsOf = async (id: string, person = world.owen, page: Record<string, unknown> = {}) =>
  (await person.get(reading, { id, ...page })).customReport.rows as {
    columns: { name: string; type: string }[];
    rows: Record<string, unknown>[];
    timeZone: string;
    pageInfo: { hasNextPage: boolean; endCursor: string | null };
  };
const report = async (rest: Record<string, unknown>, person = world.owen) =>
  rowsOf((await create(rest)).id, person);

describe("permissions", () => {
  test("each reader's permissions apply: a member of private projects sees their own leads", async () => {
    const { id } = await create({ columns: ["name"] });
    const names = async (person: Person) => (await rowsOf(id, person)).rows.map(({ name }) => name).sort();
    expect(await names(world.owen)).toEqual(["Maxs Molly", "Mias Manny", "Open Ollie", "Sams Sally"]);
    expect(await names(world.max)).toEqual(["Maxs Molly", "Open Ollie", "Sams Sally"]);
    const counted = await create({ groupBy: ["status"] });
    expect((await rowsOf(counted.id, world.max)).rows).toEqual([{ status: "NEW", count: 3 }]);
    expect((await rowsOf(counted.id, world.owen)).rows).toEqual([{ status: "NEW", count: 4 }]);
  });

  test("a report on a column that its reader may not see is refused, with the path", async () => {
    const { id } = await create({ subject: "BUYERS", columns: ["fullName", "dob"] });
    expect((await rowsOf(id)).rows).toEqual([{ fullName: "Bea Buyer", dob: "1990-05-31" }]);
    expect(await world.max.refused(reading, { id })).toMatchObject({
      code: "FORBIDDEN",
      permission: "buyer.pii",
      field: "columns.1",
    });
    const filtered = await create({
      subject: "BUYERS",
      columns: ["fullName"],
      filter: { dob: { from: "1990-01-01" } },
    });
    expect(await world.max.refused(reading, { id: filtered.id })).toMatchObject({
      code: "FORBIDDEN",
      field: "filter.dob",
    });
    const grouped = await create({ subject: "BUYERS", groupBy: ["dob:year"] });
    expect(await world.max.refused(reading, { id: grouped.id })).toMatchObject({
      code: "FORBIDDEN",
      field: "groupBy.0",
    });
    const sensitive = await create({ subject: "OFFERS", columns: ["floorPrice"] });
    expect(await world.max.refused(reading, { id: sensitive.id })).toMatchObject({
      code: "FORBIDDEN",
      permission: "sale.strategy",
    });
  });
});

describe("contents", () => {
  test("groups, sums, averages, minima, maxima and counts of values", async () => {
    const { rows, columns } = await report({
      subject: "UNITS",
      projectId: world.project.id,
      groupBy: ["status"],
      columns: [
        "status",
        { aggregate: "COUNT" },
        { column: "price", aggregate: "SUM" },
        { column: "price", aggregate: "AVERAGE", as: "mean" },
        { column: "price", aggregate: "MIN" },
        { column: "price", aggregate: "MAX" },
        { column: "building", aggregate: "COUNT_DISTINCT" },
      ],
    });
    expect(columns.map(({ name }) => name)).toEqual([
      "status",
      "count",
      "sumPrice",
      "mean",
      "minPrice",
      "maxPrice",
      "countDistinctBuilding",
    ]);
    expect(rows).toEqual([
      {
        status: "AVAILABLE",
        count: 2,
        sumPrice: "900000.50",
        mean: "450000.25",
        minPrice: "400000.00",
        maxPrice: "500000.50",
        countDistinctBuilding: 0,
      },
      {
        status: "UNRELEASED",
        count: 1,
        sumPrice: "250000.00",
        mean: "250000.00",
        minPrice: "250000.00",
        maxPrice: "250000.00",
        countDistinctBuilding: 0,
      },
    ]);
    expect((await report({ subject: "UNITS", columns: [{ aggregate: "COUNT", as: "all" }] })).rows).toEqual([
      { all: 3 },
    ]);
  });

  test("by month, week, day and year in the time zone of the project", async () => {
    const { project } = world;
    await world.owen.get(
      'mutation ($id: ID!) { updateProject(input: { id: $id, timeZone: "America/Toronto" }) { id } }',
      project,
    );
    const filter = { registeredAt: { from: "2026-01-01T00:00:00Z", to: "2026-04-01T00:00:00Z" } };
    const by = async (unit: string) =>
      (await report({ projectId: project.id, filter, groupBy: [`registeredAt:${unit}`] })).rows.map((row) =>
        Object.values(row),
      );
    expect(await by("month")).toEqual([
      ["2026-02-01", 1],
      ["2026-03-01", 1],
    ]);
    expect(await by("week")).toEqual([
      ["2026-02-23", 1],
      ["2026-03-02", 1],
    ]);
    expect(await by("day")).toEqual([
      ["2026-02-28", 1],
      ["2026-03-08", 1],
    ]);
    expect(await by("year")).toEqual([["2026-01-01", 2]]);
  });

  test("filters by lists, ranges, texts and null", async () => {
    const names = async (filter: unknown) =>
      (await report({ columns: ["name"], filter })).rows.map(({ name }) => name).sort();
    expect(await names({ email: "OPEN@example.com" })).toEqual(["Open Ollie"]);
    expect(await names({ email: ["open@example.com", "sams@example.com"], status: ["NEW"] })).toEqual([
      "Open Ollie",
      "Sams Sally",
    ]);
    expect(await names({ status: [] })).toEqual([]);
    expect(await names({ status: null, name: { contains: "m" }, isAgent: false })).toEqual([
      "Maxs Molly",
      "Mias Manny",
      "Sams Sally",
    ]);
    expect(await names({ assigneeId: { empty: true } })).toEqual(["Open Ollie"]);
    expect(await names({ projectId: [world.quiet.id] })).toEqual(["Maxs Molly", "Mias Manny"]);
    expect(await names({ budgetMin: { min: 1 } })).toEqual([]);
    // Texts of a filter are values, not SQL.
    expect(await names({ name: { contains: "' or true --" }, company: "x'); drop table leads; --" })).toEqual(
      [],
    );
  });

  test("pages contain all rows", async () => {
    for (const rest of [{ columns: ["name"] }, { groupBy: ["name"] }]) {
      const { id } = await create(rest);
      const seen: unknown[] = [];
      for (let [after, more]: [string | null, boolean] = [null, true]; more;) {
        const { rows, pageInfo } = await rowsOf(id, world.owen, { first: 3, after });
        seen.push(...rows.map(({ name }) => name));
        expect(seen.length).toBeLessThan(10);
        [after, more] = [pageInfo.endCursor, pageInfo.hasNextPage];
      }
      expect(seen.sort()).toEqual(["Maxs Molly", "Mias Manny", "Open Ollie", "Sams Sally"]);
    }
  });

  test("by default, the columns are those of the subject, and are stored", async () => {
    const { columns, definition } = await create();
    expect(columns).toEqual(expect.arrayContaining(["id", "name", "email", "status"]));
    expect(definition).toMatchObject({ subject: "LEADS", columns, groupBy: [] });
    const { id } = await create();
    expect(
      (await world.owen.get("query ($id: ID!) { customReport(id: $id) { lastRunAt } }", { id })).customReport
        .lastRunAt,
    ).toBeNull();
    const before = await world.owen.get("query ($id: ID!) { customReport(id: $id) { version } }", { id });
    await rowsOf(id);
    const after = await world.owen.get("query ($id: ID!) { customReport(id: $id) { lastRunAt version } }", {
      id,
    });
    expect(after.customReport).toEqual({ lastRunAt: expect.any(String), ...before.customReport });
  });

  test("a read-only token can read, and one with scopes sees what they allow", async () => {
    const { id } = await create({ columns: ["name"] });
    const token = (scopes: string[]) => programOf(world, world.owen, { readOnly: true, scopes });
    expect((await rowsOf(id, await token(["report.*", "lead.read"]))).rows).toHaveLength(4);
    expect(await (await token(["report.*"])).refused(reading, { id })).toMatchObject({
      code: "FORBIDDEN",
      field: "subject",
      permission: "lead.read",
    });
  });

  test("sums over several currencies are null", async () => {
    const { id } = await createProject(world.owen, {
      organizationId: world.harbour.id,
      title: "Dollar Drive",
      currency: "USD",
    });
    const columns = [{ column: "price", aggregate: "SUM" }];
    expect(await world.owen.refused(creation, input({ subject: "UNITS", columns }))).toMatchObject({
      code: "BAD_USER_INPUT",
      field: "columns.0",
    });
    expect((await report({ subject: "UNITS", columns, groupBy: ["currency"] })).rows).toEqual([
      { currency: "CAD", sumPrice: "1150000.50" },
    ]);
    expect((await report({ subject: "UNITS", columns, projectId: id })).rows).toEqual([{ sumPrice: null }]);
  });

  test("every column of every subject can be shown, filtered and grouped by", async () => {
    const { rows: subjects } = await world.owner.query<{
      subject: string;
      names: string[];
      groupable: string[];
    }>(
      `select c.subject, array_agg(c.name order by c.position) as names, array_agg(c.name) filter (where c.groupable) as groupable
       from app_hidden.report_columns c join app_hidden.report_subjects s using (subject) group by c.subject`,
    );
    for (const { subject, names, groupable } of subjects) {
      // A filter that matches all rows.
      const filter = Object.fromEntries(names.map((name) => [name, { empty: null }]));
      const { columns } = await report({ subject, columns: names, filter });
      expect(columns.map(({ name }) => name)).toEqual(names);
      await report({ subject, groupBy: groupable });
    }
    expect(subjects).toHaveLength(14);
  });
});

describe("refusals", () => {
  test.each<[Record<string, unknown>, string]>([
    [{ columns: ["name", "password"] }, "columns.1"],
    [{ columns: ["name; drop table leads"] }, "columns.0"],
    [{ columns: "name" }, "columns"],
    [{ columns: [] }, "columns"],
    [{ columns: [1] }, "columns.0"],
    [{ columns: ["name", "name"] }, "columns.1"],
    [{ columns: [{ column: "name", sql: "1" }] }, "columns.0"],
    [{ columns: [{ column: "name", aggregate: "SUM" }] }, "columns.0.aggregate"],
    [{ columns: [{ column: "budgetMin", aggregate: "MEDIAN" }] }, "columns.0.aggregate"],
    [{ columns: [{ column: "name", as: "" }] }, "columns.0.as"],
    [{ columns: ["name", { aggregate: "COUNT" }] }, "columns.0"],
    [{ columns: ["name"], groupBy: ["status"] }, "columns.0"],
    [{ groupBy: ["metadata"] }, "groupBy.0"],
    [{ groupBy: ["status:month"] }, "groupBy.0"],
    [{ groupBy: ["registeredAt:fortnight"] }, "groupBy.0"],
    [{ groupBy: ["status", "status"] }, "groupBy.1"],
    [{ filter: ["status"] }, "filter"],
    [{ filter: { nothing: 1 } }, "filter.nothing"],
    [{ filter: { status: ["NEW", "OLD"] } }, "filter.status.1"],
    [{ filter: { status: { min: 1 } } }, "filter.status.min"],
    [{ filter: { registeredAt: { from: "yesterday" } } }, "filter.registeredAt.from"],
    [{ filter: { budgetMin: { max: "a lot" } } }, "filter.budgetMin.max"],
    [{ filter: { isAgent: "yes" } }, "filter.isAgent"],
    [{ filter: { id: "1" } }, "filter.id"],
    [{ filter: { metadata: "x" } }, "filter.metadata"],
    [{ filter: { name: { empty: "yes" } } }, "filter.name.empty"],
    [{ visibility: "PROJECT" }, "projectId"],
    [{ name: "" }, "name"],
  ])("%j is refused at %s", async (rest, field) => {
    expect(await world.owen.refused(creation, input(rest))).toMatchObject({ code: "BAD_USER_INPUT", field });
  });

  test("refuses a project of others, an unknown cursor, an oversized page and a lost update", async () => {
    expect(await world.owen.refused(creation, input({ projectId: world.peak.id }))).toMatchObject({
      code: "NOT_FOUND",
      field: "projectId",
    });
    const { id } = await create();
    for (const after of ["x", "bm9wZQ==", Buffer.from('["a", "b"]').toString("base64")])
      expect(await world.owen.refused(reading, { id, after })).toMatchObject({
        code: "BAD_USER_INPUT",
        field: "after",
      });
    expect(await world.owen.refused(reading, { id, first: -1 })).toMatchObject({
      code: "BAD_USER_INPUT",
      field: "first",
    });
    expect(await world.owen.refused(reading, { id, first: 1001 })).toMatchObject({
      code: "LIMIT_EXCEEDED",
      limit: 1000,
    });
    const update =
      "mutation ($input: UpdateCustomReportInput!) { updateCustomReport(input: $input) { version } }";
    expect(await world.owen.refused(update, { input: { id, name: "A", expectedVersion: 7 } })).toMatchObject({
      code: "VERSION_MISMATCH",
      currentVersion: 1,
    });
    expect(await world.owen.refused(update, { input: { id, filter: { nothing: 1 } } })).toMatchObject({
      code: "BAD_USER_INPUT",
      field: "filter.nothing",
    });
  });

  test("the number of statements does not depend on the number of rows", async () => {
    const { id } = await create({ columns: ["name", "project", "assignee", "sourceName"] });
    const few = await world.statements(() => rowsOf(id));
    for (let i = 0; i < 10; i += 1)
      await createLead(world.owen, { projectId: world.park.id, name: `More ${i}` });
    const many = await world.statements(() => rowsOf(id));
    expect(many.result.rows.length).toBe(few.result.rows.length + 10);
    expect(many.count).toBe(few.count);
  });
});
