/**
 * Purchases at scale. One database contains portfolios of 1,000 and of 1,000,000 purchases. Each is read over HTTPS
 * by its OWNER, by a MEMBER, by an affiliated SELLER, and by a buyer.
 * Claim: with 1,000,000 purchases, a page of 50 takes at most 1.5 × the time with 1,000. BENCH_SIZE sets the size of
 * the larger portfolio.
 */
import { startApi, type Person } from "../test/harness/api.ts";
import { percentile, time, withDatabase } from "./data/cluster.ts";
import { loadPortfolios, type Portfolio, type Viewers } from "./data/portfolios.ts";
import { loadPurchases } from "./data/purchases.ts";
import { sized, unlessSmoke } from "./data/size.ts";

const SIZES = [unlessSmoke(1_000, 100), sized(1_000_000, 200)];
const list =
  "query ($filter: BuyersFilter) { buyers(first: 50, filter: $filter) { id fullName status price } }";
const cases: { title: string; query: string; variables?: Record<string, unknown> }[] = [
  { title: "buyers", query: list },
  { title: "buyers, FIRM", query: list, variables: { filter: { status: ["FIRM"] } } },
  {
    title: "buyers, three statuses",
    query: list,
    variables: { filter: { status: ["FIRM", "DRAFT", "CLOSED"] } },
  },
  { title: "buyers by words", query: list, variables: { filter: { query: "grace 4ca4" } } },
  {
    title: "buyers with lead, people, unit",
    query: `{ buyers(first: 50) { id fullName status price netPurchasePrice ppsf allowedTransitions { to } project { title }
      lead { name buyer { id } } assignee { fullName } user { fullName } unit { title } } }`,
  },
  {
    title: "buyersConnection, page one",
    query: "{ buyersConnection(first: 50) { nodes { id fullName } pageInfo { hasNextPage endCursor } } }",
  },
];

export default async function buyers(): Promise<void> {
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
        const viewers = { owner: owner.id!, member: member.id!, seller: seller.id! };
        portfolios.push({ name: `${size}`, leads: size, viewers });
      }
      const buyer = await api.signUp("Bea Buyer");
      const start = performance.now();
      await loadPortfolios(database.owner, portfolios, { words: true });
      await loadPurchases(database.owner, { buyer: buyer.id! });
      console.log(
        `Loaded in ${((performance.now() - start) / 1000).toFixed(0)} s. Milliseconds, median / 95 %.`,
      );
      for (const role of ["owner", "member", "seller"] as const) {
        console.log(
          `\n${role.toUpperCase().padEnd(34)}${SIZES.map((size) => `${size}`.padStart(15)).join("")}   larger ÷ 1,000`,
        );
        for (const { title, query, variables } of cases) {
          const medians: number[] = [];
          const figures: string[] = [];
          for (const viewers of people.values()) {
            const times = await time(() => viewers[role].get(query, variables));
            medians.push(percentile(times, 0.5));
            figures.push(
              `${percentile(times, 0.5).toFixed(1)} / ${percentile(times, 0.95).toFixed(1)}`.padStart(15),
            );
          }
          console.log(
            `  ${title.padEnd(32)}${figures.join("")}   × ${(medians.at(-1)! / medians[0]!).toFixed(2)}`,
          );
        }
      }
      const own = await time(() => buyer.get("{ viewer { purchases { id fullName project { title } } } }"));
      console.log(
        `\nA BUYER\n  ${"own purchases".padEnd(32)}${percentile(own, 0.5).toFixed(1).padStart(15)}`,
      );
    } finally {
      await api.stop();
    }
  });
}
