import { expect, test } from "@jest/globals";
import { FairGate, type Leave } from "../../src/limits/fairGate.ts";
import { type Party, partyOf } from "../../src/limits/party.ts";

const viewer = (name: string) => partyOf(name, "192.0.2.1");
const stranger = (address: string) => partyOf(null, address);

/** Lets everybody in one after the other, and tells in which order they came. */
async function turns(gate: FairGate, parties: readonly Party[]): Promise<string[]> {
  const first = await gate.enter(viewer("first"));
  const order: string[] = [];
  const all = parties.map(async (party) => {
    const leave = await gate.enter(party);
    order.push(party.key);
    leave();
  });
  first();
  await Promise.all(all);
  return order;
}

test("viewers take turns, and all strangers together have one, by networks", async () => {
  const order = await turns(new FairGate({ atOnce: 1 }), [
    ...Array.from({ length: 3 }, () => viewer("ann")),
    ...Array.from({ length: 3 }, () => stranger("192.0.2.1")),
    stranger("192.0.2.2"),
    viewer("bob"),
  ]);
  const [ann, bob, one, two] = [
    viewer("ann").key,
    viewer("bob").key,
    stranger("192.0.2.1").key,
    stranger("192.0.2.2").key,
  ];
  expect(order).toEqual([ann, one, bob, ann, two, ann, one, one]);
});

test("addresses of one IPv6 network are one party, and so is an address written in two ways", () => {
  expect(stranger("2001:db8:1:2::1")).toEqual(stranger("2001:db8:1:2:ffff::9"));
  expect(stranger("2001:db8:1:2::1")).not.toEqual(stranger("2001:db8:1:3::1"));
  expect(stranger("::ffff:192.0.2.1")).toEqual(stranger("192.0.2.1"));
});

test("a party, and all strangers, have so many places; the others of the gate are for everybody else", async () => {
  const gate = new FairGate({ atOnce: 5, perParty: 2, strangers: 2 });
  const inside: Leave[] = [];
  const enter = (party: Party) => void gate.enter(party).then((leave) => inside.push(leave));
  for (let n = 0; n < 4; n += 1) {
    enter(viewer("ann"));
    enter(stranger(`192.0.2.${n}`));
  }
  await Promise.resolve();
  expect(gate.numbers).toMatchObject({ inside: 4, waiting: 4 });
  (await gate.enter(viewer("bob")))();
  for (let count = 0; count < 8; count += 1) {
    await new Promise(setImmediate);
    inside.shift()!();
  }
  expect(gate.numbers).toMatchObject({ inside: 0, waiting: 0 });
});

test("the last places are for parties that have none", async () => {
  const gate = new FairGate({ atOnce: 6, perParty: 4, kept: 2 });
  const leaves = [viewer("ann"), viewer("ann"), viewer("bob"), viewer("bob")].map((party) =>
    gate.enter(party),
  );
  void gate.enter(viewer("ann"));
  void gate.enter(viewer("bob"));
  expect(gate.numbers).toEqual({ inside: 4, waiting: 2 });
  leaves.push(gate.enter(viewer("cid")), gate.enter(viewer("dan")));
  expect(gate.numbers).toEqual({ inside: 6, waiting: 2 });
  for (const leave of leaves) (await leave)();
  expect(gate.numbers).toEqual({ inside: 2, waiting: 0 });
});

test("who waits too long, or behind too many of their own, is refused and told when to come again", async () => {
  const gate = new FairGate({ atOnce: 1, waitingPerParty: 2, waitingStrangers: 3, patienceMs: 20 });
  const leave = await gate.enter(viewer("ann"));
  const busy = { code: "RATE_LIMITED", extensions: { retryAfterSeconds: 1 } };
  const waiting = [1, 2, 2, 3, 3].map((n) => gate.enter(stranger(`192.0.2.${n}`)));
  waiting.push(gate.enter(viewer("ann")));
  const outcomes = await Promise.allSettled(waiting);
  for (const outcome of outcomes) expect(outcome).toMatchObject({ status: "rejected", reason: busy });
  expect(gate.numbers).toMatchObject({ inside: 1, waiting: 0 });
  leave();
  leave();
  expect(gate.numbers).toMatchObject({ inside: 0, waiting: 0 });
  (await gate.enter(stranger("192.0.2.9")))();
});

test("who has gone leaves the line", async () => {
  const gate = new FairGate({ atOnce: 1 });
  const leave = await gate.enter(viewer("ann"));
  const gone = new AbortController();
  const waiting = gate.enter(viewer("bob"), gone.signal);
  gone.abort(new Error("gone"));
  await expect(waiting).rejects.toThrow("gone");
  await expect(gate.enter(viewer("bob"), gone.signal)).rejects.toThrow("gone");
  leave();
  expect(gate.numbers).toMatchObject({ inside: 0, waiting: 0 });
});
