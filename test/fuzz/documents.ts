/** Generates documents from the schema, one for each operation and variant. */
import {
  getNamedType,
  isAbstractType,
  isCompositeType,
  isLeafType,
  isObjectType,
  isRequiredArgument,
  type GraphQLField,
  type GraphQLOutputType,
  type GraphQLSchema,
} from "graphql";
import type { Random } from "./values.ts";

const deepest = 2;
const mostRecords = 4;

/** The document of one operation, with all of its arguments as variables, and a selection two records deep. */
export function documentOf(
  kind: "query" | "mutation",
  field: GraphQLField<unknown, unknown>,
  schema: GraphQLSchema,
  random: Random,
): string {
  const variables = field.args.map((arg) => `$${arg.name}: ${arg.type}`).join(", ");
  const args = field.args.map((arg) => `${arg.name}: $${arg.name}`).join(", ");
  const head = variables ? `${kind} (${variables})` : kind;
  return `${head} { ${field.name}${args ? `(${args})` : ""} ${selectionOf(field.type, schema, random, 0)} }`;
}

function selectionOf(type: GraphQLOutputType, schema: GraphQLSchema, random: Random, depth: number): string {
  const named = getNamedType(type);
  if (!isCompositeType(named)) return "";
  if (isAbstractType(named)) {
    const parts = schema
      .getPossibleTypes(named)
      .map((possible) => `... on ${possible.name} { __typename ${possible.getFields().id ? "id" : ""} }`);
    return `{ __typename ${parts.join(" ")} }`;
  }
  const fields = Object.values(named.getFields()).filter((field) => !field.args.some(isRequiredArgument));
  const leaves = fields.filter((field) => isLeafType(getNamedType(field.type)));
  const inner = depth < deepest ? fields.filter((field) => isObjectType(getNamedType(field.type))) : [];
  // A page of a connection adds a level of records; its nodes do not.
  const isPage = named.name.endsWith("Connection");
  const chosen = isPage
    ? inner.filter(({ name }) => name === "nodes" || name === "pageInfo")
    : sample(inner, depth === 0 ? mostRecords : 1, random);
  const parts = chosen.map((field) => {
    const few = field.args.some(({ name }) => name === "first") ? "(first: 3)" : "";
    return `${field.name}${few} ${selectionOf(field.type, schema, random, isPage ? depth : depth + 1)}`;
  });
  return `{ __typename ${leaves.map(({ name }) => name).join(" ")} ${parts.join(" ")} }`;
}

function sample<T>(values: readonly T[], amount: number, random: Random): T[] {
  const left = [...values];
  return Array.from({ length: Math.min(amount, left.length) }, () => left.splice(random(left.length), 1)[0]!);
}
