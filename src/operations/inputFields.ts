/** Fields of a mutation's `input`, and the transformation of their values on the way to SQL. */
import { TYPES, type PgCodec, type PgResourceParameter } from "postgraphile/@dataplan/pg";
import type { GraphQLInputType } from "postgraphile/graphql";
import { workOf } from "../admission/operationWork.ts";
import { camel, inputTypeOf, toDatabaseNames } from "../schema/codecNames.ts";
import { nounOf } from "../schema/nouns.ts";
import type { AnyType } from "../schema/stackTypes.ts";
import { refuseOutside } from "./dryRun.ts";

/**
 * Replaces a value before it reaches SQL, such as a password by its hash or a file by a reference; named by the tag
 * @transform of a domain.
 */
export type ArgumentTransform = (
  value: unknown,
  details: {
    member: string;
    operation: string;
    /** Purpose of uploaded files; see Operation. */
    uploadTarget: string;
    input: Record<string, unknown>;
    context: Grafast.Context;
    /** Identity of the request for idempotency: a value of `idempotencyOf`. */
    repeat: unknown;
  },
) => unknown;

export interface Member {
  name: string;
  column: string;
  codec: PgCodec;
  type: GraphQLInputType;
  description: string | undefined;
}

/** Description of the `id` of an input, by the type of the record. */
export const describeId = (typeName: string): string =>
  `Id of the ${nounOf(typeName)}. NOT_FOUND if there is none or the viewer may not see it.`;
const describeVersion =
  "The `version` that the client read. If the record has changed since, the mutation is refused with VERSION_MISMATCH.";

/** The granted columns of a table; for an update also id and expectedVersion. */
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
      description: describeId(build.inflection.tableType(codec)),
    });
  }
  for (const [column, attribute] of Object.entries(codec.attributes ?? {}) as [string, AnyType][]) {
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

/** Context of transforms. */
interface Passage {
  fieldName: string;
  uploadTarget: string;
  repeat?: unknown;
}

/** The object passed to create_record and update_record: column names, only given fields. */
export async function toColumns(
  members: Member[],
  input: Record<string, unknown>,
  context: Grafast.Context,
  passage: Passage,
): Promise<Record<string, unknown>> {
  const result: Record<string, unknown> = {};
  for (const { name, column, codec } of members) {
    let value = input[name];
    if (value === undefined) continue;
    const transform = transformOf(codec);
    if (transform && value !== null)
      value = await passThrough(transform, value, name, input, context, passage);
    result[column] = toDatabaseNames(codec, value, name);
  }
  await beforeSql(context);
  return result;
}

/** Converting many values is scheduled as separate work. */
const beforeSql = async (context: Grafast.Context): Promise<void> => workOf(context.pgSettings)?.nextPiece();

async function passThrough(
  transform: string,
  value: unknown,
  member: string,
  input: Record<string, unknown>,
  context: Grafast.Context,
  { fieldName, uploadTarget, repeat }: Passage,
): Promise<unknown> {
  refuseOutside(transform, context.pgSettings);
  const implementation = context.argumentTransforms[transform];
  if (!implementation) throw new Error(`No implementation of @transform ${transform}`);
  return implementation(value, { member, operation: fieldName, uploadTarget, input, context, repeat });
}

/** Arguments of a function, by SQL name. */
export async function argumentValues(
  input: Record<string, unknown>,
  context: Grafast.Context,
  operation: Passage & {
    spreads: boolean;
    members: Member[];
    own: PgResourceParameter[];
  },
): Promise<Record<string, unknown>> {
  const values: Record<string, unknown> = {};
  if (operation.spreads) values.input = await toColumns(operation.members, input, context, operation);
  for (const parameter of operation.own) {
    const member = camel(parameter.name!);
    let value = input[member];
    if (isGiven(parameter.codec)) value = {};
    if (value === undefined) continue;
    const transform = transformOf(parameter.codec);
    if (transform && value !== null) {
      value = await passThrough(transform, value, member, input, context, operation);
    } else if (typeof value === "string") {
      value = value.trim() === "" ? null : value.trim();
    }
    values[parameter.name!] = toDatabaseNames(parameter.codec, value, member);
  }
  if (!operation.spreads) await beforeSql(context);
  return values;
}

/** Whether the service supplies the value itself, by the tag @given of a domain: not an input field. */
export function isGiven(codec: PgCodec): boolean {
  return codec.extensions?.tags?.given !== undefined;
}

/** The tag @transform of a domain. */
export function transformOf(codec: PgCodec): string | undefined {
  const tag = codec.extensions?.tags?.transform;
  return typeof tag === "string" ? tag : codec.domainOfCodec ? transformOf(codec.domainOfCodec) : undefined;
}

/** The tags @transform of anything with a codec. */
export const transformsOf = (of: readonly { codec: PgCodec }[]): string[] =>
  of.flatMap(({ codec }) => transformOf(codec) ?? []);
