/**
 * With 100,000 reservations, and 20,000 holds and deposits, lists and lookups use an index under row security, and
 * read few rows.
 */
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { Pool } from "pg";
import { withoutIndexes } from "../../bench/data/portfolios.ts";
import { createTestDatabase, type TestDatabase } from "../harness/database.ts";
import { plan, scanned, touched } from "../harness/explain.ts";

let database: TestDatabase;
let owner: Pool;

/** An id of this test: a type and a number. */
const id = (kind: number, number: number): string =>
  `00000000-0000-7000-800${kind}-${String(number).padStart(12, "0")}`;
const sqlId = (kind: number, number: string) =>
  `('00000000-0000-7000-800${kind}-' || lpad((${number})::text, 12, '0'))::uuid`;
/**
 * The OWNER of the organization with most of the rows, a MEMBER of it who only sees own deals in some
 * projects, and a buyer.
 */
const [owen, max, bea] = [id(0, 1), id(0, 2), id(0, 3)];

beforeAll(async () => {
  database = await createTestDatabase();
  owner = new Pool({ connectionString: database.ownerUrl, max: 1 });
  await owner.query(`
    insert into app_public.users (id, first_name) select ${sqlId(0, "i")}, 'U' from generate_series(1, 3) i;
    insert into app_public.organizations (id, name) select ${sqlId(1, "i")}, 'O' || i from generate_series(1, 5) i;
    insert into app_public.organization_user_connections (organization_id, user_id, role) values
      ('${id(1, 1)}', '${owen}', 'OWNER'), ('${id(1, 1)}', '${max}', 'MEMBER');
    insert into app_public.projects (id, organization_id, title, lead_assignment)
      select ${sqlId(2, "i")}, ${sqlId(1, "1 + i % 5")}, 'P' || i, case when i % 2 = 0 then 'PRIVATE' else 'MANUAL' end from generate_series(1, 50) i;
    set session_replication_role = replica;
  `);
  await withoutIndexes(
    owner,
    ["app_public.reservations", "app_public.unit_holds", "app_public.deposits"],
    async () => {
      await owner.query(`
    insert into app_public.reservations (organization_id, project_id, unit_id, lead_id, number, price, list_price_snapshot, currency, status,
        accepted_terms, expiration, inserted_at, cancellation_reason, assignee_id, buyer_id)
      select p.organization_id, p.id, uuidv7(), uuidv7(), n::text, 1, 1, 'USD',
        (array['EXPIRED','CANCELLED','PENDING','CONFIRMED','CONVERTED','EXPIRED','EXPIRED','EXPIRED','EXPIRED','EXPIRED'])[1 + n % 10],
        true, 48, now() - make_interval(mins => n), 'because', case when n % 20 = 7 then '${max}'::uuid end,
        case when n = 777 and p.id = '${id(2, 5)}' then '${bea}'::uuid end
      from app_public.projects p, generate_series(1, 2000) n;
    insert into app_public.unit_holds (organization_id, project_id, unit_id, status, expiration, expires_at, inserted_at, user_id, assignee_id,
        is_self_service)
      select r.organization_id, r.project_id, r.unit_id, case when r.number::int % 50 = 2 then 'ACTIVE' else 'EXPIRED' end, 24, now() + interval '1 day',
        r.inserted_at, coalesce(r.buyer_id, '${owen}'), r.assignee_id, r.buyer_id is not null
      from app_public.reservations r where r.number::int % 5 = 2;
    insert into app_public.deposits (organization_id, project_id, reservation_id, lead_id, title, sequence, amount, currency, is_reservation_fee)
      select r.organization_id, r.project_id, r.id, case when r.buyer_id is null and r.number::int % 2 = 0 then r.lead_id end, 'Reservation fee', 0, 1, 'USD', true
      from app_public.reservations r where r.number::int % 5 = 2;
    `);
    },
  );
  await owner.query("reset session_replication_role; analyze");
});
afterAll(async () => {
  await owner.end();
  await database.drop();
});

/** How a statement reads a table: the indexes, and the total number of rows. */
async function reads(user: string, sql: string, relation = "reservations") {
  const client = await owner.connect();
  try {
    const nodes = await plan(client, user, sql);
    const used = nodes.filter((node) => node["Actual Loops"]).map((node) => node["Index Name"] ?? "");
    return {
      indexes: [...new Set(used.filter((name) => name.startsWith(`${relation}_`)))].sort(),
      scans: scanned(nodes).filter((table) => table === relation).length,
      read: touched(nodes, relation),
      answered: nodes[0]!["Actual Rows"],
    };
  } finally {
    client.release();
  }
}

/** The page of a portfolio as queried by src/lists/portfolio.ts, for one kind of scope. */
const page = (scope: string, condition: string) =>
  `select b.* from unnest(app_hidden.${scope}('sale.read')) s (id) cross join lateral (select t.* from app_hidden.masked_reservations t
     where t.deleted_at is null and ${condition} order by t.inserted_at desc, t.id desc limit 50) b`;

test.each([
  [
    "an organization",
    owen,
    "viewer_organizations",
    "t.organization_id = s.id",
    ["reservations_organization"],
    50,
  ],
  [
    "an organization, by status",
    owen,
    "viewer_organizations",
    "t.organization_id = s.id and t.status = 'PENDING'",
    ["reservations_organization_status"],
    50,
  ],
  ["open projects", max, "viewer_projects", "t.project_id = s.id", ["reservations_project"], 250],
  [
    "own deals of private projects",
    max,
    "viewer_own_projects",
    "t.assignee_id = (select app_public.current_user_id()) and t.project_id = s.id",
    ["reservations_assignee"],
    250,
  ],
])(
  "a page of %s is read along its index, as far as it requires",
  async (_name, user, scope, condition, indexes, most) => {
    const found = await reads(user, page(scope, condition));
    expect(found).toMatchObject({ scans: 0, indexes });
    expect(found.answered).toBeGreaterThanOrEqual(50);
    expect(found.read).toBeLessThanOrEqual(most);
  },
);

test("a buyer's own are looked up by their ids", async () => {
  const found = await reads(
    bea,
    "select * from app_hidden.masked_reservations t where t.id = any (array(select app_hidden.viewer_purchase_reservations()))",
  );
  expect(found).toEqual({ scans: 0, indexes: ["reservations_pkey"], read: 1, answered: 1 });
});

test.each([
  [
    "of a project",
    `project_id = '${id(2, 5)}' order by inserted_at desc, id desc limit 50`,
    ["reservations_project"],
    50,
  ],
  ["of a unit", "unit_id = uuidv7() order by inserted_at desc, id desc limit 50", ["reservations_unit"], 0],
  ["of a lead", "lead_id = uuidv7() order by inserted_at desc, id desc limit 50", ["reservations_lead"], 0],
  [
    "open, of a unit",
    "unit_id = uuidv7() and status in ('PENDING', 'CONFIRMED')",
    ["reservations_unit_open"],
    0,
  ],
])("those %s are found by an index", async (_name, condition, indexes, most) => {
  const sql = `select * from app_hidden.masked_reservations where deleted_at is null and ${condition}`;
  const found = await reads(owen, sql.replaceAll("uuidv7()", `'${id(9, 1)}'`));
  expect(found).toMatchObject({ scans: 0, indexes });
  expect(found.read).toBeLessThanOrEqual(most);
});

const holdsPage = (scope: string, condition: string) =>
  page(scope, condition).replaceAll("masked_reservations", "masked_unit_holds");

test.each([
  [
    "an organization",
    owen,
    "viewer_organizations",
    "t.organization_id = s.id",
    "unit_holds_organization",
    50,
  ],
  [
    "an organization, by status",
    owen,
    "viewer_organizations",
    "t.organization_id = s.id and t.status = 'ACTIVE'",
    "unit_holds_organization_status",
    50,
  ],
  ["open projects", max, "viewer_projects", "t.project_id = s.id", "unit_holds_project", 250],
] as const)("a page of holds of %s does, too", async (_name, user, scope, condition, index, most) => {
  const found = await reads(user, holdsPage(scope, condition), "unit_holds");
  expect(found).toMatchObject({ scans: 0, indexes: [index] });
  expect(found.answered).toBeGreaterThanOrEqual(50);
  expect(found.read).toBeLessThanOrEqual(most);
});

test("a visitor's own holds are looked up by their ids, and numbers of holds by project and status", async () => {
  expect(
    await reads(
      bea,
      "select * from app_hidden.masked_unit_holds t where t.id = any (array(select app_hidden.viewer_holds()))",
      "unit_holds",
    ),
  ).toEqual({ scans: 0, indexes: ["unit_holds_pkey"], read: 1, answered: 1 });
  const client = await owner.connect();
  try {
    const { rows } = await client.query(
      `explain (format json) select count(*) from app_public.unit_holds h
       where h.project_id = '${id(2, 5)}' and h.status = 'ACTIVE' and h.deleted_at is null and h.expires_at > clock_timestamp()`,
    );
    expect(JSON.stringify(rows[0])).toContain("unit_holds_project_status");
  } finally {
    client.release();
  }
});

test.each([
  ["the seller", owen],
  ["the buyer", bea],
])("amounts due for a reservation are looked up by it, for %s", async (_name, user) => {
  const {
    rows: [reservation],
  } = await owner.query(`select id from app_public.reservations where buyer_id = '${bea}'`);
  const found = await reads(
    user,
    `select * from app_hidden.masked_deposits t where t.reservation_id = '${reservation.id}' and t.deleted_at is null`,
    "deposits",
  );
  expect(found).toMatchObject({ scans: 0, answered: 1, read: 1 });
  expect(found.indexes).toHaveLength(1);
});
