/** The data: organizations with one to 200 projects, their leads, homes and purchases; generated from a seed. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { createLoginTokens, type LoginTokenKey } from "../../src/auth/loginToken.ts";
import { poolOf } from "../../test/harness/database.ts";
import { signUp } from "../../test/harness/signUp.ts";
import type { BenchDatabase } from "../data/cluster.ts";
import { loadPortfolios } from "../data/portfolios.ts";
import { unlessSmoke } from "../data/size.ts";

const UNITS_PER_PROJECT = unlessSmoke(60, 4);

/** An owner of an organization, and the ids for their requests. */
export interface Viewer {
  userId: string;
  organizationId: string;
  /** Login token of the service. */
  token: string;
  /** Up to 1,000 of each. */
  leads: string[];
  projects: string[];
  buyers: string[];
  units: string[];
}

/** Inserts that number of leads in total, and returns the owners of organizations with one, ten and 200 projects. */
export async function loadPeers(
  database: BenchDatabase,
  leads: number,
  keys: readonly LoginTokenKey[],
): Promise<Viewer[]> {
  const { owner } = database;
  const pool = poolOf(database.ownerUrl, 2);
  const { sign } = createLoginTokens(keys);
  const people = await Promise.all(
    ["One Owner", "Ten Owner", "Many Owner", "Mina Member", "Sal Seller"].map((name) =>
      signUp(pool, name, (claims) => sign(JSON.parse(claims))),
    ),
  );
  await pool.end();
  const [one, ten, many, member, seller] = people as [any, any, any, any, any];
  const viewers = (of: { id: string }) => ({ owner: of.id, member: member.id, seller: seller.id });
  await owner.query("select setseed(0.42)");
  const ids = await loadPortfolios(
    owner,
    [
      { name: "one", leads: leads / 10, projects: 1, viewers: viewers(one) },
      { name: "ten", leads: leads / 10, projects: 10, viewers: viewers(ten) },
      { name: "many", leads: leads / 5, projects: unlessSmoke(200, 12), viewers: viewers(many) },
      ...Array.from({ length: unlessSmoke(6, 1) }, (_, n) => ({ name: `other${n}`, leads: leads / 10 })),
    ],
    { words: true },
  );
  await loadHomes(database);
  await owner.query(await readFile(join(import.meta.dirname, "schema.sql"), "utf8"));
  await owner.query("vacuum (analyze)");
  const some = async (table: string, organizationId: string, where = "true"): Promise<string[]> => {
    const { rows } = await owner.query<{ id: string }>(
      `select id from app_public.${table} where organization_id = $1 and ${where} order by id limit 1000`,
      [organizationId],
    );
    return rows.map(({ id }) => id);
  };
  const found: Viewer[] = [];
  for (const [name, { id, token }] of Object.entries({ one, ten, many })) {
    const organizationId = ids.get(name)!;
    found.push({
      userId: id,
      organizationId,
      token,
      leads: await some("leads", organizationId),
      projects: await some("projects", organizationId),
      buyers: await some("buyers", organizationId),
      units: await some(
        "units",
        organizationId,
        "status = 'AVAILABLE' and (number = '4' or number::int > 7)",
      ),
    });
  }
  return found;
}

/**
 * Homes of every project with plans, lots and pictures, of which a tenth is reserved; five purchases per project with
 * four deposits each.
 */
async function loadHomes({ owner }: BenchDatabase): Promise<void> {
  await owner.query("set session_replication_role = replica; set synchronous_commit = off");
  await owner.query(
    `insert into app_public.floor_plans (organization_id, project_id, title, status, bedrooms, sqft, sequence)
     select p.organization_id, p.id, 'Plan ' || n, 'ACTIVE', n, 500 + 300 * n, n from app_public.projects p, generate_series(1, 3) n`,
  );
  await owner.query(
    `insert into app_public.lots (organization_id, project_id, title, number, status, price, currency, multi_unit)
     select p.organization_id, p.id, 'Lot ' || n, n::text, 'AVAILABLE', 100000, 'CAD', true from app_public.projects p, generate_series(1, 5) n`,
  );
  await owner.query(
    `insert into app_public.units (organization_id, project_id, floor_plan_id, lot_id, title, number, status, price, original_list_price, currency,
       effective_bedrooms, effective_baths, effective_sqft, listing_date)
     select p.organization_id, p.id, p.plans[1 + n % 3], p.lots[1 + n % 5], 'Unit ' || n, n::text, case when n % 10 = 1 then 'RESERVED' else 'AVAILABLE' end,
       400000 + n * 1000, 400000 + n * 1000, 'CAD', 1 + n % 3, 2, 800 + 300 * (n % 3), '2026-01-01'
     from (select p.id, p.organization_id, array(select f.id from app_public.floor_plans f where f.project_id = p.id order by f.id) as plans,
         array(select l.id from app_public.lots l where l.project_id = p.id order by l.id) as lots from app_public.projects p) p,
       generate_series(1, $1::int) n`,
    [UNITS_PER_PROJECT],
  );
  await owner.query(
    `insert into app_public.unit_images (organization_id, project_id, unit_id, file, sequence, checksum, filename, filemime, filesize, width, height)
     select u.organization_id, u.project_id, u.id, '{}', n, md5(u.id::text || n) || md5(u.id::text), 'a.png', 'image/png', 1000, 100, 100
     from app_public.units u, generate_series(0, 1) n`,
  );
  await owner.query(
    `insert into app_public.reservations (organization_id, project_id, unit_id, number, price, list_price_snapshot, currency, status,
       accepted_terms, expiration, expires_at)
     select u.organization_id, u.project_id, u.id, 'R-' || u.number, u.price, u.price, 'CAD', 'PENDING', true, 8760, now() + interval '1 year'
     from app_public.units u where u.status = 'RESERVED'`,
  );
  await owner.query(
    `insert into app_public.buyers (organization_id, project_id, unit_id, lead_id, first_name, last_name, email, phone, status, currency, price, assignee_id, purchase_date)
     select l.organization_id, l.project_id, u.id, l.id, split_part(l.name, ' ', 1), split_part(l.name, ' ', 2), l.email, l.phone, 'CONDITIONAL', 'CAD', 400000, m.user_id, current_date
     from (select l.*, row_number() over (partition by l.project_id order by l.id) as n from app_public.leads l) l
     join app_public.units u on u.project_id = l.project_id and u.number::int = l.n + 1
     left join app_public.organization_user_connections m on m.organization_id = l.organization_id and m.role = 'OWNER'
     where l.n <= 5`,
  );
  await owner.query(
    `insert into app_public.deposits (organization_id, project_id, buyer_id, title, sequence, amount, currency, due_at)
     select b.organization_id, b.project_id, b.id, 'Deposit ' || n, n, 5000 * n, 'CAD', current_date + 30 * n from app_public.buyers b, generate_series(1, 4) n`,
  );
  await owner.query("reset session_replication_role");
}
