/** Many verified reads on standbys that are paused repeatedly, by two processes of the API. */
import { Agent } from "node:https";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { anomalies, type Transaction } from "../consistency/listAppend.ts";
import { checkReads } from "../harness/checkedReads.ts";
import { post } from "../harness/load.ts";
import { randomFrom } from "../harness/random.ts";
import { type ReplicatedService, startReplicatedService } from "../harness/replicatedService.ts";
import { testWithSeeds } from "../harness/seeds.ts";
import { until } from "../harness/until.ts";

const READS = Number(process.env.CHECKED_READS ?? 20_000);

let all: ReplicatedService;
beforeAll(async () => {
  all = await startReplicatedService({ API_PROCESSES: "2" });
}, 300_000);
afterAll(async () => {
  await all?.[Symbol.asyncDispose]();
});

test("no read is stale, and most are not on the primary", async () => {
  const { servers, service, viewer, answered } = all;
  const before = await answered();
  const over = new AbortController();
  const reading = checkReads({ ...viewer, baseUrl: service.baseUrl, clients: 8, reads: READS }).finally(() =>
    over.abort(),
  );
  const random = randomFrom(1);
  let pauses = 0;
  // Each pause lasts for some hundred reads of the remaining replica.
  for (let mark = before.replica; !over.signal.aborted; pauses += 1) {
    const standby = servers.standbys[random(2)]!;
    const passes = async (reads: number) =>
      until(async () => over.signal.aborted || (await answered()).replica >= mark + reads, Boolean, {
        withinMs: 600_000,
      });
    await passes(READS / 20);
    await standby.sql("select pg_wal_replay_pause()");
    await passes(READS / 20 + 200);
    await standby.sql("select pg_wal_replay_resume()");
    mark = (await answered()).replica;
  }
  const { reads, writes, stale, failed } = await reading;
  const after = await answered();
  const elsewhere = after.replica - before.replica;
  const share = elsewhere / (elsewhere + after.primary - before.primary);
  process.stderr.write(
    `${reads} checked reads, ${writes} writes, ${stale.length} stale, ${failed.length} failed, ` +
      `${pauses} pauses, ${(100 * share).toFixed(1)} % of statements off the primary\n`,
  );
  expect({ stale, failed }).toEqual({ stale: [], failed: [] });
  expect(share).toBeGreaterThanOrEqual(0.85);
}, 3_600_000);

const CREATE = "mutation ($input: CreateLeadInput!) { createLead(input: $input) { id } }";
const APPEND =
  "mutation ($ids: [ID!]!, $tag: String!) { updateLeads(input: { ids: $ids, addTags: [$tag] }) { updatedCount } }";
/** A lead has at most 50 tags. */
const MOST_VALUES = 40;

testWithSeeds(
  "appends, and reads on replicas, have an order that all clients saw",
  async (seed) => {
    const { service, viewer, answered } = all;
    const agent = new Agent({ keepAlive: true });
    const ask = async (query: string, variables: object) => {
      const { data, errors } = await post(
        agent,
        service.baseUrl,
        { query, variables },
        { authorization: `Bearer ${viewer.token}` },
      );
      expect(errors).toBeUndefined();
      return data;
    };
    const random = randomFrom(seed);
    const leads: string[] = [];
    for (let n = 0; n < 20; n += 1)
      leads.push(
        (await ask(CREATE, { input: { projectId: viewer.projectId, name: `List ${seed}-${n}` } })).createLead
          .id,
      );
    const room = new Map(leads.map((id) => [id, MOST_VALUES]));
    const history: Transaction[] = [];
    const before = await answered();
    let values = 0;
    const readAll = async () => {
      const sentAt = performance.now();
      const found = await ask(
        "query ($id: ID!) { leads(filter: { projectIds: [$id] }, first: 500) { id tags } }",
        { id: viewer.projectId },
      );
      const answeredAt = performance.now();
      const lists = new Map<string, string[]>(
        // A workflow of the demo adds a tag as well.
        found.leads.map(({ id, tags }: { id: string; tags: string[] }) => [
          id,
          tags.filter((tag) => /^v\d+$/.test(tag)),
        ]),
      );
      history.push({
        sentAt,
        answeredAt,
        appended: new Map(),
        read: new Map(leads.map((id) => [id, lists.get(id)!])),
      });
    };
    await Promise.all(
      Array.from({ length: 6 }, async () => {
        for (let n = 0; n < 120; n += 1) {
          const ids = [...new Set([0, 1, 2].map(() => leads[random(leads.length)]!))].filter(
            (id) => room.get(id)! > 0,
          );
          if (random(2) === 0 || ids.length === 0) {
            await readAll();
            continue;
          }
          const tag = `v${(values += 1)}`;
          for (const id of ids) room.set(id, room.get(id)! - 1);
          const sentAt = performance.now();
          expect(await ask(APPEND, { ids, tag })).toEqual({ updateLeads: { updatedCount: ids.length } });
          history.push({
            sentAt,
            answeredAt: performance.now(),
            appended: new Map(ids.map((id) => [id, tag])),
            read: new Map(),
          });
        }
      }),
    );
    await readAll();
    agent.destroy();
    expect(anomalies(history)).toEqual([]);
    // Not only reads on the primary.
    expect((await answered()).replica).toBeGreaterThan(before.replica + 100);
  },
  600_000,
);
