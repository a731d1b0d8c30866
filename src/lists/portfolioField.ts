/** The root list of a table tagged `@portfolio <permission>`, along its indexes. */
import { context as contextStep, lambda } from "postgraphile/grafast";
import { pgSelect, type PgCodec } from "postgraphile/@dataplan/pg";
import { tagTexts } from "../schema/codecNames.ts";
import { camel } from "../schema/codecNames.ts";
import { sourceName, tableName, type AnyResource } from "../schema/recordTables.ts";
import { applyOrder } from "./listArguments.ts";
import { filterMembers, filterTypeName } from "./filters.ts";
import { defaultOrder, placed } from "./orders.ts";
import { chosenOrder, MAX_FIRST, pageSize, skip } from "./pageArguments.ts";
import { portfolioSql, type PortfolioTable } from "./portfolio.ts";
import { orderTypeName, sortTypeName } from "./listTypes.ts";
import type { AnyScope, AnyType, AnyInput } from "../schema/stackTypes.ts";
import type { FieldArgs } from "postgraphile/grafast";

/** Reads the smart tags of a table that determine its portfolio list. */
export function portfolioTable(
  build: GraphileBuild.Build,
  resource: AnyResource,
  permission: string,
): PortfolioTable {
  return {
    name: tableName(resource),
    source: sourceName(resource),
    permission,
    columns: new Set(Object.keys(resource.codec.attributes)),
    attributes: resource.codec.attributes,
    members: filterMembers(build, resource.codec as PgCodec),
    defaultOrder: defaultOrder(resource),
    hasPublicRows: resource.extensions?.tags?.publicRows !== undefined,
    ownFinder: tagTexts(resource.extensions?.tags, "ownFinder")[0],
    also: alsoShown(tagTexts(resource.extensions?.tags, "portfolioAlso")[0]),
    listColumns: tagTexts(resource.extensions?.tags, "filterLists").flatMap((text) => text.split(/[\s,]+/)),
  };
}

/** `@portfolioAlso org.member lead_id buyer_id`. */
function alsoShown(text: string | undefined): PortfolioTable["also"] {
  if (text === undefined) return undefined;
  const [permission, ...nullColumns] = text.split(/\s+/);
  return { permission: permission!, nullColumns };
}

/** The root list of a table; without `first`, it returns 100 records or the number of the tag `@defaultFirst`. */
export function portfolioField(
  build: GraphileBuild.Build,
  context: AnyScope,
  resource: AnyResource,
  permission: string,
  fieldName: string,
) {
  const { GraphQLInt, GraphQLList, GraphQLNonNull } = build.graphql;
  const codec = resource.codec as PgCodec;
  const [limit] = tagTexts(resource.extensions?.tags, "defaultFirst");
  const fallback = limit ? Number(limit) : 100;
  const sortType = build.getTypeByName(sortTypeName(build, codec));
  const table = portfolioTable(build, resource, permission);
  const order = defaultOrder(resource);
  return context.fieldWithHooks({ fieldName, pgFieldResource: resource }, () => ({
    description: `\`${build.inflection.tableType(codec)}\` records across the viewer's portfolio: the viewer's organizations and all projects that these own or are affiliated with. Default order: ${order.map((o) => `\`${camel(o.column)}\` ${o.direction === "desc" ? "descending" : "ascending"}`)[0]}.`,
    type: new GraphQLList(
      new GraphQLNonNull(build.getGraphQLTypeByPgCodec(codec as AnyType, "output") as AnyType),
    ),
    args: {
      filter: {
        description: "Returns only the records that match all fields of the filter.",
        type: build.getTypeByName(filterTypeName(build, codec)),
      },
      first: {
        description: `Maximum number of records, up to ${MAX_FIRST}. Default: ${fallback}.`,
        type: GraphQLInt,
        // Not a default in the schema, but visible to code that inspects operations.
        extensions: { size: fallback },
      },
      offset: { description: "Number of records to skip.", type: GraphQLInt },
      orderBy: {
        description:
          "Sort orders, the first being the most significant. If omitted, the list has its default order.",
        type: new GraphQLList(
          new GraphQLNonNull(build.getTypeByName(orderTypeName(build, codec)) as AnyType),
        ),
      },
      ...(sortType
        ? {
            sort: {
              description: "A named sort order. If `orderBy` is given too, `orderBy` takes precedence.",
              type: sortType,
            },
          }
        : {}),
    },
    plan(_$root: unknown, fieldArgs: FieldArgs) {
      const $order = lambda(
        [
          contextStep(),
          fieldArgs.getRaw("orderBy"),
          ...(sortType ? [fieldArgs.getRaw("sort")] : []),
        ] as AnyType,
        ([viewer, orderBy, sort]: AnyInput) =>
          placed(chosenOrder(resource, orderBy, sort), () => viewer.viewerPlace?.(viewer.ip)) as AnyType,
      );
      const $from = lambda(
        [
          fieldArgs.getRaw("filter"),
          fieldArgs.getRaw("first"),
          fieldArgs.getRaw("offset"),
          $order,
        ] as AnyType,
        ([filter, first, offset, chosen]: AnyInput) =>
          portfolioSql(table, {
            filter,
            order: chosen,
            first: pageSize(first, fallback),
            offset: skip(offset),
          }),
      );
      const $select = pgSelect({ resource, identifiers: [], mode: "normal" }) as AnyType;
      $select.from = $select.deferredSQL($from);
      applyOrder($select, $order as AnyType, codec);
      return $select;
    },
  }));
}
