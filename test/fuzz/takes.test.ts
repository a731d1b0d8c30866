/**
 * The permissions of each mutation: a token with those that docs/mutations.md lists is enough, one without any of them is refused, and so are
 * visitors. `FUZZ_WRITE=1 npm run test:long -- test/fuzz/takes.test.ts` adds what is found.
 */
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { long } from "../harness/seeds.ts";
import { explore } from "./explore.ts";
import { readTakes, writeTakes } from "./takes.ts";
import { schema, startFuzzWorld, type FuzzWorld } from "./world.ts";

const takesOf = readTakes();
let fuzz: FuzzWorld;

beforeAll(async () => {
  fuzz = await startFuzzWorld({ engine: long });
}, 300_000);
afterAll(() => fuzz.stop());

test(
  "each mutation takes the permissions that are listed",
  async () => {
    const differences: string[] = [];
    const { working, missing } = await explore(fuzz, {
      takesOf,
      rounds: Number(process.env.FUZZ_ROUNDS ?? (long ? 200 : 1)),
      inputs: long || process.env.FUZZ_ROUNDS ? 4 : 1,
      seed: Number(process.env.SEED ?? 1),
      idleRounds: 30,
      unlisted(name, takes, variables) {
        differences.push(`${name} takes ${takes}, with ${JSON.stringify(variables)}`);
        takesOf[name] = [...(takesOf[name] ?? []), takes].toSorted();
      },
    });
    if (process.env.FUZZ_TELL)
      process.stderr.write(
        `${working.size} mutations were tried; not ${missing.join(", ")}\n${differences.join("\n")}\n`,
      );
    if (process.env.FUZZ_WRITE) writeTakes(takesOf);
    expect(process.env.FUZZ_WRITE ? [] : differences).toEqual([]);
    expect(long ? missing : []).toEqual([]);
  },
  long || process.env.FUZZ_ROUNDS ? 6 * 3_600_000 : 300_000,
);

test("each mutation is listed", () => {
  const mutations = Object.keys(schema.getMutationType()!.getFields());
  expect(Object.keys(takesOf).toSorted()).toEqual(mutations.toSorted());
});
