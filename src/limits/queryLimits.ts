/** What one operation may have at most. Fragments count as often as they are spread. */
export const queryLimits = {
  tokens: 4_000,
  /** Characters. Parsed documents stay in a cache with their text, so large values belong into variables. */
  characters: 100_000,
  depth: 12,
  aliases: 30,
  directives: 50,
  selections: 2_000,
  /** See `operationCost.ts`. */
  cost: 2_000_000,
  /** Braces, brackets and parentheses inside each other, in the text: keeps every later recursion off the stack's end. */
  nesting: 200,
  /** Below `__schema` and `__type`, where the usual introspection query goes 15 deep. */
  introspectionDepth: 20,
} as const;

export type QueryLimit = keyof typeof queryLimits;
