/** Page and order of a list. */
import { CodedError } from "../base/errors.ts";
import type { AnyResource } from "../schema/recordTables.ts";
import { defaultOrder, sorts, total, type OrderSpec } from "./orders.ts";

export const MAX_FIRST = 1000;

/** `first` of a list: defaults if omitted, refused if negative or above the maximum. */
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

export function skip(offset: unknown): number {
  if (offset === null || offset === undefined) return 0;
  if ((offset as number) < 0)
    throw new CodedError("BAD_USER_INPUT", "offset is zero or more.", { field: "offset" });
  return offset as number;
}

export function chosenOrder(resource: AnyResource, orderBy: unknown, sort: unknown): OrderSpec[] {
  if (Array.isArray(orderBy) && orderBy.length > 0) return total(orderBy as OrderSpec[]);
  if (typeof sort === "string") {
    const order = sorts(resource).get(sort);
    if (order) return order;
  }
  return defaultOrder(resource);
}
