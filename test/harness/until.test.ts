import { globSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { expect, test } from "@jest/globals";
import { until } from "./until.ts";

test("gives what was found as soon as it is so", async () => {
  let looks = 0;
  expect(
    await until(
      () => ++looks,
      (found) => found === 3,
    ),
  ).toBe(3);
  expect(looks).toBe(3);
});

test("ends, and says what was found at last", async () => {
  await expect(
    until(
      () => ({ left: 2 }),
      ({ left }) => left === 0,
      { withinMs: 10 },
    ),
  ).rejects.toThrow(/not so within 10 ms.*"left": 2/s);
});

test("what the look throws ends the wait", async () => {
  await expect(until(() => Promise.reject(new Error("gone")))).rejects.toThrow("gone");
});

test("no test waits in a loop of its own, which might never end", () => {
  const folder = resolve(import.meta.dirname, "..");
  const waits = /\bwhile \(!?\(*await\b|\bwhile \(.*\)\s*await\b|\bfor \(.*; *;.*\bawait\b|\bfor \(;;\)/;
  const found = globSync("**/*.ts", { cwd: folder, exclude: ["harness/until*.ts"] }).filter((file) =>
    waits.test(readFileSync(join(folder, file), "utf8")),
  );
  expect(found).toEqual([]);
});
