/** Page and order of a list. */
import { CodedError } from "../base/errors.ts";
import type { AnyResource } from "../schema/recordTables.ts";
import { defaultOrder, sorts, total, type OrderSpec } from "./orders.ts";

export const MAX_FIRST = 1000;

/** `first` of a list: defaults if omitted, refused if negative or above the maximum. */
export function pageSize(first: unknown, fallback: number): number {
  if (first === null || first === undefined) return fallback;
  return checked(first as number, {
    field: "first",
    negative: "first is zero or more.",
    excessive: `first is ${MAX_FIRST} at most; take further records with offset or after.`,
  });
}

/** `last` of a connection. */
function lastSize(last: number): number {
  return checked(last, {
    field: "last",
    negative: "last is zero or more.",
    excessive: `last is ${MAX_FIRST} at most; take further records with before.`,
  });
}

function checked(size: number, refusals: { field: string; negative: string; excessive: string }): number {
  const { field, negative, excessive } = refusals;
  if (size < 0) throw new CodedError("BAD_USER_INPUT", negative, { field });
  if (size > MAX_FIRST) throw new CodedError("LIMIT_EXCEEDED", excessive, { field, limit: MAX_FIRST });
  return size;
}

/** The number of records to skip. @throws CodedError BAD_USER_INPUT for a negative number */
export function skip(offset: unknown): number {
  if (offset === null || offset === undefined) return 0;
  if ((offset as number) < 0)
    throw new CodedError("BAD_USER_INPUT", "offset is zero or more.", { field: "offset" });
  return offset as number;
}

/** The order of a list: `orderBy` has precedence over `sort`; without either, the default of the table. */
export function chosenOrder(resource: AnyResource, orderBy: unknown, sort: unknown): OrderSpec[] {
  if (Array.isArray(orderBy) && orderBy.length > 0) return total(orderBy as OrderSpec[]);
  if (typeof sort === "string") {
    const order = sorts(resource).get(sort);
    if (order) return order;
  }
  return defaultOrder(resource);
}

/** The pages of a connection that goes both ways: without either size, the first records. */
export function pageSizes(first: unknown, last: unknown): { first: number | null; last: number | null } {
  const backwards = last !== null && last !== undefined;
  const forwards = first !== null && first !== undefined;
  return {
    first: backwards && !forwards ? null : pageSize(first, 100),
    last: backwards ? lastSize(last as number) : null,
  };
}
