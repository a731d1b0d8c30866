/** Which orders the rows of a scope, such as an organization or a parent record, have along an index. */
import type { PgCodecAttributes } from "postgraphile/@dataplan/pg";
import type { OrderSpec } from "./orders.ts";

/** The columns by which the rows of a scope are found, in the order in which an index begins with them. */
export type ScopeColumns = readonly [column: string, ...further: string[]];

/** Whether `order` is another one, or its opposite. The id at its end may be sorted among equals. */
function isAlong(order: OrderSpec[], indexed: OrderSpec[]): boolean {
  const isTail = ({ column }: OrderSpec, at: number) => column === "id" && at > 0 && at === indexed.length;
  const matches = (backwards: boolean) =>
    order.every((spec, at) => {
      const { column, direction, by, from } = spec;
      const found = indexed[at];
      if (found?.column !== column) return isTail(spec, at);
      return !by && !from && (found.direction !== direction) === backwards;
    });
  return matches(false) || matches(true);
}

/**
 * Whether an index has the rows of a scope in an order, forwards or backwards.
 * @param table with its default order if that has an index in any case
 */
export function isIndexed(
  { attributes, defaultOrder }: { attributes: PgCodecAttributes; defaultOrder?: OrderSpec[] },
  [column, ...further]: ScopeColumns,
  order: OrderSpec[],
): boolean {
  const { indexedOrders } = (attributes[column]?.extensions ?? {}) as { indexedOrders?: OrderSpec[][] };
  // A view has the indexes of its tables.
  if (!indexedOrders) return true;
  const ofScope = order.filter((spec) => spec.column !== column && !further.includes(spec.column));
  return (
    (defaultOrder !== undefined && isAlong(order, defaultOrder)) ||
    indexedOrders.some(
      (indexed) =>
        further.every((name, at) => indexed[at]?.column === name) &&
        isAlong(ofScope, indexed.slice(further.length)),
    )
  );
}

/** The order, sorted where no index has the rows of the scope in it: the planner would walk an index of all scopes. */
export function orderWithin(
  table: Parameters<typeof isIndexed>[0],
  scope: ScopeColumns,
  order: OrderSpec[],
): OrderSpec[] {
  return isIndexed(table, scope, order) ? order : order.map((spec) => ({ ...spec, isSorted: true }));
}
