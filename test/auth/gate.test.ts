import { expect, test } from "@jest/globals";
import { createGate, GateFull } from "../../src/auth/gate.ts";
import { networkOf } from "../../src/auth/network.ts";

const options = { atOnce: 2, waitingAtMost: 4, waitingPerNetwork: 3, waitMs: 60_000 };

/** A gate whose jobs run until they are let go, and who got in, in order. */
function heldGate(of = options) {
  const gate = createGate(of);
  const order: string[] = [];
  const { promise: held, resolve: release } = Promise.withResolvers<void>();
  let running = 0;
  const most = { atOnce: 0 };
  const job = (name: string, network = "a", share = "sign-in") =>
    gate(share, network, async () => {
      most.atOnce = Math.max(most.atOnce, ++running);
      order.push(name);
      await held;
      running--;
      if (name.endsWith("!")) throw new Error("failed");
      return name;
    });
  return { gate, order, release, job, most };
}

test("so many run at once, in order; the place of one that failed is free; a full queue is refused", async () => {
  const { gate, order, release, job, most } = heldGate();
  const jobs = ["1!", "2", "3", "4", "5"].map((name) => job(name));
  await expect(job("6")).rejects.toThrow(GateFull);
  release();
  const results = await Promise.allSettled(jobs);
  expect(results.map(({ status }) => status)).toEqual(["rejected", ...Array(4).fill("fulfilled")]);
  expect(order).toEqual(["1!", "2", "3", "4", "5"]);
  expect(most.atOnce).toBe(2);
  await expect(gate("sign-in", "a", async () => "free")).resolves.toBe("free");
});

test("shares take turns, and networks within a share: a flood waits for itself", async () => {
  const { order, release, job } = heldGate({ ...options, waitingAtMost: 100, waitingPerNetwork: 50 });
  const flood = Array.from({ length: 20 }, (_, n) => job(`flood ${n}`, "attacker", "sign-up"));
  const others = [
    job("somebody's account", "b", "sign-up"),
    job("a sign-in", "c"),
    job("another sign-in", "d"),
  ];
  release();
  await Promise.all([...flood, ...others]);
  expect(order.slice(0, 8)).toEqual([
    "flood 0",
    "flood 1",
    "flood 2",
    "a sign-in",
    "somebody's account",
    "another sign-in",
    "flood 3",
    "flood 4",
  ]);
});

test("a share that is full makes room for a network that waits for less, at the cost of the longest queue", async () => {
  const { order, release, job } = heldGate();
  const running = [job("r1"), job("r2")];
  const many = ["a1", "a2", "a3"].map((name) => job(name, "a"));
  const one = job("b1", "b");
  const [lost, late] = [many[2]!.catch((error: unknown) => error), job("c1", "c")];
  expect(await lost).toBeInstanceOf(GateFull);
  await expect(job("a4", "a")).rejects.toThrow(GateFull);
  release();
  await Promise.all([...running, many[0], many[1], one, late]);
  expect(order).toEqual(["r1", "r2", "a1", "b1", "c1", "a2"]);
});

test("who waits too long is refused, and was not begun", async () => {
  const { order, release, job } = heldGate({ ...options, atOnce: 1, waitMs: 1 });
  const first = job("first");
  const late = job("late");
  await expect(late).rejects.toMatchObject({ retryAfterSeconds: 1 });
  release();
  await first;
  expect(order).toEqual(["first"]);
});

test.each([
  ["192.0.2.7", "192.0.2.7"],
  ["::ffff:192.0.2.7", "192.0.2.7"],
  ["2001:db8:0:1:ffff:1:2:3", "2001:db8:0:1::/64"],
  ["2001:DB8::7", "2001:db8::/64"],
  ["::1", "::/64"],
  ["fe80::1%eth0", "unknown"],
  ["", "unknown"],
  ["no address", "unknown"],
])("%j is one network with all of %s", (ip, network) => expect(networkOf(ip)).toBe(network));
