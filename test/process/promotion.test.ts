/** A primary is killed and a standby promoted, under a load whose responses are compared with the stored changes. */
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import type { Client } from "pg";
import { withHosts } from "../../src/base/databaseHosts.ts";
import { primaryUrl } from "../../src/database/hosts.ts";
import { onConnection } from "../../src/database/onConnection.ts";
import { signIn, startLoad } from "../harness/load.ts";
import { startService, temporaryFolder } from "../harness/service.ts";
import { promote, startReplication, type Replication } from "../harness/standbys.ts";
import { until } from "../harness/until.ts";

let servers: Replication;
beforeAll(async () => {
  servers = await startReplication(2);
});
afterAll(async () => {
  await servers?.[Symbol.asyncDispose]();
});

test("a client leaves a former primary, and does not return to it", async () => {
  const { primary, standbys } = servers;
  const [standby] = standbys;
  const url = withHosts(servers.url([primary, standby!]));
  const where = (client: Client) => client.query<{ port: number }>("select inet_server_port() as port");
  await onConnection(url, async (client) => {
    expect((await where(client)).rows).toEqual([{ port: primary.port }]);
    const left = new Promise<void>((resolve) => void client.once("end", resolve));
    await standby!.sql("select pg_promote()");
    await left;
  });
  for (const hosts of [
    [primary, standby!],
    [standby!, primary],
  ])
    expect((await onConnection(withHosts(servers.url(hosts)), where)).rows).toEqual([
      { port: standby!.port },
    ]);
});

test("a client refuses a standby as primary, and several hosts without a target", async () => {
  const [, standby] = servers.standbys;
  expect(() => withHosts(`postgres://plat@one:1,two:2/plat`)).toThrow(
    /needs target_session_attrs=read-write/,
  );
  expect(withHosts("postgres://plat:a@one/plat")).toBe("postgres://plat:a@one/plat");
  const url = withHosts(servers.url([standby!, servers.primary]));
  const result = await onConnection(url, (client) =>
    client.query<{ standby: boolean }>("select pg_is_in_recovery() as standby"),
  );
  expect(result.rows).toEqual([{ standby: false }]);
  const none = withHosts(servers.url([{ ...standby!, port: 1 }, standby!]));
  await expect(onConnection(none, async () => {})).rejects.toThrow(
    /^None of the hosts accepts writes \(127\.0\.0\.1:1: .*ECONNREFUSED.*; 127\.0\.0\.1:\d+: a standby\)\.$/,
  );
});

test("the service finds the new primary, and loses no acknowledged change", async () => {
  const { primary } = servers;
  const standbys = servers.standbys.slice(1);
  // A change is acknowledged when one standby has it as well.
  await primary.sql("alter system set synchronous_standby_names = 'ANY 1 (*)'");
  await primary.sql("select pg_reload_conf()");
  await until(
    () => primary.sql("select from pg_stat_replication where sync_state = 'quorum'"),
    (found) => found.length === standbys.length,
  );
  const all = servers.url([...standbys, primary]);
  expect(await primaryUrl(withHosts(all))).toBe(primary.url);
  await using data = await temporaryFolder();
  await using service = await startService({
    env: { DATABASE_URL: all, DATA_DIR: data.path, DEMO: "1", LOG_LEVEL: "info" },
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
  // Background work continues as well.
  await until(
    () => next.sql("select from pg_stat_activity where application_name = 'plat-worker-line'"),
    (found) => found.length === 1,
  );
});
