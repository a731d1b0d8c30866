/** Searches the schema for words, so that agents do not need all 2 MB. */
import {
  getNamedType,
  isInputObjectType,
  isInterfaceType,
  isObjectType,
  printType,
  type GraphQLField,
  type GraphQLNamedType,
  type GraphQLSchema,
} from "postgraphile/graphql";

interface Entry {
  name: string;
  kind: "query" | "mutation" | "type";
  words: ReadonlySet<string>;
  describe: () => string;
  description: string;
}

const MOST_CHARACTERS = 24_000;
const MOST_FOUND = 12;

/** Splits `createLeads` into create, lead; the last letter of `address` is no plural. */
const wordsOf = (text: string): string[] =>
  (text.match(/[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+/g) ?? []).map((word) =>
    word.toLowerCase().replace(/(?<!s)s$/, ""),
  );

/** Common prefix of related words: reserve, reservation. */
const stemOf = (word: string): string => (word.length > 5 ? word.slice(0, -1) : word);

function signature({ name, args, type, description }: GraphQLField<unknown, unknown>): string {
  const given = args.map((arg) => `${arg.name}: ${arg.type}`).join(", ");
  return `"""${description ?? ""}"""\n${name}${given ? `(${given})` : ""}: ${type}`;
}

/** The field with its input types. */
function ofField(field: GraphQLField<unknown, unknown>): string {
  const inputs = field.args.map(({ type }) => getNamedType(type)).filter((type) => isInputObjectType(type));
  return [signature(field), ...inputs.map((type) => printType(type))].join("\n\n");
}

const isListed = (type: GraphQLNamedType) =>
  !/^__|(Connection|Edge|Aggregates|Filter|OrderBy)$/.test(type.name);

function entriesOf(schema: GraphQLSchema): Entry[] {
  const roots = { query: schema.getQueryType(), mutation: schema.getMutationType() } as const;
  const ofRoots = Object.entries(roots).flatMap(([kind, type]) =>
    Object.values(type?.getFields() ?? {}).map((field): Entry => ({
      name: field.name,
      kind: kind as "query" | "mutation",
      words: new Set(wordsOf(field.name)),
      description: (field.description ?? "").toLowerCase(),
      describe: () => ofField(field),
    })),
  );
  const types = Object.values(schema.getTypeMap()).filter(
    (type) =>
      (isObjectType(type) || isInterfaceType(type)) &&
      !Object.values(roots).includes(type as never) &&
      isListed(type),
  );
  return [
    ...ofRoots,
    ...types.map((type): Entry => ({
      name: type.name,
      kind: "type",
      words: new Set(wordsOf(type.name)),
      description: (type.description ?? "").toLowerCase(),
      describe: () => printType(type),
    })),
  ];
}

const known = new WeakMap<GraphQLSchema, Entry[]>();

/** Best matches: operations with their inputs, and types, as SDL. */
export function searchSchema(
  schema: GraphQLSchema,
  query: string,
  kind?: Entry["kind"],
): { name: string; kind: string; sdl: string }[] {
  const entries = known.get(schema) ?? entriesOf(schema);
  known.set(schema, entries);
  const words = wordsOf(query);
  const exact = query.trim().toLowerCase();
  const score = ({ name, words: own, description }: Entry): number =>
    (name.toLowerCase() === exact ? 100 : 0) +
    words.reduce(
      (sum, word) =>
        sum +
        (own.has(word) ? 10 : [...own].some((one) => one.startsWith(stemOf(word))) ? 4 : 0) +
        (description.includes(word) ? 1 : 0),
      0,
    ) -
    own.size / 10;
  const found = entries
    .filter((entry) => !kind || entry.kind === kind)
    .map((entry) => ({ entry, score: score(entry) }))
    .filter((one) => one.score > 1)
    .toSorted((a, b) => b.score - a.score)
    .slice(0, MOST_FOUND);
  let left = MOST_CHARACTERS;
  const results: { name: string; kind: string; sdl: string }[] = [];
  for (const { entry } of found) {
    const sdl = entry.describe();
    if (sdl.length > left && results.length > 0) continue;
    left -= sdl.length;
    results.push({ name: entry.name, kind: entry.kind, sdl: sdl.slice(0, MOST_CHARACTERS) });
  }
  return results;
}
