/** What one operation may have at most. Fragments count as often as they are spread. */
export const queryLimits = {
  tokens: 4_000,
  /** Characters. Parsed documents stay in a cache with their text, so large values belong into variables. */
  characters: 100_000,
  depth: 12,
  aliases: 30,
  directives: 50,
  selections: 2_000,
  /** Steps of the plan, see `planningSteps.ts`: a thousand take about 40 ms of the event loop and 5 MB of memory. */
  planning: 1_000,
  /** Values that the answer can be expected to hold, see `operationCost.ts`. */
  cost: 1_000_000,
  /** Of the answer, and of all rows that the database sends for it. A megabyte takes about 25 ms of the event loop. */
  bytes: 3_000_000,
  /** Of the rows that a mutation changes: the database sends them whole, whatever is selected, and operations bound how many they are. */
  changedBytes: 12_000_000,
  /** Braces, brackets and parentheses inside each other, in the text: keeps every later recursion off the stack's end. */
  nesting: 200,
  /** Below `__schema` and `__type`, where the usual introspection query goes 15 deep. */
  introspectionDepth: 20,
} as const;

export type QueryLimit = Exclude<keyof typeof queryLimits, "changedBytes">;
