/**
 * Lists of reservations at scale. One database contains portfolios of 1,000 and of 1,000,000 reservations. Each is
 * read over HTTPS by its OWNER, by a MEMBER (a third of the projects is PRIVATE), by an affiliated SELLER, and by a
 * buyer with three reservations.
 * Claim: with 1,000,000 reservations, a page takes at most 1.5 × the time with 1,000. BENCH_SIZE sets the size of the
 * larger portfolio. Run: npm run bench -- reservations
 */
import { startApi, type Person } from "../test/harness/api.ts";
import { percentile, time, withDatabase } from "./data/cluster.ts";
import { loadPortfolios, withoutIndexes } from "./data/portfolios.ts";
import { sized, unlessSmoke } from "./data/size.ts";

const SIZES = [unlessSmoke(1_000, 100), sized(1_000_000, 200)] as const;
const ROUNDS = unlessSmoke(5, 1);

const page = "id number status price totalContractPrice expiresAt notes allowedTransitions { to } insertedAt";
const cases: Record<string, string> = {
  "reservations(first: 50)": `{ reservations(first: 50) { ${page} } }`,
  "reservations(first: 50), ids": "{ reservations(first: 50) { id } }",
  "PENDING or CONFIRMED": `{ reservations(first: 50, filter: { status: [PENDING, CONFIRMED] }) { ${page} } }`,
  "connection, page one": "{ reservationsConnection(first: 50) { nodes { id } pageInfo { endCursor } } }",
  "projects { reservations(first: 5) }": "{ projects(first: 10) { reservations(first: 5) { id } } }",
  "viewer { reservations }": "{ viewer { reservations { id } } }",
};

export default (): Promise<void> =>
  withDatabase(async (database) => {
    const api = await startApi(database);
    try {
      const people = new Map<number, Record<string, Person>>();
      for (const size of SIZES) {
        const [owner, member, seller, buyer] = await Promise.all(
          ["Olive Owner", "Mina Member", "Sal Seller", "Bea Buyer"].map(api.signUp),
        );
        people.set(size, { owner: owner!, member: member!, seller: seller!, buyer: buyer! });
      }
      const start = performance.now();
      const ids = await loadPortfolios(
        database.owner,
        SIZES.map((size) => {
          const { owner, member, seller } = people.get(size)!;
          const viewers = { owner: owner!.id!, member: member!.id!, seller: seller!.id! };
          return { name: `${size}`, leads: 100, viewers };
        }),
      );
      await database.owner.query("set session_replication_role = replica");
      await withoutIndexes(database.owner, ["app_public.reservations"], async () => {
        for (const size of SIZES) {
          const { member, seller, buyer } = people.get(size)!;
          await database.owner.query(
            `insert into app_public.reservations (organization_id, project_id, unit_id, number, price, list_price_snapshot, currency, status,
               accepted_terms, expiration, expires_at, inserted_at, notes, cancellation_reason, assignee_id, buyer_id)
             select $1, p.ids[1 + n % 10], uuidv7(), 'R-' || n, 400000, 400000, 'CAD',
               (array['EXPIRED','CANCELLED','CONVERTED','REFUNDED','EXPIRED','PENDING','EXPIRED','CANCELLED','CONFIRMED','EXPIRED'])[1 + abs(hashint4(n) % 10)],
               true, 48, now() + interval '1 day' * (n % 300), now() - interval '2 years' * random(), 'note ' || n, 'because',
               case (n / 10) % 10 when 0 then $3::uuid when 1 then $4::uuid end, case when n % ($2::int / 3) = 5 then $5::uuid end
             from generate_series(1, $2::int) n, (select array_agg(id order by id) as ids from app_public.projects where organization_id = $1) p`,
            [ids.get(`${size}`), size, member!.id, seller!.id, buyer!.id],
          );
        }
      });
      await database.owner.query("reset session_replication_role");
      await database.owner.query("vacuum (analyze) app_public.reservations");
      console.log(
        `Loaded in ${((performance.now() - start) / 1000).toFixed(0)} s. Milliseconds, median / 95 %.`,
      );
      for (const role of ["owner", "member", "seller", "buyer"]) {
        console.log(`\n${role.toUpperCase()}`.padEnd(41) + SIZES.map((s) => `${s}`.padStart(15)).join(""));
        for (const [title, query] of Object.entries(cases)) {
          const runs = await Promise.all(SIZES.map(async (): Promise<number[]> => []));
          // Alternately, so that other load on the machine affects both.
          for (let round = 0; round < ROUNDS; round += 1)
            for (const [i, size] of SIZES.entries())
              runs[i]!.push(
                ...(await time(() => people.get(size)![role]!.get(query), { most: 20, seconds: 1 })),
              );
          const medians = runs.map((figures) => percentile(figures, 0.5));
          const figures = runs.map((all, i) =>
            `${medians[i]!.toFixed(1)} / ${percentile(all, 0.95).toFixed(1)}`.padStart(15),
          );
          console.log(
            `  ${title.padEnd(38)}${figures.join("")}   × ${(medians[1]! / medians[0]!).toFixed(2)}`,
          );
        }
      }
    } finally {
      await api.stop();
    }
  });
