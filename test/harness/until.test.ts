import { globSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { expect, test } from "@jest/globals";
import { until } from "./until.ts";

test("returns the result as soon as the condition is satisfied", async () => {
  let calls = 0;
  expect(
    await until(
      () => ++calls,
      (found) => found === 3,
    ),
  ).toBe(3);
  expect(calls).toBe(3);
});

test("fails after the time limit, with the last result", async () => {
  await expect(
    until(
      () => ({ left: 2 }),
      ({ left }) => left === 0,
      { withinMs: 10 },
    ),
  ).rejects.toThrow(/not satisfied within 10 ms.*"left": 2/s);
});

test("an error of the callback ends the wait", async () => {
  await expect(until(() => Promise.reject(new Error("gone")))).rejects.toThrow("gone");
});

test("tests wait only with this function, which has a time limit", () => {
  const folder = resolve(import.meta.dirname, "..");
  const waits = /\bwhile \(!?\(*await\b|\bwhile \(.*\)\s*await\b|\bfor \(.*; *;.*\bawait\b|\bfor \(;;\)/;
  const found = globSync("**/*.ts", {
    cwd: folder,
    exclude: ["harness/until*.ts", "**/node_modules/**"],
  }).filter((file) => waits.test(readFileSync(join(folder, file), "utf8")));
  expect(found).toEqual([]);
});
