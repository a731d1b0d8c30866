/**
 * Random tests. The suite uses the seed 1 and the seeds of test/seeds.json, so that each run is the same. `npm run
 * test:long` uses new seeds, prints them, and adds those that found a failure to that file, which is committed with the
 * correction. `SEED=7 npm run test:long` uses that seed.
 */
import { randomInt } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { test } from "@jest/globals";

/** Whether this is `npm run test:long`, in which other tests can also do more. */
export const long = process.env.TEST_LONG === "1";

const file = resolve(import.meta.dirname, "../seeds.json");
const freshSeeds = 10;

/**
 * A random test: `play` does the same for the same seed.
 * @param withinMs time limit of one run. Default: that of other tests.
 */
export function testWithSeeds(name: string, play: (seed: number) => Promise<void>, withinMs?: number): void {
  if (!process.env.SEED)
    test.each([1, ...(read()[name] ?? [])])(`${name}, seed %i`, (seed) => play(seed), withinMs);
  if (!long) return;
  const fresh = process.env.SEED
    ? [Number(process.env.SEED)]
    : Array.from({ length: freshSeeds }, () => randomInt(2 ** 31));
  process.stderr.write(`${name}: new seeds ${fresh.join(", ")}\n`);
  test.each(fresh)(
    `${name}, new seed %i`,
    (seed) =>
      play(seed).catch((error: unknown) => {
        keep(name, seed);
        throw error;
      }),
    withinMs,
  );
}

function read(): Record<string, number[]> {
  return JSON.parse(readFileSync(file, "utf8"));
}

function keep(name: string, seed: number): void {
  const seeds = read();
  seeds[name] = [...new Set([...(seeds[name] ?? []), seed])];
  writeFileSync(file, `${JSON.stringify(seeds, null, 2)}\n`);
}
