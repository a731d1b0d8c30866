import { expect, jest, test } from "@jest/globals";
import { eventLoopShare, LARGE_INPUT } from "../../src/admission/semaphores.ts";
import { EventLoop, eventLoop } from "../../src/admission/eventLoop.ts";
import { OperationWork, withWork } from "../../src/admission/operationWork.ts";
import { partyOf } from "../../src/admission/party.ts";
import { argumentValues, toColumns } from "../../src/operations/inputFields.ts";

const ann = partyOf("ann", undefined);
const bob = partyOf("bob", undefined);

/** Blocks the event loop, as planning does. */
function work(ms: number): void {
  const end = performance.now() + ms;
  while (performance.now() < end);
}

test("long pieces are executed one at a time, fairly by party, with other work between any two", async () => {
  const order: string[] = [];
  let served = 0;
  const others = setInterval(() => (served += 1), 0);
  const piece = (name: string) => () => {
    order.push(`${name} after ${Math.min(served, 1)}`);
    served = 0;
    work(20);
  };
  await Promise.all([
    ...Array.from({ length: 4 }, () => eventLoop.run(ann, piece("ann"))),
    eventLoop.run(bob, piece("bob")),
    (async () => {
      await eventLoop.ready(bob);
      piece("bob")();
    })(),
  ]);
  clearInterval(others);
  expect(order.slice(1)).toEqual(["ann after 1", "bob after 1", "ann after 1", "bob after 1", "ann after 1"]);
});

test("pieces have a share of the time, and the charge for a long one grows with the square of its length", () => {
  const { share, burstMs, shortMs, mostTimes } = eventLoopShare;
  const loop = new EventLoop();
  const now = performance.now() + 60_000;
  for (let used = shortMs; used <= burstMs; used += shortMs) expect(loop.charge(shortMs, now)).toBe(0);
  expect(loop.charge(shortMs, now)).toBeCloseTo(shortMs / share);
  expect(loop.charge(0, now + shortMs / share)).toBe(0);
  expect(loop.charge(4 * shortMs, now + shortMs / share)).toBeCloseTo((16 * shortMs) / share);
  // A minute later the full burst is available again, and no more than that.
  expect(loop.charge(burstMs / 4, now + 60_000)).toBeCloseTo(
    Math.max(0, ((burstMs / 4) ** 2 / shortMs - burstMs) / share),
  );
  expect(new EventLoop().charge(2 * mostTimes * shortMs, now)).toBeCloseTo(
    (2 * mostTimes ** 2 * shortMs - burstMs) / share,
  );
});

test("after a failure the next work is executed", async () => {
  const fails = () => {
    throw new Error("failed");
  };
  await expect(eventLoop.run(ann, fails)).rejects.toThrow("failed");
  expect(await eventLoop.run(bob, () => "done")).toBe("done");
});

test("of an operation with large values, parsing them and converting them for SQL are separate pieces", async () => {
  const ready = jest.spyOn(eventLoop, "ready").mockResolvedValue();
  try {
    const of = { spreads: false, members: [], own: [], fieldName: "upsertLeads", uploadTarget: "" };
    const pieces = async (bytes?: number) => {
      ready.mockClear();
      const requested = new OperationWork(ann, bytes);
      await argumentValues({}, { pgSettings: withWork({}, requested) } as never, of);
      return [requested.hasLargeInput, ready.mock.calls];
    };
    expect(await pieces()).toEqual([false, []]);
    expect(await pieces(LARGE_INPUT - 1)).toEqual([false, []]);
    expect(await pieces(LARGE_INPUT)).toEqual([true, [[ann]]]);
    expect(await argumentValues({}, {} as never, of)).toEqual({});
    const context = { pgSettings: withWork({}, new OperationWork(bob, LARGE_INPUT)) } as never;
    for (const read of [
      () => argumentValues({}, context, { ...of, spreads: true }),
      () => toColumns([], {}, context, of),
    ]) {
      ready.mockClear();
      await read();
      expect(ready.mock.calls).toEqual([[bob]]);
    }
  } finally {
    ready.mockRestore();
  }
});
