/** What a look-up of many records by their ids begins with, as PostGraphile writes it. */
const identifiers = /( from json_array_elements\(\$\d+::json\) with ordinality as ids)\)/g;

/**
 * PERF: PostGraphile looks records up in batches, by a join with their ids out of JSON. PostgreSQL merges that subquery into the
 * query, and under row security an expression that takes JSON apart, which is not leakproof, may not reach an index: the whole
 * table would be read. With OFFSET 0 the ids stay columns, and each record is found by its key.
 *
 * @returns the statement with its batches of ids kept apart; any other statement as it is
 */
export function withIdsApart(text: string): string {
  // PERF: most statements have no such batch, and to look for a string takes a fraction of what the expression does.
  if (!text.includes(" with ordinality as ids)")) return text;
  return text.replace(identifiers, "$1 offset 0)");
}
