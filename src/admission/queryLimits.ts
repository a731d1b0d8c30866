/** Limits of one operation. Fragments count as often as they are spread. */
export const queryLimits = {
  tokens: 4_000,
  /** Characters. Parsed documents are cached with their text, so large values should be variables. */
  characters: 100_000,
  depth: 12,
  aliases: 30,
  directives: 50,
  selections: 2_000,
  /** Plan steps, see `planningSteps.ts`: a thousand take about 40 ms of the event loop and 5 MB of memory. */
  planning: 1_000,
  /** Expected number of values in the response, see `operationCost.ts`. */
  cost: 1_000_000,
  /** Bytes of the response, and of all rows received for it. A megabyte takes about 25 ms of the event loop. */
  bytes: 3_000_000,
  /**
   * Bytes of the rows that a mutation changes. The database returns them entirely, whatever is selected, and the
   * mutations limit their number.
   */
  changedBytes: 12_000_000,
  /** Nesting depth of braces, brackets and parentheses in the text: protects later recursion from stack overflow. */
  nesting: 200,
  /** Below `__schema` and `__type`; the usual introspection query is 15 levels deep. */
  introspectionDepth: 20,
} as const;

export type QueryLimit = Exclude<keyof typeof queryLimits, "changedBytes">;
