/** Many checked reads on standbys that are paused again and again, by two processes of the API. */
import { expect, test } from "@jest/globals";
import { checkReads } from "../harness/checkedReads.ts";
import { randomFrom } from "../harness/random.ts";
import { startReplicatedService } from "../harness/replicatedService.ts";
import { until } from "../harness/until.ts";

const READS = Number(process.env.CHECKED_READS ?? 20_000);

test("no read is stale, and most are answered off the primary", async () => {
  await using all = await startReplicatedService({ API_PROCESSES: "2", LOG_LEVEL: "warn" });
  const { servers, service, viewer, answered } = all;
  const before = await answered();
  const over = new AbortController();
  const reading = checkReads({ ...viewer, baseUrl: service.baseUrl, clients: 8, reads: READS }).finally(() =>
    over.abort(),
  );
  const random = randomFrom(1);
  let pauses = 0;
  // Each pause lasts for some hundred reads of the replica that is left.
  for (let mark = before.replica; !over.signal.aborted; pauses += 1) {
    const standby = servers.standbys[random(2)]!;
    const passes = async (reads: number) =>
      until(async () => over.signal.aborted || (await answered()).replica >= mark + reads, Boolean, {
        withinMs: 60_000,
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
