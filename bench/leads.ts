/**
 * Lists at scale. One database contains portfolios of 1,000, 100,000 and 1,000,000 leads, those of 20 other
 * organizations, and one with 200 projects. Each is read over HTTPS by its OWNER, by a MEMBER (a third of the
 * projects is PRIVATE) and by an affiliated SELLER. The peer is the same list as a plain ORDER BY under the policy,
 * without HTTPS.
 * Claim: with 1,000,000 leads, the first query takes at most 1.5 × the time with 1,000. BENCH_SIZE sets the size of
 * the largest portfolio.
 */
import { Pool } from "pg";
import { onStatement } from "../src/database/statementEvents.ts";
import { makeFusedAdaptor } from "../src/database/fusedAdaptor.ts";
import { startApi, type Person } from "../test/harness/api.ts";
import { percentile, time, withDatabase } from "./data/cluster.ts";
import { loadPortfolios, type Portfolio, type Viewers } from "./data/portfolios.ts";
import { sized, unlessSmoke } from "./data/size.ts";

const MOST = sized(1_000_000, 100);
const SIZES = [...new Set([unlessSmoke(1_000, 100), Math.min(100_000, MOST), MOST])];

interface Case {
  title: string;
  query: string;
  variables?: (projects: string[]) => Record<string, unknown>;
  /** The plain query of the peer. */
  plain?: string;
}

const list =
  "query ($filter: LeadsFilter) { leads(first: 50, filter: $filter) { id name status registeredAt } }";
const plainList = (where: string): string =>
  `select id, name, status, registered_at from app_public.leads where ${where} order by registered_at desc, id desc limit 50`;

const cases: Case[] = [
  {
    title: "leads, NEW",
    query: list,
    variables: () => ({ filter: { status: ["NEW"] } }),
    plain: plainList("status = 'NEW'"),
  },
  { title: "leads", query: list, plain: plainList("true") },
  {
    title: "leads, three statuses",
    query: list,
    variables: () => ({ filter: { status: ["NEW", "HOT", "WARM"] } }),
    plain: plainList("status in ('NEW', 'HOT', 'WARM')"),
  },
  {
    title: "leads of three projects",
    query: list,
    variables: (projects) => ({ filter: { projectIds: projects } }),
  },
  {
    title: "leadsConnection, page one",
    query: "{ leadsConnection(first: 50) { nodes { id name } pageInfo { hasNextPage endCursor } } }",
    plain: plainList("true"),
  },
  { title: "leads by words", query: list, variables: () => ({ filter: { query: "grace 4ca4" } }) },
  { title: "leads by a frequent word", query: list, variables: () => ({ filter: { query: "grace" } }) },
  { title: "leads by email", query: list, variables: () => ({ filter: { email: "lead77@example.com" } }) },
  { title: "leads by phone", query: list, variables: () => ({ filter: { phone: "416 100 0077" } }) },
  {
    title: "projects { leads(first: 5) }",
    query: "{ projects(first: 20) { id leads(first: 5) { id name } } }",
  },
  { title: "projects", query: "{ projects(first: 50) { id title } }" },
  { title: "publicProjects", query: "{ publicProjects(first: 50) { id title } }" },
  {
    title: "eventsConnection",
    query: "{ eventsConnection(first: 50) { nodes { sequence name } } }",
    plain: "select id, sequence, name from app_public.events order by organization_id, sequence, id limit 50",
  },
  {
    title: "eventsConnection after 900",
    query: '{ eventsConnection(first: 50, filter: { afterSequence: "900" }) { nodes { sequence name } } }',
  },
  { title: "totalCount", query: "{ leadsConnection(first: 1) { totalCount } }" },
  {
    title: "count by status",
    query: "{ leadsConnection(first: 1) { groupedAggregates(groupBy: [STATUS]) { keys } } }",
  },
];

export default async function leads(): Promise<void> {
  await withDatabase(async (database) => {
    const api = await startApi(database);
    const pool = new Pool({ connectionString: database.authenticatorUrl, max: 1 });
    try {
      const people = new Map<string, Record<keyof Viewers, Person>>();
      const portfolios: Portfolio[] = [];
      const add = async (name: string, portfolio: Omit<Portfolio, "name" | "viewers">) => {
        const [owner, member, seller] = [
          await api.signUp("Olive Owner"),
          await api.signUp("Mina Member"),
          await api.signUp("Sal Seller"),
        ];
        people.set(name, { owner, member, seller });
        portfolios.push({
          name,
          ...portfolio,
          viewers: { owner: owner.id!, member: member.id!, seller: seller.id! },
        });
      };
      for (const size of SIZES) await add(`${size}`, { leads: size, events: size });
      await add("200-projects", unlessSmoke({ leads: 100_000, projects: 200 }, { leads: 100, projects: 20 }));
      for (let n = 1; n <= unlessSmoke(20, 1); n += 1)
        portfolios.push({ name: `noise${n}`, leads: unlessSmoke(5_000, 50), projects: unlessSmoke(500, 5) });
      const start = performance.now();
      const ids = await loadPortfolios(database.owner, portfolios, { words: true });
      console.log(
        `Loaded in ${((performance.now() - start) / 1000).toFixed(0)} s. Milliseconds, median / 95 %.`,
      );

      const withPgClient = makeFusedAdaptor().createWithPgClient({ pool });
      for (const role of ["owner", "member", "seller"] as const) {
        console.log(`\n${role.toUpperCase()}`);
        console.log(
          `  ${"".padEnd(30)} SQL ${[...people.keys()].map((name) => name.padStart(15)).join("")}   largest ÷ 1,000`,
        );
        for (const item of cases) {
          const medians: number[] = [];
          let statements = 0;
          const cells: string[] = [];
          for (const [name, viewers] of people) {
            const { rows } = await api.owner.query<{ id: string }>(
              "select id from app_public.projects where organization_id = $1 order by id limit 3",
              [ids.get(name)],
            );
            const variables = item.variables?.(rows.map((row) => row.id));
            statements = Math.max(statements, await countStatements(viewers[role], item.query, variables));
            const figures = await time(() => viewers[role].get(item.query, variables));
            medians.push(percentile(figures, 0.5));
            cells.push(
              `${percentile(figures, 0.5).toFixed(1)} / ${percentile(figures, 0.95).toFixed(1)}`.padStart(15),
            );
          }
          const ratio = medians[SIZES.length - 1]! / medians[0]!;
          console.log(
            `  ${item.title.padEnd(30)} ${`${statements}`.padStart(3)} ${cells.join("")}   × ${ratio.toFixed(2)}`,
          );
          if (item.plain === undefined) continue;
          const plain: string[] = [];
          for (const viewers of people.values()) {
            const settings = { role: "plat_user", "plat.user_id": viewers[role].id! };
            const run = () =>
              withPgClient(settings, (client) => client.query({ text: item.plain!, name: item.title }));
            const figures = await time(run, { most: 20, seconds: 2 });
            plain.push(
              `${percentile(figures, 0.5).toFixed(1)} / ${percentile(figures, 0.95).toFixed(1)}`.padStart(15),
            );
          }
          console.log(`  ${"  plain query, without HTTPS".padEnd(30)}     ${plain.join("")}`);
        }
        await pages(people.get(`${MOST}`)![role]);
      }
    } finally {
      await pool.end();
      await api.stop();
    }
  });
}

async function countStatements(
  person: Person,
  query: string,
  variables: Record<string, unknown> | undefined,
): Promise<number> {
  let count = 0;
  const stop = onStatement(() => void (count += 1));
  await person.get(query, variables).finally(stop);
  return count;
}

/** A page deep in the largest portfolio, reached with cursors. */
async function pages(person: Person): Promise<void> {
  const query =
    "query ($after: Cursor) { leadsConnection(first: 1000, after: $after) { nodes { id } pageInfo { endCursor } } }";
  let after: string | null = null;
  for (let n = 0; n < unlessSmoke(20, 1); n += 1)
    after = (await person.get(query, { after })).leadsConnection.pageInfo.endCursor ?? after;
  const page = query.replace("1000", "50");
  const [first, deep] = [await time(() => person.get(page)), await time(() => person.get(page, { after }))];
  const [a, b] = [percentile(first, 0.5), percentile(deep, 0.5)];
  console.log(
    `  ${"page of 50: first, after 20,000".padEnd(34)}${a.toFixed(1)}, ${b.toFixed(1)}   × ${(b / a).toFixed(2)}`,
  );
}
