/**
 * Projects at scale: organizations with public projects in many cities, with 100 units each, floor plans, lots and
 * pictures. Triggers are disabled, so all columns are filled here.
 */
import type { Client } from "pg";
import { fillSearchTexts, type Viewers } from "./portfolios.ts";

export interface Inventory {
  name: string;
  projects: number;
  viewers?: Viewers;
}

export const UNITS_PER_PROJECT = 100;

/** Maximum number of projects of an agency. */
const AFFILIATED = 50;

/** Number of cities, anywhere in North America. */
const CITIES = 200;

/**
 * Inserts the organizations and analyzes the tables; `client` is the owner's connection. Returns the ids of the
 * organizations by name.
 */
export async function loadInventory(
  client: Client,
  inventories: readonly Inventory[],
): Promise<Map<string, string>> {
  const ids = new Map<string, string>();
  await client.query(
    "set session_replication_role = replica; set synchronous_commit = off; set work_mem = '256MB'; set maintenance_work_mem = '512MB'",
  );
  await client.query(
    `insert into app_private.cities (country, administrative_area, name, latitude, longitude, looked_up_at)
     select 'CA', 'ON', 'City ' || n, 30 + 25 * random(), -120 + 50 * random(), now() from generate_series(1, $1::int) n`,
    [CITIES],
  );
  for (const inventory of inventories) ids.set(inventory.name, await load(client, inventory));
  await client.query("reset session_replication_role");
  await fillSearchTexts(client);
  await client.query("vacuum (analyze)");
  return ids;
}

async function load(client: Client, { name, projects, viewers }: Inventory): Promise<string> {
  const one = async (text: string, values: unknown[]): Promise<string> =>
    (await client.query<{ id: string }>(text, values)).rows[0]!.id;
  const organization = (title: string) =>
    one(
      "insert into app_public.organizations (name, slug, has_public_project) values ($1::text, $1::text, true) returning id",
      [title],
    );
  const join = (organizationId: string, user: string, role: string) =>
    client.query(
      "insert into app_public.organization_user_connections (organization_id, user_id, role) values ($1, $2, $3)",
      [organizationId, user, role],
    );

  const id = await organization(name);
  await client.query(
    `insert into app_public.projects (organization_id, title, slug, status, visibility, currency, service_index, address)
     select $1::uuid, 'Project ' || n, $2::text || '-' || n, 'SELLING', 'PUBLIC', 'CAD', (random() * 100)::int,
       row(null::text, null::text, 'City ' || 1 + (random() * ($4 - 1))::int, 'ON'::text, null::text, 'CA'::app_public.country_code, null::float8, null::float8)::app_public.address
     from generate_series(1, $3::int) n`,
    [id, name, projects, CITIES],
  );
  await client.query(
    `insert into app_private.project_cities (project_id, city_id)
     select p.id, c.id from app_public.projects p join app_private.cities c on c.name = (p.address).locality where p.organization_id = $1`,
    [id],
  );
  await client.query(
    `insert into app_public.project_organizations (project_id, owner_id, organization_id, role)
     select p.id, p.organization_id, p.organization_id, 'OWNER' from app_public.projects p where p.organization_id = $1`,
    [id],
  );
  if (viewers) {
    await join(id, viewers.owner, "OWNER");
    await join(id, viewers.member, "MEMBER");
    const agency = await organization(`${name}-agency`);
    await join(agency, viewers.seller, "OWNER");
    await client.query(
      `insert into app_public.project_organizations (project_id, owner_id, organization_id, role)
       select p.id, p.organization_id, $2, 'SELLER' from app_public.projects p where p.organization_id = $1 order by p.id limit $3`,
      [id, agency, AFFILIATED],
    );
  }
  await client.query(
    `insert into app_public.floor_plans (organization_id, project_id, title, status, bedrooms, sqft, sequence)
     select p.organization_id, p.id, 'Plan ' || n, 'ACTIVE', n, 500 + 300 * n, n from app_public.projects p, generate_series(1, 3) n where p.organization_id = $1`,
    [id],
  );
  await client.query(
    `insert into app_public.lots (organization_id, project_id, title, number, status, price, currency, multi_unit)
     select p.organization_id, p.id, 'Lot ' || n, n::text, 'AVAILABLE', 100000, 'CAD', true from app_public.projects p, generate_series(1, 5) n where p.organization_id = $1`,
    [id],
  );
  // Of 100 units, 30 are for sale and 20 are sold. Each project has its own price range.
  await client.query(
    `insert into app_public.units (organization_id, project_id, floor_plan_id, lot_id, title, number, status, price, original_list_price, currency,
       effective_bedrooms, effective_baths, effective_sqft, listing_date, sold_at, sold_price)
     select p.organization_id, p.id, p.plans[1 + n % 3], p.lots[1 + n % 5], 'Unit ' || n || ' ' || substr(md5(p.id::text || n), 1, 6), n::text, s.status,
       p.base + n * 1000, p.base + n * 1000, 'CAD', 1 + n % 3, 2, 800 + 300 * (n % 3), '2026-01-01',
       case when s.status = 'SOLD' then now() - interval '1 year' * random() end, case when s.status = 'SOLD' then p.base end
     from (select p.id, p.organization_id, 200000 + 1000 * (random() * 800)::int as base,
         array(select f.id from app_public.floor_plans f where f.project_id = p.id order by f.id) as plans,
         array(select l.id from app_public.lots l where l.project_id = p.id order by l.id) as lots
       from app_public.projects p where p.organization_id = $1) p,
       generate_series(1, $2::int) n,
       lateral (select (array['AVAILABLE','AVAILABLE','AVAILABLE','SOLD','SOLD','UNRELEASED','UNRELEASED','OFF_MARKET','UNRELEASED','UNRELEASED'])[1 + n % 10] as status) s`,
    [id, UNITS_PER_PROJECT],
  );
  // Pictures of the units of the first project.
  await client.query(
    `with first as (select min(p.id::text)::uuid as id from app_public.projects p where p.organization_id = $1)
     insert into app_public.unit_images (organization_id, project_id, unit_id, file, sequence, checksum, filename, filemime, filesize, width, height)
     select u.organization_id, u.project_id, u.id, '{}', 0, md5(u.id::text) || md5(u.id::text), 'a.png', 'image/png', 1000, 100, 100
     from app_public.units u, first where u.project_id = first.id`,
    [id],
  );
  return id;
}
