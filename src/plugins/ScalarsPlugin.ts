/**
 * Scalars are derived from PostgreSQL types. A domain whose comment says `@scalar Name` is the scalar Name; uuid is
 * ID; timestamptz is serialized as RFC 3339 in UTC with Z; numeric as a string, so that no digit is lost.
 */
import { GraphQLError, Kind, type ValueNode } from "postgraphile/graphql";
import type { PgCodec } from "postgraphile/@dataplan/pg";
import { RefusedFile, UploadedFile } from "../files/uploadedFile.ts";
import { baseCodec } from "../schema/codecNames.ts";

/** `2026-11-21 12:00:00.123+00` or `2026-11-21T12:00:00.123+00:00` → `2026-11-21T12:00:00.123Z`. */
export function toRfc3339(value: unknown): string {
  return String(value)
    .replace(" ", "T")
    .replace(/\+00(:?00)?$/, "Z");
}

const RFC_3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:\d\d)$/i;
const DATE = /^\d{4}-\d\d-\d\d$/;
const DECIMAL = /^[+-]?\d{1,30}(\.\d{1,20})?$/;

/** @param node the literal, if there is one: its location leads to the invalid field */
function refuse(sentence: string, node?: ValueNode): never {
  throw new GraphQLError(sentence, { nodes: node, extensions: { code: "BAD_USER_INPUT" } });
}

function literal(node: ValueNode): unknown {
  switch (node.kind) {
    case Kind.STRING:
    case Kind.BOOLEAN:
      return node.value;
    case Kind.INT:
    case Kind.FLOAT:
      return node.value;
    default:
      return undefined;
  }
}

/** Parser and description of scalars with a format of their own. */
const scalars: Record<
  string,
  {
    description: string;
    parse(value: unknown, node?: ValueNode): unknown;
    serialize?(value: unknown): unknown;
  }
> = {
  DateTime: {
    description:
      "A point in time in the format of RFC 3339, such as 2026-11-21T12:00:00Z. Responses are always in UTC.",
    parse: (value, node) =>
      typeof value === "string" && RFC_3339.test(value) && !Number.isNaN(Date.parse(value))
        ? value
        : refuse("Not a valid date and time; use RFC 3339, such as 2026-11-21T12:00:00Z.", node),
    serialize: toRfc3339,
  },
  Date: {
    description: "A date without a time, in the format of ISO 8601, such as 2026-11-21.",
    parse: (value, node) =>
      typeof value === "string" &&
      DATE.test(value) &&
      new Date(`${value}T00:00:00Z`).toJSON()?.startsWith(value)
        ? value
        : refuse("Not a valid date; use ISO 8601, such as 2026-11-21.", node),
  },
  Decimal: {
    description:
      'An exact decimal number. Responses contain a string such as "425000.00"; inputs may be a string or a number.',
    parse: (value, node) => {
      const text = typeof value === "number" ? String(value) : typeof value === "string" ? value.trim() : "";
      return DECIMAL.test(text)
        ? text
        : refuse('Not a valid decimal number; use a string such as "425000.00".', node);
    },
    serialize: String,
  },
  Upload: {
    description:
      "A file: either a part of a GraphQL multipart request, or a data URI such as data:image/png;base64,… with an optional ;name= parameter.",
    parse: (value) =>
      value instanceof UploadedFile ||
      value instanceof RefusedFile ||
      (typeof value === "string" && /^data:/i.test(value))
        ? value
        : refuse(
            "Send the file as a part of a multipart request, or as a data URI such as data:image/png;base64,….",
          ),
  },
};

function baseTypeName(build: GraphileBuild.Build, codec: PgCodec): string | null {
  const { TYPES } = build.dataplanPg;
  const base = baseCodec(codec);
  if (base === TYPES.text || base === TYPES.varchar) return "String";
  if (base === TYPES.numeric) return build.inflection.builtin("BigFloat");
  return null;
}

declare global {
  namespace GraphileConfig {
    interface Plugins {
      ScalarsPlugin: true;
    }
  }
}

export const ScalarsPlugin: GraphileConfig.Plugin = {
  name: "ScalarsPlugin",
  version: "1.0.0",
  schema: {
    hooks: {
      init: {
        before: ["PgCodecs", "PgCodecsPlugin"],
        callback(_, build) {
          build.setGraphQLTypeForPgCodec(build.dataplanPg.TYPES.uuid, ["input", "output"], "ID");
          const registered = new Set<string>();
          for (const codec of Object.values(build.pgCodecs) as PgCodec[]) {
            if (!codec.domainOfCodec || typeof codec.extensions?.tags?.enum === "string") continue;
            const name = codec.extensions?.tags?.scalar;
            const inputType = codec.extensions?.tags?.inputType;
            if (typeof inputType === "string") {
              build.setGraphQLTypeForPgCodec(codec, "input", inputType);
              continue;
            }
            if (typeof name !== "string") {
              // A domain without the tag @scalar is exposed as its base type.
              const base = baseTypeName(build, codec);
              if (base) build.setGraphQLTypeForPgCodec(codec, ["input", "output"], base);
              continue;
            }
            if (name !== "ID" && !registered.has(name)) {
              registered.add(name);
              build.registerScalarType(
                name,
                {},
                () => ({
                  description: codec.description ?? name,
                  serialize: String,
                  parseValue: (value) =>
                    typeof value === "string" ? value : refuse(`${name} must be a string.`),
                  parseLiteral: (node) =>
                    node.kind === Kind.STRING ? node.value : refuse(`${name} must be a string.`, node),
                }),
                `ScalarsPlugin: domain ${codec.name}`,
              );
            }
            build.setGraphQLTypeForPgCodec(codec, ["input", "output"], name);
          }
          return _;
        },
      },
      GraphQLScalarType(config) {
        const own = scalars[config.name];
        if (!own) return config;
        return {
          ...config,
          description: own.description,
          serialize: own.serialize ?? config.serialize,
          parseValue: own.parse,
          parseLiteral: (node) => own.parse(literal(node), node),
        };
      },
    },
  },
};
