/** The input types of lists: filters, orders and ranges, and their names. */
import type { PgCodec } from "postgraphile/@dataplan/pg";
import type { AnyResource } from "../schema/recordTables.ts";
import { camel } from "../schema/codecNames.ts";
import { filterMembers, filterTypeName } from "./filters.ts";
import { orderColumns } from "./orders.ts";
import type { AnyType } from "../schema/stackTypes.ts";

/** Name of the input type of `orderBy`, such as `LeadsOrderBy`. */
export function orderTypeName(build: GraphileBuild.Build, codec: PgCodec): string {
  return `${build.inflection.pluralize(build.inflection.tableType(codec))}OrderBy`;
}

/** Name of the enumeration of `sort`, such as `LeadsSort`. */
export function sortTypeName(build: GraphileBuild.Build, codec: PgCodec): string {
  return `${build.inflection.pluralize(build.inflection.tableType(codec))}Sort`;
}

/** The record types of app_public that have lists: tables and views, without enumerations and functions. */
export function listCodecs(build: GraphileBuild.Build): PgCodec[] {
  return [
    ...new Set(
      (Object.values(build.pgResources) as AnyResource[])
        .filter(
          (r) =>
            !r.parameters &&
            r.codec.attributes &&
            !r.codec.isAnonymous &&
            r.extensions?.pg?.schemaName === "app_public" &&
            !r.extensions?.tags?.enum,
        )
        .map((r) => r.codec as PgCodec),
    ),
  ];
}

/** Registers the filter, order and sort types of a record type. */
export function registerTypes(build: GraphileBuild.Build, codec: PgCodec): void {
  const members = filterMembers(build, codec);
  const hasDeleted = Boolean(codec.attributes?.deleted_at);
  const typeName = build.inflection.tableType(codec);
  if (members.length > 0 || hasDeleted) {
    build.registerInputObjectType(
      filterTypeName(build, codec),
      {},
      () => ({
        description: `Filter of \`${typeName}\` records. A record has to match all fields; a field that is a list matches any of its values.`,
        fields: () => ({
          ...Object.fromEntries(
            members.map(({ name, description, deprecationReason, type }) => [
              name,
              { type: type(), description, ...(deprecationReason && { deprecationReason }) },
            ]),
          ),
          ...(hasDeleted
            ? {
                includeDeleted: {
                  type: build.graphql.GraphQLBoolean,
                  description: "Includes deleted records; for admins of the organization only.",
                },
              }
            : {}),
        }),
      }),
      `ListsPlugin: filter of ${codec.name}`,
    );
  }
  const columns = orderColumns(build, codec);
  if (columns.length > 0) {
    build.registerEnumType(
      orderTypeName(build, codec),
      {},
      () => ({
        description: `Sort orders of \`${typeName}\` lists. Records that are equal in all given orders are sorted by id.`,
        values: Object.fromEntries(
          columns.flatMap((column) =>
            (["asc", "desc"] as const).map((direction) => [
              `${column.toUpperCase()}_${direction.toUpperCase()}`,
              {
                value: { column, direction },
                description: `By \`${camel(column)}\`, ${direction === "asc" ? "ascending" : "descending"}.`,
              },
            ]),
          ),
        ),
      }),
      `ListsPlugin: order of ${codec.name}`,
    );
  }
}

/** Registers the range types that filters share. Bounds are inclusive, except for the upper bound of DateTimeRange. */
export function registerRanges(build: GraphileBuild.Build): void {
  const { GraphQLInt } = build.graphql;
  const ranges: [string, () => AnyType, string, string][] = [
    ["DateTimeRange", () => build.getInputTypeByName("DateTime"), "from", "to"],
    ["DateRange", () => build.getInputTypeByName("Date"), "from", "to"],
    ["DecimalRange", () => build.getInputTypeByName("Decimal"), "min", "max"],
    ["IntRange", () => GraphQLInt, "min", "max"],
  ];
  for (const [name, type, low, high] of ranges) {
    build.registerInputObjectType(
      name,
      {},
      () => ({
        description: "A range. A bound that is omitted does not limit it.",
        fields: () => ({
          [low]: { type: type(), description: "Lower bound, inclusive." },
          [high]: {
            type: type(),
            description: name === "DateTimeRange" ? "Upper bound, exclusive." : "Upper bound, inclusive.",
          },
        }),
      }),
      `ListsPlugin: ${name}`,
    );
  }
}
