/**
 * Organizations of different sizes in one database: a small one beside one that has almost all rows reads its own rows
 * only, and a page of a large one beside hundreds of small ones reads no more than the page.
 */
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { Client } from "pg";
import { loadEventYears } from "../../bench/data/eventYears.ts";
import { startApi, type Api, type Person } from "../harness/api.ts";
import { explain, scanned } from "../harness/explain.ts";

const copies = 40;
let api: Api;
let owner: Person, small: Person;

beforeAll(async () => {
  api = await startApi();
  const [first, member, seller, buyer, other] = (await Promise.all(
    ["Olive Owner", "Mina Member", "Sally Seller", "Bo Buyer", "Sam Small"].map(api.signUp),
  )) as [Person, Person, Person, Person, Person];
  [owner, small] = [first, other];
  const client = new Client({ connectionString: api.database.ownerUrl });
  await client.connect();
  try {
    await loadEventYears(
      client,
      { owner: owner.id!, member: member.id!, seller: seller.id!, buyer: buyer.id! },
      { events: 30_000, projects: 5 },
    );
    const { createOrganization } = await small.get(
      `mutation ($input: CreateOrganizationInput!) { createOrganization(input: $input) { id } }`,
      { input: { name: "Small" } },
    );
    await small.get(`mutation ($input: CreateProjectInput!) { createProject(input: $input) { id } }`, {
      input: { organizationId: createOrganization.id, title: "Small", currency: "CAD" },
    });
    await client.query("set session_replication_role = replica");
    const { rows } = await client.query<{ columns: string }>(
      `select string_agg(quote_ident(attname), ', ') as columns from pg_attribute
       where attrelid = 'app_public.leads'::regclass and attnum > 0 and not attisdropped and attgenerated = ''
         and attname not in ('id', 'email', 'phone')`,
    );
    const { columns } = rows[0]!;
    await client.query(`insert into app_public.leads (${columns})
      select ${columns} from app_public.leads, generate_series(1, ${copies})`);
    await client.query(
      `insert into app_public.leads (${columns})
       select ${columns.replace("organization_id", "$1")} from app_public.leads limit 3`,
      [createOrganization.id],
    );
    // Foreign keys are not checked in this session.
    await client.query(`insert into app_public.leads (${columns})
      select ${columns.replace("organization_id", "o.id")} from
        (select gen_random_uuid() as id from generate_series(1, 300)) o, (select * from app_public.leads limit 30) l`);
    await client.query("vacuum analyze");
  } finally {
    await client.end();
  }
}, 600_000);
afterAll(() => api.stop());

test("each table of organizations has statistics for many organizations, including partitions", async () => {
  const { rows } = await api.owner.query<{ table: string; options: string[] | null }>(
    `select c.oid::regclass::text as table, a.attoptions as options
     from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attname = 'organization_id'
     where c.relkind = 'r' and c.relnamespace::regnamespace::text in ('app_public', 'app_private', 'app_partitions')`,
  );
  expect(rows.length).toBeGreaterThan(80);
  expect(rows.filter(({ options }) => !options?.includes("n_distinct=30"))).toEqual([]);
  expect(rows.filter(({ table }) => /^app_partitions\.events_\d{4}q\d$/.test(table)).length).toBeGreaterThan(
    1,
  );
});

test.each([
  ["leads", 3, "{ leadsConnection { totalCount } }"],
  ["leads", 3, "{ leadsConnection(filter: { status: [NEW] }) { totalCount } }"],
  ["leads", 3, "{ leadsConnection { groupedAggregates(groupBy: [STATUS]) { keys distinctCount { id } } } }"],
  ["units", 0, "{ unitsConnection { totalCount } }"],
  ["events", 6, "{ eventsConnection { totalCount } }"],
  // Orders without an index of their own for each organization.
  ["leads", 3, "{ leads(first: 50, orderBy: [ID_DESC]) { id } }"],
  ["leads", 3, "{ leads(first: 50, orderBy: [EMAIL_ASC]) { id } }"],
  ["leads", 3, "{ leadsConnection(first: 50, orderBy: [ID_ASC]) { nodes { id } } }"],
  ["events", 6, "{ events(first: 50, orderBy: [ID_DESC]) { id } }"],
  ["events", 6, "{ events(first: 50, sort: NEWEST) { id } }"],
  ["units", 0, "{ units(first: 50, orderBy: [ID_DESC]) { id } }"],
  ["units", 0, "{ units(first: 50, orderBy: [EFFECTIVE_BEDROOMS_DESC]) { id } }"],
  ["tasks", 0, "{ tasks(first: 50, orderBy: [DUE_AT_DESC]) { id } }"],
  ["leads", 3, "{ projects { leads(first: 50, orderBy: [ID_DESC]) { id } } }"],
  ["events", 6, "{ projects { events(first: 50, orderBy: [ID_DESC]) { id } } }"],
  ["events", 6, "{ projects { events(first: 50) { id } } }"],
  ["events", 6, "{ projects { organization { events(first: 50) { id } } } }"],
  ["units", 0, "{ projects { units(first: 50, orderBy: [EFFECTIVE_BEDROOMS_ASC]) { id } } }"],
])("of %s it reads its own %d: %s", async (table, own, query) => {
  const plan = await explain(api, small, query, {});
  expect(plan.touched(table)).toBeLessThanOrEqual(2 * own + 5);
  expect(scanned(plan.nodes)).not.toContain(table);
  // Parallel workers would take longer to start than the query takes.
  expect(plan.nodes.map((node) => node["Node Type"])).not.toContain("Gather");
});

test("of a large organization, the latest events are read along its index, oldest or newest first", async () => {
  for (const sort of ["OLDEST", "NEWEST"]) {
    const query = `{ events(first: 50, sort: ${sort}) { sequence } }`;
    expect((await explain(api, owner, query, {})).touched("events")).toBeLessThanOrEqual(60);
    const sequences = (await owner.get(query)).events.map(({ sequence }: { sequence: string }) =>
      Number(sequence),
    );
    expect(sequences).toEqual(
      sequences.toSorted((a: number, b: number) => (sort === "NEWEST" ? b - a : a - b)),
    );
    expect(sequences).toHaveLength(50);
  }
});

test.each(["{ leads(first: 50) { id } }", "{ leadsConnection(first: 50) { nodes { id } } }"])(
  "of a large organization among many, a page reads its own rows: %s",
  async (query) => {
    expect((await explain(api, owner, query, {})).touched("leads")).toBeLessThanOrEqual(51);
  },
);
