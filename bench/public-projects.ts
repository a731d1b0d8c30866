/**
 * Public projects, inventory and a project page at scale, over HTTPS: as a visitor, and as OWNER, MEMBER and
 * affiliated SELLER of an organization. One database has 10 projects and 1,000 units, the other 10,000 projects and
 * 1,000,000 units, of which 1,000 projects and 100,000 units belong to that organization (the SELLER sells for 50 of
 * its projects). The peer is plain SQL with the same result by the owner of the database, without row-level security
 * and HTTPS.
 * Claim: in the larger database, no median is above a second. BENCH_SIZE sets the number of projects.
 */
import { Pool } from "pg";
import { onStatement } from "../src/database/statementEvents.ts";
import { startApi, type Person } from "../test/harness/api.ts";
import { percentile, time, withDatabase } from "./data/cluster.ts";
import { loadInventory } from "./data/projects.ts";
import { sized, smoke, unlessSmoke } from "./data/size.ts";

const MOST = sized(10_000, 12);
const OTHERS = unlessSmoke(90, 1);
/** Projects of the smaller database. */
const FEW = unlessSmoke(10, 2);
const ROLES = ["anonymous", "owner", "member", "seller"] as const;

interface Case {
  title: string;
  query: string;
  /** Plain SQL with the same result. */
  plain: string;
  /** Refused for visitors. */
  takesToken?: true;
}

interface Known {
  /** A project of the organization, for which the seller sells. */
  project: string;
  organization: string;
}

const open = "visibility = 'PUBLIC' and archived_at is null and deleted_at is null";
const live = "u.deleted_at is null";
const offered = (condition: string) =>
  `exists (select from app_public.units u where u.project_id = p.id and u.status = 'AVAILABLE' and ${live} and ${condition})`;
const publicOnes = (where: string, order = "service_index desc, id desc", first = 20) =>
  `select id, title, city, service_index from app_public.projects p where ${open} and ${where} order by ${order} limit ${first}`;

const publicCase = (title: string, given: string, plain: string): Case => ({
  title,
  query: `{ publicProjects(${given}) { id title city serviceIndex } }`,
  plain,
});

function cases({ project, organization }: Known): Case[] {
  const own = `u.organization_id = '${organization}' and ${live}`;
  const lowest = `(select min(u.price) from app_public.units u where u.project_id = p.id and u.status = 'AVAILABLE' and ${live})`;
  return [
    publicCase("publicProjects, first 20", "first: 20", publicOnes("true")),
    publicCase("publicProjects, first 100", "first: 100", publicOnes("true", undefined, 100)),
    {
      title: "  with what they offer",
      query:
        "{ publicProjects(first: 20) { id title abstract { unitsTotal unitsAvailable priceMin priceMax } hero { url } } }",
      plain: `select p.id, p.title, a.* from (${publicOnes("true")}) p cross join lateral (
        select count(*), count(*) filter (where u.status = 'AVAILABLE'), min(u.price) filter (where u.status = 'AVAILABLE'),
          max(u.price) filter (where u.status = 'AVAILABLE') from app_public.units u
        where u.project_id = p.id and ${live} and u.status <> 'UNRELEASED') a`,
    },
    publicCase("  in a city", 'first: 20, city: "City 7"', publicOnes("lower(city) = 'city 7'")),
    publicCase(
      "  by price, frequent",
      "first: 20, filter: { price: { min: 400000, max: 500000 } }",
      publicOnes(offered("u.price between 400000 and 500000")),
    ),
    publicCase(
      "  by price, none",
      "first: 20, filter: { price: { max: 5 } }",
      publicOnes(offered("u.price <= 5")),
    ),
    publicCase(
      "  by bedrooms, frequent",
      "first: 20, filter: { bedrooms: { min: 2, max: 3 } }",
      publicOnes(offered("u.effective_bedrooms between 2 and 3")),
    ),
    publicCase(
      "  by bedrooms, none",
      "first: 20, filter: { bedrooms: { min: 9 } }",
      publicOnes(offered("u.effective_bedrooms >= 9")),
    ),
    publicCase(
      "  by words",
      'first: 20, filter: { query: "project 77" }',
      publicOnes("lower(title) like '%project 77%'"),
    ),
    publicCase(
      "  cheapest first",
      "first: 20, sort: PRICE_ASC",
      publicOnes("true", `coalesce(${lowest}, 'infinity'), id`),
    ),
    publicCase(
      "  nearest first",
      "first: 20, sort: DISTANCE",
      publicOnes(
        "true",
        `(select app_hidden.distance_km(c.latitude, c.longitude, 43.7, -79.4) from app_private.project_cities x join app_private.cities c on c.id = x.city_id where x.project_id = p.id), service_index desc`,
      ),
    ),
    {
      title: "projects, nearest first",
      query: "{ projects(first: 20, sort: DISTANCE) { id title } }",
      takesToken: true,
      plain: `select p.id, p.title from app_public.projects p join app_private.project_cities x on x.project_id = p.id join app_private.cities c on c.id = x.city_id
        where p.organization_id = '${organization}' order by app_hidden.distance_km(c.latitude, c.longitude, 43.7, -79.4) limit 20`,
    },
    {
      title: "recentlySoldUnits",
      query: "{ recentlySoldUnits { id title soldAt } }",
      plain: `select id, title, sold_at from app_public.units u where sold_at is not null and ${live} order by sold_at desc, id desc limit 50`,
    },
    {
      title: "unitsConnection, page one",
      query: "{ unitsConnection(first: 50) { nodes { id title price } pageInfo { hasNextPage endCursor } } }",
      plain: `select id, title, price from app_public.units u where ${own} order by id limit 51`,
    },
    {
      title: "  AVAILABLE",
      query: "{ unitsConnection(first: 50, filter: { status: [AVAILABLE] }) { nodes { id title price } } }",
      plain: `select id, title, price from app_public.units u where ${own} and status = 'AVAILABLE' order by id limit 51`,
    },
    {
      title: "  by price, none",
      query: "{ unitsConnection(first: 50, filter: { price: { max: 5 } }) { nodes { id title price } } }",
      plain: `select id, title, price from app_public.units u where ${own} and price <= 5 order by id limit 51`,
    },
    {
      title: "  by words, rare",
      query: '{ unitsConnection(first: 50, filter: { query: "7 4ca4" }) { nodes { id title } } }',
      plain: `select id, title from app_public.units u where ${own} and title like '%7%' and title like '%4ca4%' order by id limit 51`,
    },
    {
      title: "  by words, frequent",
      query: '{ unitsConnection(first: 50, filter: { query: "unit" }) { nodes { id title } } }',
      plain: `select id, title from app_public.units u where ${own} and lower(title) like '%unit%' order by id limit 51`,
    },
    {
      title: "  totalCount",
      query: "{ unitsConnection(first: 1) { totalCount } }",
      plain: `select count(*) from app_public.units u where ${own}`,
    },
    {
      title: "  count by status",
      query:
        "{ unitsConnection(first: 1) { groupedAggregates(groupBy: [STATUS]) { keys distinctCount { id } } } }",
      plain: `select status, count(distinct id) from app_public.units u where ${own} group by status`,
    },
    {
      title: "50 units, plans, lots, images",
      query: `{ project(id: "${project}") { title units(first: 50) { id title price ppsf bedrooms floorPlan { title } lot { number } images { url thumbnailUrl } } } }`,
      plain: `select u.id, u.title, u.price, u.price / u.effective_sqft, u.effective_bedrooms, f.title, l.number,
          (select jsonb_agg(i.checksum order by i.sequence, i.id) from app_public.unit_images i where i.unit_id = u.id and i.deleted_at is null)
        from app_public.units u left join app_public.floor_plans f on f.id = u.floor_plan_id left join app_public.lots l on l.id = u.lot_id
        where u.project_id = '${project}' and ${live} order by u.id limit 50`,
    },
  ];
}

type Figures = Map<string, { cells: string[]; statements: number; slowest: number }>;

async function measure(projects: number): Promise<Figures> {
  const figures: Figures = new Map();
  await withDatabase(async (database) => {
    const api = await startApi(database, {
      location: { locate: async () => ({ latitude: 43.7, longitude: -79.4 }), findCities: async () => [] },
    });
    const pool = new Pool({ connectionString: database.ownerUrl, max: 1 });
    try {
      const [owner, member, seller] = [
        await api.signUp("Olive Owner"),
        await api.signUp("Mina Member"),
        await api.signUp("Sal Seller"),
      ];
      const people: Record<(typeof ROLES)[number], Person> = {
        anonymous: api.anonymous,
        owner,
        member,
        seller,
      };
      const own = Math.max(FEW, Math.ceil(projects / 10));
      const start = performance.now();
      const ids = await loadInventory(database.owner, [
        { name: "own", projects: own, viewers: { owner: owner.id!, member: member.id!, seller: seller.id! } },
        ...(projects > own
          ? Array.from({ length: OTHERS }, (_, n) => ({
              name: `other-${n}`,
              projects: Math.ceil(projects / 100),
            }))
          : []),
      ]);
      const { rows } = await pool.query(
        "select count(*)::int as units, (select count(*)::int from app_public.projects) as projects from app_public.units",
      );
      console.log(
        `${rows[0].projects} projects, ${rows[0].units} units, loaded in ${((performance.now() - start) / 1000).toFixed(0)} s`,
      );
      const organization = ids.get("own")!;
      const { rows: first } = await pool.query(
        "select p.id from app_public.projects p where p.organization_id = $1 order by p.id::text limit 1",
        [organization],
      );
      for (const item of cases({ project: first[0].id, organization })) {
        const cells: string[] = [];
        let [statements, slowest] = [0, 0];
        for (const role of ROLES) {
          if (role === "anonymous" && item.takesToken) {
            cells.push("");
            continue;
          }
          let count = 0;
          const stop = onStatement(() => void (count += 1));
          await people[role].get(item.query).finally(stop);
          statements = Math.max(statements, count);
          const took = await time(() => people[role].get(item.query), { most: 40, seconds: 2 });
          slowest = Math.max(slowest, percentile(took, 0.5));
          cells.push(`${percentile(took, 0.5).toFixed(1)} / ${percentile(took, 0.95).toFixed(1)}`);
        }
        const plain = await time(() => pool.query(item.plain), { most: 20, seconds: 1 });
        cells.push(`${percentile(plain, 0.5).toFixed(1)} / ${percentile(plain, 0.95).toFixed(1)}`);
        figures.set(item.title, { cells, statements, slowest });
      }
    } finally {
      await pool.end();
      await api.stop();
    }
  });
  return figures;
}

export default async function publicProjects(): Promise<void> {
  const large = await measure(MOST);
  const small = smoke ? large : await measure(FEW);
  console.log("Milliseconds, median / 95 %.");
  for (const [size, figures] of [
    [`${FEW} projects`, small],
    [`${MOST} projects`, large],
  ] as const) {
    console.log(
      `\n${size.padEnd(32)}SQL${[...ROLES, "plain SQL"].map((name) => name.padStart(16)).join("")}`,
    );
    for (const [title, { cells, statements }] of figures)
      console.log(
        `${title.padEnd(32)}${`${statements}`.padStart(3)}${cells.map((cell) => cell.padStart(16)).join("")}`,
      );
  }
  const [title, { slowest }] = [...large].toSorted((a, b) => b[1].slowest - a[1].slowest)[0]!;
  console.log(`\nSlowest: ${title.trim()}, ${slowest.toFixed(0)} ms (claimed: a second at most)`);
}
