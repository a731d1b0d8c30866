import { createWithPgClient } from "postgraphile/adaptors/pg";
import type { WithPgClient } from "postgraphile/@dataplan/pg";
import { makeFusedAdaptor } from "../src/database/fusedAdaptor.ts";
import { makePool } from "../src/database/pool.ts";
import { startScratchCluster } from "../test/database/scratchCluster.ts";
import { startWireProxy } from "../test/database/wireProxy.ts";

/** Rows of the table, one owner per row, looked up by primary key under a policy. */
const ROWS = 10_000;
const SCHEMA = `
  create role bench_user nologin; create role bench_other nologin; create role bench_login login noinherit password 'x';
  grant bench_user, bench_other to bench_login;
  create table notes (id int primary key, owner text not null, body text not null);
  insert into notes select n, 'u' || n % 100, 'body ' || n from generate_series(1, ${ROWS}) n;
  create index on notes (owner); alter table notes enable row level security;
  create policy own on notes to bench_user, bench_other using (owner = (select current_setting('plat.user_id', true)));
  grant select on notes to bench_user, bench_other; analyze notes;
`;
const QUERY = {
  text: "select id, owner, body from public.notes where id = $1",
  name: "by-id",
  arrayMode: true,
};

type Runner = (n: number) => Promise<void>;

function runner(withPgClient: WithPgClient, roles = ["bench_user"]): Runner {
  return async (n) => {
    const id = (n % ROWS) + 1;
    const role = roles[n % roles.length];
    const settings = { role, "plat.user_id": `u${id % 100}`, "plat.request_id": `r-${n}` };
    const { rows } = await withPgClient(settings, (client) => client.query({ ...QUERY, values: [id] }));
    if (rows.length !== 1) throw new Error(`Row ${id} was not seen`);
  };
}

/** Operations per second of `run`, `concurrency` at a time, for `seconds`. */
async function measure(run: Runner, concurrency: number, seconds: number): Promise<number> {
  const start = performance.now();
  const end = start + seconds * 1000;
  let count = 0;
  const lane = async (): Promise<void> => {
    while (performance.now() < end) await run(count++);
  };
  await Promise.all(Array.from({ length: concurrency }, lane));
  return count / ((performance.now() - start) / 1000);
}

/** The stock adaptor beside the fused one, in turns so that both meet the same machine; best of three rounds each. */
async function compare(port: number, label: string, seconds: number): Promise<void> {
  const connectionString = `postgres://bench_login:x@127.0.0.1:${port}/postgres`;
  const pools = [makePool({ connectionString, max: 16 }), makePool({ connectionString, max: 16 })] as const;
  const stock = runner(createWithPgClient({ pool: pools[0] }));
  const fused = runner(makeFusedAdaptor().createWithPgClient({ pool: pools[1] }));
  for (const concurrency of [1, 16]) {
    const best = { stock: 0, fused: 0 };
    for (let round = 0; round < 3; round += 1) {
      best.stock = Math.max(best.stock, await measure(stock, concurrency, seconds));
      best.fused = Math.max(best.fused, await measure(fused, concurrency, seconds));
    }
    const [a, b] = [best.stock, best.fused].map((figure) => Math.round(figure).toString().padStart(7));
    console.log(
      `${label.padEnd(22)} × ${`${concurrency}`.padEnd(3)} stock ${a}/s  fused ${b}/s  ratio ${(best.fused / best.stock).toFixed(2)}`,
    );
  }
  await Promise.all(pools.map((pool) => pool.end()));
}

/** Two roles in turn on one connection: prepared per role (as the adaptor does) beside one shared statement. */
async function compareRoles(port: number, seconds: number): Promise<void> {
  const connectionString = `postgres://bench_login:x@127.0.0.1:${port}/postgres`;
  const pool = makePool({ connectionString, max: 1 });
  const fused = makeFusedAdaptor().createWithPgClient({ pool });
  const perRole = runner(fused, ["bench_user", "bench_other"]);
  // The stock adaptor shares a statement between roles; its one-role figure on this pool is the base to compare with.
  const stock = createWithPgClient({ pool });
  const figures = [
    ["fused, one role", runner(fused)],
    ["fused, two in turn", perRole],
    ["stock, one role", runner(stock)],
    ["stock, two in turn", runner(stock, ["bench_user", "bench_other"])],
  ] as const;
  for (const [label, run] of figures) {
    await measure(run, 1, seconds / 4);
    console.log(`roles: ${label.padEnd(20)} ${Math.round(await measure(run, 1, seconds))}/s`);
  }
  await pool.end();
}

export default async function adaptor(): Promise<void> {
  const cluster = await startScratchCluster();
  const far = await startWireProxy(cluster.port, 1);
  const owner = makePool({ connectionString: cluster.connectionString, max: 1 });
  try {
    await owner.query(`set search_path = public; ${SCHEMA}`);
    await compare(cluster.port, "same machine", 2);
    await compareRoles(cluster.port, 2);
    await compare(far.port, "2 ms round trip", 2);
  } finally {
    await owner.end();
    await far.close();
    await cluster.stop();
  }
}
