/** Lists and connections of leads and projects: filters, pages, orders, limits, and their number of SQL statements. */
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { buildSchema, type GraphQLInputObjectType, type GraphQLObjectType, isInputObjectType } from "graphql";
import { createProject } from "../harness/portfolio.ts";
import { createIn, mutationOf } from "../harness/records.ts";
import { affiliate, programOf, startWorld, type World } from "../harness/world.ts";

let world: World;
let north: { id: string; slug: string };
let bulk: { id: string; slug: string };
let source: string;

/** name → its columns; registered on that day of January 2026. */
const leads: [name: string, columns: Record<string, unknown>][] = [
  ["Ada Ng", { email: "ada@ng.example", phone: "+14165550101", tags: ["vip", "garden"], origin: "WEB_FORM" }],
  ["Bo Li", { status: "CONTACTED", tags: ["garden"], is_agent: true, company: "Li & Sons 100%" }],
  ["Cy Øst", { status: "HOT", phone: "+4989555010", origin: "IMPORT", email: "cy@oest.example" }],
  ["Di Roe", { status: "HOT", tags: [], last_interaction_at: "2026-02-03T10:00:00Z" }],
  ["Ed Poe", { status: "COLD", email: "ed@poe.example", origin: "WEB_FORM" }],
  ["Fi Moe", { status: "WARM", last_interaction_at: "2026-02-05T10:00:00Z" }],
];

const leadId = async (name: string): Promise<string> =>
  (await world.owner.query("select id from app_public.leads where name = $1", [name])).rows[0].id;

beforeAll(async () => {
  world = await startWorld();
  const { owen, harbour, project, max } = world;
  north = await createProject(owen, {
    organizationId: harbour.id,
    title: "North 100% Shore_Line",
    type: "TOWNHOME",
    status: "PRESALE",
    address: { locality: "Québec", country: "CA" },
  });
  bulk = await createProject(owen, { organizationId: harbour.id, title: "Bulk", status: "DRAFT" });
  const { rows } = await world.owner.query(
    "select id from app_public.lead_sources where project_id = $1 and code = 'WALK_IN'",
    [project.id],
  );
  source = rows[0].id;
  for (const [index, [name, columns]] of leads.entries()) {
    const row: Record<string, unknown> = {
      name,
      project_id: name === "Fi Moe" ? north.id : project.id,
      registered_at: `2026-01-${String(index + 1).padStart(2, "0")}T12:00:00Z`,
      ...(name === "Ed Poe" ? { source_id: source, assignee_id: max.id } : {}),
      ...columns,
    };
    const names = Object.keys(row);
    await world.owner.query(
      `insert into app_public.leads (${names.join(", ")}) values (${names.map((_, i) => `$${i + 1}`).join(", ")})`,
      Object.values(row),
    );
  }
  // All have the same time, so only the id determines their order.
  await world.owner.query(
    `insert into app_public.leads (project_id, name, registered_at, email, status)
     select $1, 'Bulk ' || n, '2025-06-01T00:00:00Z', case when n % 3 > 0 then 'bulk' || n || '@example.com' end,
       case n % 2 when 0 then 'NEW' else 'HOT' end
     from generate_series(1, 130) n`,
    [bulk.id],
  );
  await owen.get(
    `mutation ($open: CreateTaskInput!, $done: CreateTaskInput!) { a: createTask(input: $open) { id } b: createTask(input: $done) { id } }`,
    {
      open: { leadId: await leadId("Di Roe"), title: "Call" },
      done: { leadId: await leadId("Ed Poe"), title: "Called" },
    },
  );
  await world.owner.query("update app_public.tasks set status = 'COMPLETED' where title = 'Called'");
  await owen.get(`mutation ($id: ID!) { updateProject(input: { id: $id, slug: "renamed-north" }) { id } }`, {
    id: north.id,
  });
});
afterAll(() => world.stop());

/** The names that a filter finds, from each list of leads; all must agree. */
async function found(filter: Record<string, unknown> | null): Promise<string[]> {
  const data = await world.owen.get(
    `query ($filter: LeadsFilter) {
      leads(filter: $filter, first: 1000) { name }
      sorted: leads(filter: $filter, first: 1000, orderBy: [ID_ASC]) { name }
      leadsConnection(filter: $filter, first: 1000) { totalCount nodes { name } aggregates { distinctCount { id } } }
    }`,
    { filter },
  );
  const names = data.leads.map((lead: any) => lead.name);
  expect(data.leadsConnection.nodes.map((lead: any) => lead.name)).toEqual(names);
  expect(data.sorted.map((lead: any) => lead.name).sort()).toEqual([...names].sort());
  expect(data.leadsConnection.totalCount).toBe(names.length);
  expect(Number(data.leadsConnection.aggregates.distinctCount.id)).toBe(names.length);
  return names.filter((name: string) => !name.startsWith("Bulk"));
}

const everybody = leads.map(([name]) => name).reverse();
const not = (...names: string[]) => everybody.filter((name) => !names.includes(name));

describe("the filter of leads", () => {
  test.each<[string, () => Record<string, unknown> | null, string[]]>([
    ["nothing", () => null, everybody],
    ["an empty filter", () => ({}), everybody],
    [
      "members that are null",
      () => ({ status: null, projectIds: null, query: null, isAgent: null, registeredAt: null }),
      everybody,
    ],
    ["one status", () => ({ status: ["HOT"] }), ["Di Roe", "Cy Øst"]],
    ["several statuses", () => ({ status: ["HOT", "COLD"] }), ["Ed Poe", "Di Roe", "Cy Øst"]],
    ["a status twice", () => ({ status: ["COLD", "COLD"] }), ["Ed Poe"]],
    ["no status", () => ({ status: [] }), []],
    ["a project", () => ({ projectIds: [north.id] }), ["Fi Moe"]],
    [
      "projects by slug, a former one too",
      () => ({ projectIds: ["north-100-shore-line", world.project.slug] }),
      everybody,
    ],
    ["a project twice", () => ({ projectIds: [north.id, "renamed-north"] }), ["Fi Moe"]],
    ["an unknown project", () => ({ projectIds: ["nowhere"] }), []],
    ["no project", () => ({ projectIds: [] }), []],
    ["an assignee", () => ({ assigneeIds: [world.max.id] }), ["Ed Poe"]],
    ["no assignee of a list", () => ({ assigneeIds: [] }), []],
    ["unassigned", () => ({ unassigned: true }), not("Ed Poe")],
    ["assigned", () => ({ unassigned: false }), ["Ed Poe"]],
    ["a lead source", () => ({ leadSourceIds: [source] }), ["Ed Poe"]],
    ["origins", () => ({ origin: ["WEB_FORM", "IMPORT"] }), ["Ed Poe", "Cy Øst", "Ada Ng"]],
    ["a tag", () => ({ tags: ["garden"] }), ["Bo Li", "Ada Ng"]],
    ["any of the tags", () => ({ tags: ["vip", "nope"] }), ["Ada Ng"]],
    ["no tag of a list", () => ({ tags: [] }), []],
    ["an email address, whatever the case", () => ({ email: " ADA@ng.Example " }), ["Ada Ng"]],
    ["a phone number with its country code", () => ({ phone: "+1 (416) 555-0101" }), ["Ada Ng"]],
    ["the last digits of a phone number", () => ({ phone: "555 0101" }), ["Ada Ng"]],
    ["a phone number without digits", () => ({ phone: "unknown" }), []],
    ["agents", () => ({ isAgent: true }), ["Bo Li"]],
    ["a word, without accents", () => ({ query: "ost" }), ["Cy Øst"]],
    ["several words in any order", () => ({ query: " ng  ADA " }), ["Ada Ng"]],
    ["wildcards as they are", () => ({ query: "100%" }), ["Bo Li"]],
    ["an underscore as it is", () => ({ query: "_" }), []],
    ["a query of spaces only", () => ({ query: "   " }), everybody],
    [
      "registered from, included",
      () => ({ registeredAt: { from: "2026-01-05T12:00:00Z" } }),
      ["Fi Moe", "Ed Poe"],
    ],
    ["registered to, excluded", () => ({ registeredAt: { to: "2026-01-02T12:00:00+00:00" } }), ["Ada Ng"]],
    [
      "registered within, in any zone",
      () => ({ registeredAt: { from: "2026-01-02T07:00:00-05:00", to: "2026-01-03T12:00:00Z" } }),
      ["Bo Li"],
    ],
    ["an open range", () => ({ registeredAt: { from: null, to: null } }), everybody],
    ["changed since", () => ({ updatedAt: { from: "2020-01-01T00:00:00Z" } }), everybody],
    ["changed before", () => ({ updatedAt: { to: "2020-01-01T00:00:00Z" } }), []],
    ["last interaction", () => ({ lastInteractionAt: { from: "2026-02-04T00:00:00Z" } }), ["Fi Moe"]],
    [
      "members together",
      () => ({ status: ["HOT"], query: "roe", unassigned: true, projectIds: [world.project.id] }),
      ["Di Roe"],
    ],
    ["something to do", () => ({ hasOpenTask: true }), ["Di Roe"]],
    ["nothing to do", () => ({ hasOpenTask: false }), not("Di Roe")],
    ["members that contradict", () => ({ status: ["HOT"], assigneeIds: [world.max.id] }), []],
    ["one or another", () => ({ or: [{ status: ["COLD"] }, { tags: ["vip"] }] }), ["Ed Poe", "Ada Ng"]],
    [
      "one or another, and a third",
      () => ({ or: [{ status: ["COLD"] }, { status: ["HOT"] }], query: "o" }),
      ["Ed Poe", "Di Roe", "Cy Øst"],
    ],
    ["each of several", () => ({ and: [{ tags: ["vip"] }, { tags: ["garden"] }] }), ["Ada Ng"]],
    ["not, without the value too", () => ({ not: { assigneeIds: [world.max.id] } }), not("Ed Poe")],
    [
      "nested",
      () => ({ not: { or: [{ status: ["HOT"] }, { and: [{ isAgent: true }, { tags: ["garden"] }] }] } }),
      not("Di Roe", "Cy Øst", "Bo Li"),
    ],
    ["all of none", () => ({ and: [] }), everybody],
    ["one of none", () => ({ or: [] }), []],
    ["not of nothing", () => ({ not: {} }), []],
    [
      "a project or a word",
      () => ({ or: [{ projectIds: [north.slug] }, { query: "roe" }] }),
      ["Fi Moe", "Di Roe"],
    ],
  ])("%s", async (_what, filter, expected) => {
    expect(await found(filter())).toEqual(expected);
  });

  test("an invalid id is refused with the name of the field", async () => {
    for (const member of ["assigneeIds", "leadSourceIds"]) {
      const refusal = await world.owen.refused(
        `query ($filter: LeadsFilter) { leads(filter: $filter) { id } }`,
        {
          filter: { [member]: ["nobody"] },
        },
      );
      expect(refusal).toMatchObject({ code: "BAD_USER_INPUT", field: member });
    }
  });
});

test("combined filters are bounded, and errors are reported with their path", async () => {
  const refused = (filter: unknown) =>
    world.owen.refused(`query ($filter: LeadsFilter) { leads(filter: $filter) { id } }`, { filter });
  const deep = (levels: number): object =>
    levels === 0 ? { status: ["NEW"] } : { not: { or: [deep(levels - 1)] } };
  expect(await refused(deep(9))).toMatchObject({ code: "BAD_USER_INPUT", field: "not" });
  expect(await refused({ or: Array.from({ length: 51 }, () => ({ status: ["NEW"] })) })).toMatchObject({
    code: "BAD_USER_INPUT",
    field: "or",
  });
  expect(await refused({ or: [{ includeDeleted: true }] })).toMatchObject({
    code: "BAD_USER_INPUT",
    field: "or",
    message: "includeDeleted is only allowed at the top level of the filter.",
  });
  // Operations on all matching leads only accept simple fields.
  expect(
    await world.owen.refused(`mutation ($i: UpdateLeadsInput!) { updateLeads(input: $i) { updatedCount } }`, {
      i: { filter: { or: [{ status: ["NEW"] }] }, status: "COLD" },
    }),
  ).toMatchObject({ code: "BAD_USER_INPUT", field: "filter.or" });
});

describe("the filter of projects", () => {
  test.each<[string, () => Record<string, unknown> | null, string[]]>([
    ["nothing", () => null, ["Bulk", "Harbour View", "North 100% Shore_Line"]],
    ["status", () => ({ status: ["DRAFT", "PRESALE"] }), ["Bulk", "North 100% Shore_Line"]],
    ["no status", () => ({ status: [] }), []],
    ["type", () => ({ type: ["TOWNHOME"] }), ["North 100% Shore_Line"]],
    ["city", () => ({ city: " QUÉBEC" }), ["North 100% Shore_Line"]],
    [
      "organization, by slug",
      () => ({ organizationId: world.harbour.slug }),
      ["Bulk", "Harbour View", "North 100% Shore_Line"],
    ],
    ["another organization", () => ({ organizationId: world.summit.id }), []],
    ["archived", () => ({ archived: true }), []],
    ["not archived", () => ({ archived: false, status: ["SELLING"] }), ["Harbour View"]],
    ["query", () => ({ query: "harbour" }), ["Harbour View"]],
    ["query, wildcards as they are", () => ({ query: "100%" }), ["North 100% Shore_Line"]],
    ["query, an underscore as it is", () => ({ query: "e_l" }), ["North 100% Shore_Line"]],
    ["query, nothing like it", () => ({ query: "u_k" }), []],
  ])("%s", async (_what, filter, expected) => {
    const data = await world.owen.get(
      `query ($filter: ProjectsFilter, $harbour: ID!) {
        projects(filter: $filter, sort: TITLE) { title }
        projectsConnection(filter: $filter) { totalCount nodes { title } }
        organization(id: $harbour) { projects(filter: $filter, sort: TITLE) { title } }
      }`,
      { filter: filter(), harbour: world.harbour.id },
    );
    expect(data.projects.map((p: any) => p.title)).toEqual(expected);
    expect(data.organization.projects).toEqual(data.projects);
    expect(data.projectsConnection.nodes.map((p: any) => p.title).sort()).toEqual(expected);
    expect(data.projectsConnection.totalCount).toBe(expected.length);
  });
});

describe("pages", () => {
  const lists = {
    leads: (args: string) => `{ list: leads${args} { id } }`,
    "leads in another order": (args: string) =>
      `{ list: leads${args.replace("(", "(orderBy: [STATUS_ASC], ")} { id } }`,
    "project.leads": (args: string) => `{ around: project(id: "bulk") { list: leads${args} { id } } }`,
    leadsConnection: (args: string) => `{ around: leadsConnection${args} { list: nodes { id } } }`,
  };

  test.each(Object.entries(lists))("%s: 100 by default, 1000 at most", async (_name, list) => {
    const count = async (args: string) => {
      const data = await world.owen.get(list(args));
      return (data.list ?? data.around.list).length;
    };
    expect(await count("")).toBe(100);
    expect(await count("(first: null)")).toBe(100);
    expect(await count("(first: 0)")).toBe(0);
    expect(await count("(first: 7)")).toBe(7);
    expect(await count("(first: 1000)")).toBeGreaterThanOrEqual(130);
    expect(await world.owen.refused(list("(first: 1001)"))).toMatchObject({
      code: "LIMIT_EXCEEDED",
      field: "first",
      limit: 1000,
    });
    expect(await world.owen.refused(list("(first: -1)"))).toMatchObject({
      code: "BAD_USER_INPUT",
      field: "first",
    });
  });

  test.each(Object.entries(lists).slice(0, 3))(
    "%s: offset skips rows, and pages are contiguous",
    async (_name, list) => {
      const page = async (args: string) => {
        const data = await world.owen.get(list(args));
        return (data.list ?? data.around.list).map((lead: any) => lead.id);
      };
      const all = await page("(first: 1000)");
      const pages: string[] = [];
      for (let offset = 0; offset < all.length; offset += 29)
        pages.push(...(await page(`(first: 29, offset: ${offset})`)));
      expect(pages).toEqual(all);
      expect(await page("(offset: 2147483647)")).toEqual([]);
      expect(await world.owen.refused(list("(offset: -1)"))).toMatchObject({
        code: "BAD_USER_INPUT",
        field: "offset",
      });
    },
  );

  test.each([
    "",
    "orderBy: [STATUS_ASC],",
    "orderBy: [EMAIL_ASC],",
    "orderBy: [EMAIL_DESC],",
    "orderBy: [STATUS_DESC, EMAIL_ASC],",
    "orderBy: [ID_ASC],",
  ])("cursors page through all rows once (%s)", async (order) => {
    const seen: string[] = [];
    let after: string | null = null;
    for (let pages = 0; pages < 20; pages++) {
      const { leadsConnection } = await world.owen.get(
        `query ($after: Cursor) { leadsConnection(${order} first: 17, after: $after) {
            nodes { id } totalCount pageInfo { hasNextPage endCursor } } }`,
        { after },
      );
      seen.push(...leadsConnection.nodes.map((lead: any) => lead.id));
      expect(leadsConnection.totalCount).toBe(136);
      after = leadsConnection.pageInfo.endCursor;
      if (!leadsConnection.pageInfo.hasNextPage) break;
    }
    const { leads: all } = await world.owen.get(`{ leads(${order} first: 1000) { id } }`);
    expect(seen).toEqual(all.map((lead: any) => lead.id));
  });

  test("a list that ends at its default size reports that; one with an explicit size does not", async () => {
    const query = `query ($first: Int) { leads(first: $first) { id } project(id: "bulk") { leads { id } } }`;
    const shortened = async (variables: object) =>
      ((await world.owen.ask(query, { ...variables })) as any).extensions.fullPages;
    const ofProject = { path: ["project", "leads"], first: 100 };
    expect(await shortened({})).toEqual([{ path: ["leads"], first: 100 }, ofProject]);
    expect(await shortened({ first: 100 })).toEqual([ofProject]);
  });

  test("an invalid cursor, or one of another order, is refused", async () => {
    const { leadsConnection } = await world.owen.get(
      `{ leadsConnection(first: 1) { pageInfo { endCursor } } }`,
    );
    const cursors = ["garbage", "", "bnVsbA==", Buffer.from('["x","y","z"]').toString("base64")];
    for (const after of cursors) {
      const refusal = await world.owen.refused(
        `query ($after: Cursor) { leadsConnection(after: $after) { nodes { id } } }`,
        { after },
      );
      expect([after, refusal.code]).toEqual([after, "BAD_USER_INPUT"]);
    }
    const refusal = await world.owen.refused(
      `query ($after: Cursor) { leadsConnection(after: $after, orderBy: [STATUS_ASC]) { nodes { id } } }`,
      { after: leadsConnection.pageInfo.endCursor },
    );
    expect(refusal.code).toBe("BAD_USER_INPUT");
  });
});

describe("connections of a record", () => {
  const ofBulk = (args: string, fields: string) =>
    `query${args.includes("$at") ? " ($at: Cursor)" : ""} { project(id: "bulk") { leadsConnection${args} { ${fields} } } }`;
  const page = async (args: string, at: string | null) =>
    (
      await world.owen.get(
        ofBulk(
          args,
          "nodes { id } totalCount pageInfo { hasNextPage hasPreviousPage startCursor endCursor } ",
        ),
        { at },
      )
    ).project.leadsConnection;
  const walk = async (order: string, backwards: boolean) => {
    const seen: string[] = [];
    let at: string | null = null;
    for (let pages = 0; pages < 20; pages++) {
      const place: string = backwards ? "last: 17, before: $at" : "first: 17, after: $at";
      const { nodes, totalCount, pageInfo }: any = await page(`(${order} ${place})`, at);
      const ids = nodes.map((lead: any) => lead.id);
      if (backwards) seen.unshift(...ids);
      else seen.push(...ids);
      expect(totalCount).toBe(130);
      at = backwards ? pageInfo.startCursor : pageInfo.endCursor;
      if (!(backwards ? pageInfo.hasPreviousPage : pageInfo.hasNextPage)) return seen;
    }
    throw new Error("The pages have no end.");
  };

  test.each([
    ["", false],
    ["", true],
    ["orderBy: [EMAIL_DESC],", false],
    ["orderBy: [EMAIL_DESC],", true],
    ["orderBy: [STATUS_ASC, EMAIL_DESC],", true],
  ])("cursors page through the list once (%s backwards: %s)", async (order, backwards) => {
    const { project } = await world.owen.get(
      `{ project(id: "bulk") { leads(${order} first: 1000) { id } } }`,
    );
    expect(await walk(order, backwards)).toEqual(project.leads.map((lead: any) => lead.id));
  });

  test("100 records without a size, filtered like the list; sizes are validated", async () => {
    expect((await page("", null)).nodes).toHaveLength(100);
    const hot = await page("(filter: { status: [HOT] }, last: 3)", null);
    const { project } = await world.owen.get(
      `{ project(id: "bulk") { leads(filter: { status: [HOT] }, first: 1000) { id } } }`,
    );
    expect(hot.totalCount).toBe(project.leads.length);
    expect(hot.nodes).toEqual(project.leads.slice(-3));
    const refusal = async (args: string) => await world.owen.refused(ofBulk(args, "totalCount nodes { id }"));
    expect(await refusal("(last: -1)")).toMatchObject({ code: "BAD_USER_INPUT", field: "last" });
    expect(await refusal("(last: 1001)")).toMatchObject({ code: "LIMIT_EXCEEDED", field: "last" });
    expect(await refusal("(first: 1001)")).toMatchObject({ code: "LIMIT_EXCEEDED", field: "first" });
    expect(await refusal('(before: "garbage", last: 1)')).toMatchObject({ code: "BAD_USER_INPUT" });
  });

  test("lists that a function or a permission restricts can be paged in both directions too", async () => {
    const { project } = await world.owen.get(
      `{ project(id: "${world.project.id}") { events(first: 1000) { id } } }`,
    );
    const all = project.events.map((event: any) => event.id);
    const part = async (args: string) =>
      (
        await world.owen.get(
          `{ project(id: "${world.project.id}") { eventsConnection(${args}) { nodes { id } totalCount pageInfo { startCursor endCursor } } } }`,
        )
      ).project.eventsConnection;
    const head = await part("first: 3");
    const next = await part(`first: 2, after: "${head.pageInfo.endCursor}"`);
    const back = await part(`last: 2, before: "${next.pageInfo.startCursor}"`);
    const tail = await part("last: 2");
    expect(all.length).toBeGreaterThan(5);
    expect(tail.totalCount).toBe(all.length);
    const ids = ({ nodes }: any) => nodes.map(({ id }: any) => id);
    expect([head, next, back, tail].map(ids)).toEqual([
      all.slice(0, 3),
      all.slice(3, 5),
      all.slice(1, 3),
      all.slice(-2),
    ]);
  });

  test("each connection equals its list, for every viewer", async () => {
    const { owen, max, olga, anonymous, harbour, summit, project } = world;
    const schema = buildSchema(await readFile(join(import.meta.dirname, "../../schema.graphql"), "utf8"));
    const pairs = (typeName: string) => {
      const fields = (schema.getType(typeName) as GraphQLObjectType).getFields();
      return Object.keys(fields).filter((name) => fields[`${name}Connection`]);
    };
    const sides = (typeName: string, side: (name: string) => string) => pairs(typeName).map(side).join(" ");
    const lists = (typeName: string) => sides(typeName, (name) => `${name}(first: 1000) { id }`);
    const totals = (typeName: string) =>
      sides(typeName, (name) => `${name}: ${name}Connection { totalCount }`);
    const nodes = (typeName: string) =>
      sides(typeName, (name) => `${name}: ${name}Connection(first: 1000) { nodes { id } }`);
    await owen.get(mutationOf("updateProject", "{ id }"), {
      input: { id: project.id, visibility: "PUBLIC" },
    });
    await affiliate(world, project, summit, "SELLER");
    const own = await leadId("Cy Øst");
    await world.owner.query("update app_public.leads set assignee_id = $2 where id = $1", [own, olga.id]);
    const robot = await programOf(world, owen, { scopes: ["project.read", "org.member"] });
    const records: [typeName: string, field: string][] = [
      ["Project", `project(id: "${project.id}")`],
      ["Lead", `lead(id: "${await leadId("Di Roe")}")`],
      ["Organization", `organization(id: "${harbour.id}")`],
    ];
    const shown: Record<string, number | null | undefined> = {};
    for (const [who, person] of Object.entries({ owen, max, olga, robot, anonymous }))
      for (const [typeName, field] of records) {
        const read = async (selection: string) => {
          const { data, errors = [] } = await person.ask(`{ it: ${field} { ${selection} } }`);
          expect([who, typeName, errors.filter(({ path }) => path!.length > 1)]).toEqual([who, typeName, []]);
          return data?.it;
        };
        const [plain, total, whole] = [
          await read(lists(typeName)),
          await read(totals(typeName)),
          await read(nodes(typeName)),
        ];
        const of = (make: (list: any, name: string) => unknown) =>
          plain && Object.fromEntries(pairs(typeName).map((name) => [name, make(plain[name], name)]));
        expect([who, total]).toEqual([who, of((list) => list && { totalCount: list.length })]);
        expect([who, whole]).toEqual([who, of((list) => list && { nodes: list })]);
        shown[`${who} ${typeName}`] = plain && (plain.leads ?? plain.tasks)?.length;
      }
    // Sellers see their own leads; without the permission a list is null, and without the record there is
    // none.
    const none = undefined;
    expect(shown).toEqual({
      ...{ "owen Project": 5, "owen Lead": 1, "owen Organization": 2 },
      ...{ "max Project": 5, "max Lead": 1, "max Organization": 2 },
      ...{ "olga Project": 1, "olga Lead": null, "olga Organization": none },
      ...{ "robot Project": none, "robot Lead": null, "robot Organization": 0 },
      ...{ "anonymous Project": none, "anonymous Lead": null, "anonymous Organization": none },
    });
    await owen.get(mutationOf("updateProject", "{ id }"), {
      input: { id: project.id, visibility: "PRIVATE" },
    });
    await world.owner.query("update app_public.leads set assignee_id = null where id = $1", [own]);
    await world.owner.query("delete from app_public.project_organizations where organization_id = $1", [
      summit.id,
    ]);
  });
});

describe("orders", () => {
  const titles = async (query: string) => (await world.owen.get(query)).list.map((p: any) => p.title);

  test("projects: last updated first, or as `sort` requests; orderBy takes precedence", async () => {
    await world.owen.get(`mutation { updateProject(input: { id: "bulk", design: "Touched" }) { id } }`);
    expect((await titles("{ list: projects { title } }"))[0]).toBe("Bulk");
    expect((await titles("{ list: projects(sort: UPDATED_AT) { title } }"))[0]).toBe("Bulk");
    expect(await titles("{ list: projects(sort: NEWEST) { title } }")).toEqual([
      "Bulk",
      "North 100% Shore_Line",
      "Harbour View",
    ]);
    expect(await titles("{ list: projects(sort: NEWEST, orderBy: [SLUG_DESC]) { title } }")).toEqual([
      "North 100% Shore_Line",
      "Harbour View",
      "Bulk",
    ]);
    const { organization } = await world.owen.get(
      `{ organization(id: "${world.harbour.slug}") { projects { title } } }`,
    );
    expect(organization.projects[0].title).toBe("Bulk");
  });

  test("public projects: best service index first", async () => {
    await world.owner.query(
      "update app_public.projects set visibility = 'PUBLIC', service_index = case slug when 'bulk' then 90 else 10 end",
    );
    expect((await titles("{ list: publicProjects { title } }"))[0]).toBe("Bulk");
    expect(await titles("{ list: publicProjects(sort: TITLE, first: 1, offset: 1) { title } }")).toEqual([
      "Harbour View",
    ]);
    expect(await titles(`{ list: publicProjects(city: "québec") { title } }`)).toEqual([
      "North 100% Shore_Line",
    ]);
    expect(await titles(`{ list: publicProjects(filter: { status: [] }) { title } }`)).toEqual([]);
    await world.owner.query("update app_public.projects set visibility = 'PRIVATE', service_index = 0");
    expect(await titles("{ list: publicProjects { title } }")).toEqual([]);
  });
});

describe("aggregates", () => {
  test("leads are counted by status and by month", async () => {
    const { leadsConnection } = await world.owen.get(
      `{ leadsConnection { byStatus: groupedAggregates(groupBy: [STATUS]) { keys distinctCount { id } }
        byMonth: groupedAggregates(groupBy: [REGISTERED_AT_TRUNCATED_TO_MONTH]) { keys distinctCount { id } } } }`,
    );
    const counts = (groups: any[]) =>
      Object.fromEntries(groups.map((group) => [group.keys.join(), Number(group.distinctCount.id)]));
    expect(counts(leadsConnection.byStatus)).toEqual({ NEW: 66, CONTACTED: 1, HOT: 67, COLD: 1, WARM: 1 });
    expect(counts(leadsConnection.byMonth)).toEqual({
      "2025-06-01T00:00:00Z": 130,
      "2026-01-01T00:00:00Z": 6,
    });
  });
});

describe("written data are read", () => {
  test("in every list, immediately, until they are deleted", async () => {
    const { createLead } = await world.owen.get(
      `mutation ($id: ID!) { createLead(input: { projectId: $id, name: "Gus New", email: "gus@new.example" }) { id } }`,
      { id: north.id },
    );
    const query = `query ($id: ID!, $project: ID!, $deleted: Boolean) { lead(id: $id) { id }
      leads(filter: { query: "gus new", includeDeleted: $deleted }) { id deletedAt }
      leadsConnection(filter: { email: "gus@new.example", includeDeleted: $deleted }) { totalCount nodes { id } }
      project(id: $project) { leads(filter: { status: [NEW], includeDeleted: $deleted }) { id } } }`;
    const variables = { id: createLead.id, project: north.id };
    const one = [{ id: createLead.id }];
    expect(await world.owen.get(query, variables)).toEqual({
      lead: one[0],
      leads: [{ ...one[0], deletedAt: null }],
      leadsConnection: { totalCount: 1, nodes: one },
      project: { leads: one },
    });
    await world.max.get(`mutation ($id: ID!) { deleteLead(input: { id: $id }) { id } }`, {
      id: createLead.id,
    });
    const gone = {
      lead: null,
      leads: [],
      leadsConnection: { totalCount: 0, nodes: [] },
      project: { leads: [] },
    };
    expect(await world.owen.get(query, variables)).toEqual(gone);
    // Admins can include deleted records.
    expect(await world.ada.get(query, { ...variables, deleted: true })).toEqual({
      lead: null,
      leads: [{ ...one[0], deletedAt: expect.any(String) }],
      leadsConnection: { totalCount: 1, nodes: one },
      project: { leads: one },
    });
    expect(await world.max.get(query, { ...variables, deleted: true })).toEqual(gone);
  });
});

describe("nested lists", () => {
  test("accept the same arguments", async () => {
    const { project } = await world.owen.get(
      `{ project(id: "${world.project.id}") {
        hot: leads(filter: { status: [HOT] }, first: 1, offset: 1) { name }
        byEmail: leads(filter: { origin: [WEB_FORM] }, orderBy: [EMAIL_DESC]) { name }
        leads { name } } }`,
    );
    expect(project).toEqual({
      hot: [{ name: "Cy Øst" }],
      byEmail: [{ name: "Ed Poe" }, { name: "Ada Ng" }],
      leads: not("Fi Moe").map((name) => ({ name })),
    });
  });

  test("notes: pinned first, then newest; events: latest first", async () => {
    const [lead] = (await world.owen.get(`{ leads(filter: { query: "roe" }) { id } }`)).leads;
    for (const [text, pinned] of [
      ["one", false],
      ["two", true],
      ["three", false],
    ])
      await world.owen.get(
        `mutation ($input: CreateLeadNoteInput!) { createLeadNote(input: $input) { id } }`,
        {
          input: { leadId: lead.id, text, pinned },
        },
      );
    await world.owen.get(
      `mutation ($id: ID!) { updateLead(input: { id: $id, company: "Roe Inc" }) { id } }`,
      { id: lead.id },
    );
    const data = await world.owen.get(
      `query ($id: ID!) { lead(id: $id) { notes { text } events { name } project { events(first: 3) { name } } } }`,
      { id: lead.id },
    );
    expect(data.lead.notes.map((n: any) => n.text)).toEqual(["two", "three", "one"]);
    expect(data.lead.events.map((e: any) => e.name)).toEqual(["lead.updated", "lead.created"]);
    expect(data.lead.project.events.map((e: any) => e.name)).toEqual([
      "lead.updated",
      "lead_note.created",
      "lead_note.created",
    ]);
  });
});

describe("SQL statements", () => {
  const rich = (
    first: number,
  ) => `{ leads(first: ${first}, filter: { projectIds: ["bulk"] }) { id name email project { title organization { name } }
    leadSource { name } assignee { firstName email } agent { name } falloutReason { name }
    notes { text author { firstName } } events { name actor { firstName } } allowedTransitions { to } } }`;
  const connected = (first: number) =>
    `{ leadsConnection(first: ${first}) { totalCount nodes { id project { title } notes { text } } } }`;

  beforeAll(async () => {
    await world.owner.query(
      `insert into app_public.lead_notes (lead_id, text, author_id)
       select l.id, 'Note ' || n, $2 from app_public.leads l, generate_series(1, 2) n where l.project_id = $1`,
      [bulk.id, world.owen.id],
    );
    await world.owner.query("update app_public.leads set assignee_id = $2 where project_id = $1", [
      bulk.id,
      world.max.id,
    ]);
  });

  test.each([
    ["leads with all around them", rich],
    ["a connection with its total", connected],
  ])("%s: 50 records take as many statements as 1", async (_name, query) => {
    const one = await world.statements(() => world.owen.get(query(1)));
    const fifty = await world.statements(() => world.owen.get(query(50)));
    const list = fifty.result.leads ?? fifty.result.leadsConnection.nodes;
    expect(list).toHaveLength(50);
    expect(list.at(-1).notes).toHaveLength(2);
    expect(fifty.count).toBe(one.count);
    expect(fifty.count).toBeLessThanOrEqual(query === rich ? 3 : 2);
  });

  test("connections of many records take as many statements as those of one", async () => {
    const query = (first: number) =>
      `{ leads(first: ${first}, filter: { projectIds: ["bulk"] }) { id eventsConnection(first: 2) { totalCount nodes { name } }
        tasksConnection(last: 2) { totalCount nodes { id } pageInfo { hasPreviousPage } } } }`;
    await world.owen.get(query(1));
    const one = await world.statements(() => world.owen.get(query(1)));
    const fifty = await world.statements(() => world.owen.get(query(50)));
    expect(fifty.result.leads).toHaveLength(50);
    expect(fifty.count).toBe(one.count);
  });
});

test("filters by ids find the same as the deprecated ones by an id", async () => {
  const { owen, harbour, project } = world;
  const create = createIn(owen);
  for (const projectId of [project.id, north.id])
    await create("createUnit", { projectId, title: "Home", status: "AVAILABLE", price: "1" });
  const [lead] = [await leadId("Ada Ng")];
  const former: [list: string, name: string, id: string, isEmpty?: true][] = [
    ["units", "projectId", north.slug],
    ["events", "projectId", north.id],
    ["events", "organizationId", harbour.id],
    ["projects", "organizationId", harbour.slug],
    ["processorCharges", "organizationId", harbour.id, true],
    ["processorCharges", "depositId", lead, true],
    ["processorCharges", "reservationId", lead, true],
    ["events", "subjectId", project.id],
    ["escalationTickets", "subjectId", lead, true],
    ["escalationTickets", "leadId", lead, true],
    ["escalationTickets", "buyerId", lead, true],
  ];
  for (const [list, name, id, isEmpty = false] of former) {
    const field = (filter: string) =>
      list === "escalationTickets"
        ? `organization(id: "${harbour.id}") { ${list}(filter: ${filter}) { id } }`
        : `${list}(filter: ${filter}) { id }`;
    const { one, many } = await owen.get(
      `query ($id: ID!) { one: ${field(`{ ${name}: $id }`)} many: ${field(`{ ${name}s: [$id] }`)} }`,
      { id },
    );
    expect([list, name, many]).toEqual([list, name, one]);
    expect([list, name, (many[list] ?? many).length === 0]).toEqual([list, name, isEmpty]);
  }
  const { both, none } = await owen.get(
    `query ($ids: [ID!]!, $one: ID!) { both: units(filter: { projectIds: $ids }) { id }
       none: units(filter: { projectIds: [$one], projectId: "${project.id}" }) { id } }`,
    { ids: [project.id, north.slug], one: north.id },
  );
  expect([both.length, none.length]).toEqual([2, 0]);
  const schema = buildSchema(await readFile(join(import.meta.dirname, "../../schema.graphql"), "utf8"));
  const deprecated = Object.values(schema.getTypeMap())
    .filter((type) => isInputObjectType(type) && type.name.endsWith("Filter"))
    .flatMap((type) => Object.values((type as GraphQLInputObjectType).getFields()))
    .filter(({ deprecationReason }) => deprecationReason);
  expect(deprecated).toHaveLength(former.length);
});

test("a deleted record is listed with its related records that are not deleted", async () => {
  const { owen } = world;
  const create = createIn(owen);
  const id = await leadId("Bo Li");
  const agreement = await create("createAgreement", { leadId: id, title: "Draft", type: "PURCHASE" });
  const signer = await create("createAgreementSigner", {
    agreementId: agreement,
    name: "Bo Li",
    email: "bo@li.example",
    role: "BUYER",
  });
  const query = `query ($id: ID!) { lead(id: $id) { agreements(filter: { includeDeleted: true }) {
    deletedAt signers(filter: { includeDeleted: true }) { id agreement { id } } } } }`;
  const listed = async () => (await owen.get(query, { id })).lead.agreements;
  const remove = (field: string, input: object) => owen.get(mutationOf(field, "{ __typename }"), { input });
  await remove("deleteAgreementSigner", { id: signer });
  expect(await listed()).toEqual([
    { deletedAt: null, signers: [{ id: signer, agreement: { id: agreement } }] },
  ]);
  await remove("deleteAgreement", { id: agreement });
  expect(await listed()).toEqual([{ deletedAt: expect.any(String), signers: [] }]);
});
