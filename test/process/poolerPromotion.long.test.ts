/** A primary behind PgBouncer is killed: the standby replaces it once the pooler points to it. */
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { authenticatorUrl } from "../../src/database/roles.ts";
import { signIn, startLoad } from "../harness/load.ts";
import { startPooler, tracksStatements, type Pooler } from "../harness/pgbouncer.ts";
import { startService, temporaryFolder } from "../harness/service.ts";
import { promote, startReplication, type Replication } from "../harness/standbys.ts";
import { until } from "../harness/until.ts";

let servers: Replication;
let pooler: Pooler;
beforeAll(async () => {
  servers = await startReplication(1);
  const { url } = servers.primary;
  pooler = await startPooler(url, [url, authenticatorUrl(url)]);
}, 90_000);
afterAll(async () => {
  await pooler?.[Symbol.asyncDispose]();
  await servers?.[Symbol.asyncDispose]();
});

test("the service continues through the pooler, and loses nothing that was acknowledged", async () => {
  const { primary, standbys } = servers;
  // A change is acknowledged when the standby has it as well.
  await primary.sql("alter system set synchronous_standby_names = 'ANY 1 (*)'");
  await primary.sql("select pg_reload_conf()");
  await until(
    () => primary.sql("select from pg_stat_replication where sync_state = 'quorum'"),
    (found) => found.length === standbys.length,
  );
  await using data = await temporaryFolder();
  await using service = await startService({
    env: {
      DATABASE_URL: pooler.url("transaction"),
      DIRECT_DATABASE_URL: servers.url([primary, ...standbys]),
      DATA_DIR: data.path,
      DEMO: "1",
      LOG_LEVEL: "info",
      ...(tracksStatements() ? {} : { PREPARED_STATEMENTS: "0" }),
    },
  });
  const { token, projectId } = await signIn(service.baseUrl);
  const load = startLoad({
    baseUrl: () => service.baseUrl,
    token,
    projectId,
    clients: 4,
    seed: 1,
    persistent: true,
    restMs: 5,
  });
  const answered = async (more: number) => {
    const before = load.acknowledged.size;
    await until(
      () => load.acknowledged.size,
      (created) => created >= before + more,
      { withinMs: 60_000 },
    );
  };
  await answered(20);
  await servers.killPrimary();
  const next = await promote(standbys);
  // While the pooler still leads to the former primary, its errors are retried.
  const before = load.again.UNAVAILABLE ?? 0;
  await until(
    () => load.again.UNAVAILABLE ?? 0,
    (refused) => refused > before,
    { withinMs: 60_000 },
  );
  await pooler.pointAt(next.url);
  await answered(20);
  await load.stop();

  expect(load.wrong).toEqual([]);
  const kept = await next.sql<{ id: string; name: string }>("select id, name from app_public.leads");
  const names = new Map(kept.map(({ id, name }) => [id, name]));
  expect([...load.acknowledged].filter(([id, name]) => names.get(id) !== name)).toEqual([]);
  await until(
    () => service.get("/readyz"),
    ({ status }) => status === 200,
  );
  // The API uses the pooler, background work connects directly.
  const sessions = await next.sql<{ name: string }>(
    "select distinct application_name as name from pg_stat_activity where application_name ~ '^plat-(api|worker-line)$' order by 1",
  );
  expect(sessions.map(({ name }) => name)).toEqual(["plat-api", "plat-worker-line"]);
}, 180_000);
