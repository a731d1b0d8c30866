/**
 * The permissions of each mutation: a token with those that docs/mutations.md lists is enough, one without any of them is refused, and so are
 * visitors. `FUZZ_WRITE=1 npm run test:long -- test/fuzz/takes.test.ts` adds what is found.
 */
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { long } from "../harness/seeds.ts";
import { nothingKept } from "../harness/nothingKept.ts";
import { mutationOf } from "../harness/records.ts";
import { explore, type Working } from "./explore.ts";
import { readTakes, selectionOf, writeTakes } from "./takes.ts";
import { schema, startFuzzWorld, type FuzzWorld } from "./world.ts";

const takesOf = readTakes();
let fuzz: FuzzWorld;
/** What came of the dry runs, by the name of the mutation: "done", or the reason of the refusal. */
const dryRuns = new Map<string, string>();

/**
 * Those whose own dry run commits that a password was right, or that a file was sent; and uploads, which are refused while the files that
 * were sent a moment ago are let go of (test/api/dryRuns.test.ts).
 */
const apart = /^(import|upload|eraseAccount|requestOrganizationDeletion)/;

/** The operation as a dry run, which leaves nothing behind and asks nobody. */
async function runDry({ player: { person }, operation, variables }: Working): Promise<void> {
  const { field } = operation;
  if (apart.test(field.name)) return;
  const input = { ...(variables.input as object), dryRun: true };
  const calls = new Map(fuzz.world.calls);
  const { errors, extensions } = await nothingKept(
    fuzz.world,
    () => person.ask(mutationOf(field.name, selectionOf(field)), { input }),
    field.name,
  );
  expect(fuzz.world.calls).toEqual(calls);
  const refusal = errors?.[0];
  const { reason, code } = refusal?.extensions ?? {};
  expect(refusal || extensions.effects).toBeTruthy();
  dryRuns.set(field.name, refusal ? (reason ?? `${code} ${refusal.message}`) : "done");
}

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
      // Engines that run meanwhile store things.
      ...(!long && { works: runDry }),
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

if (!long)
  test("a dry run of each answers as the operation, and leaves nothing behind", () => {
    const outcomes = Map.groupBy(dryRuns.keys(), (name) => dryRuns.get(name)!);
    expect([...outcomes.keys()].toSorted()).toEqual(["NO_DRY_RUN", "done"]);
    expect(outcomes.get("done")!.length).toBeGreaterThan(60);
  });

test("each mutation is listed", () => {
  const mutations = Object.keys(schema.getMutationType()!.getFields());
  expect(Object.keys(takesOf).toSorted()).toEqual(mutations.toSorted());
});
