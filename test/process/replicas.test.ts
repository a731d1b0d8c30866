/** Queries on standbys are never stale, whatever fails. */
import { Agent } from "node:https";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { checkReads } from "../harness/checkedReads.ts";
import { post } from "../harness/load.ts";
import { type ReplicatedService, startReplicatedService } from "../harness/replicatedService.ts";
import { until } from "../harness/until.ts";

let all: ReplicatedService;
let servers: ReplicatedService["servers"];
let service: ReplicatedService["service"];
let viewer: ReplicatedService["viewer"];
let answered: ReplicatedService["answered"];

beforeAll(async () => {
  all = await startReplicatedService({ LOG_LEVEL: "info" });
  ({ servers, service, viewer, answered } = all);
});
afterAll(async () => {
  await all?.[Symbol.asyncDispose]();
});

const agent = new Agent({ keepAlive: false });
const ask = (query: string, token = viewer.token) =>
  post(agent, service.baseUrl, { query }, { authorization: `Bearer ${token}` });

/** Whether a query at this moment is answered by a replica. */
async function readsElsewhere(): Promise<boolean> {
  const before = await answered();
  await ask("{ viewer { id } }");
  return (await answered()).replica > before.replica;
}

const onStandbys = (sql: string) => Promise.all(servers.standbys.map((standby) => standby.sql(sql)));

const check = (reads: number, seed: number) =>
  checkReads({ ...viewer, baseUrl: service.baseUrl, clients: 4, reads, seed });

test("reads are answered by replicas, and include what was acknowledged before them", async () => {
  await until(readsElsewhere);
  const before = await answered();
  const result = await check(400, 1);
  expect(result).toMatchObject({ stale: [], failed: [] });
  expect(result.writes).toBeGreaterThan(0);
  const after = await answered();
  const elsewhere = after.replica - before.replica;
  expect(elsewhere / (elsewhere + after.primary - before.primary)).toBeGreaterThanOrEqual(0.85);
});

test("a paused standby is not used, and is used again afterwards", async () => {
  await onStandbys("select pg_wal_replay_pause()");
  expect(await check(100, 2)).toMatchObject({ stale: [], failed: [] });
  expect(await readsElsewhere()).toBe(false);
  const logged = (event: string) => until(() => service.log().includes(`"event":"database.${event}"`));
  await logged("replica_left_out");
  await onStandbys("select pg_wal_replay_resume()");
  await until(readsElsewhere);
  await logged("replica_back");
});

test("a revoked token is refused immediately, also while it is still valid on the standbys", async () => {
  const made = await ask('mutation { createAccessToken(input: { name: "Reads" }) { id token } }');
  const { id, token } = made.data.createAccessToken;
  await until(readsElsewhere);
  expect((await ask("{ viewer { id } }", token)).errors).toBeUndefined();
  await onStandbys("select pg_wal_replay_pause()");
  await ask(`mutation { revokeAccessToken(input: { id: "${id}" }) { id } }`);
  expect((await ask("{ viewer { id } }", token)).errors?.[0]?.extensions?.code).toBe("UNAUTHENTICATED");
  await onStandbys("select pg_wal_replay_resume()");
});

test("expired records expire before they are read", async () => {
  await until(readsElsewhere);
  await servers.primary.sql(
    `with due as (select d.kind, d.record_id from app_hidden.deadlines d
       where d.organization_id = '${viewer.organizationId}' limit 1)
     update app_hidden.deadlines d set due_at = now() - interval '1 minute' from due
     where d.kind = due.kind and d.record_id = due.record_id`,
  );
  const before = await answered();
  expect((await ask("{ viewer { id } }")).errors).toBeUndefined();
  const after = await answered();
  expect(after).toEqual({ replica: before.replica, primary: before.primary + 1 });
  expect(await servers.primary.sql("select from app_hidden.deadlines where due_at <= now()")).toEqual([]);
  expect(await readsElsewhere()).toBe(true);
});

test("a killed standby causes no errors, and is used again when it is back", async () => {
  const [first, second] = servers.standbys;
  const reading = check(300, 3);
  await first!.kill();
  await second!.kill();
  expect(await reading).toMatchObject({ stale: [], failed: [] });
  expect(await readsElsewhere()).toBe(false);
  await first!.start();
  await until(readsElsewhere);
  expect(await check(100, 4)).toMatchObject({ stale: [], failed: [] });
  await second!.start();
});
