import type { Pool } from "pg";
import { createWithPgClient } from "postgraphile/adaptors/pg";
import type { WithPgClient } from "postgraphile/@dataplan/pg";
import { makeFusedAdaptor } from "../src/database/fusedAdaptor.ts";
import { OrderedPool } from "../src/database/orderedPool.ts";
import { makePool } from "../src/database/pool.ts";
import { Session } from "../src/database/session.ts";
import { makeSetter } from "../src/database/serverSettings.ts";
import { startScratchCluster } from "../test/database/scratchCluster.ts";
import { startWireProxy } from "../test/database/wireProxy.ts";
import { sized, unlessSmoke } from "./data/size.ts";

/** Rows of the table, one owner per row, looked up by primary key under a policy. Set by BENCH_SIZE. */
const ROWS = sized(10_000, 100);
/** Duration of each measurement. */
const SECONDS = unlessSmoke(1, 0.01);
const ROUNDS = unlessSmoke(5, 1);
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

/** Operations per second of `run`, with `concurrency` in parallel, for `seconds`. */
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

interface Contestant {
  readonly label: string;
  readonly run: Runner;
}

/**
 * Runs the contestants alternately, so that changes of the machine affect all of them. Prints medians with their
 * spread, and the ratio to the first contestant.
 */
async function compare(
  title: string,
  contestants: readonly Contestant[],
  concurrency: number,
): Promise<void> {
  const figures = contestants.map((): number[] => []);
  for (const { run } of contestants) await measure(run, concurrency, SECONDS / 2);
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const [index, { run }] of contestants.entries()) {
      figures[index]?.push(await measure(run, concurrency, SECONDS));
    }
  }
  console.log(`${title}, ${concurrency} at a time`);
  for (const [index, { label }] of contestants.entries()) {
    const list = figures[index] ?? [];
    const perSecond = spread(list, 0);
    // Round by round, because the speed of a shared machine varies between rounds by more than most differences
    // measured here.
    const ratio = spread(
      list.map((figure, round) => figure / (figures[0]?.[round] ?? Number.NaN)),
      2,
    );
    console.log(`  ${label.padEnd(28)} ${perSecond.padEnd(28)} per second  × ${ratio}`);
  }
}

/** Median, minimum and maximum. */
function spread(figures: readonly number[], digits: number): string {
  const sorted = figures.toSorted((a, b) => a - b).map((figure) => figure.toFixed(digits));
  return `${sorted[sorted.length >> 1]} (${sorted[0]} to ${sorted.at(-1)})`;
}

/** Creates a runner of operations over a pool; `pipeline` enables node-postgres' own pipeline mode. */
interface Maker {
  (pool: Pool): Runner;
  readonly pipeline?: boolean;
}

/**
 * A pool with the driver's pipeline mode: queries are sent before earlier ones are answered, each with its own Sync.
 */
const pipelinePool = (connectionString: string, max: number): Pool =>
  new OrderedPool({
    connectionString,
    max,
    connectionTimeoutMillis: 10_000,
    options: "-c jit=off -c search_path=",
    pipeline: true,
  } as ConstructorParameters<typeof OrderedPool>[0]);

/** Each contestant has its own pool, because state that one leaves on a connection must not affect another. */
async function withContestants(
  port: number,
  max: number,
  makers: Readonly<Record<string, Maker>>,
  act: (contestants: Contestant[]) => Promise<void>,
): Promise<void> {
  const connectionString = `postgres://bench_login:x@127.0.0.1:${port}/postgres`;
  const pools: Pool[] = [];
  const contestants = Object.entries(makers).map(([label, make]): Contestant => {
    const pool = make.pipeline ? pipelinePool(connectionString, max) : makePool({ connectionString, max });
    pools.push(pool);
    return { label, run: make(pool) };
  });
  await act(contestants);
  await Promise.all(pools.map((pool) => pool.end()));
}

const stock = (pool: Pool): WithPgClient => createWithPgClient({ pool });
const fused = (pool: Pool): WithPgClient => makeFusedAdaptor().createWithPgClient({ pool });

/**
 * The adaptor on the driver's pipeline mode: four statements in one round trip. Settings for a transaction need BEGIN
 * and COMMIT, since each statement has its own Sync. After an error, the following statements are refused as well, so
 * it fails closed too.
 */
const pipelined: Maker = Object.assign(
  (pool: Pool): Runner =>
    async (n) => {
      const id = (n % ROWS) + 1;
      const settings = { role: "bench_user", "plat.user_id": `u${id % 100}`, "plat.request_id": `r-${n}` };
      const setter = makeSetter(settings)!;
      const { arrayMode: _, ...query } = QUERY;
      const client = await pool.connect();
      const [, , { rows }] = await Promise.all([
        client.query({ name: "begin", text: "begin" }),
        client.query({ name: "set", text: setter.text, values: setter.values as unknown[] }),
        client.query({ ...query, values: [id], rowMode: "array" }),
        client.query({ name: "commit", text: "commit" }),
      ]);
      client.release();
      if (rows.length !== 1) throw new Error(`Row ${id} was not seen`);
    },
  { pipeline: true },
);
const ALL: Record<string, Maker> = {
  fused: (pool) => runner(fused(pool)),
  stock: (pool) => runner(stock(pool)),
  pipelined,
};
const TWO = ["bench_user", "bench_other"];

/** The adaptor without the role in the name of prepared statements: each change of role requires planning again. */
function sharing(pool: Pool): Runner {
  return async (n) => {
    const id = (n % ROWS) + 1;
    const setter = makeSetter({
      role: TWO[n % 2],
      "plat.user_id": `u${id % 100}`,
      "plat.request_id": `r-${n}`,
    })!;
    const connection = await pool.connect();
    const statement = { text: QUERY.text, values: [id], key: QUERY.name };
    await Session.of(connection, 100).send([{ ...setter, key: setter.text }, statement], true);
    connection.release();
  };
}

const ROLES = {
  "stock, one role": (pool: Pool) => runner(stock(pool)),
  "stock, two roles in turn": (pool: Pool) => runner(stock(pool), TWO),
  "fused, one role": (pool: Pool) => runner(fused(pool)),
  "fused, two roles in turn": (pool: Pool) => runner(fused(pool), TWO),
  "fused, two, name shared": sharing,
};

export default async function adaptor(): Promise<void> {
  const cluster = await startScratchCluster();
  const far = await startWireProxy(cluster.port, 1);
  const owner = makePool({ connectionString: cluster.connectionString, max: 1 });
  try {
    await owner.query(`set search_path = public; ${SCHEMA}`);
    for (const concurrency of [1, 16]) {
      await withContestants(cluster.port, 16, ALL, (list) => compare("Same machine", list, concurrency));
      await withContestants(far.port, 16, ALL, (list) => compare("2 ms round trip", list, concurrency));
    }
    await withContestants(cluster.port, 1, ROLES, (list) => compare("Roles", list, 1));
  } finally {
    await owner.end();
    await far.close();
    await cluster.stop();
  }
}
