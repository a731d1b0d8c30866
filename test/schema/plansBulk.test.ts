/** Operations on many rows look each row up by an index, also in tables that the planner still believes to be empty. */
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { Client } from "pg";
import { createTestDatabase, type TestDatabase } from "../harness/database.ts";
import { mostRowsRemoved } from "../harness/nestedPlans.ts";
import { createPeople, type People } from "../harness/people.ts";

/** Of fewer, reading the whole table is the best plan. */
const AMOUNT = 1_500;
/** Rows that the filters of a statement may remove for each row of the operation. */
const EACH = 20;

let database: TestDatabase;
let people: People;
let client: Client;
let ada: string;
let max: string;
let organization: string;

beforeAll(async () => {
  database = await createTestDatabase();
  people = createPeople(database.ownerUrl);
  ada = await people.person("Ada");
  max = await people.person("Max");
  organization = await people.organization("North", { [ada]: "OWNER", [max]: "MEMBER" });
  client = new Client({ connectionString: database.ownerUrl });
  await client.connect();
});
afterAll(async () => {
  await client.end();
  await people.end();
  await database.drop();
});

async function createProject(leadAssignment = "MANUAL"): Promise<string> {
  const { rows } = await people.owner.query<{ id: string }>(
    "insert into app_public.projects (organization_id, title, currency, lead_assignment) values ($1, 'P', 'CAD', $2) returning id",
    [organization, leadAssignment],
  );
  return rows[0]!.id;
}

/** In a transaction, as the owner of the organization. */
async function asOwner(work: () => Promise<unknown>): Promise<void> {
  await client.query("begin");
  await client.query(
    "select set_config('role', 'plat_user', true), set_config('plat.user_id', $1, true), set_config('plat.channel', 'API', true)",
    [ada],
  );
  try {
    await work();
    await client.query("commit");
  } finally {
    await client.query("rollback");
  }
}

/** @returns true if no statement of the work removed more rows than allowed; otherwise, which one did */
async function isBounded(work: () => Promise<unknown>, amount = AMOUNT): Promise<true | string> {
  const { rows, text } = await mostRowsRemoved(client, () => asOwner(work));
  return rows <= EACH * amount || `${rows} rows: ${text.slice(0, 400)}`;
}

type Import = "importLeads" | "importUnits" | "importBuyers";
const functions = {
  importLeads: "app_public.import_leads",
  importUnits: "app_public.import_units",
  importBuyers: "app_public.import_buyers",
};

/** Imports a row for each number; none may be refused. */
async function importRows(
  operation: Import,
  project: string,
  columns: Record<string, (n: number) => string>,
  amount = AMOUNT,
): Promise<void> {
  const names = Object.keys(columns);
  const rows = Array.from({ length: amount }, (_, n) => [
    n + 2,
    null,
    ...Object.values(columns).map((value) => value(n)),
  ]);
  await client.query("discard temp");
  await client.query("select app_hidden.begin_import($1, $2, $3)", [operation, project, names]);
  await client.query("select app_hidden.add_import_rows($1, $2, $3)", [
    operation,
    names,
    JSON.stringify(rows),
  ]);
  const result = await client.query<{ failed: number }>(
    `select (r).failed_count as failed from (select ${functions[operation]}($1, null, update_existing => true) as r) x`,
    [project],
  );
  expect(result.rows).toEqual([{ failed: 0 }]);
}

test.each([
  [
    "leads",
    "importLeads",
    { name: (n: number) => `Lead ${n}`, email: (n: number) => `lead${n}@example.com` },
  ],
  ["units", "importUnits", { number: (n: number) => `N${n}`, title: (n: number) => `Unit ${n}` }],
  [
    "purchases",
    "importBuyers",
    {
      first_name: (n: number) => `Ann ${n}`,
      price: () => "400000",
      email: (n: number) => `lead${n}@example.com`,
    },
  ],
] as const)("an import of %s, and one that changes them", async (_name, operation, columns) => {
  const project = await createProject();
  // Purchases are written one by one, with dozens of statements each.
  const amount = operation === "importBuyers" ? 400 : AMOUNT;
  if (operation === "importBuyers")
    await asOwner(() => importRows("importLeads", project, { name: (n) => `${n}`, email: columns.email }));
  const [changed] = Object.keys(columns).slice(operation === "importUnits" ? 1 : 0);
  const others = { ...columns, [changed!]: (n: number) => `Other ${n}` };
  expect(await isBounded(() => importRows(operation, project, columns, amount), amount)).toBe(true);
  expect(await isBounded(() => importRows(operation, project, others, amount), amount)).toBe(true);
});

test("an import of leads whose members take turns", async () => {
  const project = await createProject("ROUND_ROBIN");
  expect(await isBounded(() => importRows("importLeads", project, { name: (n) => `Lead ${n}` }))).toBe(true);
});

test("changes of all units, and of their floor plan", async () => {
  const project = await createProject();
  await people.owner.query(
    "insert into app_public.floor_plans (project_id, title, code, bedrooms) values ($1, 'Plan', 'A1', 2)",
    [project],
  );
  await asOwner(() =>
    importRows("importUnits", project, {
      number: (n) => `N${n}`,
      floor_plan: () => "A1",
      price: () => "400000",
    }),
  );
  expect(
    await isBounded(() =>
      client.query("select app_public.update_units($1, filter => '{}', price_delta_percent => 1)", [project]),
    ),
  ).toBe(true);
  expect(
    await isBounded(() =>
      client.query("update app_public.floor_plans set bedrooms = 3, hoa_fee = 310 where project_id = $1", [
        project,
      ]),
    ),
  ).toBe(true);
});

test("the removal of a member with many leads and their tasks", async () => {
  const project = await createProject();
  const amount = 1_000;
  await asOwner(() => importRows("importLeads", project, { name: (n) => `Lead ${n}` }, amount));
  await people.owner.query("update app_public.leads set assignee_id = $1 where project_id = $2", [
    max,
    project,
  ]);
  await people.owner.query(
    "insert into app_public.tasks (lead_id, title, assignee_id) select id, 'Call', $1 from app_public.leads where project_id = $2",
    [max, project],
  );
  expect(
    await isBounded(
      () => client.query("select app_public.remove_organization_member($1, $2)", [organization, max]),
      amount,
    ),
  ).toBe(true);
  const { rows } = await people.owner.query(
    "select count(*)::int as n from app_public.tasks where project_id = $1 and assignee_id is not null",
    [project],
  );
  expect(rows).toEqual([{ n: 0 }]);
});
