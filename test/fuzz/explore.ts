/** Searches for working inputs of each mutation, and for the permissions that they require. */
import { randomFrom } from "../harness/random.ts";
import { Fuzzer, type Operation, type Player } from "./fuzzer.ts";
import { refused, RequirementFinder, type Requirements } from "./requirements.ts";
import { isOwner, schema, type FuzzWorld } from "./world.ts";

/** An input that works for a user with all permissions. */
export interface WorkingInput {
  player: Player;
  operation: Operation;
  variables: Record<string, unknown>;
}

export interface Explored {
  /** Working inputs by mutation. */
  working: Map<string, WorkingInput>;
  /** Mutations without a working input. */
  missing: string[];
  /**
   * @returns `refused` if the input no longer works; the requirement of the mutation if it is not listed; otherwise
   * undefined
   */
  differs(one: WorkingInput): Promise<string | undefined>;
}

export interface ExploreOptions {
  /** The listed requirements. */
  requirements: Requirements;
  /** Number of attempts per mutation. */
  rounds: number;
  /** Number of working inputs per mutation. Default: 1. */
  inputs?: number;
  /** Mutations to explore. Default: all. */
  only?: ReadonlySet<string>;
  seed?: number;
  /** Called for a requirement that is not listed; the input still counts as working. */
  unlisted?: (name: string, required: string, variables: Record<string, unknown>) => void;
  /** Called for each working input, before it is executed. */
  works?: (one: WorkingInput) => Promise<void>;
  /** Number of rounds without a new input after which exploring ends, if each mutation has one. */
  idleRounds?: number;
}

/** Executes mutations until each has a working input. Earlier mutations may have consumed their records. */
export async function explore(
  fuzz: FuzzWorld,
  {
    requirements,
    rounds,
    inputs = 1,
    only,
    seed = 1,
    unlisted = () => {},
    works,
    idleRounds = Infinity,
  }: ExploreOptions,
): Promise<Explored> {
  const finder = await RequirementFinder.of(fuzz.world);
  const working = new Map<string, WorkingInput>();
  const left = new Map<string, number>();
  let found = 0;
  const random = randomFrom(seed);
  const bosses = fuzz.everybody.filter(isOwner);
  const differs: Explored["differs"] = ({ player, operation, variables }) =>
    finder.differs(player, operation, variables, requirements[operation.field.name] ?? []);
  const fuzzer = new Fuzzer({
    schema,
    players: bosses,
    random,
    recipes: fuzz.recipes,
    documents: 1,
    before: async (player, operation, variables) => {
      const { name } = operation.field;
      if (left.get(name) === 0) return;
      const difference = await differs({ player, operation, variables });
      if (difference === refused) return;
      found += 1;
      left.set(name, (left.get(name) ?? inputs) - 1);
      working.set(name, { player, operation, variables });
      await works?.({ player, operation, variables });
      if (difference !== undefined) unlisted(name, difference, variables);
    },
  });
  const mutations = fuzzer.operations.filter(
    ({ kind, field }) => kind === "mutation" && (!only || only.has(field.name)),
  );
  let idle = 0;
  for (
    let round = 0;
    round < rounds && idle < idleRounds && mutations.some(({ field }) => left.get(field.name) !== 0);
    round++
  ) {
    await fuzz.learnRecords(fuzzer.records);
    const before = found;
    for (const operation of mutations) {
      const { name } = operation.field;
      // Mutations about other records need these to exist.
      const makes = /^(create|upload|import)/.test(name) && random(3) === 0;
      if (left.get(name) !== 0 || makes) await fuzzer.play(bosses[round % bosses.length]!, operation);
    }
    idle = found === before ? idle + 1 : 0;
    await fuzz.world.settle();
  }
  const missing = mutations.map(({ field }) => field.name).filter((name) => !working.has(name));
  return { working, missing, differs };
}
