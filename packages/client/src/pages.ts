/** Reads lists to their end. */
import { PlatError } from "./errors.ts";

interface Connection {
  readonly nodes?: readonly unknown[] | null;
  readonly edges?: readonly { readonly node: unknown }[] | null;
  readonly pageInfo?: { readonly hasNextPage: boolean; readonly endCursor?: string | null } | null;
}

type Values<T> = T[keyof T];

/** The type of an item of the list or connection in a result. */
export type Item<Result> = Values<{
  [Key in keyof Result]: NonNullable<Result[Key]> extends readonly (infer One)[]
    ? One
    : NonNullable<Result[Key]> extends { readonly nodes?: readonly (infer One)[] | null }
      ? One
      : NonNullable<Result[Key]> extends { readonly edges?: readonly { readonly node: infer One }[] | null }
        ? One
        : never;
}>;

/** Default number of items of a page. */
const DEFAULT_SIZE = 100;

/**
 * The pages of a list, each read on demand: by cursor if the answer has a `pageInfo`, otherwise by offset.
 * @param ask sends the operation with these variables
 */
export async function* pagesOf<Result extends object>(
  ask: (variables: Record<string, unknown>) => Promise<Result>,
  variables: Record<string, unknown>,
): AsyncGenerator<Item<Result>[], void, undefined> {
  const first = Number(variables["first"] ?? DEFAULT_SIZE);
  let place: Record<string, unknown> = {};
  let offset = Number(variables["offset"] ?? 0);
  for (;;) {
    const result = await ask({ ...variables, first, ...place });
    const found = Object.values(result).find((value) => value !== null && typeof value === "object");
    if (!found) return;
    if (Array.isArray(found)) {
      if (found.length > 0) yield found as Item<Result>[];
      if (found.length < first) return;
      offset += found.length;
      place = { offset };
    } else {
      const { nodes, edges, pageInfo } = found as Connection;
      const items = nodes ?? edges?.map(({ node }) => node) ?? [];
      if (items.length > 0) yield items as Item<Result>[];
      if (!pageInfo)
        throw new PlatError(
          "UNEXPECTED_ANSWER",
          "Select pageInfo { hasNextPage endCursor } to read the pages.",
        );
      if (!pageInfo.hasNextPage) return;
      if (!pageInfo.endCursor)
        throw new PlatError("UNEXPECTED_ANSWER", "Select endCursor in pageInfo to read the next page.");
      place = { after: pageInfo.endCursor };
    }
  }
}
