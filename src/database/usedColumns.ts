/**
 * The rows of lists and aggregates, reduced to the columns that the statement uses.
 *
 * PERF: PostgreSQL does not merge the parts of a UNION ALL over a table with row-level security into the statement. It
 * replaces columns that nobody uses with NULL, but still writes each of them, a hundred for a lead, for every row and
 * part. Without them, a page of 50 leads takes two thirds of the time, and so does counting. The stack knows the
 * columns only when the subquery is written, so src/lists/portfolio.ts marks their place. Values of users are
 * parameters, never part of the text.
 */
const BEGIN = "(/* rows */";
const END = "/* end of rows */) as ";
const COLUMNS = "/* used columns */ t.*";
/** Subqueries with their alias. They are not nested. */
const subqueries = /\(\/\* rows \*\/([^]*?)\/\* end of rows \*\/\) as (\w+)/g;
/** The rows of all parts within such a subquery, as their order uses them. */
const MERGED = '"u"';

/** Statements and their rewritten text. They are few: a list has one for each of its forms. */
const known = new Map<string, string>();
const MOST_CHARACTERS = 4_000_000;
let characters = 0;

/** @returns the statement with these columns; any other statement unchanged, as are subqueries used as entire rows */
export function withUsedColumns(text: string): string {
  const found = known.get(text);
  if (found !== undefined) return found;
  if (!text.includes(END)) return text;
  const rewritten = text.replace(subqueries, (subquery: string, body: string, alias: string) => {
    if (body.includes(BEGIN)) return subquery;
    const ofAlias = columnsOf(text, alias);
    const ofOrder = columnsOf(body, MERGED);
    // Besides columns, the alias only occurs where it is given.
    if (ofAlias.columns.length === 0 || ofAlias.entireRows > 1 || ofOrder.entireRows > 0) return subquery;
    const columns = [...new Set([...ofAlias.columns, ...ofOrder.columns])];
    return subquery.replaceAll(COLUMNS, columns.map((column) => `t."${column}"`).join(", "));
  });
  characters += 2 * text.length;
  if (characters > MOST_CHARACTERS) {
    known.clear();
    characters = 2 * text.length;
  }
  known.set(text, rewritten);
  return rewritten;
}

/** The columns of an alias that a text uses, and the number of its other occurrences. */
function columnsOf(text: string, alias: string): { columns: string[]; entireRows: number } {
  const uses = [...text.matchAll(new RegExp(String.raw`(?<!\w)${alias}(?!\w)(?:\."?(\w+))?`, "g"))];
  const columns = uses.flatMap(([, column]) => column ?? []);
  return { columns, entireRows: uses.length - columns.length };
}
