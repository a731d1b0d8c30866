/** What several plugins ask of PostgreSQL types: their GraphQL input type, and the names of their members. */
import type { GraphQLInputType } from "postgraphile/graphql";
import { TYPES, type PgCodec, type PgCodecAttribute } from "postgraphile/@dataplan/pg";
import { CodedError } from "../base/errors.ts";

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** A domain says what its base type is; look through it. */
export function baseCodec(codec: PgCodec): PgCodec {
  return codec.domainOfCodec ? baseCodec(codec.domainOfCodec) : codec;
}

/** The codec of the elements of an array type, also behind a domain; null for anything else. */
export function elementCodec(codec: PgCodec): PgCodec | null {
  return codec.arrayOfCodec ?? (codec.domainOfCodec ? elementCodec(codec.domainOfCodec) : null);
}

/** The GraphQL type that takes values of the codec; elements of lists are never null. Throws when there is none. */
export function inputTypeOf(build: GraphileBuild.Build, codec: PgCodec): GraphQLInputType {
  const { GraphQLList, GraphQLNonNull } = build.graphql;
  const element = elementCodec(codec);
  if (element) return new GraphQLList(new GraphQLNonNull(inputTypeOf(build, element)));
  const type = build.getGraphQLTypeByPgCodec(codec, "input");
  if (!type || !build.graphql.isInputType(type)) throw new Error(`No input type for ${codec.name}`);
  return type;
}

/** `project_id` → `projectId`. */
export function camel(name: string): string {
  return name.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
}

/** `projectId` → `project_id`. */
export function snake(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/**
 * A GraphQL input value with the member names of the database: those of composite types become column names. An id in
 * there that is none is refused, naming its place below `at`, since PostgreSQL would not say which.
 */
export function toDatabaseNames(codec: PgCodec | undefined, value: unknown, at = ""): unknown {
  if (value === null || value === undefined || !codec) return value;
  const element = elementCodec(codec);
  if (element) return Array.isArray(value) ? value.map((item) => toDatabaseNames(element, item)) : value;
  const attributes = codec.attributes as Record<string, PgCodecAttribute> | undefined;
  if (!attributes) return value;
  const result: Record<string, unknown> = {};
  for (const [key, member] of Object.entries(value as Record<string, unknown>)) {
    const name = attributes[key] ? key : snake(key);
    const type = attributes[name]?.codec;
    if (type && baseCodec(type) === TYPES.uuid && typeof member === "string" && !UUID.test(member)) {
      throw new CodedError("BAD_USER_INPUT", "Not a valid id; use the id that the API returned, a UUID.", {
        field: [at, key].filter(Boolean).join("."),
      });
    }
    result[name] = toDatabaseNames(attributes[name]?.codec, member);
  }
  return result;
}

/** The text of a smart tag that may stand once or several times in a comment. */
export function tagTexts(tags: Record<string, unknown> | undefined, name: string): string[] {
  const value = tags?.[name];
  if (value === undefined || value === null) return [];
  return (Array.isArray(value) ? value : [value]).map((text) => (text === true ? "" : String(text)));
}

/** What `@arg name …` in a function's comment says of its arguments, by their names in GraphQL. */
export function argumentDescriptions(tags: Record<string, unknown> | undefined): Map<string, string> {
  return new Map(
    tagTexts(tags, "arg").map((text) => [camel(text.split(/\s/, 1)[0]!), text.replace(/^\S+\s*/, "")]),
  );
}
