/**
 * Random operations of the whole schema by all kinds of viewers: no internal errors, no data of other organizations,
 * and no violated invariants. The long form (`npm run test:long -- test/fuzz`) continues until every operation has
 * succeeded.
 */
import { afterAll, beforeAll, expect } from "@jest/globals";
import { readFileSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import type { Payments } from "../harness/payments.ts";
import { randomFrom } from "../harness/random.ts";
import { long, testWithSeeds } from "../harness/seeds.ts";
import { Fuzzer, type Player } from "./fuzzer.ts";
import { brokenInvariants } from "./invariants.ts";
import { foreignIds, privateTables, stringsOf, unmasked } from "./privacy.ts";
import { schema, startFuzzWorld, type FuzzWorld } from "./world.ts";

const steps = Number(process.env.FUZZ_STEPS ?? (long ? 30_000 : 120));
/** Maximum number of attempts per player and operation in the long form. */
const triesOfEach = 3;
/** Steps between two checks of the invariants. */
const checkEvery = 1000;
/** Steps between two reads of the ids of existing records. */
const learnEvery = 200;
/** A run ends after this number of faults. */
const mostFaults = 10;
/** Operations that are refused for each kind of viewer whatever the input, by player name. */
const refusedFile = resolve(import.meta.dirname, "refused.json");
const refused: Record<string, string[]> = JSON.parse(readFileSync(refusedFile, "utf8"));
let fuzz: FuzzWorld;
let world: Payments;
let tables: string[];

beforeAll(async () => {
  fuzz = await startFuzzWorld({ engine: long });
  ({ world } = fuzz);
  tables = await privateTables(world.owner);
}, 300_000);
afterAll(() => fuzz.stop());

testWithSeeds(
  "random operations by everybody",
  async (seed) => {
    const random = randomFrom(seed);
    const { everybody } = fuzz;
    const as = new RegExp(process.env.FUZZ_AS ?? ".");
    const faults = new Set<string>();
    const fuzzer = new Fuzzer({
      schema,
      players: everybody.filter(({ name }) => as.test(name)),
      random,
      recipes: fuzz.recipes,
      documents: long ? 2 : 1,
      only: new RegExp(process.env.FUZZ_ONLY ?? "."),
      triesOfEach: long ? triesOfEach : 0,
    });
    await fuzz.learnRecords(fuzzer.records);
    /** Operations that revealed each text to outsiders. */
    const received = new Map<Player, Map<string, string>>();
    const check = async () => {
      for (const [{ name, person }, texts] of received)
        for (const text of await foreignIds(world.owner, tables, texts, person.id))
          faults.add(`${name} received ${text}`);
      // Each of these plans as many documents as there are masked records.
      for (const player of long ? everybody : everybody.filter(({ name }) => name === "seller"))
        for (const text of await unmasked(world.owner, schema, player.person))
          faults.add(`${player.name} received ${text}`);
      for (const [rule, rows] of Object.entries(await brokenInvariants(world.owner, world.dataDir)))
        faults.add(`Not true: ${rule}: ${JSON.stringify(rows)}`);
    };
    for (let step = 1; step <= steps && faults.size < mostFaults; step++) {
      const { player, operation, variables, answer } = await fuzzer.step();
      for (const { message, extensions } of answer.errors ?? [])
        if (!extensions?.code || extensions.code === "INTERNAL")
          faults.add(`${player.name} ${operation} ${JSON.stringify(variables)}: ${message}`);
      if (!answer.errors && refused[player.name]?.includes(operation))
        faults.add(`${player.name} ${operation} ${JSON.stringify(variables)}: is not refused`);
      if (player.party === "Summit" || player.party === "Nobody") {
        const sent = stringsOf(variables);
        const texts = received.get(player) ?? received.set(player, new Map()).get(player)!;
        for (const text of stringsOf(answer.data)) if (!sent.has(text)) texts.set(text, operation);
      }
      if (step % learnEvery === 0) await fuzz.learnRecords(fuzzer.records);
      if (step % checkEvery === 0) {
        await world.settle();
        await check();
        if (process.env.FUZZ_TELL) tell(step, fuzzer);
        if (process.env.FUZZ_WRITE) writeRefused(fuzzer);
        if (fuzzer.unreached.length === 0 && fuzzer.untried.length === 0) break;
      }
    }
    await check();
    if (process.env.FUZZ_TELL) {
      tell(steps, fuzzer);
      tellViewers(fuzzer);
    }
    if (process.env.FUZZ_WRITE) writeRefused(fuzzer);
    expect([...faults]).toEqual([]);
    if (!long) return;
    expect(fuzzer.unreached).toEqual([]);
    expect(fuzzer.untried.map(({ player, operation }) => `${player.name} ${operation.field.name}`)).toEqual(
      [],
    );
  },
  long || process.env.FUZZ_STEPS ? 6 * 3_600_000 : 300_000,
);

/** Progress so far, and the operations without a success, with the reasons. */
function tell(step: number, { operations, untried }: Fuzzer): void {
  const reached = operations.filter(({ successes }) => successes > 0).length;
  const unreached = operations.filter(({ successes }) => successes === 0);
  const reasons = (refusals: Map<string, number>) =>
    [...refusals]
      .toSorted((a, b) => b[1] - a[1])
      .slice(0, 3)
      .map(([text, count]) => `${count} × ${text}`)
      .join(" | ");
  const lines = [
    `${step} steps, ${reached} of ${operations.length} reached, ${untried.length} tries by somebody are missing`,
    ...(unreached.length < 50
      ? unreached.map(({ field, tries, refusals }) => `  ${field.name}: ${tries} tries; ${reasons(refusals)}`)
      : []),
  ];
  process.stderr.write(`${lines.join("\n")}\n`);
}

/** Number of operations with which each kind of viewer succeeded. */
function tellViewers({ operations }: Fuzzer): void {
  for (const name of operations[0]!.by.keys()) {
    const reached = operations.filter(({ by }) => by.get(name)!.successes > 0).length;
    process.stderr.write(`${name}: ${reached} of ${operations.length}\n`);
  }
}

/** Operations that are refused because of the kind of viewer, whatever record they concern. */
const restricted = ["visitor", "program"];

/** Stores the operations that were refused in every run; later runs only remove those that succeeded. */
function writeRefused({ operations }: Fuzzer): void {
  const found = structuredClone(refused);
  for (const name of restricted) {
    const succeeded = new Set(
      operations.filter(({ by }) => by.get(name)?.successes).map(({ field }) => field.name),
    );
    // An invisible record or a wrong password says nothing about permissions for the operation.
    const isForbidden = ({ field, by }: Fuzzer["operations"][number]) =>
      field.name !== "login" &&
      [...(by.get(name)?.refusals.keys() ?? [])].some((text) => /^(UNAUTHENTICATED|FORBIDDEN) /.test(text));
    const listed = found[name] ?? operations.filter(isForbidden).map(({ field }) => field.name);
    found[name] = listed.filter((field) => !succeeded.has(field));
  }
  writeFileSync(refusedFile, `${JSON.stringify(found, null, 2)}\n`);
}
