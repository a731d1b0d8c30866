/** The values of all fields of a record, as one viewer sees them. */
import { expect } from "@jest/globals";
import {
  getNamedType,
  getNullableType,
  type GraphQLField,
  type GraphQLNamedType,
  type GraphQLObjectType,
  type GraphQLSchema,
  isLeafType,
  isListType,
  isObjectType,
  isRequiredArgument,
} from "graphql";
import type { Person } from "./api.ts";

/**
 * All fields of a record; for records and lists, whether or how many there are; null if the record is not visible. A
 * connection must have the same count as its list and is omitted.
 */
export async function everyField(
  schema: GraphQLSchema,
  person: Person,
  finder: string,
  typeName: string,
  id: string,
): Promise<Record<string, unknown> | null> {
  const type = schema.getType(typeName) as GraphQLObjectType;
  const selections = Object.values(type.getFields())
    .filter((field) => !field.args.some(isRequiredArgument))
    .map(selection);
  const result: Record<string, unknown> = {};
  for (let from = 0; from < selections.length; from += 60) {
    const query = `query ($id: ID!) { ${finder}(id: $id) { ${selections.slice(from, from + 60).join(" ")} } }`;
    const record = (await person.sees(query, { id }))[finder] ?? null;
    if (record === null) return null;
    Object.assign(result, record);
  }
  for (const name of connectionsOf(type)) {
    const list = result[name.slice(0, -"Connection".length)] as unknown[] | null;
    expect([finder, name, result[name]]).toEqual([
      finder,
      name,
      list && { nodes: list, totalCount: list.length < 100 ? list.length : expect.any(Number) },
    ]);
    delete result[name];
  }
  return result;
}

/** The connections beside the lists of a type. */
const connectionsOf = (type: GraphQLObjectType): string[] =>
  Object.keys(type.getFields()).filter((name) => isConnection(getNamedType(type.getFields()[name]!.type)));

const isConnection = (type: GraphQLNamedType): boolean =>
  isObjectType(type) && "pageInfo" in type.getFields();

function selection(field: GraphQLField<unknown, unknown>): string {
  const type = getNamedType(field.type);
  if (isLeafType(type)) return field.name;
  if (isConnection(type)) return `${field.name} { nodes { kind: __typename } totalCount }`;
  // Types that are values rather than records: all fields.
  if (isObjectType(type) && !type.getFields().id && !isListType(getNullableType(field.type)))
    return `${field.name} { ${Object.values(type.getFields()).map(selection).join(" ")} }`;
  return `${field.name} { kind: __typename }`;
}

/** How tables of tests describe a value. */
export function shown(value: unknown, ownersValue: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value) && (typeof value[0] === "object" || value.length === 0)) {
    return value.length === 0 ? "none" : value[0].kind === "Event" ? "some" : String(value.length);
  }
  return JSON.stringify(value, unsigned) === JSON.stringify(ownersValue, unsigned) ? "yes" : "less";
}

/** File URLs are signed for each viewer. */
export const unsigned = (_key: string, value: unknown): unknown =>
  typeof value === "string" && value.startsWith("https://plat.example/")
    ? value.replace(/\/files\/.*/, "")
    : value;
