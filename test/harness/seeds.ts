/**
 * Random tests. The suite plays the seed 1 and those that test/seeds.json keeps, so each run is like the one before. The long form,
 * `npm run test:long`, plays new ones, says which, and keeps in that file those that found something: to be committed with what mends it.
 * `SEED=7 npm run test:long` plays that one.
 */
import { randomInt } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { test } from "@jest/globals";

/** Whether this is the long form, in which other tests may do more too. */
export const long = process.env.TEST_LONG === "1";

const file = resolve(import.meta.dirname, "../seeds.json");
const freshSeeds = 10;

/**
 * A random test: `play` does the same for the same seed.
 * @param withinMs how long one may take; as other tests when absent.
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
