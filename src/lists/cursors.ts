/** Cursors of connections. A cursor contains the values of the sort columns of its record. */
import type { PgCodecAttributes } from "postgraphile/@dataplan/pg";
import type { OrderSpec } from "./orders.ts";

/** The values of an order in a cursor; null for an invalid cursor, which the connection refuses. */
export function cursorValues(
  cursor: unknown,
  order: OrderSpec[],
  attributes: PgCodecAttributes,
): unknown[] | null {
  if (typeof cursor !== "string") return null;
  // If a column is nullable, a null flag precedes its value.
  const nullable = order.map(({ column, by }) => !by && !attributes[column]?.notNull);
  try {
    const parsed: unknown = JSON.parse(Buffer.from(cursor, "base64").toString("utf8"));
    const length = 1 + nullable.length + nullable.filter(Boolean).length;
    if (!Array.isArray(parsed) || parsed.length !== length) return null;
    let at = 0;
    return nullable.map((isNullable) => parsed[(at += isNullable ? 2 : 1)] as unknown);
  } catch {
    return null;
  }
}
