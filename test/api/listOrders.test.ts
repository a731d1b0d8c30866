/** The documented default order of each list, independent of the order of creation. */
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "pg";
import { demoUser, loadDemo } from "../../src/demo/index.ts";
import { createFileStore } from "../../src/providers/files/index.ts";
import { startApi, type Api, type Person } from "../harness/api.ts";
import { createTestDatabase, type TestDatabase } from "../harness/database.ts";

type Direction = "ascending" | "descending";

/** A query, the field that it is ordered by, and the column of that field. */
const lists: [query: string, field: string, direction: Direction, table: string, column: string][] = [
  ["appointments", "startsAt", "descending", "appointments", "starts_at"],
  ["buyers", "insertedAt", "descending", "buyers", "inserted_at"],
  ["leads", "registeredAt", "descending", "leads", "registered_at"],
  ["offers", "insertedAt", "descending", "binding_offers", "inserted_at"],
  ["projects", "updatedAt", "descending", "projects", "updated_at"],
  ["publicProjects", "serviceIndex", "descending", "projects", "service_index"],
  ["recentlySoldUnits", "soldAt", "descending", "units", "sold_at"],
  ["reservations", "insertedAt", "descending", "reservations", "inserted_at"],
  ["organization(id: $organization) { list: projects", "updatedAt", "descending", "projects", "updated_at"],
  ["project(id: $project) { list: leads", "registeredAt", "descending", "leads", "registered_at"],
  ["project(id: $project) { list: floorPlans", "sequence", "ascending", "floor_plans", "sequence"],
  ["project(id: $project) { list: openHouses", "startsAt", "descending", "open_houses", "starts_at"],
  ["project(id: $project) { list: promotions", "startsAt", "descending", "promotions", "starts_at"],
  [
    "project(id: $project) { list: depositSchedule",
    "sequence",
    "ascending",
    "deposit_schedule_milestones",
    "sequence",
  ],
  ["project(id: $project) { list: specCategories", "sequence", "ascending", "spec_categories", "sequence"],
];

let database: TestDatabase;
let owner: Client;
let api: Api;
let dana: Person;
let folder: string;

beforeAll(async () => {
  database = await createTestDatabase();
  folder = await mkdtemp(join(tmpdir(), "plat-orders-"));
  await loadDemo(database.ownerUrl, {
    store: createFileStore({ dataDir: folder }),
    incomingFolder: join(folder, "incoming"),
  });
  owner = new Client({ connectionString: database.ownerUrl });
  await owner.connect();
  api = await startApi(database);
  const { login } = await api.anonymous.get(
    "mutation ($input: LoginInput!) { login(input: $input) { token } }",
    { input: { username: demoUser.email, password: demoUser.password } },
  );
  dana = api.person(login.token);
});

afterAll(async () => {
  await api?.stop();
  await owner?.end();
  await database?.drop();
  await rm(folder, { recursive: true, force: true });
});

/** Sets the column to values whose order differs from that of the ids and its reverse. */
async function shuffle(table: string, column: string): Promise<void> {
  const { rows } = await owner.query(
    "select data_type from information_schema.columns where table_schema = 'app_public' and table_name = $1 and column_name = $2",
    [table, column],
  );
  const value = String(rows[0].data_type).startsWith("timestamp")
    ? "now() - make_interval(mins => s.place)"
    : "s.place";
  const end = column === "starts_at" ? `, ends_at = ${value} + interval '1 hour'` : "";
  // As one query message, which is one transaction.
  await owner.query(`
    set local session_replication_role = replica;
    update app_public.${table} t set ${column} = ${value}${end}
      from (select id, (7 * row_number() over (order by id) % 11 * 9 + row_number() over (order by id))::int % 101 as place
        from app_public.${table}) s where s.id = t.id and t.${column} is not null`);
}

test.each(lists)("%s: by %s, %s", async (list, field, direction, table, column) => {
  await shuffle(table, column);
  const nested = list.includes("{");
  const { rows } = await owner.query(
    "select o.slug as organization, (select p.slug from app_public.projects p where p.organization_id = o.id and p.title = 'Larkfield Gardens') as project from app_public.organizations o where o.name = 'Larkfield Homes'",
  );
  const variables = ["organization", "project"].filter((name) => list.includes(`$${name}`));
  const head = variables.length ? `query (${variables.map((name) => `$${name}: ID!`).join(", ")})` : "";
  const answer = await dana.get(
    `${head} { ${nested ? `parent: ${list}` : `list: ${list}`} { id ${field} } ${nested ? "}" : ""} }`,
    Object.fromEntries(variables.map((name) => [name, rows[0][name]])),
  );
  const records: Record<string, string | number>[] = (nested ? answer.parent : answer).list;
  const values = records.map((record) => record[field]!);
  const ordered = values.toSorted((a, b) => (a < b ? -1 : a > b ? 1 : 0));
  if (direction === "descending") ordered.reverse();
  expect(values.length).toBeGreaterThan(1);
  expect(values).toEqual(ordered);
});

test.each(["project", "organization"])(
  "events of a %s are ordered by descending id, or ascending if requested",
  async (record) => {
    const slug =
      record === "project"
        ? "larkfield-gardens"
        : (await dana.get("{ projects { organization { slug } } }")).projects[0].organization.slug;
    const events = async (order: string) => {
      const query = `query ($slug: ID!) { ${record}(id: $slug) { events(first: 1000${order}) { id sequence } } }`;
      return (await dana.get(query, { slug }))[record].events as { id: string; sequence: string }[];
    };
    const latest = await events("");
    expect(latest.length).toBeGreaterThan(20);
    expect(latest).toEqual(latest.toSorted((a, b) => Number(b.sequence) - Number(a.sequence)));
    const ids = latest.map(({ id }) => id).toSorted();
    expect((await events(", orderBy: [ID_ASC]")).map(({ id }) => id)).toEqual(ids);
    expect((await events(", orderBy: [ID_DESC]")).map(({ id }) => id)).toEqual(ids.toReversed());
  },
);
