/** What an operation knows of its work, the shares of connections, and what waiting for admission leaves behind. */
import { afterEach, describe, expect, jest, test } from "@jest/globals";
import { EventLoop } from "../../src/admission/eventLoop.ts";
import { FairSemaphore } from "../../src/admission/fairSemaphore.ts";
import { OperationWork } from "../../src/admission/operationWork.ts";
import { isVisitor, organizationParty, partyOf } from "../../src/admission/party.ts";
import { connectionShares } from "../../src/admission/semaphores.ts";

const ann = partyOf("ann", undefined);
const bob = partyOf("bob", undefined);
const stranger = partyOf(null, "192.0.2.1");

afterEach(() => void jest.useRealTimers());

describe("the work of an operation", () => {
  const work = () => new OperationWork(ann);

  test("begins with nothing", () => {
    expect(work()).toMatchObject({
      party: ann,
      bytesRead: 0,
      cost: 0,
      tellsSchema: false,
      isReplayed: false,
      changes: false,
      isQuery: false,
      needsPrimary: false,
      position: undefined,
      hasLargeInput: false,
    });
  });

  test("is replayed once a notice says so, whatever comes later", () => {
    const one = work();
    for (const code of [undefined, "00000", "PLAT2"]) one.noticed(code);
    expect(one.isReplayed).toBe(false);
    one.noticed("PLAT3");
    one.noticed("00000");
    expect(one.isReplayed).toBe(true);
  });

  test("has read at the earliest position of its statements", () => {
    const one = work();
    for (const lsn of [7n, 9n, 5n, 6n]) one.reached(lsn);
    expect(one.position).toBe(5n);
  });

  test("after a commit, is at its position, or at that of the last commit", () => {
    const one = work();
    one.reached(9n);
    one.committed(7n);
    expect(one.position).toBe(7n);
    one.reached(3n);
    expect(one.position).toBe(7n);
    one.committed(6n);
    expect(one.position).toBe(7n);
    one.committed(8n);
    expect(one.position).toBe(8n);
    const unread = work();
    unread.committed(4n);
    expect(unread.position).toBe(4n);
  });

  test("throws the failure of its first statement once, whatever it is", () => {
    for (const error of [new Error("lost"), undefined]) {
      const one = work();
      one.throwFailure();
      one.read(100);
      one.failed(error);
      expect(one.bytesRead).toBe(0);
      let thrown: unknown[] = [];
      for (let n = 0; n < 2; n += 1)
        try {
          one.throwFailure();
        } catch (failure) {
          thrown = [...thrown, failure];
        }
      expect(thrown).toEqual([error]);
    }
  });

  test("is a change only if it is said to be one", () => {
    const one = work();
    one.measured(3, [], 1);
    expect([one.cost, one.changes]).toEqual([3, false]);
    one.measured(4, [], 1, true);
    expect([one.cost, one.changes]).toEqual([4, true]);
  });
});

test("the members of an organization are one party, which is no visitor", () => {
  expect(organizationParty("o1")).toEqual({ key: "organization o1", group: "organization o1" });
  expect(organizationParty("o1")).not.toEqual(organizationParty("o2"));
  expect(isVisitor(organizationParty("o1"))).toBe(false);
});

describe("connections of a pool", () => {
  /** Units that a party gets at once, one by one. */
  function unitsOf(shares: FairSemaphore, party = ann): number {
    for (let units = 0; ; units += 1) if (!shares.tryAcquire(party)) return units;
  }

  test.each([
    // A viewer gets two fifths, but not the last two of more than four.
    [10, 9, 4, 3],
    [10, 5, 3, 3],
    [10, 4, 4, 3],
    [20, 18, 8, 6],
    // Everybody gets one.
    [1, 1, 1, 1],
    [2, 0, 1, 1],
  ])("of %i, with %i for operations, are %i for a viewer and %i for visitors", (size, capacity, own, all) => {
    expect(unitsOf(connectionShares(size, capacity))).toBe(own);
    const shares = connectionShares(size, capacity);
    let units = 0;
    for (let n = 0; n < 20; n += 1) if (shares.tryAcquire(partyOf(null, `192.0.2.${n}`))) units += 1;
    expect(units).toBe(all);
  });
});

describe("a semaphore", () => {
  test("gives units at once only while nobody waits", async () => {
    const semaphore = new FairSemaphore({ capacity: 4 });
    expect(semaphore.tryAcquire(ann, 5)).toBeUndefined();
    const release = semaphore.tryAcquire(ann, 3)!;
    expect(semaphore.numbers).toEqual({ held: 3, waiting: 0 });
    const waiting = semaphore.acquire(bob, { weight: 2 });
    expect(semaphore.tryAcquire(stranger)).toBeUndefined();
    expect(semaphore.numbers).toEqual({ held: 3, waiting: 1 });
    release();
    (await waiting)();
    expect(semaphore.numbers).toEqual({ held: 0, waiting: 0 });
    semaphore.tryAcquire(stranger)!();
  });

  test("takes from the longest queue of a full group, whichever was first", async () => {
    const semaphore = new FairSemaphore({ capacity: 1, queuePerGroup: 4 });
    const of = (key: string) => semaphore.acquire({ group: "sign-up", key });
    const release = await semaphore.acquire(ann);
    const short = of("a");
    const long = [1, 2, 3].map(() => of("b"));
    const taken = long[2]!.catch((error: unknown) => error);
    const last = of("c");
    expect(await taken).toMatchObject({ code: "RATE_LIMITED" });
    expect(semaphore.numbers).toEqual({ held: 1, waiting: 4 });
    release();
    for (const one of [short, long[0]!, last, long[1]!]) (await one)();
    expect(semaphore.numbers).toEqual({ held: 0, waiting: 0 });
  });

  test("says when to come again: after a fifth of the time that it has let wait", async () => {
    jest.useFakeTimers();
    const semaphore = new FairSemaphore({ capacity: 1, timeoutMs: 15_001 });
    const release = await semaphore.acquire(ann);
    const waiting = semaphore.acquire(bob).catch((error: unknown) => error);
    await jest.advanceTimersByTimeAsync(15_000);
    expect(semaphore.numbers.waiting).toBe(1);
    await jest.advanceTimersByTimeAsync(1);
    expect(await waiting).toMatchObject({
      code: "RATE_LIMITED",
      message: expect.stringMatching(/ try again in 4 s\.$/),
      extensions: { retryAfterSeconds: 4 },
    });
    release();
  });

  test("keeps neither timers nor listeners of those that it has admitted, refused or let go", async () => {
    jest.useFakeTimers();
    const semaphore = new FairSemaphore({ capacity: 1, timeoutMs: 1_000 });
    const gone = new AbortController();
    const remove = jest.spyOn(gone.signal, "removeEventListener");
    const release = await semaphore.acquire(ann, { signal: gone.signal });
    expect(jest.getTimerCount()).toBe(0);
    const admitted = semaphore.acquire(bob, { signal: gone.signal });
    const aborted = semaphore.acquire(bob, { signal: gone.signal }).catch(() => "aborted");
    expect(jest.getTimerCount()).toBe(2);
    release();
    const next = await admitted;
    const late = semaphore.acquire(bob).catch(() => "late");
    gone.abort();
    expect(await aborted).toBe("aborted");
    await jest.advanceTimersByTimeAsync(1_000);
    expect(await late).toBe("late");
    expect(jest.getTimerCount()).toBe(0);
    expect(remove).toHaveBeenCalledTimes(2);
    next();
    expect(semaphore.numbers).toEqual({ held: 0, waiting: 0 });
  });
});

describe("the event loop", () => {
  test("lets nothing else run for as long as a piece has cost", async () => {
    const loop = new EventLoop();
    const charge = jest.spyOn(loop, "charge");
    jest.useFakeTimers();
    charge.mockReturnValueOnce(500);
    const order: string[] = [];
    await loop.run(ann, () => order.push("first"));
    const second = loop.run(bob, () => order.push("second"));
    await jest.advanceTimersByTimeAsync(499);
    expect(order).toEqual(["first"]);
    charge.mockReturnValueOnce(0);
    await jest.advanceTimersByTimeAsync(1);
    await second;
    expect(order).toEqual(["first", "second"]);
    expect(charge).toHaveBeenCalledTimes(2);
  });

  test("charges what follows a wait for the turn, and never less than nothing", async () => {
    const loop = new EventLoop();
    const charge = jest.spyOn(loop, "charge").mockReturnValue(0);
    await loop.ready(ann);
    expect(charge).not.toHaveBeenCalled();
    let isNext = false;
    const next = loop.ready(bob).then(() => (isNext = true));
    expect(isNext).toBe(false);
    await next;
    expect(charge).toHaveBeenCalledTimes(1);
    expect(charge.mock.calls[0]![0]).toBeGreaterThanOrEqual(0);
  });
});
