/** The invariants of deals hold after random concurrent operations of several people. */
import { afterAll, beforeAll, expect } from "@jest/globals";
import * as fc from "fast-check";
import { passTime } from "../harness/clock.ts";
import { brokenInvariants } from "../../src/doctor/invariants.ts";
import { laterCreations } from "../harness/laterCreations.ts";
import { moves, play } from "./model.ts";
import { startDeals, type Deals } from "./world.ts";
import { testWithSeeds } from "../harness/seeds.ts";

let deals: Deals;
beforeAll(async () => {
  deals = await startDeals();
});
afterAll(() => deals?.stop());

testWithSeeds("random deals of several people at once break no rule", async (seed) => {
  const codes = new Map<string, number>();
  await fc.assert(
    fc.asyncProperty(
      fc.array(moves(12), { minLength: 4, maxLength: 8 }),
      fc.integer({ min: 0, max: 60 }),
      async (players, hours) => {
        await deals.restock();
        await Promise.all(
          players.map(async (steps) => {
            for (const step of steps) {
              const code = (await play(deals, step)) ?? "NOTHING";
              codes.set(code, (codes.get(code) ?? 0) + 1);
              if (code === "INTERNAL") throw new Error(`INTERNAL: ${JSON.stringify(step)}`);
            }
          }),
        );
        expect(await brokenInvariants(deals.owner)).toEqual({});
        await passTime(deals.owner, `${hours} hours`);
        await deals.owen.get("{ viewer { id } }"); // the next reader expires what is due
        expect(await brokenInvariants(deals.owner)).toEqual({});
      },
    ),
    { seed, numRuns: 12, endOnFailure: true },
  );
  // If everything were refused, the test would assert nothing.
  expect(codes.get("OK")).toBeGreaterThan(100);
  expect(await laterCreations(deals.owner)).toEqual([]);
});
