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
  /** The kind of viewer; players with the same name count as one. */
  name: string;
  person: Person;
  /** Signs in again, after an operation has ended the session. */
  renew?(): Promise<Person>;
  /** Players who know each other's ids; also part of the texts that they write. */
  party: string;
  /** The organization of the player. */
  home?: string;
  /** Relative frequency. */
  weight: number;
  /** Operations that would change the kind of viewer, so the player does not execute them. */
  without?: ReadonlySet<string>;
}

export interface Step {
  player: Player;
  operation: string;
  variables: Record<string, unknown>;
  answer: Answer;
}

/** An input that random values do not produce: its fields replace those of a random input. */
export type Recipe = (player: Player) => Promise<Record<string, unknown>> | Record<string, unknown>;

/** Attempts of a player with an operation, and their outcomes. */
export interface Tally {
  tries: number;
  successes: number;
  /** Number of refusals by code and field. */
  refusals: Map<string, number>;
}

export interface Operation extends Tally {
  kind: "query" | "mutation";
  field: GraphQLField<unknown, unknown>;
  documents: string[];
  about: string;
  /** By player name. */
  by: Map<string, Tally>;
  inputs: Record<string, unknown>[];
  likelihoods: Map<string, number>;
}

export interface FuzzerOptions {
  schema: GraphQLSchema;
  players: Player[];
  random: Random;
  recipes?: Record<string, Recipe>;
  /** Number of documents with different selections per operation; each of them is planned once. */
  documents?: number;
  /** Restricts the operations by name. */
  only?: RegExp;
  /** Minimum number of attempts per player and operation. Default 0: at random. */
  triesOfEach?: number;
  /** Called before each step. */
  before?: (player: Player, operation: Operation, variables: Record<string, unknown>) => Promise<void>;
}

const usually = 0.3;
const tally = (): Tally => ({ tries: 0, successes: 0, refusals: new Map() });

/** Executes steps one after the other. */
export class Fuzzer {
  readonly operations: Operation[];
  readonly records = new Records();
  readonly #options: Required<FuzzerOptions>;
  /** Each player as often as their weight. */
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

  /** Operations without a successful attempt. */
  get unreached(): string[] {
    return this.operations.filter(({ successes }) => successes === 0).map(({ field }) => field.name);
  }

  /** Operations with which a player has neither succeeded nor made enough attempts. */
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

  /** Executes one operation as a player, preferably one without success so far. */
  async step(): Promise<Step> {
    const { player, operation } = this.#choose();
    return await this.play(player, operation);
  }

  /** Executes the operation with a new input. */
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
    // Deletions are less frequent than creations.
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
    // Random inputs are tried as well, once the recipe has worked.
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
/** The record type of an operation: by its name, otherwise by its result. */
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

/** The known input with a third of its fields replaced. */
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
