/**
 * The rows that aggregates read, reduced to the columns that the statement uses.
 *
 * PERF: PostgreSQL does not merge the parts of a UNION ALL over a table with row-level security into the statement. It
 * replaces columns that nobody uses with NULL, but still writes each of them, a hundred for a lead, for every row and
 * part; without them, counting takes two thirds of the time. The stack knows the columns only when the subquery is
 * written, so src/lists/portfolio.ts marks their place. Values of users are parameters, never part of the text.
 */
const END = "/* end of rows */) as ";
const COLUMNS = "/* used columns */ t.*";
/** The alias of the subquery. */
const aliases = /\/\* end of rows \*\/\) as (\w+)/g;

/** @returns the statement with these columns; any other statement, or one that uses entire rows, unchanged */
export function withUsedColumns(text: string): string {
  if (!text.includes(END)) return text;
  const [alias, ...others] = [...text.matchAll(aliases)].map(([, name]) => name!);
  if (alias === undefined || others.length > 0) return text;
  const uses = [...text.matchAll(new RegExp(String.raw`\b${alias}\b(?:\."?(\w+))?`, "g"))];
  const columns = new Set(uses.flatMap(([, column]) => column ?? []));
  // Besides columns, it only occurs where it is given.
  if (columns.size === 0 || uses.filter(([, column]) => column === undefined).length > 1) return text;
  return text.replaceAll(COLUMNS, [...columns].map((column) => `t."${column}"`).join(", "));
}
