/**
 * Appointments at scale. One database contains portfolios of 1,000 and of 1,000,000 appointments, and those of 20
 * other organizations. Each is read over HTTPS by its OWNER, by a MEMBER (a third of the projects is PRIVATE) and by
 * an affiliated SELLER.
 * Claim: with 1,000,000 appointments, each query takes at most 1.5 × the time with 1,000. BENCH_SIZE sets the size of
 * the largest portfolio.
 */
import { onStatement } from "../src/database/statementEvents.ts";
import { startApi, type Person } from "../test/harness/api.ts";
import { loadAppointments } from "./data/appointments.ts";
import { percentile, withDatabase } from "./data/cluster.ts";
import { loadPortfolios, type Portfolio, type Viewers } from "./data/portfolios.ts";
import { sized, unlessSmoke } from "./data/size.ts";

const ROUNDS = unlessSmoke(100, 1);
const SIZES = [unlessSmoke(1_000, 100), sized(1_000_000, 200)];
const OTHERS = unlessSmoke(20, 1);

const list =
  "query ($filter: AppointmentsFilter) { appointments(first: 50, filter: $filter) { id status type startsAt endsAt } }";
const cases: { title: string; query: string; variables?: (project: string) => Record<string, unknown> }[] = [
  { title: "appointments", query: list },
  { title: "appointments, CONFIRMED", query: list, variables: () => ({ filter: { status: ["CONFIRMED"] } }) },
  {
    title: "appointments of a project",
    query: list,
    variables: (id) => ({ filter: { projectIds: [id] } }),
  },
  {
    title: "appointments before a time",
    query: list,
    variables: () => ({
      filter: { startsAt: { to: new Date(Date.now() - 400 * 86_400_000).toISOString() } },
    }),
  },
  {
    title: "appointments with their people",
    query:
      "{ appointments(first: 50) { id startsAt lead { name } host { fullName } project { title } salesOffice { title } notes } }",
  },
  {
    title: "appointmentsConnection, page one",
    query: "{ appointmentsConnection(first: 50) { nodes { id } pageInfo { hasNextPage endCursor } } }",
  },
  {
    title: "leads { appointments }",
    query: "{ leads(first: 20) { id appointments(first: 5) { id startsAt } } }",
  },
];

/** Milliseconds of each query. They are sent alternately, so that other load on the machine affects all of them. */
async function inTurns(askers: (() => Promise<unknown>)[], rounds: number): Promise<number[][]> {
  const figures: number[][] = askers.map(() => []);
  for (let round = 0; round < rounds; round += 1)
    for (const [i, ask] of askers.entries()) {
      const start = performance.now();
      await ask();
      figures[i]!.push(performance.now() - start);
    }
  return figures;
}

export default async function appointments(): Promise<void> {
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
        portfolios.push({ name: `noise${n}`, leads: unlessSmoke(500, 20) });
      const start = performance.now();
      const ids = await loadPortfolios(database.owner, portfolios);
      await loadAppointments(database.owner, 10);
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
          const askers: (() => Promise<unknown>)[] = [];
          let statements = 0;
          for (const [name, viewers] of people) {
            const { rows } = await api.owner.query<{ id: string }>(
              "select id from app_public.projects where organization_id = $1 order by id limit 1",
              [ids.get(name)],
            );
            const given = variables?.(rows[0]!.id);
            askers.push(() => viewers[role].get(query, given));
            const stop = onStatement(() => (statements += 1));
            statements = 0;
            await viewers[role].get(query, given).finally(stop);
          }
          const figures = await inTurns(askers, ROUNDS);
          const medians = figures.map((all) => percentile(all, 0.5));
          const cells = figures.map((all) =>
            `${percentile(all, 0.5).toFixed(1)} / ${percentile(all, 0.95).toFixed(1)}`.padStart(15),
          );
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
