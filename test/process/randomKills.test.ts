/** The short form of randomKills.long.test.ts: each kind of process is killed once, at the same times in each run. */
import { expect, test } from "@jest/globals";
import { playRandomKills } from "../faults/randomKills.ts";

test("nothing is lost, executed twice or stuck, whatever is killed", async () => {
  const { killed, leads, uploads, mails } = await playRandomKills({ seconds: 0, seed: 1, restMs: 100 });
  expect(Object.values(killed)).toEqual(Object.keys(killed).map(() => 1));
  expect(Object.keys(killed)).toHaveLength(8);
  for (const amount of [leads, uploads, mails]) expect(amount).toBeGreaterThan(0);
}, 240_000);
