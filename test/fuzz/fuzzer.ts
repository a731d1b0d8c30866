/**
 * Executes random operations of the whole schema, as members of several organizations, buyers, access tokens and
 * visitors, with ids from earlier responses. The outcome of each input is recorded by operation: fields that caused a
 * refusal are omitted more often, and successful inputs are repeated with changes.
 */
import { getNamedType, isObjectType, type GraphQLField, type GraphQLSchema } from "graphql";
import type { Answer, Person } from "../harness/api.ts";
import { documentOf } from "./documents.ts";
import { Records } from "./records.ts";
import { pick, valueOf, type Random } from "./values.ts";

export interface Player {
  /** The kind of viewer: two players of one name count as the same. */
  name: string;
  person: Person;
  /** Signs in again, after something that they did has ended the session. */
  renew?(): Promise<Person>;
  /** Who acts together: they know each other's ids. It stands in the texts that they write. */
  party: string;
  /** The organization that they work for. */
  home?: string;
  /** How often they play, compared with others. */
  weight: number;
  /** Operations that would make another kind of viewer of them, so that they leave them to others. */
  without?: ReadonlySet<string>;
}

export interface Step {
  player: Player;
  operation: string;
  variables: Record<string, unknown>;
  answer: Answer;
}

/** An input that the values of the schema do not lead to: what it gives replaces members of a random one. */
export type Recipe = (player: Player) => Promise<Record<string, unknown>> | Record<string, unknown>;

/** How often somebody has tried an operation, and what came of it. */
export interface Tally {
  tries: number;
  successes: number;
  /** How often it was refused with which code and member. */
  refusals: Map<string, number>;
}

export interface Operation extends Tally {
  kind: "query" | "mutation";
  field: GraphQLField<unknown, unknown>;
  documents: string[];
  about: string;
  /** By the name of the player. */
  by: Map<string, Tally>;
  inputs: Record<string, unknown>[];
  likelihoods: Map<string, number>;
}

export interface FuzzerOptions {
  schema: GraphQLSchema;
  players: Player[];
  random: Random;
  recipes?: Record<string, Recipe>;
  /** How many documents, with other selections, there are of each operation: each of them is planned once. */
  documents?: number;
  /** Plays those of such names alone. */
  only?: RegExp;
  /** How often at least everybody should try each operation; 0 leaves it to chance. */
  triesOfEach?: number;
  /** What happens before each step. */
  before?: (player: Player, operation: Operation, variables: Record<string, unknown>) => Promise<void>;
}

const usually = 0.3;
const tally = (): Tally => ({ tries: 0, successes: 0, refusals: new Map() });

/** Plays steps one after the other. */
export class Fuzzer {
  readonly operations: Operation[];
  readonly records = new Records();
  readonly #options: Required<FuzzerOptions>;
  /** Everybody as often as their weight says. */
  readonly #players: Player[];

  constructor(options: FuzzerOptions) {
    this.#options = {
      recipes: {},
      documents: 2,
      triesOfEach: 0,
      only: /./,
      before: async () => {},
      ...options,
    };
    const { schema, players, random, documents, only } = this.#options;
    this.#players = players.flatMap((player) => Array.from({ length: player.weight }, () => player));
    this.operations = (["query", "mutation"] as const).flatMap((kind) => {
      const root = kind === "query" ? schema.getQueryType() : schema.getMutationType();
      const fields = Object.values(root!.getFields()).filter(({ name }) => only.test(name));
      return fields.map((field) => ({
        ...tally(),
        kind,
        field,
        documents: Array.from({ length: documents }, () => documentOf(kind, field, schema, random)),
        about: aboutOf(field, schema),
        by: new Map(players.map(({ name }) => [name, tally()])),
        inputs: [],
        likelihoods: new Map(),
      }));
    });
  }

  /** Those that nobody has succeeded with yet. */
  get unreached(): string[] {
    return this.operations.filter(({ successes }) => successes === 0).map(({ field }) => field.name);
  }

  /** What somebody has neither succeeded with nor tried often enough yet. */
  get untried(): { player: Player; operation: Operation }[] {
    const { players, triesOfEach } = this.#options;
    return this.operations.flatMap((operation) =>
      players
        .filter(({ name, without }) => {
          const { tries, successes } = operation.by.get(name)!;
          return successes === 0 && tries < triesOfEach && !without?.has(operation.field.name);
        })
        .map((player) => ({ player, operation })),
    );
  }

  /** One operation as somebody, preferably one that nobody has succeeded with yet. */
  async step(): Promise<Step> {
    const { player, operation } = this.#choose();
    return await this.play(player, operation);
  }

  /** The operation, with an input that has not been tried. */
  async play(player: Player, operation: Operation): Promise<Step> {
    const variables = await this.#variables(operation, player);
    await this.#options.before(player, operation, variables);
    const answer = await player.person.ask(pick(operation.documents, this.#options.random), variables);
    if (player.renew && answer.errors?.some(({ extensions }) => extensions.code === "UNAUTHENTICATED"))
      player.person = await player.renew();
    this.records.learn(answer.data, player.party);
    this.#learn(operation, player, variables, answer);
    return { player, operation: operation.field.name, variables, answer };
  }

  #choose(): { player: Player; operation: Operation } {
    const { random } = this.#options;
    if (this.#options.triesOfEach > 0 && random(2) === 0) {
      const { untried } = this;
      if (untried.length > 0) return pick(untried, random);
    }
    const player = pick(this.#players, random);
    const unreached = this.operations.filter(({ successes }) => successes === 0);
    const from = random(2) === 0 && unreached.length > 0 ? unreached : this.operations;
    const some = Array.from({ length: 3 }, () => pick(from, random)).filter(
      ({ field }) => !player.without?.has(field.name),
    );
    // What removes records is played less often than what makes them.
    const score = ({ successes, field }: Operation) =>
      successes * (/^(delete|remove|revoke|cancel|archive)/.test(field.name) ? 8 : 1);
    const [operation] = some.toSorted((a, b) => score(a) - score(b));
    return operation ? { player, operation } : this.#choose();
  }

  async #variables(operation: Operation, player: Player): Promise<Record<string, unknown>> {
    const { field, about, inputs, likelihoods, by } = operation;
    const { random, schema, recipes } = this.#options;
    const wanted = {
      random,
      about,
      records: this.records,
      schema,
      party: player.party,
      likelihood: (path: string) => likelihoods.get(path) ?? usually,
    };
    const fresh = Object.fromEntries(
      field.args
        .map((arg) => [arg.name, valueOf(arg.type, arg.name, wanted)] as const)
        .filter(([, value]) => value !== undefined),
    );
    const known = inputs.length > 0 && random(2) === 0 ? mixed(pick(inputs, random), fresh, random) : fresh;
    const recipe = recipes[field.name];
    // Chance alone has its tries too, once the recipe has worked.
    if (!recipe || (by.get(player.name)!.successes > 0 && random(3) === 0)) return known;
    const given = await recipe(player);
    return "input" in known || operation.kind === "mutation"
      ? { ...known, input: { ...(known.input as object), ...given } }
      : { ...known, ...given };
  }

  #learn(operation: Operation, player: Player, variables: Record<string, unknown>, answer: Answer): void {
    const counted = [operation, operation.by.get(player.name)!];
    for (const each of counted) each.tries++;

    const [error] = answer.errors ?? [];
    const paths = pathsOf(variables);
    const now = (path: string) => operation.likelihoods.get(path) ?? usually;
    if (!error && answer.data?.[operation.field.name] !== null) {
      for (const each of counted) each.successes++;
      operation.inputs = [...operation.inputs.slice(-19), variables];
      for (const path of paths) operation.likelihoods.set(path, Math.min(0.6, now(path) * 1.1));
      return;
    }
    const { code, field } = (error?.extensions ?? { code: "null" }) as { code: string; field?: string };
    const refusal = `${code} ${field ?? ""} ${error?.message.slice(0, 100) ?? ""}`;
    for (const { refusals } of counted) refusals.set(refusal, (refusals.get(refusal) ?? 0) + 1);
    if (!field) return;
    const path = `input.${field.replace(/^input\./, "").replace(/\.\d+/g, "")}`;
    operation.likelihoods.set(path, paths.includes(path) ? Math.max(0.05, now(path) * 0.6) : 0.95);
  }
}
/** The type of record that it is about: by its name, else the one that it gives. */
function aboutOf(field: GraphQLField<unknown, unknown>, schema: GraphQLSchema): string {
  const records = Object.values(schema.getTypeMap()).filter(
    (type) => isObjectType(type) && "id" in type.getFields(),
  );
  const names = records.map(({ name }) => name).toSorted((a, b) => b.length - a.length);
  const given = getNamedType(field.type)
    .name.replace(/^Delete(\w+)Payload$/, "$1")
    .replace(/Connection$/, "");
  const words = `${field.name[0]!.toUpperCase()}${field.name.slice(1)}`.replace(/s$/, "");
  return names.find((name) => words.endsWith(name)) ?? names.find((name) => name.endsWith(given)) ?? given;
}

/** The known input with a third of its members replaced. */
function mixed(known: Record<string, unknown>, fresh: Record<string, unknown>, random: Random) {
  const inner = { ...(known.input as object | undefined) } as Record<string, unknown>;
  for (const [key, value] of Object.entries((fresh.input as object | undefined) ?? {}))
    if (random(3) === 0 || key === "idempotencyKey") inner[key] = value;
  const { idempotencyKey: _, ...input } = inner;
  const outer = random(2) === 0 ? { ...known, ...fresh } : { ...known };
  return "input" in known ? { ...outer, input } : outer;
}

function pathsOf(value: unknown, path = ""): string[] {
  if (Array.isArray(value)) return value.flatMap((item) => pathsOf(item, path));
  if (!value || typeof value !== "object") return [];
  return Object.entries(value).flatMap(([key, member]) => {
    const own = path ? `${path}.${key}` : key;
    return [own, ...pathsOf(member, own)];
  });
}
