/** SQL for the rows after a given row in a list. */
import type { PgCodecAttributes } from "postgraphile/@dataplan/pg";
import { sql, type SQL } from "postgraphile/pg-sql2";
import type { OrderSpec } from "./orders.ts";

/** Whether a single row comparison can express the position after a row. */
export function isUniform(order: OrderSpec[]): boolean {
  return order.every((spec) => spec.direction === order[0]!.direction);
}

/**
 * Condition for rows after the one with these values: one row comparison, at which an index scan can start, and a
 * separate condition for each nullable column, since comparisons with null are never true: nulls come last in
 * ascending and first in descending order.
 * @param values of the row before the page, for the columns of the order
 */
export function follows(attributes: PgCodecAttributes, order: OrderSpec[], values: unknown[]): SQL[] {
  const descending = order[0]!.direction === "desc";
  const column = (at: number) => sql`t.${sql.identifier(order[at]!.column)}`;
  const value = (at: number) =>
    sql`${sql.value(values[at] as string | number | null)}::${attributes[order[at]!.column]!.codec.sqlType}`;
  const compared = (from: number, to: number, operator: SQL): SQL[] => {
    const places = Array.from({ length: to - from }, (_, i) => from + i);
    if (places.length === 0) return [];
    return [sql`(${sql.join(places.map(column), ", ")}) ${operator} (${sql.join(places.map(value), ", ")})`];
  };
  const all = (...parts: SQL[]) => sql.join(parts, " and ");
  const after = (at: number, same: SQL[]): SQL[] => {
    if (at === order.length) return [];
    if (values[at] === null)
      return [
        ...after(at + 1, [...same, sql`${column(at)} is null`]),
        ...(descending ? [all(...same, sql`${column(at)} is not null`)] : []),
      ];
    const next = values.findIndex((each, place) => place > at && each === null);
    const end = next === -1 ? order.length : next;
    const nullable = Array.from({ length: end - at }, (_, i) => at + i).filter(
      (place) => !descending && !attributes[order[place]!.column]!.notNull,
    );
    return [
      all(...same, ...compared(at, end, descending ? sql`<` : sql`>`)),
      ...nullable.map((place) => all(...same, ...compared(at, place, sql`=`), sql`${column(place)} is null`)),
      ...after(end, [...same, ...compared(at, end, sql`=`)]),
    ];
  };
  return after(0, []);
}
