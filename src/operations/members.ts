/** The members of an operation's `input`, and what becomes of their values on the way to SQL. */
import { TYPES, type PgCodec, type PgResourceParameter } from "postgraphile/@dataplan/pg";
import type { GraphQLInputType } from "postgraphile/graphql";
import { camel, inputTypeOf, toDatabaseNames } from "../plugins/codecs.ts";

/** Replaces a plaintext before SQL sees it, such as a password by its hash; named by the tag @transform of a domain. */
export type ArgumentTransform = (
  value: string,
  details: { member: string; operation: string; input: Record<string, unknown>; context: Grafast.Context },
) => string | Promise<string>;

export interface Member {
  name: string;
  column: string;
  codec: PgCodec;
  type: GraphQLInputType;
  description: string | undefined;
}

export const describeId = "The record to work on.";
const describeVersion =
  "The version that the caller has read; another present version is refused with VERSION_MISMATCH.";

/** The granted columns of a table; for an update its id and expectedVersion too. */
export function columnMembers(
  build: GraphileBuild.Build,
  codec: PgCodec,
  how: "insert" | "update",
): Member[] {
  const { GraphQLNonNull, GraphQLID, GraphQLInt } = build.graphql;
  const members: Member[] = [];
  if (how === "update") {
    members.push({
      name: "id",
      column: "id",
      codec: TYPES.text,
      type: new GraphQLNonNull(GraphQLID),
      description: describeId,
    });
  }
  for (const [column, attribute] of Object.entries(codec.attributes ?? {}) as [string, any][]) {
    if (!(how === "insert" ? attribute.extensions?.canInsert : attribute.extensions?.canUpdate)) continue;
    const type = inputTypeOf(build, attribute.codec);
    const required =
      how === "insert" &&
      attribute.notNull &&
      !attribute.hasDefault &&
      !attribute.extensions?.tags?.insertOptional &&
      column !== "slug";
    members.push({
      name: camel(column),
      column,
      codec: attribute.codec,
      type: required ? new GraphQLNonNull(type) : type,
      description: attribute.description,
    });
  }
  if (how === "update" && codec.attributes?.version) {
    members.push({
      name: "expectedVersion",
      column: "expected_version",
      codec: TYPES.int,
      type: GraphQLInt,
      description: describeVersion,
    });
  }
  return members;
}

/** The object that create_record and update_record take: column names, only the members that were given. */
export function toColumns(members: Member[], input: Record<string, unknown>): Record<string, unknown> {
  const result: Record<string, unknown> = {};
  for (const member of members) {
    if (input[member.name] !== undefined)
      result[member.column] = toDatabaseNames(member.codec, input[member.name], member.name);
  }
  return result;
}

/** The arguments of a function, by their names in SQL. */
export async function argumentValues(
  input: Record<string, unknown>,
  context: Grafast.Context,
  operation: {
    spreads: boolean;
    members: Member[];
    own: PgResourceParameter[];
    fieldName: string;
    transforms: Record<string, ArgumentTransform>;
  },
): Promise<Record<string, unknown>> {
  const values: Record<string, unknown> = {};
  if (operation.spreads) values.input = toColumns(operation.members, input);
  for (const parameter of operation.own) {
    const member = camel(parameter.name!);
    let value = input[member];
    if (value === undefined) continue;
    const transform = transformOf(parameter.codec);
    if (transform && typeof value === "string") {
      const implementation = operation.transforms[transform];
      if (!implementation) throw new Error(`No implementation of @transform ${transform}`);
      value = await implementation(value, { member, operation: operation.fieldName, input, context });
    } else if (typeof value === "string") {
      value = value.trim() === "" ? null : value.trim();
    }
    values[parameter.name!] = toDatabaseNames(parameter.codec, value, member);
  }
  return values;
}

function transformOf(codec: PgCodec): string | undefined {
  const tag = codec.extensions?.tags?.transform;
  return typeof tag === "string" ? tag : codec.domainOfCodec ? transformOf(codec.domainOfCodec) : undefined;
}
