import { expect, test } from "@jest/globals";
import { FairSemaphore, type FairSemaphoreOptions, type Release } from "../../src/admission/fairSemaphore.ts";
import { type Party, partyOf } from "../../src/admission/party.ts";

const viewer = (name: string) => partyOf(name, "192.0.2.1");
const stranger = (address: string) => partyOf(null, address);
const refused = { code: "RATE_LIMITED", extensions: { retryAfterSeconds: 1 } };

/** A semaphore whose requests are recorded in the order of their admission, and held until they are released. */
function semaphoreOf(options: FairSemaphoreOptions) {
  const semaphore = new FairSemaphore(options);
  const order: string[] = [];
  const held: Release[] = [];
  return {
    semaphore,
    order,
    /** Release functions of the held units, the oldest first. */
    held,
    acquire: async (name: string, party: Party, weight = 1) => {
      held.push(await semaphore.acquire(party, { weight }));
      order.push(name);
    },
    /** Releases one after the other, until nothing is held. */
    async drain() {
      await new Promise(setImmediate);
      while (held.length > 0) {
        held.shift()!();
        await new Promise(setImmediate);
      }
    },
  };
}

test("parties are served in rotation, and all visitors together are one group, by networks", async () => {
  const { acquire, order, drain } = semaphoreOf({ capacity: 1 });
  void acquire("first", viewer("first"));
  for (const n of [1, 2, 3]) void acquire(`ann ${n}`, viewer("ann"));
  for (const n of [1, 2, 3]) void acquire(`network 1, ${n}`, stranger("192.0.2.1"));
  void acquire("network 2", stranger("192.0.2.2"));
  void acquire("bob", viewer("bob"));
  await drain();
  expect(order).toEqual([
    "first",
    "ann 1",
    "network 1, 1",
    "bob",
    "ann 2",
    "network 2",
    "ann 3",
    "network 1, 2",
    "network 1, 3",
  ]);
});

test("addresses of one IPv6 network are one party, and so are two spellings of an address", () => {
  expect(stranger("2001:db8:1:2::1")).toEqual(stranger("2001:db8:1:2:ffff::9"));
  expect(stranger("2001:db8:1:2::1")).not.toEqual(stranger("2001:db8:1:3::1"));
  expect(stranger("::ffff:192.0.2.1")).toEqual(stranger("192.0.2.1"));
});

test("a party, and all visitors together, have a maximum share; the rest of the capacity is for others", async () => {
  const { semaphore, acquire, drain } = semaphoreOf({ capacity: 5, perParty: 2, visitors: 2 });
  for (let n = 0; n < 4; n += 1) {
    void acquire("ann", viewer("ann"));
    void acquire("stranger", stranger(`192.0.2.${n}`));
  }
  expect(semaphore.numbers).toEqual({ held: 4, waiting: 4 });
  (await semaphore.acquire(viewer("bob")))();
  await drain();
  expect(semaphore.numbers).toEqual({ held: 0, waiting: 0 });
});

test("the reserved units are for parties that hold none", async () => {
  const { semaphore, acquire, held } = semaphoreOf({ capacity: 6, perParty: 4, reserved: 2 });
  for (const name of ["ann", "ann", "bob", "bob", "ann", "bob"]) void acquire(name, viewer(name));
  expect(semaphore.numbers).toEqual({ held: 4, waiting: 2 });
  void acquire("cid", viewer("cid"));
  void acquire("dan", viewer("dan"));
  expect(semaphore.numbers).toEqual({ held: 6, waiting: 2 });
  await new Promise(setImmediate);
  for (const release of held.splice(0, 4)) release();
  expect(semaphore.numbers).toEqual({ held: 4, waiting: 0 });
});

test("units are weighted: a large request waits until there is room, and small ones do not starve it", async () => {
  const { semaphore, acquire, order, drain } = semaphoreOf({ capacity: 100, perParty: 40, visitors: 50 });
  void acquire("ann 40", viewer("ann"), 40);
  void acquire("network 1, 30", stranger("192.0.2.1"), 30);
  // Exceeds the share of its own party, so nobody waits for it.
  void acquire("ann 6", viewer("ann"), 6);
  void acquire("network 2, 21", stranger("192.0.2.2"), 21);
  void acquire("bob 30", viewer("bob"), 30);
  expect(semaphore.numbers).toEqual({ held: 100, waiting: 2 });
  // There is no capacity for it, and later, smaller requests wait behind it.
  void acquire("cid 40", viewer("cid"), 40);
  void acquire("dan 1", viewer("dan"), 1);
  await drain();
  expect(order).toEqual(["ann 40", "network 1, 30", "bob 30", "ann 6", "network 2, 21", "cid 40", "dan 1"]);
  expect(semaphore.numbers).toEqual({ held: 0, waiting: 0 });
});

test("a request that waits too long, or behind too many of its party, is refused with the time to retry", async () => {
  const options = { capacity: 1, queuePerParty: 2, queuePerGroup: 3, timeoutMs: 20 };
  const { semaphore } = semaphoreOf(options);
  const release = await semaphore.acquire(viewer("ann"));
  const waiting = [1, 2, 2, 2, 3].map((n) => semaphore.acquire(stranger(`192.0.2.${n}`)));
  waiting.push(semaphore.acquire(viewer("ann")));
  for (const outcome of await Promise.allSettled(waiting))
    expect(outcome).toMatchObject({ status: "rejected", reason: refused });
  expect(semaphore.numbers).toEqual({ held: 1, waiting: 0 });
  release();
  release();
  expect(semaphore.numbers).toEqual({ held: 0, waiting: 0 });
  (await semaphore.acquire(stranger("192.0.2.9")))();
});

test("when one gives up, those behind it are served", async () => {
  const { semaphore, acquire, order } = semaphoreOf({ capacity: 10, timeoutMs: 20 });
  void acquire("ann 6", viewer("ann"), 6);
  const large = semaphore.acquire(viewer("bob"), { weight: 10 });
  void acquire("cid 4", viewer("cid"), 4);
  expect(semaphore.numbers).toEqual({ held: 6, waiting: 2 });
  await expect(large).rejects.toMatchObject(refused);
  expect(semaphore.numbers).toEqual({ held: 10, waiting: 0 });
  await new Promise(setImmediate);
  expect(order).toEqual(["ann 6", "cid 4"]);
});

test("a full group makes room for a party with a shorter queue, at the cost of the longest queue", async () => {
  const { semaphore, acquire, order, drain } = semaphoreOf({
    capacity: 1,
    queuePerParty: 3,
    queuePerGroup: 4,
  });
  const party = (network: string): Party => ({ group: "sign-up", key: network });
  void acquire("first", party("a"));
  const ofA = [1, 2, 3].map((n) => acquire(`a ${n}`, party("a")).catch((error: unknown) => error));
  void acquire("b 1", party("b"));
  void acquire("c 1", party("c"));
  expect(await ofA[2]).toMatchObject(refused);
  await expect(semaphore.acquire(party("a"))).rejects.toMatchObject(refused);
  await drain();
  expect(order).toEqual(["first", "a 1", "b 1", "c 1", "a 2"]);
});

test("an aborted request leaves the queue", async () => {
  const { semaphore } = semaphoreOf({ capacity: 1 });
  const release = await semaphore.acquire(viewer("ann"));
  const gone = new AbortController();
  const waiting = semaphore.acquire(viewer("bob"), { signal: gone.signal });
  gone.abort(new Error("gone"));
  await expect(waiting).rejects.toThrow("gone");
  await expect(semaphore.acquire(viewer("bob"), { signal: gone.signal })).rejects.toThrow("gone");
  release();
  expect(semaphore.numbers).toEqual({ held: 0, waiting: 0 });
});

test("failed work releases its unit; its error, or the given one, is thrown", async () => {
  const semaphore = new FairSemaphore({
    capacity: 1,
    queuePerParty: 0,
    refusal: (seconds) => new Error(`later: ${seconds}`),
  });
  const failing = semaphore.run(viewer("ann"), async () => {
    throw new Error("failed");
  });
  await expect(semaphore.run(viewer("ann"), async () => "done")).rejects.toThrow("later: 1");
  await expect(failing).rejects.toThrow("failed");
  expect(await semaphore.run(viewer("ann"), async () => "done")).toBe("done");
});
