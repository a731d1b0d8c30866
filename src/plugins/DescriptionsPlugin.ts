/**
 * Describes generated parts of the schema that have no comment in the database: enumerations (by their domain's
 * comment), aggregates, and mutations of tables (by their table's comment). The SDL is the
 * reference of the API, so every part is described; enforced by test/schema/descriptions.test.ts.
 */
import type { PgCodec } from "postgraphile/@dataplan/pg";
import type {
  GraphQLEnumValueConfigMap,
  GraphQLFieldConfigArgumentMap,
  GraphQLObjectType,
} from "postgraphile/graphql";
import { argumentDescriptions, camel, snake } from "../schema/codecNames.ts";
import { recordTables, type AnyResource } from "../schema/recordTables.ts";

declare global {
  namespace GraphileConfig {
    interface Plugins {
      DescriptionsPlugin: true;
    }
  }
}

const figures: Record<string, string> = {
  Sum: "Sum",
  DistinctCount: "Number of distinct values",
  Min: "Lowest value",
  Max: "Highest value",
  Average: "Average",
};
const figureNames = Object.keys(figures).join("|");

const aggregatesName = new RegExp(`^(\\w+?)(${figureNames})?Aggregates$`);

const connectionFigures: Record<string, string> = {
  aggregates: "Sums, averages, extremes and counts over all matching records, not only those of this page.",
  groupedAggregates: "The same aggregates for each group of records that have equal values of `groupBy`.",
};

/** Arguments of connections, replacing PostGraphile's descriptions. */
const stackArguments: Record<string, string> = {
  groupBy: "Fields to group by. Records with equal values of all of them form a group.",
};

/** Sentences of PostGraphile and graphql-js, with ours. */
const stackSentences: Record<string, string> = {
  "Read all values in the set after (below) this cursor.":
    "Only records after this cursor of a previous page.",
  "Read all values in the set before (above) this cursor.":
    "Only records before this cursor of a previous page.",
  "When paginating forwards, are there more items?": "Whether there are records after this page.",
  "When paginating backwards, are there more items?": "Whether there are records before this page.",
  "When paginating forwards, the cursor to continue.":
    "Cursor of the last record of this page, to pass as `after`; null if the page is empty.",
  "When paginating backwards, the cursor to continue.":
    "Cursor of the first record of this page, to pass as `before`; null if the page is empty.",
  "A location in a connection that can be used for resuming pagination.":
    "Position of a record in a connection; opaque. Pass it to `after` or `before` of the same connection, with the same order.",
  "A signed eight-byte integer. The upper big integer values are greater than the max value for a JavaScript number. Therefore all big integers will be output as strings and not numbers.":
    "A 64-bit integer, as a string, since JavaScript numbers are exact only up to 2^53.",
};

/** Types of PostGraphile and graphql-js, replacing their descriptions. */
const stackTypes: Record<string, string> = {
  Query: "Read operations. A query never changes data.",
  Mutation: "Write operations. The mutations of a request are executed one after the other.",
  Subscription: "Streams of events, over server-sent events.",
  PageInfo:
    "Position of a page within a connection: whether there are further pages, and its first and last cursor.",
};

/** Types of aggregates, by name. */
function describeType(name: string): string | undefined {
  const aggregates = aggregatesName.exec(name);
  if (aggregates)
    return aggregates[2]
      ? `${figures[aggregates[2]]} of each field, over the matching \`${aggregates[1]}\` records.`
      : `Aggregates over the matching \`${aggregates[1]}\` records.`;
  return undefined;
}

/** PERF: called once per enumeration. */
const enumsByName = new WeakMap<object, Map<string, string | undefined>>();

/** The comment of the domain of an enumeration, or of its table if no column or argument uses the domain. */
function describeEnum(build: GraphileBuild.Build, name: string): string | undefined {
  let enums = enumsByName.get(build.input);
  if (!enums) {
    enums = new Map();
    for (const { extensions, codec } of Object.values(build.pgResources) as AnyResource[]) {
      const enumName = extensions?.tags?.enumName;
      if (typeof enumName === "string" && !enums.has(enumName)) enums.set(enumName, codec.description);
    }
    // The first part of a name is decisive.
    for (const codec of [...build.allPgCodecs].toReversed())
      if (codec.extensions?.tags?.enum !== undefined) {
        const typeName = build.getGraphQLTypeNameByPgCodec(codec, "output");
        if (typeName) enums.set(typeName, codec.description);
      }
    enumsByName.set(build.input, enums);
  }
  return enums.get(name);
}

const tableCodec = (build: GraphileBuild.Build, typeName: string): PgCodec | undefined =>
  recordTables(build).find(({ codec }) => build.inflection.tableType(codec) === typeName)?.codec;

/** `UPDATED_AT_TRUNCATED_TO_DAY`, by the column's comment. */
function describeGrouping(codec: PgCodec | undefined, value: string): string {
  const [constant, unit] = value.split("_TRUNCATED_TO_");
  const column = constant!.toLowerCase();
  const description = codec?.attributes?.[column]?.description;
  const groups = unit
    ? `One group per ${unit.toLowerCase()} (UTC) of \`${camel(column)}\`.`
    : `One group per value of \`${camel(column)}\`.`;
  return description ? `${groups} ${description}` : groups;
}

/** PERF: called once per field of the schema. */
const functionsByName = new WeakMap<object, Map<string, AnyResource>>();

function functionNamed(build: GraphileBuild.Build, name: string): AnyResource | undefined {
  let functions = functionsByName.get(build.input);
  if (!functions) {
    const resources = (Object.values(build.pgResources) as AnyResource[]).filter((r) => r.parameters);
    functions = new Map(resources.map((resource) => [camel(resource.extensions?.pg?.name ?? ""), resource]));
    functionsByName.set(build.input, functions);
  }
  return functions.get(name);
}

/** Tags of the function of a field: `@arg city …` in its comment describes an argument, as in mutations. */
function functionTags(
  build: GraphileBuild.Build,
  Self: GraphQLObjectType,
  fieldName: string,
): Record<string, unknown> | undefined {
  const scope = build.scopeByType.get(Self) as { pgCodec?: PgCodec } | undefined;
  const table = scope?.pgCodec?.extensions?.pg?.name;
  const name = table === undefined ? fieldName : camel(`${table}_${snake(fieldName)}`);
  return functionNamed(build, name)?.extensions?.tags as Record<string, unknown> | undefined;
}

export const DescriptionsPlugin: GraphileConfig.Plugin = {
  name: "DescriptionsPlugin",
  version: "1.0.0",
  // Its descriptions take precedence over those derived from field names.
  before: ["OutputShapesPlugin"],
  schema: {
    hooks: {
      GraphQLEnumType(config, build, { scope }) {
        if (scope.isPgAggregateGroupEnum) {
          const grouped = build.inflection.tableType(scope.pgTypeResource!.codec);
          return {
            ...config,
            description: `Fields and times that \`${grouped}\` records can be grouped by.`,
          };
        }
        return config.description ? config : { ...config, description: describeEnum(build, config.name) };
      },
      GraphQLEnumType_values(values, build, { Self }) {
        const typeName = /^(\w+)GroupBy$/.exec(Self.name)?.[1];
        if (typeName === undefined) return values;
        const codec = tableCodec(build, build.inflection.singularize(typeName));
        const described: GraphQLEnumValueConfigMap = {};
        for (const [name, value] of Object.entries(values))
          described[name] = { ...value, description: value.description ?? describeGrouping(codec, name) };
        return described;
      },
      GraphQLObjectType_fields_field_args(args, build, { Self, scope }) {
        const ofTags = argumentDescriptions(functionTags(build, Self, scope.fieldName));
        const described: GraphQLFieldConfigArgumentMap = {};
        for (const [name, arg] of Object.entries(args))
          described[name] = {
            ...arg,
            description:
              stackArguments[name] ??
              stackSentences[arg.description ?? ""] ??
              arg.description ??
              ofTags.get(name),
          };
        return described;
      },
      GraphQLObjectType_fields_field(field, build, { Self, scope }) {
        const ours = stackSentences[field.description ?? ""];
        if (ours) return { ...field, description: ours };
        const stock = / ?across the matching connection/i.test(field.description ?? "");
        if (stock && connectionFigures[scope.fieldName] && /Connection$/.test(Self.name))
          return { ...field, description: connectionFigures[scope.fieldName] };
        const [, typeName, figure] = stock ? (aggregatesName.exec(Self.name) ?? []) : [];
        if (typeName === undefined) return field;
        const codec = figure ? tableCodec(build, typeName) : undefined;
        const column = codec?.attributes?.[snake(scope.fieldName)]?.description;
        const which = figures[figure ?? scope.fieldName[0]!.toUpperCase() + scope.fieldName.slice(1)];
        return {
          ...field,
          description: column
            ? `${which} of \`${scope.fieldName}\`, nulls ignored. ${column}`
            : `${which} of each field, over all matching records.`,
        };
      },
      GraphQLScalarType: (config) => ({
        ...config,
        description: stackSentences[config.description ?? ""] ?? config.description,
      }),
      GraphQLObjectType(config) {
        const description = stackTypes[config.name];
        if (description) return { ...config, description };
        return config.description ? config : { ...config, description: describeType(config.name) };
      },
      GraphQLInputObjectType(config, _build, { scope }) {
        const isInputOfCodec = scope.isInputType && (scope.isPgRowType || scope.isPgCompoundType);
        if (config.description && !isInputOfCodec) return config;
        return { ...config, description: scope.pgCodec?.description };
      },
    },
  },
};
