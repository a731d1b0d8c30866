import { Pool } from "pg";
import type { WithPgClient } from "postgraphile/@dataplan/pg";
import type { NodePostgresPgClient } from "postgraphile/adaptors/pg";
import { makeFusedAdaptor, type FusedAdaptorOptions } from "../../src/database/fusedAdaptor.ts";
import type { OrderedPool } from "../../src/database/orderedPool.ts";
import { makePool, type PoolOptions } from "../../src/database/pool.ts";
import { startScratchCluster, type ScratchCluster } from "./scratchCluster.ts";
import { startWireProxy, type WireProxy } from "./wireProxy.ts";
import { until } from "../harness/until.ts";

/** Two tenants, ann and bob, each with a note; a role that only sees its own; and one without privileges. */
const SCHEMA = `
  create role fused_user nologin; create role fused_other nologin; create role fused_login login noinherit password 'x';
  grant fused_user, fused_other to fused_login;
  create schema app;
  grant usage on schema app to public;
  create table app.notes (id int primary key, owner text not null, body text not null, unique (body) deferrable initially deferred);
  alter table app.notes enable row level security;
  create policy own on app.notes using (owner = current_setting('plat.user_id', true));
  grant select, insert, update, delete on app.notes to fused_user;
  grant select on app.notes to fused_other;
  insert into app.notes values (1, 'ann', 'first'), (2, 'bob', 'second');
  create table app.counters (id int primary key, n int not null unique deferrable initially deferred);
  grant select, update on app.counters to fused_user;
  insert into app.counters values (1, 10), (2, 20);
  create function app.shout(word text) returns text language plpgsql as
    $$ begin raise notice 'heard %', word; raise warning 'loud'; return upper(word); end $$;
`;

/** Everything that a test of the adaptor needs. */
export interface FusedWorld {
  readonly cluster: ScratchCluster;
  readonly proxy: WireProxy;
  /** Direct connections of the owner to the server. */
  readonly admin: Pool;
  /** A new pool through the proxy, as an ordinary user, with a fused withPgClient on it. */
  open(options?: Partial<PoolOptions>, adaptor?: FusedAdaptorOptions): Opened;
  close(): Promise<void>;
}

export interface Opened {
  readonly pool: OrderedPool;
  readonly withPgClient: WithPgClient<NodePostgresPgClient>;
}

export const ANN = { role: "fused_user", "plat.user_id": "ann", "plat.request_id": "r-1" };
export const BOB = { role: "fused_user", "plat.user_id": "bob", "plat.request_id": "r-2" };

export async function startFusedWorld(delay = 0): Promise<FusedWorld> {
  const cluster = await startScratchCluster();
  const admin = new Pool({ connectionString: cluster.connectionString, max: 4 });
  admin.on("error", () => {});
  await admin.query(SCHEMA);
  const proxy = await startWireProxy(cluster.port, delay);
  const pools: Pool[] = [];
  return {
    cluster,
    proxy,
    admin,
    open(options = {}, adaptor = {}) {
      const connectionString = `postgres://fused_login:x@127.0.0.1:${proxy.port}/postgres`;
      const pool = makePool({ connectionString, max: 1, ...options });
      pools.push(pool);
      return { pool, withPgClient: makeFusedAdaptor(adaptor).createWithPgClient({ pool }) };
    },
    async close() {
      await Promise.all([admin, ...pools].map((pool) => pool.end()));
      await proxy.close();
      await cluster.stop();
    },
  };
}

/** Executes one statement as PostGraphile's executor does. */
export function run(
  opened: Opened,
  settings: Record<string, string | undefined> | null,
  text: string,
  values: unknown[] = [],
  name?: string,
) {
  return opened.withPgClient(settings, (client) =>
    client.query<unknown[]>({ text, values, arrayMode: true, ...(name === undefined ? {} : { name }) }),
  );
}

/** Repeats the query until it returns a row, and returns the first one. */
export async function untilRow(
  pool: Pool,
  text: string,
  values: unknown[] = [],
): Promise<Record<string, unknown>> {
  return until(
    async () => (await pool.query<Record<string, unknown>>(text, values)).rows[0]!,
    (row) => row !== undefined,
  );
}
