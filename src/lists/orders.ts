/**
 * Orders of lists. `orderBy` offers indexed columns, ascending and descending; `@defaultOrder` in the comment of the
 * table is the default; `@sort NAME column direction` defines values of the argument `sort`, in which the column
 * `distance` is the distance to the viewer, and an expression such as `lowest_price(id)` is the result of that
 * function of app_hidden, which is never null. Every order ends in id, so that it is total.
 */
import type { PgCodec } from "postgraphile/@dataplan/pg";
import { sql, type SQL } from "postgraphile/pg-sql2";
import { tagTexts } from "../schema/codecNames.ts";
import type { AnyResource } from "../schema/recordTables.ts";
import type { Place } from "../providers/location/index.ts";
import type { AnyType } from "../schema/stackTypes.ts";

const DISTANCE = "distance";

export interface OrderSpec {
  column: string;
  direction: "asc" | "desc";
  /** Location of the viewer, for `distance`. */
  from?: Place;
  /** A function of app_hidden that takes the column. */
  by?: string;
  /** Whether the planner must not read the order from an index, which would have the rows of all parents. */
  isSorted?: boolean;
}

/** SQL expression for rows of `alias`. */
export function orderExpression(spec: OrderSpec, alias: SQL): SQL {
  if (spec.from) {
    const { latitude, longitude } = spec.from;
    const distances = sql`(select app_hidden.project_distances(${sql.value(latitude)}::float8, ${sql.value(longitude)}::float8))`;
    return sql`(${distances} ->> ${alias}.id::text)::float8`;
  }
  const column = sql`${alias}.${sql.identifier(spec.column)}`;
  if (spec.by) return sql`${sql.identifier("app_hidden", spec.by)}(${column})`;
  return spec.isSorted ? sql`coalesce(${column}, ${column})` : column;
}

/** The order with the viewer's location; without one, the columns after the distance decide. */
function fromPlace(order: OrderSpec[], place: Place | null): OrderSpec[] {
  return order.flatMap((spec) => {
    if (spec.column !== DISTANCE) return [spec];
    return place ? [{ ...spec, from: place }] : [];
  });
}

/** The order with the viewer's location, which is only determined if the order needs it. */
export function placed(
  order: OrderSpec[],
  viewerPlace: () => Promise<Place | null> | undefined,
): OrderSpec[] | Promise<OrderSpec[]> {
  if (!order.some(({ column }) => column === DISTANCE)) return order;
  return Promise.resolve(viewerPlace() ?? null).then((place) => fromPlace(order, place));
}

/** `registered_at desc, id` → specs; throws on anything else. */
export function parseOrder(text: string): OrderSpec[] {
  return text.split(",").map((part) => {
    const match = /^\s*(?:([a-z_]+)\(([a-z_]+)\)|([a-z_]+))(?:\s+(asc|desc))?\s*$/.exec(part);
    if (!match) throw new Error(`No order: ${text}`);
    const [, by, argument, column, direction = "asc"] = match;
    return { column: argument ?? column!, direction: direction as "asc" | "desc", ...(by ? { by } : {}) };
  });
}

/** Appends id if it is missing, in the direction of the last column. */
export function total(order: OrderSpec[]): OrderSpec[] {
  if (order.some((spec) => spec.column === "id" && !spec.by)) return order;
  return [...order, { column: "id", direction: order.at(-1)?.direction ?? "desc" }];
}

/** Default order: the table's @defaultOrder, otherwise newest first. */
export function defaultOrder(resource: AnyResource): OrderSpec[] {
  const [text] = tagTexts(resource.extensions?.tags, "defaultOrder");
  return total(text ? parseOrder(text) : [{ column: "id", direction: "desc" }]);
}

/** The opposite order. */
export function reversed(order: OrderSpec[]): OrderSpec[] {
  return order.map((spec) => ({ ...spec, direction: spec.direction === "asc" ? "desc" : "asc" }));
}

/** The values of `sort`: name → order. */
export function sorts(resource: AnyResource): Map<string, OrderSpec[]> {
  return new Map(
    tagTexts(resource.extensions?.tags, "sort").map((text): [string, OrderSpec[]] => {
      const [name, ...rest] = text.split(/\s+/);
      return [name!, total(parseOrder(rest.join(" ")))];
    }),
  );
}

/**
 * Default of `sort` in a list returned by a function: its `@defaultSort`, otherwise the value that matches the
 * default order of the table.
 */
export function defaultSort(resource: AnyResource, table: AnyResource): string | undefined {
  const [name] = tagTexts(resource.extensions?.tags, "defaultSort");
  const order = JSON.stringify(defaultOrder(table));
  return name ?? [...sorts(table)].find(([, each]) => JSON.stringify(each) === order)?.[0];
}

/** Columns offered by orderBy. */
export function orderColumns(build: GraphileBuild.Build, codec: PgCodec): string[] {
  return Object.entries(codec.attributes ?? {})
    .filter(
      ([name, attribute]: [string, AnyType]) =>
        attribute.extensions?.isIndexed &&
        (name === "id" || attribute.codec.name !== "uuid") &&
        build.behavior.pgCodecAttributeMatches([codec as AnyType, name], "attribute:orderBy" as AnyType),
    )
    .map(([name]) => name);
}

/** ORDER BY list for rows of `alias`. */
export function orderSql(order: OrderSpec[], alias: SQL): SQL {
  return sql.join(
    order.map(
      (spec) => sql`${orderExpression(spec, alias)} ${spec.direction === "desc" ? sql`desc` : sql`asc`}`,
    ),
    ", ",
  );
}
