/** The time limit for planning counts CPU time of the thread, not the time that other processes take from it. */
import { expect, test } from "@jest/globals";
import { cpuMs } from "../../src/base/cpuTime.ts";
import { isPlanningTimeout, planInTime, PLANNING_MS } from "../../src/limits/planningTime.ts";

const plan = { is: "planned" };
const timeout = () =>
  Object.assign(new Error("Too long."), { extensions: { [Symbol("timeout")]: PLANNING_MS } });
const event = () => ({ options: { timeouts: { planning: PLANNING_MS, execution: 5 } } }) as never;

/** Plans with a first attempt that does this before it times out; returns the time limits of the attempts. */
function attempts(first: () => void, longestMs?: number): { limits: unknown[]; failure: unknown } {
  const given: any = event();
  const limits: unknown[] = [];
  const next = () => {
    limits.push(given.options.timeouts);
    if (limits.length > 1) return plan;
    first();
    throw timeout();
  };
  try {
    expect(planInTime(next, given, longestMs)).toBe(plan);
    return { limits, failure: undefined };
  } catch (failure) {
    return { limits, failure };
  }
}

test("an operation whose time went to other processes is planned again, with more time", () => {
  const { limits, failure } = attempts(() => {});
  expect(failure).toBeUndefined();
  expect(limits).toEqual([
    { planning: PLANNING_MS, execution: 5 },
    { planning: 60_000, execution: 5 },
  ]);
});

test("an operation whose planning took the time is refused", () => {
  const { limits, failure } = attempts(() => {
    const end = cpuMs() + 21;
    while (cpuMs() < end);
  }, 20);
  expect(isPlanningTimeout((failure as { extensions: object }).extensions)).toBe(true);
  expect(limits.length).toBe(1);
  // As kept by the planner.
  expect(() =>
    planInTime(() => {
      throw failure;
    }, event()),
  ).toThrow(failure as Error);
});

test("other errors are thrown at once", () => {
  const other = Object.assign(new Error("No."), { extensions: { code: "CONFLICT" } });
  for (const error of [other, new Error("x")]) {
    let calls = 0;
    const next = () => {
      calls++;
      throw error;
    };
    expect(() => planInTime(next, event())).toThrow(error);
    expect(calls).toBe(1);
  }
});
