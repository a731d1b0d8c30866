/**
 * Data for searches at scale: an organization with 200 projects and most of the leads and units, and one with a
 * single project. Names are realistic: some are frequent, most are rare. Triggers are disabled.
 */
import type { Client } from "pg";
import { fillSearchTexts, withoutIndexes } from "./portfolios.ts";

export interface Searchables {
  leads: number;
  units: number;
  /** Viewers: ids of existing users. */
  viewers: {
    /** OWNER of the organization with 200 projects. */
    many: string;
    /** OWNER of the one with a single project. */
    one: string;
    /** Member of an agency that is SELLER in all 200 projects, assignee of one lead in a hundred. */
    seller: string;
    /** MEMBER of the organization with 200 projects, a third of which is PRIVATE. */
    member: string;
  };
}

const words = (text: string) => `'{${text.split(" ").join(",")}}'::text[]`;
const firstNames = words(
  "James Mary John Patricia Robert Jennifer Michael Linda David Elizabeth William Barbara Richard Susan Joseph Jessica Thomas Karen Chloé Sarah Charles Lisa Daniel Nancy Matthew Sandra Anthony Betty Mark Ashley Donald Emily Steven Kimberly Andrew Margaret Paul Donna Joshua Michelle Kenneth Carol Kevin Amanda Brian Melissa José Deborah Ronald Stéphanie Jason Rebecca George Sharon Edward Laura Jeffrey Zoë Ryan Dorothy Jacob Amy Nicholas Kathleen",
);
const lastNames = words(
  "Smith Johnson Williams Brown Jones García Miller Davis Rodríguez Martínez Hernández López González Wilson Anderson Thomas Taylor Moore Jackson Martin Lee Pérez Thompson White Harris Sánchez Clark Ramírez Lewis Robinson Walker Young Allen King Wright Müller Torres Nguyen Hill Flores Green Adams Nelson Baker Hall Rivera Campbell Mitchell Carter Roberts",
);
const syllables = words(
  "ba ker lin den mor ris ton wal sen har gre fel dor mas vin cor pel nar ro sti wick berg man ley son ford well ham stein ova",
);
const domains = words(
  "gmail.com yahoo.com outlook.com hotmail.com icloud.com example.com proton.me gmx.de aol.com fastmail.com",
);
const areas = words("416 647 905 212 646 718 310 213 604 778");
const buildings = words("North South East West Harbour Garden Lake Park");

/** An SQL expression for a random element; the first ones are frequent. */
const one = (list: string, n: number) => `(${list})[1 + floor(power(random(), 2) * ${n})::int]`;
const any = (list: string, n: number) => `(${list})[1 + floor(random() * ${n})::int]`;
const made = `initcap(${any("syllables", 30)} || ${any("syllables", 30)} || ${any("syllables", 30)})`;

/** Inserts the data and analyzes the tables; `client` is the owner's connection. */
export async function loadSearchables(
  client: Client,
  { leads, units, viewers }: Searchables,
): Promise<{ many: string; one: string }> {
  await client.query(
    "set session_replication_role = replica; set synchronous_commit = off; set work_mem = '256MB'; set maintenance_work_mem = '512MB'",
  );
  const organization = async (name: string, members: Record<string, string>) => {
    const { rows } = await client.query<{ id: string }>(
      "insert into app_public.organizations (name, slug) values ($1::text, $1::text) returning id",
      [name],
    );
    const id = rows[0]!.id;
    for (const [user, role] of Object.entries(members))
      await client.query(
        "insert into app_public.organization_user_connections (organization_id, user_id, role) values ($1, $2, $3)",
        [id, user, role],
      );
    return id;
  };
  const projects = async (organizationId: string, amount: number, agency?: string) => {
    await client.query(
      `with projects as (
         insert into app_public.projects (organization_id, title, slug, status, visibility, currency, lead_assignment)
         select $1::uuid, (array['Harbour', 'Garden', 'Lake', 'Park'])[1 + n % 4] || ' ' || (array['View', 'Terrace', 'Row', 'Court', 'Square'])[1 + n % 5] || ' ' || n,
           'p' || n || '-' || ($1::uuid)::text, 'SELLING', case when n % 5 = 0 then 'PUBLIC' else 'PRIVATE' end, 'CAD', case when n % 3 = 0 then 'PRIVATE' else 'MANUAL' end
         from generate_series(1, $2::int) n returning id, organization_id)
       insert into app_public.project_organizations (project_id, owner_id, organization_id, role)
       select id, organization_id, organization_id, 'OWNER' from projects
       union all select id, organization_id, $3::uuid, 'SELLER' from projects where $3::uuid is not null`,
      [organizationId, amount, agency ?? null],
    );
  };
  const many = await organization("many-projects", { [viewers.many]: "OWNER", [viewers.member]: "MEMBER" });
  const single = await organization("one-project", { [viewers.one]: "OWNER" });
  await projects(many, 200, await organization("agency", { [viewers.seller]: "OWNER" }));
  await projects(single, 1);
  const of =
    "(select array_agg(id order by id) as many from app_public.projects where organization_id = $1) m, (select array_agg(id) as one from app_public.projects where organization_id = $2) o";
  await withoutIndexes(client, ["app_public.leads", "app_public.units"], async () => {
    await client.query(
      `insert into app_public.leads (organization_id, project_id, name, email, phone, company, status, origin, registered_at, assignee_id)
       select case when p.n % 200 = 0 then $2::uuid else $1::uuid end, case when p.n % 200 = 0 then o.one[1] else m.many[1 + p.n % 200] end,
         p.first || ' ' || p.last, lower(public.unaccent(p.first || '.' || p.last)) || p.n || '@' || p.domain, '+1' || p.area || lpad(floor(random() * 9999999)::text, 7, '0'),
         case when p.n % 9 = 0 then p.last || ' Holdings' end, 'NEW', 'API', now() - interval '2 years' * random(),
         case p.n % 100 when 3 then $4::uuid when 7 then $5::uuid end
       from (select n, case when random() < 0.8 then ${one("firsts", 64)} else ${made} end as first, case when random() < 0.5 then ${one("lasts", 50)} else ${made} end as last,
           ${any("domains", 10)} as domain, ${any("areas", 10)} as area
         from generate_series(1, $3::int) n, (select ${firstNames} as firsts, ${lastNames} as lasts, ${syllables} as syllables, ${domains} as domains, ${areas} as areas) w) p, ${of}`,
      [many, single, leads, viewers.member, viewers.seller],
    );
    await client.query(
      `insert into app_public.units (organization_id, project_id, title, number, building, status, price, currency, listing_date, original_list_price, market_since, market_before)
       select case when n % 200 = 0 then $2::uuid else $1::uuid end, case when n % 200 = 0 then o.one[1] else m.many[1 + n % 200] end,
         'Suite ' || (100 + n / 200), (array['A', 'B', 'C', 'PH'])[1 + n % 4] || '-' || (100 + n / 200), ${any(buildings, 8)} || ' Tower',
         case when n % 3 = 0 then 'UNRELEASED' else 'AVAILABLE' end, 500000 + n, 'CAD', current_date, 500000 + n, now(), '0'
       from generate_series(1, $3::int) n, ${of}`,
      [many, single, units],
    );
  });
  await client.query("reset session_replication_role");
  await fillSearchTexts(client);
  await client.query("vacuum (analyze)");
  return { many, one: single };
}
