/** Runs every benchmark at a minimal size, so that schema changes do not break one unnoticed. */
import { globSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { afterEach, beforeAll, beforeEach, expect, jest, test } from "@jest/globals";
// oxlint-disable-next-line import/no-unassigned-import -- for its hook; benchmarks load it too late, inside of a test
import "../harness/child.ts";
import { testCluster } from "../harness/database.ts";

const folder = resolve(import.meta.dirname, "../../bench");
const names = globSync("*.ts", { cwd: folder, exclude: ["run.ts"] }).map((file) => basename(file, ".ts"));
const printed: string[] = [];

beforeAll(() => {
  // Benchmarks clone its database rather than each starting a cluster.
  testCluster();
  process.env.BENCH_SIZE = "smoke";
});
beforeEach(() => {
  printed.length = 0;
  jest.spyOn(console, "log").mockImplementation((line: unknown) => void printed.push(String(line)));
});
afterEach(() => {
  jest.restoreAllMocks();
});

test.each(names.toSorted())("%s", async (name) => {
  const { default: run } = (await import(join(folder, `${name}.ts`))) as { default: () => Promise<void> };
  await run();
  expect(printed.join("\n")).toMatch(/\d/);
  expect(printed.filter((line) => /NaN|undefined/.test(line))).toEqual([]);
});
