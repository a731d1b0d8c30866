import { expect, test } from "@jest/globals";
import { loopTurns } from "../../src/limits/loopTurns.ts";
import { partyOf } from "../../src/limits/party.ts";

const ann = partyOf("ann", undefined);
const bob = partyOf("bob", undefined);

/** Holds the event loop, as planning does. */
function work(ms: number): void {
  const end = performance.now() + ms;
  while (performance.now() < end);
}

test("long pieces are done one at a time, by turns, and others are served between any two", async () => {
  const order: string[] = [];
  let served = 0;
  const others = setInterval(() => (served += 1), 0);
  const piece = (name: string) => () => {
    order.push(`${name} after ${Math.min(served, 1)}`);
    served = 0;
    work(20);
  };
  await Promise.all([
    ...Array.from({ length: 4 }, () => loopTurns.run(ann, piece("ann"))),
    loopTurns.run(bob, piece("bob")),
    (async () => {
      await loopTurns.take(bob);
      piece("bob")();
    })(),
  ]);
  clearInterval(others);
  expect(order.slice(1)).toEqual(["ann after 1", "bob after 1", "ann after 1", "bob after 1", "ann after 1"]);
});

test("work that fails gives its turn back", async () => {
  const fails = () => {
    throw new Error("failed");
  };
  await expect(loopTurns.run(ann, fails)).rejects.toThrow("failed");
  expect(await loopTurns.run(bob, () => "done")).toBe("done");
});
