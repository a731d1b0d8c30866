import { queryLimits } from "../admission/queryLimits.ts";
import { markdownTable } from "./markdownTable.ts";

const descriptions: Record<keyof typeof queryLimits, string> = {
  characters: "Characters of the document. Large values go into variables.",
  tokens: "Tokens of the document.",
  nesting: "Braces, brackets and parentheses inside each other.",
  depth: "Levels of fields below the operation.",
  introspectionDepth: "Levels below `__schema` and `__type`.",
  selections: "Fields and fragments, counted as often as they are spread.",
  aliases: "Aliases.",
  directives: "Directives.",
  planning:
    "Steps of the plan: 1 for each value, 12 for each record or list, 19 for each connection, 20 for each mutation, 9 for each type that a union can be.",
  cost: "Values that the answer is expected to hold; see below.",
  bytes: "Bytes of the answer, and of all rows that are read for it.",
  changedBytes: "Bytes of the rows that a mutation changes, in place of those that are read.",
};

/** Limits of one operation as a Markdown table. */
export const queryLimitsTable = (): string =>
  markdownTable(
    ["Limit", "At most", "Of one operation"],
    Object.entries(descriptions).map(([name, description]) => [
      `\`${name}\``,
      queryLimits[name as keyof typeof queryLimits].toLocaleString("en"),
      description,
    ]),
  );
