import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { FairSemaphore } from "../../src/admission/fairSemaphore.ts";
import { OperationWork, withWork } from "../../src/admission/operationWork.ts";
import { partyOf } from "../../src/admission/party.ts";
import { queryLimits } from "../../src/admission/queryLimits.ts";
import { until } from "../harness/until.ts";
import { ANN, run, startFusedWorld, type FusedWorld, type Opened } from "./fusedWorld.ts";

let world: FusedWorld;
let main: Opened;
beforeAll(async () => {
  world = await startFusedWorld();
  main = world.open({ max: 1 });
});
afterAll(() => world.close());

const viewer = (name: string) => new OperationWork(partyOf(name, undefined));
const stranger = (address: string) => new OperationWork(partyOf(null, address));

test.each([
  ["many rows", "select repeat('x', 1000) from generate_series(1, 100000)"],
  ["one row", "select repeat('x', 100000000)"],
  ["a list in a row", "select array(select repeat('x', 1000) from generate_series(1, 100000))"],
])("%s of 100 MB are aborted at the limit, and the connection is replaced", async (_, text) => {
  const work = viewer("ann");
  await expect(run(main, withWork({ ...ANN }, work), text, [], "large")).rejects.toMatchObject({
    code: "LIMIT_EXCEEDED",
    extensions: { limit: queryLimits.bytes },
  });
  // The data in the buffers of the socket, but not the rest.
  expect(work.bytesRead).toBeLessThan(queryLimits.bytes + 1_000_000);
  expect(main.pool.totalCount).toBe(0);
  expect((await run(main, withWork({ ...ANN }, viewer("ann")), "select 1")).rows).toEqual([[1]]);
});

test("the limit is for the whole operation; repeated results count each time", async () => {
  const megabyte = "select repeat('x', 1000000)";
  const settings = withWork({ ...ANN }, viewer("ann"));
  await run(main, settings, megabyte);
  await run(main, settings, megabyte);
  await expect(run(main, settings, megabyte)).rejects.toMatchObject({ code: "LIMIT_EXCEEDED" });

  const repeating = viewer("ann");
  repeating.measured(100, ["units", "notes"], 4);
  await expect(run(main, withWork({ ...ANN }, repeating), megabyte)).rejects.toMatchObject({
    code: "LIMIT_EXCEEDED",
    extensions: { part: "units.notes" },
  });
});

test("an aborted transaction stores nothing", async () => {
  const settings = withWork({ ...ANN }, viewer("ann"));
  const transaction = main.withPgClient(settings, (client) =>
    client.withTransaction(async (inner) => {
      await inner.query({ text: "update app.notes set body = 'changed' where id = 1" });
      await inner.query({ text: "select repeat('x', 10000000)" });
    }),
  );
  await expect(transaction).rejects.toMatchObject({ code: "LIMIT_EXCEEDED" });
  expect((await run(main, ANN, "select body from app.notes where id = 1")).rows).toEqual([["first"]]);
});

test("a timeout among the settings applies to the next statement", async () => {
  const settings = { ...ANN, statement_timeout: "50ms" };
  await expect(run(main, settings, "select pg_sleep(30)")).rejects.toMatchObject({ code: "57014" });
  expect((await run(main, ANN, "select 'without'")).rows).toEqual([["without"]]);
});

test("visitors have a share of the connections, and so has each party; others are served at once", async () => {
  const connections = new FairSemaphore({ capacity: 5, perParty: 2, visitors: 2 });
  const opened = world.open({ max: 6 }, { connections });
  const lock = await world.admin.connect();
  try {
    await lock.query("begin; select pg_advisory_xact_lock(1)");
    const wait = "select pg_advisory_xact_lock_shared(1)";
    const held = [
      ...Array.from({ length: 12 }, (_, n) => stranger(`192.0.2.${n}`)),
      ...Array.from({ length: 12 }, () => viewer("bob")),
    ].map((work) => run(opened, withWork({ ...ANN }, work), wait));
    const waiting = async () => {
      const { rows } = await world.admin.query(
        "select count(*)::int as n from pg_locks where locktype = 'advisory' and not granted",
      );
      return rows[0].n;
    };
    await until(waiting, (count) => count === 4);
    expect(connections.numbers).toMatchObject({ held: 4, waiting: 20 });
    expect((await run(opened, withWork({ ...ANN }, viewer("ann")), "select 1")).rows).toEqual([[1]]);
    expect(await waiting()).toBe(4);
    await lock.query("commit");
    await Promise.all(held);
    expect(connections.numbers).toMatchObject({ held: 0, waiting: 0 });
  } finally {
    lock.release();
  }
});
