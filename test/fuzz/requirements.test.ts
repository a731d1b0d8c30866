/**
 * The permissions of each mutation: a token with those that docs/mutations.md lists is sufficient, one without any of
 * them is refused, and so are visitors. `FUZZ_WRITE=1 npm run test:long -- test/fuzz/requirements.test.ts` adds missing ones
 * to the guide.
 */
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { getNamedType, type GraphQLInputObjectType } from "graphql";
import { long } from "../harness/seeds.ts";
import { expectNothingStored } from "../harness/expectNothingStored.ts";
import { mutationOf } from "../harness/records.ts";
import { explore, type WorkingInput } from "./explore.ts";
import { readRequirements, selectionOf, writeRequirements } from "./requirements.ts";
import { schema, startFuzzWorld, type FuzzWorld } from "./world.ts";

const requirements = readRequirements();
let fuzz: FuzzWorld;
/** Mutations that were executed as dry runs. */
const dryRuns = new Set<string>();
const faults: string[] = [];

/**
 * Number of calls of each method of the payment processor, except `readEvent`, which only reads events and
 * may be called at any time.
 */
const calls = () => new Map([...fuzz.world.calls].filter(([method]) => method !== "readEvent"));

/** The operation as a dry run, which must store nothing and call no provider. */
async function runDry({ player: { person }, operation, variables }: WorkingInput): Promise<void> {
  const { field } = operation;
  const inputType = getNamedType(field.args[0]!.type) as GraphQLInputObjectType;
  const description = inputType.getFields().dryRun!.description!;
  const ask = () =>
    person.ask(mutationOf(field.name, selectionOf(field)), {
      input: { ...(variables.input as object), dryRun: true },
    });
  const before = calls();
  if (description.includes("has no dry run")) {
    const reason = (await ask()).errors?.[0]!.extensions.reason;
    if (reason !== "NO_DRY_RUN") faults.push(`${field.name} is refused with ${reason}`);
  } else if (description.includes("extensions.effects")) {
    // Events of the payment processor about earlier operations may arrive at any time, but not in each of
    // several runs.
    const again = () => expectNothingStored(fuzz.world, ask, field.name);
    const { errors, extensions } = await again().catch(again).catch(again);
    if (errors || !extensions.effects) faults.push(`${field.name} answers ${JSON.stringify(errors)}`);
    dryRuns.add(field.name);
  }
  for (const [method, times] of calls())
    if (times !== before.get(method)) faults.push(`${field.name} asks the processor (${method})`);
}

beforeAll(async () => {
  fuzz = await startFuzzWorld({ engine: long });
}, 300_000);
afterAll(() => fuzz.stop());

test(
  "each mutation requires the permissions that are listed",
  async () => {
    const differences: string[] = [];
    const { working, missing } = await explore(fuzz, {
      requirements,
      rounds: Number(process.env.FUZZ_ROUNDS ?? (long ? 200 : 1)),
      inputs: long || process.env.FUZZ_ROUNDS ? 4 : 1,
      seed: Number(process.env.SEED ?? 1),
      idleRounds: 30,
      // Background engines that run meanwhile also store rows.
      ...(!long && { works: runDry }),
      unlisted(name, required, variables) {
        differences.push(`${name} requires ${required}, with ${JSON.stringify(variables)}`);
        requirements[name] = [...(requirements[name] ?? []), required].toSorted();
      },
    });
    if (process.env.FUZZ_TELL)
      process.stderr.write(
        `${working.size} mutations were tried, ${dryRuns.size} dry; not ${missing.join(", ")}\n${differences.join("\n")}\n`,
      );
    if (process.env.FUZZ_WRITE) writeRequirements(requirements);
    expect(process.env.FUZZ_WRITE ? [] : differences).toEqual([]);
    expect(long ? missing : []).toEqual([]);
  },
  long || process.env.FUZZ_ROUNDS ? 6 * 3_600_000 : 300_000,
);

if (!long)
  test("a dry run returns the response of the operation and stores nothing", () => {
    expect(faults).toEqual([]);
    expect(dryRuns.size).toBeGreaterThan(60);
  });

test("each mutation is listed", () => {
  const mutations = Object.keys(schema.getMutationType()!.getFields());
  expect(Object.keys(requirements).toSorted()).toEqual(mutations.toSorted());
});
