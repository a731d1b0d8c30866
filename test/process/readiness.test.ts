import { expect, test } from "@jest/globals";
import { Readiness } from "../../src/monitoring/readiness.ts";

test("ready only when every component is; failing, hanging and stopping count as not ready", async () => {
  const readiness = new Readiness();
  expect(await readiness.report()).toEqual({ ready: true, checks: {} });
  let up = true;
  readiness.add("worker", () => up);
  expect(await readiness.report()).toEqual({ ready: true, checks: { worker: true } });
  up = false;
  readiness.add("database", () => Promise.reject(new Error("away")));
  readiness.add("hanging", () => new Promise<boolean>(() => {}));
  expect(await readiness.report(10)).toEqual({
    ready: false,
    checks: { worker: false, database: false, hanging: false },
  });
});

test("a process that stops is not ready, whatever its components report", async () => {
  const readiness = new Readiness();
  readiness.add("worker", () => true);
  readiness.stop();
  expect(await readiness.report()).toEqual({ ready: false, checks: { worker: true } });
});

test("concurrent checks check each component once; later ones check again", async () => {
  const readiness = new Readiness();
  let calls = 0;
  readiness.add("database", async () => {
    calls += 1;
    await new Promise(setImmediate);
    return true;
  });
  const reports = await Promise.all(Array.from({ length: 100 }, () => readiness.report()));
  expect(new Set(reports.map(({ ready }) => ready))).toEqual(new Set([true]));
  expect(calls).toBe(1);
  await readiness.report();
  expect(calls).toBe(2);
});
