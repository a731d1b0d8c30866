/**
 * Offers at scale. One database contains portfolios of 1,000 and of 1,000,000 offers, and those of 20 other
 * organizations. Each is read over HTTPS by its OWNER, by a MEMBER (a third of the projects is PRIVATE) and by an
 * affiliated SELLER.
 * Claim: with 1,000,000 offers, the lists across the portfolio take at most 1.5 × the time with 1,000. NOTE: the list
 * of one project reads, for a SELLER, all offers of the project, of which few are theirs. BENCH_SIZE sets the size of
 * the largest portfolio.
 */
import { onStatement } from "../src/database/statementEvents.ts";
import { startApi, type Person } from "../test/harness/api.ts";
import { percentile, time, withDatabase } from "./data/cluster.ts";
import { loadOffers } from "./data/offers.ts";
import { loadPortfolios, type Portfolio, type Viewers } from "./data/portfolios.ts";
import { sized, unlessSmoke } from "./data/size.ts";

const SIZES = [unlessSmoke(1_000, 100), sized(1_000_000, 200)];
const OTHERS = unlessSmoke(20, 1);

const list =
  "query ($filter: OffersFilter) { offers(first: 50, filter: $filter) { id status price legalName manual insertedAt } }";
const cases: { title: string; query: string; variables?: (project: string) => Record<string, unknown> }[] = [
  { title: "offers", query: list },
  { title: "offers, PENDING", query: list, variables: () => ({ filter: { status: ["PENDING"] } }) },
  { title: "offers of a project", query: list, variables: (id) => ({ filter: { projectIds: [id] } }) },
  {
    title: "offers with what they are about",
    query:
      "{ offers(first: 50) { id price totalContractPrice purchasePriceBalance loanToValue unit { title } lead { name } negotiation { status } deposits { id } } }",
  },
  {
    title: "offersConnection, page one",
    query: "{ offersConnection(first: 50) { nodes { id price } pageInfo { hasNextPage endCursor } } }",
  },
  {
    title: "project { offers }",
    query: "query ($id: ID!) { project(id: $id) { offers(first: 50) { id price } } }",
    variables: (id) => ({ id }),
  },
];

export default async function offers(): Promise<void> {
  await withDatabase(async (database) => {
    const api = await startApi(database);
    try {
      const people = new Map<string, Record<keyof Viewers, Person>>();
      const portfolios: Portfolio[] = [];
      for (const size of SIZES) {
        const [owner, member, seller] = [
          await api.signUp("Olive Owner"),
          await api.signUp("Mina Member"),
          await api.signUp("Sal Seller"),
        ];
        people.set(`${size}`, { owner, member, seller });
        portfolios.push({
          name: `${size}`,
          leads: size / 10,
          viewers: { owner: owner.id!, member: member.id!, seller: seller.id! },
        });
      }
      for (let n = 1; n <= OTHERS; n += 1)
        portfolios.push({ name: `noise${n}`, leads: unlessSmoke(500, 10) });
      const start = performance.now();
      const ids = await loadPortfolios(database.owner, portfolios);
      for (const { name, leads } of portfolios)
        await loadOffers(database.owner, ids.get(name)!, leads * 10, { analyze: false });
      await database.owner.query("vacuum (analyze) app_public.offers");
      await database.owner.query("analyze");
      console.log(
        `Loaded in ${((performance.now() - start) / 1000).toFixed(0)} s. Milliseconds, median / 95 %.`,
      );
      for (const role of ["owner", "member", "seller"] as const) {
        console.log(`\n${role.toUpperCase()}`);
        console.log(
          `  ${"".padEnd(32)} SQL ${[...people.keys()].map((name) => name.padStart(15)).join("")}   largest ÷ 1,000`,
        );
        for (const { title, query, variables } of cases) {
          const medians: number[] = [];
          const cells: string[] = [];
          let statements = 0;
          for (const [name, viewers] of people) {
            const { rows } = await api.owner.query<{ id: string }>(
              "select id from app_public.projects where organization_id = $1 order by id limit 1",
              [ids.get(name)],
            );
            const given = variables?.(rows[0]!.id);
            const stop = onStatement(() => (statements += 1));
            statements = 0;
            await viewers[role].get(query, given).finally(stop);
            const figures = await time(() => viewers[role].get(query, given));
            medians.push(percentile(figures, 0.5));
            cells.push(
              `${percentile(figures, 0.5).toFixed(1)} / ${percentile(figures, 0.95).toFixed(1)}`.padStart(15),
            );
          }
          console.log(
            `  ${title.padEnd(32)} ${`${statements}`.padStart(3)} ${cells.join("")}   × ${(medians[1]! / medians[0]!).toFixed(2)}`,
          );
        }
      }
    } finally {
      await api.stop();
    }
  });
}
