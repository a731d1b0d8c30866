/** Work whose result is kept, and whose failure is not. */
import { expect, test } from "@jest/globals";
import { keepSuccess } from "../../src/base/keepSuccess.ts";

test("work is done once, also for calls during it, and again after a failure", async () => {
  let calls = 0;
  const work = keepSuccess(async () => {
    calls += 1;
    if (calls === 1) throw new Error("The first attempt failed.");
    return calls;
  });
  const first = await Promise.allSettled([work(), work()]);
  expect(first.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
  expect(await Promise.all([work(), work()])).toEqual([2, 2]);
  expect(await work()).toBe(2);
});
