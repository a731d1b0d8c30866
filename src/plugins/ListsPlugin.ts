/**
 * Lists and connections: `filter`, `first`, `offset`, `orderBy` (and `sort` where a table has it) on each of them, with
 * one cap and one default; root lists of tables tagged `@portfolio <permission>` along their indexes.
 *
 * Replaces the stock arguments condition, first, offset and orderBy.
 */
import { lambda, type ExecutableStep } from "postgraphile/grafast";
import { pgSelect, TYPES, type PgCodec } from "postgraphile/@dataplan/pg";
import { sql } from "postgraphile/pg-sql2";
import { CodedError } from "../errors.ts";
import { conditions, filterMembers, filterTypeName } from "../lists/filters.ts";
import {
  defaultOrder,
  orderColumns,
  orderExpression,
  sorts,
  total,
  type OrderSpec,
} from "../lists/orders.ts";
import { portfolioSql, withDeleted, type PortfolioTable } from "../lists/portfolio.ts";
import { tagTexts } from "./codecs.ts";
import { recordTables, tableName, type AnyResource } from "./tables.ts";

declare global {
  namespace GraphileConfig {
    interface Plugins {
      ListsPlugin: true;
    }
  }
}

const MAX_FIRST = 1000;

/** `first` of a list: the default without it, refused when negative or over the cap. */
export function pageSize(first: unknown, fallback: number): number {
  if (first === null || first === undefined) return fallback;
  const size = first as number;
  if (size < 0) throw new CodedError("BAD_USER_INPUT", "first is zero or more.", { field: "first" });
  if (size > MAX_FIRST) {
    throw new CodedError(
      "LIMIT_EXCEEDED",
      `first is ${MAX_FIRST} at most; take further records with offset or after.`,
      { field: "first", limit: MAX_FIRST },
    );
  }
  return size;
}

function skip(offset: unknown): number {
  if (offset === null || offset === undefined) return 0;
  if ((offset as number) < 0)
    throw new CodedError("BAD_USER_INPUT", "offset is zero or more.", { field: "offset" });
  return offset as number;
}

function orderTypeName(build: GraphileBuild.Build, codec: PgCodec): string {
  return `${build.inflection.pluralize(build.inflection.tableType(codec))}OrderBy`;
}

function sortTypeName(build: GraphileBuild.Build, codec: PgCodec): string {
  return `${build.inflection.pluralize(build.inflection.tableType(codec))}Sort`;
}

function listCodecs(build: GraphileBuild.Build): PgCodec[] {
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

function tableOf(build: GraphileBuild.Build, codec: PgCodec): AnyResource | null {
  return (build.pgTableResource(codec as any) as AnyResource | null) ?? null;
}

export function chosenOrder(resource: AnyResource, orderBy: unknown, sort: unknown): OrderSpec[] {
  if (Array.isArray(orderBy) && orderBy.length > 0) return total(orderBy as OrderSpec[]);
  if (typeof sort === "string") {
    const order = sorts(resource).get(sort);
    if (order) return order;
  }
  return defaultOrder(resource);
}

export const ListsPlugin: GraphileConfig.Plugin = {
  name: "ListsPlugin",
  version: "1.0.0",
  after: ["PgFirstLastBeforeAfterArgsPlugin", "PgConditionArgumentPlugin"],
  schema: {
    hooks: {
      init: {
        after: ["PgCodecs"],
        callback(_, build) {
          registerRanges(build);
          for (const codec of listCodecs(build)) registerTypes(build, codec);
          return _;
        },
      },
      GraphQLObjectType_fields_field_args: {
        after: ["default"],
        callback(args, build, context) {
          const { scope: fieldScope } = context as any;
          const { isPgFieldConnection, isPgFieldSimpleCollection, pgFieldResource } = fieldScope;
          if (!(isPgFieldConnection || isPgFieldSimpleCollection) || !pgFieldResource?.codec.attributes)
            return args;
          return listArguments(
            build,
            pgFieldResource,
            Boolean(isPgFieldConnection),
            { ...args },
            context.Self.name === "Query",
          );
        },
      },
      GraphQLObjectType_fields(fields, build, context) {
        if (!context.scope.isRootQuery) return fields;
        for (const resource of recordTables(build)) {
          const permission = resource.extensions?.tags?.portfolio;
          if (typeof permission !== "string") continue;
          const fieldName = build.inflection.allRowsList(resource as any);
          fields = build.extend(
            fields,
            { [fieldName]: portfolioField(build, context, resource, permission, fieldName) },
            `ListsPlugin: ${fieldName}`,
          );
        }
        return fields;
      },
    },
  },
};

/** The arguments of a list or connection, with plans that act on its select. */
function listArguments(
  build: GraphileBuild.Build,
  resource: AnyResource,
  isConnection: boolean,
  args: Record<string, any>,
  isRoot: boolean,
): Record<string, any> {
  const { GraphQLInt, GraphQLList, GraphQLNonNull } = build.graphql;
  const table = tableOf(build, resource.codec as PgCodec) ?? resource;
  const codec = resource.codec as PgCodec;
  const select = ($field: any) => (isConnection ? $field.getSubplan() : $field);
  delete args.condition;
  const filterType = build.getTypeByName(filterTypeName(build, codec));
  const orderType = build.getTypeByName(orderTypeName(build, codec));
  const sortType = build.getTypeByName(sortTypeName(build, codec));
  const hasDeleted = Boolean(codec.attributes?.deleted_at) && !resource.parameters;
  const isPortfolio = isRoot && isConnection && typeof table.extensions?.tags?.portfolio === "string";
  const result: Record<string, any> = { ...args };
  if (filterType) {
    const members = filterMembers(build, codec);
    result.filter = {
      description: "Only records that match all members of the filter.",
      type: filterType,
      applyPlan(_: unknown, $field: any, arg: any) {
        if (isPortfolio) return; // PortfolioConnectionsPlugin does it
        const $filter = arg.getRaw();
        const $select = select($field);
        $select.apply(
          lambda($filter, (filter) => (qb: any) => {
            for (const condition of conditions(members, filter as any, qb.alias)) qb.where(condition);
          }),
        );
        if (hasDeleted) {
          const name = sql.identifier(...tableName(table));
          ($select as any).from = $select.deferredSQL(
            lambda($filter, (filter: any) => (filter?.includeDeleted === true ? withDeleted(name) : name)),
          );
        }
      },
    };
  }
  const member = isPortfolio && connectionArgument(build, table);
  if (member) result[member.name] = { description: member.description, type: member.type() };
  result.first = {
    description: `How many records at most; 100 where left out, ${MAX_FIRST} at most.`,
    type: GraphQLInt,
    defaultValue: 100,
    applyPlan(_: unknown, $field: any, arg: any) {
      $field.setFirst(lambda(arg.getRaw(), (first) => pageSize(first, 100)));
    },
  };
  if (isConnection) {
    delete result.last;
    delete result.before;
    delete result.offset;
  } else {
    result.offset = {
      description: "How many records to skip.",
      type: GraphQLInt,
      applyPlan(_: unknown, $field: any, arg: any) {
        $field.setOffset(lambda(arg.getRaw(), skip));
      },
    };
  }
  if (orderType && !(table as any).isVirtual) {
    result.orderBy = {
      description: "The order; the default of the list where left out.",
      type: new GraphQLList(new GraphQLNonNull(orderType as any)),
      defaultValue: [],
      applyPlan(_: unknown, $field: any, arg: any) {
        applyOrder(
          select($field),
          lambda(arg.getRaw(), (orderBy) =>
            (Array.isArray(orderBy) && orderBy.length > 0) || !resource.parameters
              ? chosenOrder(table, orderBy, null)
              : null,
          ),
          codec,
        );
      },
    };
    delete result.sort;
  }
  if (sortType && resource.parameters) {
    result.sort = {
      description: "The order by name; orderBy comes first where both are given.",
      type: sortType,
      defaultValue: [...sorts(table).keys()][0],
      applyPlan(_: unknown, $field: any, arg: any) {
        applyOrder(
          select($field),
          lambda(arg.getRaw(), (sort) => chosenOrder(table, null, sort ?? [...sorts(table).keys()][0])),
          codec,
        );
      },
    };
  }
  return result;
}

function applyOrder($select: any, $order: ExecutableStep, codec: PgCodec): void {
  $select.apply(
    lambda($order, (order) => (qb: any) => {
      if (!order) return;
      for (const spec of order as OrderSpec[]) {
        const attribute = codec.attributes![spec.column]!;
        const type = spec.by ? TYPES.numeric : attribute.codec;
        const notNull = spec.by ? true : attribute.notNull;
        const fragment = orderExpression(spec, qb.alias);
        const direction = spec.direction === "desc" ? "DESC" : "ASC";
        // Where nulls stand is an order of its own: @dataplan/pg 1.1 takes them for the other end after a cursor, and
        // loses the rows.
        if (!notNull) qb.orderBy({ codec: TYPES.boolean, fragment: sql`(${fragment} is null)`, direction });
        qb.orderBy({ codec: type, fragment, direction, nullable: !notNull });
      }
      qb.setOrderIsUnique();
    }),
  );
}

/** The member of the filter that is an argument of the root connection too: `@connectionArgument projectId`. */
export function connectionArgument(build: GraphileBuild.Build, table: AnyResource) {
  const [name] = tagTexts(table.extensions?.tags as any, "connectionArgument");
  return filterMembers(build, table.codec as PgCodec).find((member) => member.name === name);
}

export function portfolioTable(
  build: GraphileBuild.Build,
  resource: AnyResource,
  permission: string,
): PortfolioTable {
  return {
    name: tableName(resource),
    permission,
    columns: new Set(Object.keys(resource.codec.attributes)),
    attributes: resource.codec.attributes,
    members: filterMembers(build, resource.codec as PgCodec),
    indexedOrder: defaultOrder(resource),
    hasPublicRows: resource.extensions?.tags?.publicRows !== undefined,
    listColumns: tagTexts(resource.extensions?.tags as any, "filterLists").flatMap((text) =>
      text.split(/[\s,]+/),
    ),
  };
}

function portfolioField(
  build: GraphileBuild.Build,
  context: any,
  resource: AnyResource,
  permission: string,
  fieldName: string,
) {
  const { GraphQLInt, GraphQLList, GraphQLNonNull } = build.graphql;
  const codec = resource.codec as PgCodec;
  const [limit] = tagTexts(resource.extensions?.tags as any, "defaultFirst");
  const fallback = limit ? Number(limit) : 100;
  const sortType = build.getTypeByName(sortTypeName(build, codec));
  const table = portfolioTable(build, resource, permission);
  const order = defaultOrder(resource);
  return context.fieldWithHooks({ fieldName, pgFieldResource: resource }, () => ({
    description: `Across the portfolio: ${build.inflection.tableType(codec).toLowerCase()} records, ${order.map((o) => `${o.column.replaceAll("_", " ")} ${o.direction === "desc" ? "descending" : "ascending"}`)[0]}.`,
    type: new GraphQLList(new GraphQLNonNull(build.getGraphQLTypeByPgCodec(codec as any, "output") as any)),
    args: {
      filter: {
        description: "Only records that match all members of the filter.",
        type: build.getTypeByName(filterTypeName(build, codec)),
      },
      first: {
        description: `How many records at most; ${fallback} where left out, ${MAX_FIRST} at most.`,
        type: GraphQLInt,
      },
      offset: { description: "How many records to skip.", type: GraphQLInt },
      orderBy: {
        description: "The order; the default of the list where left out.",
        type: new GraphQLList(new GraphQLNonNull(build.getTypeByName(orderTypeName(build, codec)) as any)),
      },
      ...(sortType
        ? {
            sort: {
              description: "The order by name; orderBy comes first where both are given.",
              type: sortType,
            },
          }
        : {}),
    },
    plan(_$root: unknown, fieldArgs: any) {
      const $order = lambda(
        [fieldArgs.getRaw("orderBy"), ...(sortType ? [fieldArgs.getRaw("sort")] : [])],
        ([orderBy, sort]: any) => chosenOrder(resource, orderBy, sort),
      );
      const $from = lambda(
        [fieldArgs.getRaw("filter"), fieldArgs.getRaw("first"), fieldArgs.getRaw("offset"), $order] as any,
        ([filter, first, offset, chosen]: any) =>
          portfolioSql(table, {
            filter,
            order: chosen,
            first: pageSize(first, fallback),
            offset: skip(offset),
          }),
      );
      const $select = pgSelect({ resource, identifiers: [], mode: "normal" }) as any;
      $select.from = $select.deferredSQL($from);
      applyOrder($select, $order as any, codec);
      return $select;
    },
  }));
}

function registerTypes(build: GraphileBuild.Build, codec: PgCodec): void {
  const members = filterMembers(build, codec);
  const hasDeleted = Boolean(codec.attributes?.deleted_at);
  const typeName = build.inflection.tableType(codec);
  if (members.length > 0 || hasDeleted) {
    build.registerInputObjectType(
      filterTypeName(build, codec),
      {},
      () => ({
        description: `What to look for among ${build.inflection.pluralize(typeName)}: all members must match, a list matches by any of its values.`,
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
        description: `Orders of ${build.inflection.pluralize(typeName)}.`,
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

function registerRanges(build: GraphileBuild.Build): void {
  const { GraphQLInt } = build.graphql;
  const ranges: [string, () => any, string, string][] = [
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
        description: "A range; an end that is left out is open.",
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
