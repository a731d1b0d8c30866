/** The beginning of PostGraphile's batched lookups by id. */
const identifiers = /( from json_array_elements\(\$\d+::json\) with ordinality as ids)\)/g;

/**
 * PERF: PostGraphile looks records up in batches, by joining ids from JSON. PostgreSQL flattens that subquery, and
 * under row security an expression that parses JSON, which is not leakproof, cannot be an index condition: the whole
 * table would be read. With OFFSET 0 the ids remain columns, and each record is found by its key.
 *
 * @returns the statement with its batches of ids isolated; any other statement unchanged
 */
export function isolateIds(text: string): string {
  // PERF: most statements have no such batch, and searching for a string is much cheaper than the regular expression.
  if (!text.includes(" with ordinality as ids)")) return text;
  return text.replace(identifiers, "$1 offset 0)");
}
