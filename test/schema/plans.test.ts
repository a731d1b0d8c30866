/**
 * Plans of lists with realistic numbers of rows: an organization with 60,000 leads beside others. Tests how
 * rows are found and how many are read, not the duration.
 */
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import type { Api, Person } from "../harness/api.ts";
import { startLargeOrganization } from "../harness/largeOrganization.ts";
import { cost, explain, scanned } from "../harness/explain.ts";

const LEADS = 60_000;
let api: Api;
let owner: Person, member: Person, seller: Person;
let project: string;

beforeAll(async () => {
  // Also small organizations, because with few organizations, the statistics would suggest that any has most
  // of the rows.
  const small = Array.from({ length: 40 }, (_, n) => ({ name: `small-${n}`, leads: 5, projects: 1 }));
  ({ api, owner, member, seller, project } = await startLargeOrganization(
    { leads: LEADS, events: 20_000 },
    () => ({ leads: 5_000 }),
    undefined,
    small,
  ));
});
afterAll(() => api.stop());

const list = "query ($filter: LeadsFilter) { leads(first: 50, filter: $filter) { id name status } }";
const page = `query ($filter: LeadsFilter, $after: Cursor) {
  leadsConnection(first: 50, filter: $filter, after: $after) { nodes { id } pageInfo { hasNextPage endCursor } } }`;

describe("the list of leads", () => {
  test("of an owner reads as many index rows as it returns", async () => {
    const plan = await explain(api, owner, list);
    expect(plan.indexes).toContain("leads_organization");
    expect(cost(plan, "leads")).toBeLessThanOrEqual(50);
  });

  test("scans each status separately", async () => {
    const plan = await explain(api, owner, list, { filter: { status: ["NEW", "HOT"] } });
    expect(plan.indexes).toContain("leads_organization_by_status");
    expect(cost(plan, "leads")).toBeLessThanOrEqual(100);
  });

  test("uses the index of each requested project", async () => {
    const plan = await explain(api, owner, list, { filter: { projectIds: [project] } });
    expect(plan.indexes).toContain("leads_project");
    expect(cost(plan, "leads")).toBeLessThanOrEqual(50);
  });

  test("of a member reads the open projects one by one, and of the private ones only the member's leads", async () => {
    const plan = await explain(api, member, list);
    expect(plan.indexes).toContain("leads_project");
    expect(plan.indexes).toContain("leads_assignee");
    // For 7 open projects of 10, a share of the page each to find the bound, and then its rows; and the
    // member's own in 3.
    expect(cost(plan, "leads")).toBeLessThanOrEqual(6 * 50);
  });

  test("of an affiliated seller reads the seller's own leads", async () => {
    for (const filter of [{}, { projectIds: [project] }]) {
      const plan = await explain(api, seller, list, { filter });
      expect(plan.indexes).toContain("leads_assignee");
      expect(cost(plan, "leads")).toBeLessThanOrEqual(10 * 50);
    }
  });

  test("finds words, a phone number and an email address by their indexes", async () => {
    // Search texts of some of them, which triggers would have maintained.
    await api.owner.query(`do $$ begin
      execute (select format('insert into app_private.search_texts (id, type, organization_id, project_id, scopes, offered, is_deleted, names, more) %s
        from (select * from app_public.leads limit 3000) r', s.texts) from app_private.searchable_tables s where s.type = 'LEAD');
      end $$; analyze app_private.search_texts`);
    for (const filter of [{ query: "ada 4ca4" }, { phone: "1000077" }, { email: "lead77@example.com" }]) {
      const plan = await explain(api, owner, list, { filter });
      expect(cost(plan, "leads")).toBeLessThanOrEqual(50);
      expect(cost(plan, "search_leads")).toBeLessThanOrEqual(200);
    }
  });

  test("with people of an affiliated organization only looks up those that are shown", async () => {
    // Two thousand of them are assigned to the first leads, without triggers.
    await api.owner.query(`begin; set local session_replication_role = replica;
      with o as (select a.organization_id as id from app_public.project_organizations a
        where a.project_id = '${project}' and a.role <> 'OWNER' limit 1),
      u as (insert into app_public.users (first_name, last_name, slug) select 'Agent', n::text, 'agent-' || n from generate_series(1, 2000) n returning id)
      insert into app_public.organization_user_connections (organization_id, user_id, role) select o.id, u.id, 'MEMBER' from o, u;
      update app_public.leads l set assignee_id = a.id
      from (select u.id, row_number() over (order by u.id) as n from app_public.users u where u.first_name = 'Agent') a,
        (select id, row_number() over (order by registered_at desc, id desc) as n from app_public.leads where project_id = '${project}' limit 2000) f
      where f.n = a.n and l.id = f.id;
      commit`);
    await api.owner.query("analyze app_public.users; analyze app_public.organization_user_connections");
    const shown = `query ($filter: LeadsFilter) { leads(first: 50, filter: $filter) { assignee { fullName } assigneeOrganization { name } } }`;
    const { leads } = await owner.get(shown, { filter: { projectIds: [project] } });
    expect(leads[0]).toEqual({
      assignee: { fullName: expect.stringMatching(/^Agent /) },
      assigneeOrganization: { name: expect.any(String) },
    });
    const plan = await explain(api, owner, shown, { filter: { projectIds: [project] } });
    expect(cost(plan, "leads")).toBeLessThanOrEqual(50);
    expect(cost(plan, "users")).toBeLessThanOrEqual(50);
    expect(cost(plan, "organization_user_connections")).toBeLessThanOrEqual(50);
  });

  test("of a non-member reads nothing", async () => {
    const stranger = await api.signUp("Olga Outsider");
    expect(cost(await explain(api, stranger, list), "leads")).toBeLessThanOrEqual(0);
  });
});

describe("counts and groups", () => {
  const total = "{ leadsConnection(first: 1) { totalCount } }";
  const groups =
    "{ leadsConnection(first: 1) { groupedAggregates(groupBy: [STATUS]) { keys distinctCount { id } } } }";

  test("are read from the index only", async () => {
    for (const [person, index] of [
      [owner, "leads_organization_by_status"],
      [member, "leads_project_by_status"],
    ] as const)
      for (const query of [total, groups]) {
        const { nodes } = await explain(api, person, query);
        const scan = nodes.find(
          (node) => node["Actual Rows"] * node["Actual Loops"] > 1000 && node["Index Name"] === index,
        );
        expect(scan?.["Node Type"]).toBe("Index Only Scan");
        expect(
          nodes.filter((node) => node["Node Type"] === "Seq Scan" && node["Relation Name"] === "leads"),
        ).toEqual([]);
      }
  });

  test("do not read pages of records that are not selected", async () => {
    for (const [fields, statements] of [
      ["totalCount", 1],
      ["totalCount groupedAggregates(groupBy: [STATUS]) { keys }", 2],
      ["totalCount nodes { id }", 2],
      ["totalCount pageInfo { hasNextPage }", 2],
      ["pageInfo { endCursor }", 1],
    ] as const)
      expect((await explain(api, owner, `{ leadsConnection { ${fields} } }`)).statements).toBe(statements);
    const { leadsConnection } = await owner.get("{ leadsConnection { pageInfo { startCursor endCursor } } }");
    expect(leadsConnection.pageInfo).toEqual({
      startCursor: expect.any(String),
      endCursor: expect.any(String),
    });
  });

  test("refuse a page that does not exist", async () => {
    for (const given of ["first: 1001", "first: -1", 'after: "bm9uZQ=="'])
      expect(await owner.ask(`{ leadsConnection(${given}) { totalCount } }`)).toHaveProperty("errors");
    const query =
      "query ($first: Int, $after: Cursor) { leadsConnection(first: $first, after: $after) { totalCount } }";
    for (const variables of [{ first: 1001 }, { first: -1 }, { after: "bm9uZQ==" }])
      expect(await owner.ask(query, variables)).toHaveProperty("errors");
    expect(await owner.get(query)).toEqual({ leadsConnection: { totalCount: LEADS } });
  });

  test("of a viewer with few rows read none of the others", async () => {
    const { rows } = await api.owner.query(
      "select count(*)::int as own from app_public.leads where assignee_id = $1",
      [seller.id],
    );
    for (const query of [total, groups])
      expect(cost(await explain(api, seller, query), "leads")).toBeLessThanOrEqual(2 * rows[0].own);
    const stranger = await api.signUp("Una Uninvolved");
    expect(cost(await explain(api, stranger, total), "leads")).toBe(0);
  });
});

describe("a page of the connection", () => {
  test("costs the same in the middle as at the beginning", async () => {
    let after: string | null = null;
    for (let i = 0; i < 5; i += 1) {
      const plan = await explain(api, owner, page, { after });
      expect(cost(plan, "leads")).toBeLessThanOrEqual(51);
      after = (await owner.get(page, { after })).leadsConnection.pageInfo.endCursor;
    }
  });

  test("follows the list without gaps or repetitions, for every viewer", async () => {
    for (const person of [owner, member, seller]) {
      const { leads } = await person.get("{ leads(first: 200) { id } }");
      const pages: string[] = [];
      let after: string | null = null;
      for (let i = 0; i < 4; i += 1) {
        const { leadsConnection } = await person.get(page, { after });
        pages.push(...leadsConnection.nodes.map((node: { id: string }) => node.id));
        after = leadsConnection.pageInfo.endCursor;
      }
      expect(pages).toEqual(leads.map((lead: { id: string }) => lead.id));
    }
  });

  test("reports whether it is the last, and counts the filtered rows", async () => {
    const { leadsConnection } = await owner.get(
      `{ leadsConnection(first: 50, filter: { email: "lead77@example.com" }) { totalCount nodes { email } pageInfo { hasNextPage } } }`,
    );
    expect(leadsConnection).toEqual({
      totalCount: 1,
      nodes: [{ email: "lead77@example.com" }],
      pageInfo: { hasNextPage: false },
    });
    const { leadsConnection: all } = await owner.get("{ leadsConnection(first: 1) { totalCount } }");
    expect(all.totalCount).toBe(LEADS);
  });

  test("refuses an invalid cursor, and one of another order", async () => {
    expect(await owner.ask(page, { after: "bm9uZQ==" })).toHaveProperty("errors");
    const other = (
      await owner.get(
        "{ leadsConnection(first: 1, orderBy: [REGISTERED_AT_ASC]) { pageInfo { endCursor } } }",
      )
    ).leadsConnection.pageInfo.endCursor;
    expect(await owner.ask(page, { after: other })).toHaveProperty("errors");
  });
});

test("a lead is found by its primary key under the policy", async () => {
  const { leads } = await owner.get("{ leads(first: 1) { id } }");
  const plan = await explain(api, owner, "query ($id: ID!) { lead(id: $id) { name } }", { id: leads[0].id });
  expect(plan.indexes).toContain("leads_pkey");
  expect(cost(plan, "leads")).toBeLessThanOrEqual(1);
});

test("leads below projects use the index of each project", async () => {
  const plan = await explain(api, owner, "{ projects(first: 10) { id leads(first: 5) { id } } }");
  expect(plan.indexes).toContain("leads_project");
  expect(cost(plan, "leads")).toBeLessThanOrEqual(10 * 5);
});

test("of a project read no others for a viewer with own leads only", async () => {
  // A third of the projects are private for the member, all of them for the seller; most contain nothing of
  // theirs.
  const query =
    "query ($filter: LeadsFilter) { projects(first: 10) { id leads(first: 5, filter: $filter) { id status assignee { id } } } }";
  for (const person of [member, seller])
    for (const filter of [null, { status: ["NEW", "HOT"] }, { unassigned: false }]) {
      const plan = await explain(api, person, query, { filter });
      expect(plan.indexes).toContain("leads_assignee");
      expect(cost(plan, "leads")).toBeLessThanOrEqual(
        filter?.unassigned === undefined ? 10 * 5 * 12 : Infinity,
      );
      // The same as the root list of each project.
      const { projects } = await person.get(query, { filter });
      expect(projects).toHaveLength(10);
      for (const { id, leads } of projects)
        expect(leads).toEqual(
          (
            await person.get(
              "query ($filter: LeadsFilter) { leads(first: 5, filter: $filter) { id status assignee { id } } }",
              {
                filter: { ...filter, projectIds: [id] },
              },
            )
          ).leads,
        );
    }
});

describe("the list of events", () => {
  test("starts at its position in the sequence", async () => {
    const plan = await explain(
      api,
      owner,
      '{ eventsConnection(first: 50, filter: { afterSequence: "15000" }) { nodes { sequence } } }',
    );
    expect(plan.indexes).toContain("events_organization");
    // The sort by id within one sequence number reads one row ahead.
    expect(cost(plan, "events")).toBeLessThanOrEqual(60);
  });

  test("of a member reads in order, and only what it returns or must skip", async () => {
    const plan = await explain(api, member, "{ eventsConnection(first: 50) { nodes { sequence } } }");
    expect(plan.indexes).toContain("events_organization");
    expect(cost(plan, "events")).toBeLessThanOrEqual(200);
  });

  test("of a member joins the leads of events, and calls no function for each", async () => {
    const plan = await explain(api, member, "{ eventsConnection(first: 1) { totalCount } }");
    expect(plan.touched("events")).toBeGreaterThanOrEqual(20_000);
    // Rows that a function reads are not in the plan.
    expect(plan.touched("leads")).toBeGreaterThan(0);
    expect(scanned(plan.nodes)).not.toContain("leads");
  });
});
