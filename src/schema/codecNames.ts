/** Names of PostgreSQL types for several plugins: their GraphQL input type, and the names of their attributes. */
import type { GraphQLInputType } from "postgraphile/graphql";
import { TYPES, type PgCodec, type PgCodecAttribute } from "postgraphile/@dataplan/pg";
import { CodedError } from "../base/errors.ts";

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** Domains are resolved to their base type. */
export function baseCodec(codec: PgCodec): PgCodec {
  return codec.domainOfCodec ? baseCodec(codec.domainOfCodec) : codec;
}

/** The codec of the elements of an array type, also of a domain over one; null for other types. */
export function elementCodec(codec: PgCodec): PgCodec | null {
  return codec.arrayOfCodec ?? (codec.domainOfCodec ? elementCodec(codec.domainOfCodec) : null);
}

/** The GraphQL input type of the codec; elements of lists are non-null. Throws if there is none. */
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
 * A GraphQL input value with names of the database: fields of composite types become column names. Invalid ids are refused with their path
 * below `at`, because PostgreSQL would not report it.
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

/** The text of a smart tag that may occur several times in a comment. */
export function tagTexts(tags: Record<string, unknown> | undefined, name: string): string[] {
  const value = tags?.[name];
  if (value === undefined || value === null) return [];
  return (Array.isArray(value) ? value : [value]).map((text) => (text === true ? "" : String(text)));
}

/** The descriptions of `@arg name …` in a function's comment, by GraphQL argument name. */
export function argumentDescriptions(tags: Record<string, unknown> | undefined): Map<string, string> {
  return new Map(
    tagTexts(tags, "arg").map((text) => [camel(text.split(/\s/, 1)[0]!), text.replace(/^\S+\s*/, "")]),
  );
}
