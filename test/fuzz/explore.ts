/** Searches for working inputs of each mutation, and for the permissions that they require. */
import { randomFrom } from "../harness/random.ts";
import { Fuzzer, type Operation, type Player } from "./fuzzer.ts";
import { refused, RequirementFinder, type Requirements } from "./requirements.ts";
import { isOwner, schema, type FuzzWorld } from "./world.ts";

/** An input with which somebody succeeds who may do everything. */
export interface WorkingInput {
  player: Player;
  operation: Operation;
  variables: Record<string, unknown>;
}

export interface Explored {
  /** By the name of the mutation. */
  working: Map<string, WorkingInput>;
  /** Mutations of which no such input was found. */
  missing: string[];
  /** @returns `refused` where the input no longer works, what the mutation takes where that is not listed, or undefined */
  differs(one: WorkingInput): Promise<string | undefined>;
}

export interface ExploreOptions {
  /** What the mutations are listed with. */
  takesOf: Requirements;
  /** How often each is tried. */
  rounds: number;
  /** Inputs that work, of each, before it is done with; 1 where omitted. */
  inputs?: number;
  /** Mutations to look for; all where omitted. */
  only?: ReadonlySet<string>;
  seed?: number;
  /** Told of what is not listed; the input counts as one that works all the same. */
  unlisted?: (name: string, takes: string, variables: Record<string, unknown>) => void;
  /** Told of each input that works, before it is carried out. */
  works?: (one: WorkingInput) => Promise<void>;
  /** Ends what would take long: once each has an input, or so many rounds have brought nothing. */
  idleRounds?: number;
}

/** Plays each mutation until an input works; such of one that was played since may have come to its end. */
export async function explore(
  fuzz: FuzzWorld,
  {
    takesOf,
    rounds,
    inputs = 1,
    only,
    seed = 1,
    unlisted = () => {},
    works,
    idleRounds = Infinity,
  }: ExploreOptions,
): Promise<Explored> {
  const takes = await RequirementFinder.of(fuzz.world);
  const working = new Map<string, WorkingInput>();
  const left = new Map<string, number>();
  let found = 0;
  const random = randomFrom(seed);
  const bosses = fuzz.everybody.filter(isOwner);
  const differs: Explored["differs"] = ({ player, operation, variables }) =>
    takes.differs(player, operation, variables, takesOf[operation.field.name] ?? []);
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
      // What others are about has to be there.
      const makes = /^(create|upload|import)/.test(name) && random(3) === 0;
      if (left.get(name) !== 0 || makes) await fuzzer.play(bosses[round % bosses.length]!, operation);
    }
    idle = found === before ? idle + 1 : 0;
    await fuzz.world.settle();
  }
  const missing = mutations.map(({ field }) => field.name).filter((name) => !working.has(name));
  return { working, missing, differs };
}
