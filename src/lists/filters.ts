/**
 * Filters of lists. A column tagged `@filter` becomes a field of the filter of its table. The field depends on the type
 * of the column:
 *
 *   enumeration, other id     a list of values, any of which matches       status: [LeadStatus!], assigneeIds: [ID!]
 *   one id (name ends in Id)  one value                                    organizationId: ID
 *   text[]                    a list of values, any of which is contained  tags: [String!]
 *   boolean, text             one value                                    isAgent: Boolean
 *   time, day, number         a range                                      registeredAt: DateTimeRange
 *
 * - `@filter name` sets the name of the field. `@formerFilter name` keeps a former name, deprecated; if it ends in Id,
 *   it accepts one id.
 * - Columns tagged `@masked` or `@writeOnly` are never fields.
 * - A function `(row, value) returns boolean` tagged `@filter name` defines the condition of a field. With `@finder
 *   name`, app_hidden.name(value) returns the ids of the matching rows, evaluated once per statement: a function with a
 *   subselect is not inlined and would be executed for each row. For a table tagged `@publicRows`, the finder returns
 *   ids of the portfolio only, so the list of a record uses the function.
 * - `@impliesList column value,…`: matching rows have one of these values, so a portfolio can use its `@filterLists`.
 * - Values of range types such as numrange are given as DecimalRange.
 * - Tables with the column deleted_at have the field includeDeleted.
 * - `and`, `or` and `not` combine filters of the same table.
 */
import type { GraphQLInputType } from "postgraphile/graphql";
import { TYPES, type PgCodec, type PgCodecAttribute } from "postgraphile/@dataplan/pg";
import { sql, type SQL } from "postgraphile/pg-sql2";
import { CodedError } from "../base/errors.ts";
import { baseCodec, camel, elementCodec, inputTypeOf, tagTexts } from "../schema/codecNames.ts";
import type { AnyResource } from "../schema/recordTables.ts";
import type { AnyInput } from "../schema/stackTypes.ts";

/** Scope of the list: the entire portfolio, or another set of rows. */
export type Within = "portfolio" | "record";

export interface FilterMember {
  name: string;
  description: string;
  /** Why it is deprecated, and until when it works. */
  deprecationReason?: string;
  type(): GraphQLInputType;
  /** The column of the condition, if it concerns one. */
  column?: string;
  /** The values that the column has in all matching rows. */
  implies?: { column: string; values: string[] } | undefined;
  /** The SQL condition for rows of `alias`; `value` is the coerced input, never null. */
  condition(alias: SQL, value: AnyInput, within: Within): SQL;
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
const SLUG_IDS: Record<string, string> = { project_id: "projects", organization_id: "organizations" };

/** Names of the range types, by base type of the column. */
function rangeType(codec: PgCodec): "DateTimeRange" | "DateRange" | "DecimalRange" | "IntRange" | null {
  const base = baseCodec(codec);
  if (base === TYPES.timestamptz) return "DateTimeRange";
  if (base === TYPES.date) return "DateRange";
  if (base === TYPES.numeric) return "DecimalRange";
  if (base === TYPES.int || base === TYPES.bigint) return "IntRange";
  return null;
}

function isEnum(codec: PgCodec): boolean {
  return (
    typeof codec.extensions?.tags?.enum === "string" ||
    Boolean(codec.extensions?.isEnumTableEnum) ||
    "values" in codec
  );
}

/** Values of an id field as SQL uuid[]; slugs if the table has them. Refuses invalid ids. */
function ids(column: string, member: string, values: string[]): SQL {
  const table = SLUG_IDS[column];
  if (table) {
    return sql`array(select app_hidden.record_id(${sql.literal(table)}, i.id, ${sql.literal(member)}) from unnest(${sql.value(values)}::text[]) i (id))`;
  }
  if (!values.every((value) => UUID.test(value))) {
    throw new CodedError("BAD_USER_INPUT", "Not a valid id; use the id that the API returned, a UUID.", {
      field: member,
    });
  }
  return sql`${sql.value(values)}::uuid[]`;
}

function columnMember(
  build: GraphileBuild.Build,
  column: string,
  attribute: PgCodecAttribute,
  given: unknown,
): FilterMember {
  const { GraphQLList, GraphQLNonNull } = build.graphql;
  const type = attribute.codec;
  const element = elementCodec(type);
  const isId = baseCodec(type) === TYPES.uuid;
  const name = typeof given === "string" && given !== "" ? given : isId ? `${camel(column)}s` : camel(column);
  const describe = (text: string) => `${text} ${attribute.description ?? ""}`.trim();
  const at = (alias: SQL) => sql`${alias}.${sql.identifier(column)}`;
  if (isId && name.endsWith("Id")) {
    return {
      name,
      column,
      description: describe("Equal to this id."),
      type: () => build.graphql.GraphQLID,
      condition: (alias, value) => sql`${at(alias)} = any (${ids(column, name, [value])})`,
    };
  }
  if (isId || isEnum(type)) {
    return {
      name,
      column,
      description: describe("Equal to any of these values."),
      type: () => new GraphQLList(new GraphQLNonNull(inputTypeOf(build, type))),
      condition: (alias, value) =>
        isId
          ? sql`${at(alias)} = any (${ids(column, name, value)})`
          : sql`${at(alias)} = any (${sql.value(value)}::text[])`,
    };
  }
  if (element) {
    return {
      name,
      column,
      description: describe("At least one of these."),
      type: () => inputTypeOf(build, type),
      condition: (alias, value) => sql`${at(alias)}::text[] && ${sql.value(value)}::text[]`,
    };
  }
  const range = rangeType(type);
  if (range) {
    const [low, high] = range === "DateTimeRange" || range === "DateRange" ? ["from", "to"] : ["min", "max"];
    const sqlType = baseCodec(type).sqlType;
    return {
      name,
      column,
      description: describe(
        range === "DateTimeRange"
          ? "In this range, upper bound exclusive."
          : "In this range, bounds inclusive.",
      ),
      type: () => build.getInputTypeByName(range),
      condition(alias, value) {
        const parts: SQL[] = [];
        if (value[low!] != null) parts.push(sql`${at(alias)} >= ${sql.value(value[low!])}::${sqlType}`);
        if (value[high!] != null) {
          const operator = range === "DateTimeRange" ? sql`<` : sql`<=`;
          parts.push(sql`${at(alias)} ${operator} ${sql.value(value[high!])}::${sqlType}`);
        }
        return parts.length === 0 ? sql`true` : sql.join(parts, " and ");
      },
    };
  }
  return {
    name,
    column,
    description: describe("This value only."),
    type: () => inputTypeOf(build, type),
    condition: (alias, value) => sql`${at(alias)} = ${sql.value(value)}::${type.sqlType}`,
  };
}

function functionMember(build: GraphileBuild.Build, resource: AnyResource, name: string): FilterMember {
  const parameter = resource.parameters![1]!;
  const finder = resource.extensions!.tags?.finder;
  const hasPublicRows = resource.parameters![0]!.codec.extensions?.tags?.publicRows !== undefined;
  const [schemaName, functionName] = [resource.extensions!.pg!.schemaName!, resource.extensions!.pg!.name!];
  const row =
    (resource.extensions as { rowArgument?: (row: SQL) => SQL }).rowArgument ?? ((alias: SQL) => alias);
  const call = (alias: SQL, value: SQL) =>
    sql`${sql.identifier(schemaName, functionName)}(${row(alias)}, ${value})`;
  const range = parameter.codec.rangeOfCodec && rangeType(parameter.codec.rangeOfCodec);
  if (range) {
    return {
      name,
      description: resource.description ?? name,
      type: () => build.getInputTypeByName(range),
      condition(alias, value) {
        const ends = [value.from ?? value.min, value.to ?? value.max].map(
          (end) => sql`${sql.value(end == null ? null : String(end))}::text`,
        );
        const { sqlType } = parameter.codec;
        // PERF: the sub-select is computed once per statement.
        return call(alias, sql`(select app_hidden.range_of(null::${sqlType}, ${ends[0]!}, ${ends[1]!}))`);
      },
    };
  }
  const isBoolean = baseCodec(parameter.codec) === TYPES.boolean;
  return {
    name,
    description: resource.description ?? name,
    implies: impliedList(resource),
    type: () => inputTypeOf(build, parameter.codec),
    condition(alias, value, within) {
      // PERF: inlined, so that a function that requests it reduces to the condition.
      if (isBoolean) return call(alias, value ? sql`true` : sql`false`);
      const given = sql`${sql.value(parameter.codec.toPg(value))}::${parameter.codec.sqlType}`;
      return typeof finder === "string" && (within === "portfolio" || !hasPublicRows)
        ? sql`${alias}.id = any (array(select ${sql.identifier("app_hidden", finder)}(${given})))`
        : call(alias, given);
    },
  };
}

/** `@impliesList status OPEN,WAITING`: the values of the column in matching rows. */
function impliedList(resource: AnyResource): FilterMember["implies"] {
  const [text] = tagTexts(resource.extensions?.tags, "impliesList");
  const [column, values] = text?.split(/\s+/) ?? [];
  return column && values ? { column, values: values.split(",") } : undefined;
}

/** By build. PERF: all functions are searched once per schema instead of once per table. */
const functionsByCodec = new WeakMap<object, Map<PgCodec, FilterFunction[]>>();

interface FilterFunction {
  resource: AnyResource;
  tag: string;
}

/** Functions tagged `@filter`, by the type of their first argument. */
function filterFunctions(build: GraphileBuild.Build): Map<PgCodec, FilterFunction[]> {
  let functions = functionsByCodec.get(build.input);
  if (!functions) {
    functions = new Map();
    for (const resource of Object.values(build.pgResources) as AnyResource[]) {
      const tag = resource.extensions?.tags?.filter;
      if (typeof tag !== "string" || resource.parameters?.length !== 2) continue;
      const { codec } = resource.parameters[0]!;
      functions.set(codec, [...(functions.get(codec) ?? []), { resource, tag }]);
    }
    functionsByCodec.set(build.input, functions);
  }
  return functions;
}

const cache = new WeakMap<object, Map<PgCodec, FilterMember[]>>();

/** The filter fields of a table, without includeDeleted. */
export function filterMembers(build: GraphileBuild.Build, codec: PgCodec): FilterMember[] {
  let known = cache.get(build.input);
  if (!known) cache.set(build.input, (known = new Map()));
  let members = known.get(codec);
  if (!members) {
    members = [];
    for (const [column, attribute] of Object.entries(codec.attributes ?? {}) as [
      string,
      PgCodecAttribute,
    ][]) {
      const { filter: tag, formerFilter, masked, writeOnly } = attribute.extensions?.tags ?? {};
      if (!tag || masked || writeOnly) continue;
      const member = columnMember(build, column, attribute, tag);
      members.push(member);
      for (const former of tagTexts({ formerFilter }, "formerFilter")) {
        const [name, ...until] = former.split(" ");
        const deprecationReason = `Use \`${member.name}\`. ${until.join(" ")}`;
        members.push({ ...columnMember(build, column, attribute, name), deprecationReason });
      }
    }
    for (const { resource, tag } of filterFunctions(build).get(codec) ?? [])
      members.push(functionMember(build, resource, tag));
    // A filter without fields cannot be combined.
    if (members.length > 0) members.push(...combinators(build, codec, members));
    known.set(codec, members);
  }
  return members;
}

/** Maximum nesting depth and number of combined filters, which bound the statement. */
const mostNested = 4;
const mostCombined = 50;

/** Depth and number of the combined filters. */
function extent(filter: Record<string, unknown>): { depth: number; count: number } {
  const nested = [filter.and, filter.or, filter.not]
    .flat()
    .filter((inner): inner is Record<string, unknown> => inner != null)
    .map(extent);
  return {
    depth: 1 + Math.max(0, ...nested.map(({ depth }) => depth)),
    count: 1 + nested.reduce((sum, { count }) => sum + count, 0),
  };
}

/** `and`, `or` and `not`: filters of the same type. */
function combinators(build: GraphileBuild.Build, codec: PgCodec, members: FilterMember[]): FilterMember[] {
  const { GraphQLList, GraphQLNonNull } = build.graphql;
  const filterType = () => build.getInputTypeByName(filterTypeName(build, codec));
  const all = (name: string, filter: Record<string, unknown>, alias: SQL, within: Within): SQL => {
    if (filter.includeDeleted != null)
      throw new CodedError(
        "BAD_USER_INPUT",
        "includeDeleted is only allowed at the top level of the filter.",
        {
          field: name,
        },
      );
    const parts = conditions(members, filter, alias, within);
    return parts.length === 0 ? sql`true` : sql`(${sql.join(parts, " and ")})`;
  };
  // The outermost filter is checked first, so that no SQL is built for one that is too large.
  const bounded = (name: string, given: unknown): void => {
    const { depth, count } = extent({ [name]: given });
    if (depth - 1 > mostNested || count - 1 > mostCombined)
      throw new CodedError(
        "BAD_USER_INPUT",
        "The filter is nested too deeply or combines too many filters.",
        {
          field: name,
        },
      );
  };
  const list = () => new GraphQLList(new GraphQLNonNull(filterType()));
  return [
    {
      name: "and",
      description: "Records that also match all of these filters.",
      type: list,
      condition(alias, filters, within) {
        bounded("and", filters);
        const parts = filters.map((filter: AnyInput) => all("and", filter, alias, within));
        return parts.length === 0 ? sql`true` : sql.join(parts, " and ");
      },
    },
    {
      name: "or",
      description: "Records that match at least one of these filters; an empty list matches no record.",
      type: list,
      condition(alias, filters, within) {
        bounded("or", filters);
        const parts = filters.map((filter: AnyInput) => all("or", filter, alias, within));
        return parts.length === 0 ? sql`false` : sql`(${sql.join(parts, " or ")})`;
      },
    },
    {
      name: "not",
      description: "Records that do not match this filter. Records whose field is null are among them.",
      type: filterType,
      condition(alias, filter, within) {
        bounded("not", filter);
        return sql`(${all("not", filter, alias, within)}) is not true`;
      },
    },
  ];
}

/** Name of the filter type of a table, such as LeadsFilter; by its `@listName` where it has one. */
export function filterTypeName(build: GraphileBuild.Build, codec: PgCodec): string {
  const [listName] = tagTexts(codec.extensions?.tags, "listName");
  return listName
    ? `${build.inflection.upperCamelCase(listName)}Filter`
    : `${build.inflection.pluralize(build.inflection.tableType(codec))}Filter`;
}

/**
 * Comment in statements that need a custom plan for their parameters, such as the ids in a filter or the values of a
 * cursor: they match few rows, which a generic plan cannot know. The connection plans them each time; see
 * PoolOptions.genericPlans.
 */
export const customPlan = sql`/* planned for its values */`;

/** SQL conditions of a filter on rows of `alias`; null fields count as omitted. */
export function conditions(
  members: FilterMember[],
  filter: Record<string, unknown> | null | undefined,
  alias: SQL,
  within: Within,
): SQL[] {
  const result: SQL[] = [];
  for (const member of members) {
    const value = filter?.[member.name];
    if (value !== undefined && value !== null) result.push(member.condition(alias, value, within));
  }
  return result;
}
