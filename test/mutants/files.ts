/** Test files that can run on a mutated database. */
import { globSync } from "node:fs";
import { resolve } from "node:path";

/**
 * Excluded: files whose processes create their own databases, slow files, and files that are not about rules of the
 * database.
 */
const without =
  /^test\/(bench|browser|dev|docs|faults|fuzz|harness|hostile|process|rehearsal|releases)\/|\/node_modules\/|\.long\.test\.ts$/;

/** Relative to the repository. */
export function databaseFiles(): string[] {
  return globSync("test/**/*.test.ts", { cwd: resolve(import.meta.dirname, "../..") })
    .filter((file) => !without.test(file))
    .toSorted();
}
