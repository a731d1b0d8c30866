/** Arguments of lists and connections, which replace those of PostGraphile. */
import type { FieldArgs } from "postgraphile/grafast";
import { context as contextStep, lambda, type ExecutableStep } from "postgraphile/grafast";
import { TYPES, type PgCodec } from "postgraphile/@dataplan/pg";
import { sql } from "postgraphile/pg-sql2";
import { tagTexts } from "../schema/codecNames.ts";
import { sourceName, tableName, type AnyResource } from "../schema/recordTables.ts";
import { isIndexed, orderWithin } from "./indexedOrders.ts";
import { conditions, filterMembers, filterTypeName, customPlan } from "./filters.ts";
import { defaultOrder, orderExpression, reversed, placed, defaultSort, type OrderSpec } from "./orders.ts";
import { chosenOrder, MAX_FIRST, pageSize, skip } from "./pageArguments.ts";
import { withDeleted } from "./portfolio.ts";
import { orderTypeName, sortTypeName } from "./listTypes.ts";
import type { AnyStep, AnyQueryBuilder, AnyType, AnyInput } from "../schema/stackTypes.ts";

function tableOf(build: GraphileBuild.Build, codec: PgCodec): AnyResource | null {
  return (build.pgTableResource(codec as AnyType) as AnyResource | null) ?? null;
}

/** Input for creating the arguments of a field. */
interface ListField {
  build: GraphileBuild.Build;
  resource: AnyResource;
  /** The table of the records; the function itself if it does not return table rows. */
  table: AnyResource;
  codec: PgCodec;
  /** The step that selects the rows. */
  select: ($field: AnyStep) => AnyStep;
  isPortfolio: boolean;
  /** Whether the field defines its own scope, like a list on a project. */
  isOfProject: boolean;
  /** Whether it is a connection of a record, and not of Query. */
  isNested: boolean;
  /** The column by which the rows of a parent record are found, if it is a single one. */
  parentColumn: string | undefined;
}

/** `filter`; undefined if there is nothing to filter by. */
function filterArgument({ build, resource, table, codec, select, isPortfolio, isOfProject }: ListField) {
  const members = filterMembers(build, codec);
  if (members.length === 0 && !codec.attributes?.deleted_at) return undefined;
  const type = build.getTypeByName(filterTypeName(build, codec));
  if (!type) return undefined;
  const hasDeleted = Boolean(codec.attributes?.deleted_at) && !resource.parameters;
  return {
    description: "Returns only the records that match all fields of the filter.",
    type,
    applyPlan(_: unknown, $field: unknown, arg: FieldArgs) {
      if (isPortfolio) return; // PortfolioConnectionsPlugin does it
      const $filter = arg.getRaw();
      const $select = select($field);
      $select.apply(
        lambda($filter, (filter) => (qb: AnyQueryBuilder) => {
          for (const condition of conditions(members, filter as AnyType, qb.alias, "record"))
            qb.where(sql`${condition} ${customPlan}`);
        }),
      );
      if (hasDeleted && !isOfProject) {
        const of = { name: tableName(table), source: sourceName(table) };
        const rows = sql.identifier(...of.source);
        ($select as AnyType).from = $select.deferredSQL(
          lambda($filter, (filter: AnyInput) => (filter?.includeDeleted === true ? withDeleted(of) : rows)),
        );
      }
    },
  };
}

/** `first` of lists and connections. */
const firstArgument = ({ build }: ListField) => ({
  description: `Maximum number of records, up to ${MAX_FIRST}. Default: 100.`,
  type: build.graphql.GraphQLInt,
  defaultValue: 100,
  applyPlan(_: unknown, $field: AnyStep, arg: FieldArgs) {
    $field.setFirst(lambda(arg.getRaw(), (first) => pageSize(first, 100)));
  },
});

/** The page of a connection that goes both ways; NestedConnectionsPlugin applies the sizes together. */
function pageArguments({ build }: ListField) {
  const size = build.graphql.GraphQLInt;
  const cursor = build.getInputTypeByName(build.inflection.builtin("Cursor"));
  return {
    first: {
      description: `Maximum number of records, up to ${MAX_FIRST}. Default: 100, unless \`last\` is given.`,
      type: size,
    },
    last: { description: `Maximum number of records from the end, up to ${MAX_FIRST}.`, type: size },
    after: {
      description: "Only records after this cursor of a previous page.",
      type: cursor,
      applyPlan: (_: unknown, $field: AnyStep, arg: FieldArgs) => $field.setAfter(arg.getRaw()),
    },
    before: {
      description: "Only records before this cursor of a previous page.",
      type: cursor,
      applyPlan: (_: unknown, $field: AnyStep, arg: FieldArgs) => $field.setBefore(arg.getRaw()),
    },
  };
}

/** `offset` of lists. */
const offsetArgument = ({ build }: ListField) => ({
  description: "Number of records to skip.",
  type: build.graphql.GraphQLInt,
  applyPlan(_: unknown, $field: AnyStep, arg: FieldArgs) {
    $field.setOffset(lambda(arg.getRaw(), skip));
  },
});

/** The latest records of a parent first: by id if that is indexed, or against the default order, which is. */
export function newestFirst(table: AnyResource, parentColumn: string): OrderSpec[] {
  const uniques = table.uniques as { isPrimary: boolean; attributes: string[] }[];
  const [key] = uniques.find(({ isPrimary }) => isPrimary)!.attributes;
  const latest: OrderSpec[] = [{ column: key!, direction: "desc" }];
  if (isIndexed({ attributes: (table.codec as PgCodec).attributes! }, [parentColumn], latest)) return latest;
  return reversed(defaultOrder(table));
}

/** Whether an order was requested; an empty list counts as none. */
export const isGiven = (orderBy: unknown) => Array.isArray(orderBy) && orderBy.length > 0;

/** `orderBy`; undefined if the records have no order. */
function orderByArgument({ build, resource, table, codec, select, isNested, parentColumn }: ListField) {
  const { GraphQLList, GraphQLNonNull } = build.graphql;
  const orderType = build.getTypeByName(orderTypeName(build, codec));
  if (!orderType || (table as AnyType).isVirtual) return undefined;
  // A function orders its rows itself, but a cursor needs the columns of the order. PermissionsPlugin orders its own lists.
  const isOrdered = resource.extensions?.tags?.by !== undefined || hasSort(build, resource, codec);
  const hasDefault = !resource.parameters || (isNested && !isOrdered);
  const indexes = { attributes: codec.attributes! };
  const isFunction = Boolean(resource.parameters);
  // PERF: for a parent or function that has few rows, the planner would walk an index of all rows in that order.
  const ordered = (orderBy: unknown): OrderSpec[] => {
    const order = chosenOrder(table, orderBy, null);
    if (parentColumn !== undefined) return orderWithin(indexes, [parentColumn], order);
    return isFunction && isGiven(orderBy) ? order.map((spec) => ({ ...spec, isSorted: true })) : order;
  };
  return {
    description:
      "Sort orders, the first being the most significant. If omitted, the list has its default order.",
    type: new GraphQLList(new GraphQLNonNull(orderType as AnyType)),
    defaultValue: [],
    applyPlan(_: unknown, $field: AnyStep, arg: FieldArgs) {
      applyOrder(
        select($field),
        lambda(arg.getRaw(), (orderBy) => (isGiven(orderBy) || hasDefault ? ordered(orderBy) : null)),
        codec,
      );
    },
  };
}

/** Whether the field has `sort`. */
const hasSort = (build: GraphileBuild.Build, { parameters, extensions }: AnyResource, codec: PgCodec) =>
  Boolean(
    parameters &&
    extensions?.tags?.ordered === undefined &&
    extensions?.tags?.by === undefined &&
    build.getTypeByName(sortTypeName(build, codec)),
  );

/** `sort` of functions; undefined if the function defines the order with the tag @ordered. */
function sortArgument({ build, resource, table, codec, select }: ListField) {
  if (!hasSort(build, resource, codec)) return undefined;
  const sortType = build.getTypeByName(sortTypeName(build, codec));
  const fallback = defaultSort(resource, table);
  return {
    description: "A named sort order. If `orderBy` is given too, `orderBy` takes precedence.",
    type: sortType,
    defaultValue: fallback,
    applyPlan(_: unknown, $field: AnyStep, arg: FieldArgs) {
      applyOrder(
        select($field),
        lambda([arg.getRaw(), contextStep()] as AnyType, ([sort, viewer]: AnyInput) => {
          const order = chosenOrder(table, null, sort ?? fallback);
          return placed(order, () => viewer.viewerPlace?.(viewer.ip)) as AnyType;
        }),
        codec,
      );
    },
  };
}

/** Arguments of a list or connection, with plans that modify its select. */
export function listArguments(
  build: GraphileBuild.Build,
  resource: AnyResource,
  isConnection: boolean,
  args: Record<string, unknown>,
  isRoot: boolean,
  {
    isOfProject = false,
    parentColumn,
  }: Partial<Pick<ListField, "isOfProject">> & { parentColumn: string | undefined },
): Record<string, AnyType> {
  const codec = resource.codec as PgCodec;
  const table = tableOf(build, codec) ?? resource;
  const isPortfolio = isRoot && isConnection && typeof table.extensions?.tags?.portfolio === "string";
  const select = ($field: AnyStep) => (isConnection ? $field.getSubplan() : $field);
  const isNested = isConnection && !isRoot;
  const field: ListField = {
    build,
    resource,
    table,
    codec,
    select,
    isPortfolio,
    isOfProject,
    isNested,
    parentColumn,
  };

  delete args.condition;
  const result: Record<string, unknown> = { ...args };
  const filter = filterArgument(field);
  if (filter) result.filter = filter;
  const member = isPortfolio && connectionArgument(build, table);
  if (member) result[member.name] = { description: member.description, type: member.type() };
  result.first = firstArgument(field);
  if (isNested) {
    Object.assign(result, pageArguments(field));
    delete result.offset;
  } else if (isConnection) {
    delete result.last;
    delete result.before;
    delete result.offset;
  } else {
    result.offset = offsetArgument(field);
  }
  const orderBy = orderByArgument(field);
  if (orderBy) {
    result.orderBy = orderBy;
    delete result.sort;
  }
  const sort = sortArgument(field);
  if (sort) result.sort = sort;
  return result;
}

/** The filter field that is also an argument of the root connection: `@connectionArgument projectId`. */
export function connectionArgument(build: GraphileBuild.Build, table: AnyResource) {
  const [name] = tagTexts(table.extensions?.tags, "connectionArgument");
  return filterMembers(build, table.codec as PgCodec).find((member) => member.name === name);
}

/** Adds ORDER BY for the order of an argument, which is only known when the query is executed. */
export function applyOrder($select: AnyStep, $order: ExecutableStep, codec: PgCodec): void {
  $select.apply(
    lambda($order, (order) => (qb: AnyQueryBuilder) => {
      if (!order) return;
      for (const spec of order as OrderSpec[]) {
        if (spec.from) {
          const fragment = orderExpression(spec, qb.alias);
          qb.orderBy({ codec: TYPES.float, fragment, direction: "ASC", nullable: true });
          continue;
        }
        const attribute = codec.attributes![spec.column]!;
        const type = spec.by ? TYPES.numeric : attribute.codec;
        const notNull = spec.by ? true : attribute.notNull;
        const fragment = orderExpression(spec, qb.alias);
        const direction = spec.direction === "desc" ? "DESC" : "ASC";
        // Null placement is part of the order: @dataplan/pg 1.1 assumes the opposite after a cursor, and loses rows.
        if (!notNull) qb.orderBy({ codec: TYPES.boolean, fragment: sql`(${fragment} is null)`, direction });
        qb.orderBy({ codec: type, fragment, direction, nullable: !notNull });
      }
      qb.setOrderIsUnique();
    }),
  );
}
