/**
 * Requests per second over HTTPS with keep-alive, with server and load generator in one process: the fused adaptor
 * compared with the stock one.
 */
import { createWithPgClient, makePgService } from "postgraphile/adaptors/pg";
import { startApi, type Api, type Person } from "../test/harness/api.ts";
import { percentile, withDatabase } from "./data/cluster.ts";
import { loadPortfolios } from "./data/portfolios.ts";
import { sized, unlessSmoke } from "./data/size.ts";

const CONCURRENCY = 16;
const SECONDS = unlessSmoke(1.5, 0.01);
const ROUNDS = unlessSmoke(5, 1);
/** Set by BENCH_SIZE. */
const LEADS = sized(10_000, 100);

async function perSecond(run: () => Promise<unknown>, seconds: number): Promise<number> {
  const start = performance.now();
  const end = start + seconds * 1000;
  let count = 0;
  const lane = async (): Promise<void> => {
    while (performance.now() < end) {
      await run();
      count += 1;
    }
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, lane));
  return count / ((performance.now() - start) / 1000);
}

export default async function requests(): Promise<void> {
  await withDatabase(async (database) => {
    const fused = await startApi(database);
    const stock = await startApi(database, { adaptor: { createWithPgClient, makePgService } as any });
    const apis: [string, Api][] = [
      ["stock adaptor", stock],
      ["fused adaptor", fused],
    ];
    try {
      const { token, id } = await fused.signUp("Olive Owner");
      const other = await fused.signUp("Sally Seller");
      await loadPortfolios(database.owner, [
        { name: "bench", leads: LEADS, viewers: { owner: id!, member: other.id!, seller: other.id! } },
      ]);
      const { rows } = await database.owner.query<{ id: string }>(
        "select id from app_public.leads order by id limit 1000",
      );
      let n = 0;
      const cases: [string, (person: Person) => Promise<unknown>][] = [
        [
          "lead(id)",
          (person) =>
            person.get("query ($id: ID!) { lead(id: $id) { id name status } }", {
              id: rows[n++ % rows.length]!.id,
            }),
        ],
        ["leads(first: 20)", (person) => person.get("{ leads(first: 20) { id name status registeredAt } }")],
        [
          "three levels",
          (person) =>
            person.get(
              "{ projects(first: 5) { id title leads(first: 5) { id name assignee { id firstName } } } }",
            ),
        ],
        ["__typename", (person) => person.get("{ __typename }")],
      ];
      for (const [title, run] of cases) {
        const figures = apis.map((): number[] => []);
        for (const [, api] of apis) await perSecond(() => run(api.person(token!)), SECONDS);
        for (let round = 0; round < ROUNDS; round += 1)
          for (const [i, [, api]] of apis.entries()) {
            const person = api.person(token!);
            figures[i]!.push(await perSecond(() => run(person), SECONDS));
          }
        console.log(`${title}, ${CONCURRENCY} at a time`);
        for (const [i, [label]] of apis.entries()) {
          const ratios = figures[i]!.map((figure, round) => figure / figures[0]![round]!);
          console.log(
            `  ${label.padEnd(16)} ${percentile(figures[i]!, 0.5).toFixed(0).padStart(7)} per second   × ${percentile(ratios, 0.5).toFixed(2)}`,
          );
        }
      }
    } finally {
      await stock.stop();
      await fused.stop();
    }
  });
}
