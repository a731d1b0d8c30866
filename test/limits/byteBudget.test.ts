import { afterAll, beforeAll, expect, jest, test } from "@jest/globals";
import { createByteBudget } from "../../src/limits/byteBudget.ts";

const limits = { total: 100, ofOne: 40, ofStrangers: 60, free: 5 };
const viewer = (userId: string) => ({ userId, network: "n" });
const stranger = (network: string) => ({ userId: null, network });
const refusal = {
  code: "RATE_LIMITED",
  message: "Too many large requests are being read at the moment; send this one again in a second.",
  extensions: { retryAfterSeconds: 1 },
};

// Nobody waits out their patience here, except where time passes.
beforeAll(() => void jest.useFakeTimers({ doNotFake: ["setImmediate", "nextTick", "queueMicrotask"] }));
afterAll(() => void jest.useRealTimers());

/** Whether it gets its bytes at once. */
async function isGiven(taking: Promise<unknown>): Promise<boolean> {
  const waits = Symbol("waits");
  const turn = new Promise((resolve) => setImmediate(resolve, waits));
  return (await Promise.race([taking, turn])) !== waits;
}

test("one sender has a share, all together a limit; each may be used up to its end", async () => {
  const { take } = createByteBudget(limits);
  expect(await isGiven(take(40, viewer("a")))).toBe(true);
  expect(await isGiven(take(6, viewer("a")))).toBe(false);
  expect(await isGiven(take(40, viewer("b")))).toBe(true);
  expect(await isGiven(take(21, viewer("c")))).toBe(false);
  expect(await isGiven(take(20, viewer("d")))).toBe(true);
  expect(await isGiven(take(6, viewer("e")))).toBe(false);
});

test("strangers are senders by their network, and have a limit of their own", async () => {
  const { take } = createByteBudget(limits);
  expect(await isGiven(take(40, stranger("x")))).toBe(true);
  expect(await isGiven(take(6, stranger("x")))).toBe(false);
  expect(await isGiven(take(20, stranger("y")))).toBe(true);
  expect(await isGiven(take(6, stranger("z")))).toBe(false);
  expect(await isGiven(take(40, viewer("x")))).toBe(true);
});

test("what is small is let in, whatever there is, and not counted", async () => {
  const { take } = createByteBudget({ ...limits, total: 0 });
  const back = await take(5, viewer("a"));
  back();
  expect(await isGiven(take(6, viewer("a")))).toBe(false);
});

test("room that is given back, once, lets those in who wait and fit, in order", async () => {
  const { take } = createByteBudget(limits);
  const first = await take(40, viewer("a"));
  const second = await take(40, viewer("b"));
  const order: string[] = [];
  const waiting = (["c", "a", "d"] as const).map((name) =>
    take(30, viewer(name)).then((back) => (order.push(name), back)),
  );
  first();
  first();
  await isGiven(new Promise(() => {}));
  // Of a hundred 40 are b's: c and a fit, d does not.
  expect(order).toEqual(["c", "a"]);
  second();
  await isGiven(new Promise(() => {}));
  expect(order).toEqual(["c", "a", "d"]);
  for (const back of await Promise.all(waiting)) back();
  // All of it is there again.
  expect(await isGiven(take(40, viewer("a")))).toBe(true);
  expect(await isGiven(take(40, viewer("b")))).toBe(true);
  expect(await isGiven(take(20, viewer("c")))).toBe(true);
});

test("a stranger's room is given back to strangers", async () => {
  const { take } = createByteBudget(limits);
  const back = await take(40, stranger("x"));
  await take(20, stranger("y"));
  const next = take(40, stranger("z"));
  expect(await isGiven(next)).toBe(false);
  back();
  expect(await isGiven(next)).toBe(true);
});

test("part of a sender's room stays taken", async () => {
  const { take } = createByteBudget(limits);
  const back = await take(20, viewer("a"));
  await take(20, viewer("a"));
  back();
  expect(await isGiven(take(20, viewer("a")))).toBe(true);
  expect(await isGiven(take(6, viewer("a")))).toBe(false);
});

test("sixteen of one sender wait, others beside them; the seventeenth is refused", async () => {
  const { take } = createByteBudget(limits);
  await take(40, viewer("a"));
  const waiting = Array.from({ length: 16 }, () => take(40, viewer("a")));
  await expect(take(40, viewer("a"))).rejects.toMatchObject(refusal);
  expect(await isGiven(take(40, viewer("b")))).toBe(true);
  expect(await isGiven(Promise.race(waiting))).toBe(false);
});

test("who waits too long is refused, and takes nothing later", async () => {
  const { take } = createByteBudget(limits);
  const back = await take(40, viewer("a"));
  const late = take(40, viewer("a"));
  jest.advanceTimersByTime(19_999);
  expect(await isGiven(late)).toBe(false);
  jest.advanceTimersByTime(1);
  await expect(late).rejects.toMatchObject(refusal);
  back();
  expect(await isGiven(take(40, viewer("a")))).toBe(true);
});
