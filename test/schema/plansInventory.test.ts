/** With 100,000 units, lists and lookups use an index under row security, and read few rows. */
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { Pool } from "pg";
import { withoutIndexes } from "../../bench/data/portfolios.ts";
import { createTestDatabase, type TestDatabase } from "../harness/database.ts";
import { plan, scanned, touched } from "../harness/explain.ts";

let database: TestDatabase;
let owner: Pool;
const owen = id(0, 1);
const project = id(2, 1);

/** An id of this test: a type and a number. */
function id(kind: number, number: number | string): string {
  return `00000000-0000-7000-800${kind}-${String(number).padStart(12, "0")}`;
}
const sqlId = (kind: number, number: string) =>
  `('00000000-0000-7000-800${kind}-' || lpad((${number})::text, 12, '0'))::uuid`;

beforeAll(async () => {
  database = await createTestDatabase();
  owner = new Pool({ connectionString: database.ownerUrl, max: 1 });
  // 100 projects of 20 organizations, half of them public, 1,000 units each; without triggers, which would take a minute.
  await owner.query(`
    insert into app_public.users (id, first_name) select ${sqlId(0, "i")}, 'U' from generate_series(1, 20) i;
    insert into app_public.organizations (id, name) select ${sqlId(1, "i")}, 'O' || i from generate_series(1, 20) i;
    insert into app_public.organization_user_connections (organization_id, user_id, role)
      select ${sqlId(1, "i")}, ${sqlId(0, "i")}, 'OWNER' from generate_series(1, 20) i;
    insert into app_public.projects (id, organization_id, title, visibility)
      select ${sqlId(2, "i")}, ${sqlId(1, "1 + i % 20")}, 'P' || i, case when i % 2 = 0 then 'PUBLIC' else 'PRIVATE' end from generate_series(1, 100) i;
    insert into app_public.floor_plans (id, project_id, title, status) select ${sqlId(3, "i")}, ${sqlId(2, "1 + i % 100")}, 'F' || i, 'ACTIVE' from generate_series(1, 300) i;
    set session_replication_role = replica;
  `);
  await withoutIndexes(owner, ["app_public.units"], async () => {
    await owner.query(`
    insert into app_public.units (organization_id, project_id, floor_plan_id, title, number, status, price, currency, effective_bedrooms, sold_at)
      select p.organization_id, p.id, f.plans[1 + n % 3], 'U' || n, n::text,
        case n % 10 when 0 then 'AVAILABLE' when 1 then 'SOLD' else 'UNRELEASED' end, 100000 + n, 'USD', n % 5,
        case when n % 10 = 1 then now() - make_interval(mins => n) end
      from app_public.projects p join (select project_id, array_agg(id order by id) as plans from app_public.floor_plans group by 1) f on f.project_id = p.id,
        generate_series(1, 1000) n`);
  });
  await owner.query("reset session_replication_role; analyze");
});
afterAll(async () => {
  await owner.end();
  await database.drop();
});

/** How a statement reads units: the indexes, and the total number of rows. */
async function reads(user: string | null, sql: string) {
  const client = await owner.connect();
  try {
    const nodes = await plan(client, user, sql);
    return {
      indexes: new Set(nodes.flatMap((node) => node["Index Name"]?.match(/^units_.*/)?.[0] ?? [])),
      scans: scanned(nodes).filter((table) => table === "units"),
      rows: touched(nodes, "units"),
    };
  } finally {
    client.release();
  }
}

const live = "u.deleted_at is null";

// A page of one project may read and sort the rows of that project, but never those of others.
test.each([
  ["a page of a project", owen, `u.project_id = '${project}' and ${live} order by u.id limit 50`, 1000],
  [
    "a page of a project by status",
    owen,
    `u.project_id = '${project}' and u.status = 'AVAILABLE' and ${live} order by u.id limit 50`,
    100,
  ],
  [
    "a page of a public project for visitors",
    null,
    `u.project_id = '${id(2, 2)}' and u.status = 'AVAILABLE' and ${live} order by u.id limit 50`,
    100,
  ],
  [
    "the units of a floor plan",
    owen,
    `u.floor_plan_id = '${id(3, 100)}' and ${live} order by u.id limit 50`,
    400,
  ],
  ["one by its number", owen, `u.project_id = '${project}' and lower(u.number) = '77' and ${live}`, 1000],
])("%s", async (_name, user, condition, most) => {
  const found = await reads(user, `select u.* from app_hidden.masked_units u where ${condition}`);
  expect(found).toMatchObject({ scans: [] });
  expect(found.rows).toBeLessThanOrEqual(most);
});

test("a portfolio is read organization by organization, only as far as the page requires", async () => {
  const scope = `unnest(app_hidden.viewer_organizations('project.read')) s (id)`;
  const page = (condition: string) =>
    `select b.* from ${scope} cross join lateral (select t.* from app_hidden.masked_units t
     where t.organization_id = s.id and t.deleted_at is null ${condition} order by t.id limit 20) b`;
  const all = await reads(owen, page(""));
  expect(all).toMatchObject({ scans: [], indexes: new Set(["units_organization"]), rows: 20 });
  const available = await reads(owen, page("and t.status = 'AVAILABLE'"));
  expect(available).toMatchObject({ scans: [], indexes: new Set(["units_organization_status"]), rows: 20 });
});

test("the last sold units are read along their index", async () => {
  for (const user of [owen, null]) {
    const found = await reads(user, "select * from app_public.recently_sold_units()");
    expect([...found.indexes]).toEqual(["units_sold"]);
    expect(found.rows).toBeLessThan(1000);
  }
});

// The statements inside of projects_abstract, offers_price and offers_bedrooms, which explain does not show.
test.each([
  ["summed up", `select count(*) from app_public.units u where u.project_id = '${project}' and ${live}`],
  [
    "found by price",
    `select from app_public.units u where u.project_id = '${project}' and u.status = 'AVAILABLE' and ${live}
      and u.price >= 100000 and u.price <= 100020`,
  ],
  [
    "found by bedrooms",
    `select from app_public.units u where u.project_id = '${project}' and u.status = 'AVAILABLE' and ${live}
      and u.effective_bedrooms >= 3 and u.effective_bedrooms < 5`,
  ],
])("a project is %s from its own units", async (_name, sql) => {
  const { rows } = await owner.query(`explain (format json) ${sql}`);
  expect(JSON.stringify(rows)).not.toContain("Seq Scan");
});

test("units of a portfolio are found by rare words with the index of their texts", async () => {
  await owner.query(`do $$ begin
    execute (select format('insert into app_private.search_texts (id, type, organization_id, project_id, scopes, offered, is_deleted, names, more) %s
      from app_public.units r where r.organization_id = %L', s.texts, '${id(1, 1)}') from app_private.searchable_tables s where s.type = 'UNIT');
    end $$; analyze app_private.search_texts`);
  const { rows } = await owner.query(
    "select title from app_public.units where organization_id = $1 order by id limit 1",
    [id(1, 1)],
  );
  await owner.query(
    "update app_public.units set mls_id = 'Q4CA41' where id = (select id from app_public.units where organization_id = $1 order by id limit 1)",
    [id(1, 1)],
  );
  const found = await reads(
    owen,
    "select u.id from app_public.units u where u.id = any (array(select app_hidden.units_with_words('q4ca41')))",
  );
  expect([rows.length, found]).toMatchObject([1, { scans: [], rows: 1 }]);
});

test("public projects are read along the index of their order, as far as the page requires", async () => {
  for (const user of [owen, null]) {
    const client = await owner.connect();
    try {
      await client.query(`begin; set local role ${user ? "plat_user" : "plat_anonymous"}`);
      await client.query("select set_config('plat.user_id', $1, true)", [user ?? ""]);
      const { rows } = await client.query(
        "explain (format json) select p.id from app_public.public_projects() p order by p.service_index desc, p.id desc limit 20",
      );
      const written = JSON.stringify(rows);
      expect(written).toContain("projects_public");
      expect(written).not.toContain('"Sort"');
    } finally {
      await client.query("rollback");
      client.release();
    }
  }
});
