/** The input types of lists: filters, orders and ranges, and their names. */
import type { PgCodec } from "postgraphile/@dataplan/pg";
import type { AnyResource } from "../schema/recordTables.ts";
import { filterMembers, filterTypeName } from "./filters.ts";
import { orderColumns } from "./orders.ts";
import type { AnyType } from "../schema/stackTypes.ts";

export function orderTypeName(build: GraphileBuild.Build, codec: PgCodec): string {
  return `${build.inflection.pluralize(build.inflection.tableType(codec))}OrderBy`;
}

export function sortTypeName(build: GraphileBuild.Build, codec: PgCodec): string {
  return `${build.inflection.pluralize(build.inflection.tableType(codec))}Sort`;
}

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

export function registerTypes(build: GraphileBuild.Build, codec: PgCodec): void {
  const members = filterMembers(build, codec);
  const hasDeleted = Boolean(codec.attributes?.deleted_at);
  const typeName = build.inflection.tableType(codec);
  if (members.length > 0 || hasDeleted) {
    build.registerInputObjectType(
      filterTypeName(build, codec),
      {},
      () => ({
        description: `Filter for ${build.inflection.pluralize(typeName)}. All fields must match; a list matches any of its values.`,
        fields: () => ({
          ...Object.fromEntries(
            members.map((member) => [member.name, { type: member.type(), description: member.description }]),
          ),
          ...(hasDeleted
            ? {
                includeDeleted: {
                  type: build.graphql.GraphQLBoolean,
                  description: "Deleted records too, for admins of their organization.",
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
        description: `By what lists of \`${typeName}\` can be sorted; what is equal in all given orders is sorted by id.`,
        values: Object.fromEntries(
          columns.flatMap((column) =>
            (["asc", "desc"] as const).map((direction) => [
              `${column.toUpperCase()}_${direction.toUpperCase()}`,
              {
                value: { column, direction },
                description: `${column.replaceAll("_", " ")}, ${direction === "asc" ? "lowest" : "highest"} first.`,
              },
            ]),
          ),
        ),
      }),
      `ListsPlugin: order of ${codec.name}`,
    );
  }
}

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
        description: "A range; an end that is omitted is open.",
        fields: () => ({
          [low]: { type: type(), description: "The lower end, included." },
          [high]: {
            type: type(),
            description: name === "DateTimeRange" ? "The upper end, excluded." : "The upper end, included.",
          },
        }),
      }),
      `ListsPlugin: ${name}`,
    );
  }
}
