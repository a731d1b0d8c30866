import { expect, test } from "@jest/globals";
import { eventLoop } from "../../src/limits/eventLoop.ts";
import { partyOf } from "../../src/limits/party.ts";

const ann = partyOf("ann", undefined);
const bob = partyOf("bob", undefined);

/** Holds the event loop, as planning does. */
function work(ms: number): void {
  const end = performance.now() + ms;
  while (performance.now() < end);
}

test("long pieces are done one at a time, fairly by party, and others are served between any two", async () => {
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

test("work that fails lets the next one run", async () => {
  const fails = () => {
    throw new Error("failed");
  };
  await expect(eventLoop.run(ann, fails)).rejects.toThrow("failed");
  expect(await eventLoop.run(bob, () => "done")).toBe("done");
});
