/** What comes after a row of a list, by its order. */
import type { PgCodecAttributes } from "postgraphile/@dataplan/pg";
import { sql, type SQL } from "postgraphile/pg-sql2";
import type { OrderSpec } from "./orders.ts";

/** Whether one comparison of rows can say what comes after one. */
export function isUniform(order: OrderSpec[]): boolean {
  return order.every((spec) => spec.direction === order[0]!.direction);
}

/**
 * That a row comes after the one with these values: one comparison of rows, which an index can begin at, and for each column that may be
 * null a condition of its own, since a comparison says nothing of nulls: ascending they stand last, descending first.
 * @param values of the row that the page comes after, by the columns of the order
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
