/** Permissions as a table in the test itself: operations below each other, people beside each other, what comes of it in the cells. */
import type { Answer } from "./api.ts";

export interface Matrix {
  /** The people, in the order of the cells. */
  names: string[];
  rows: { operation: string; expected: string[] }[];
}

/** Reads a table whose first line names the people. */
export function readMatrix(text: string): Matrix {
  const [header, ...lines] = text.trim().split("\n");
  const cells = (line: string) => line.split("|").map((cell) => cell.trim());
  return {
    names: cells(header!).filter(Boolean),
    rows: lines.map((line) => ({ operation: cells(line)[0]!, expected: cells(line).slice(1) })),
  };
}

/**
 * What an answer amounts to, in the words of a table: the code of its refusal, `null`, `hidden`, `yes` for a value, how many
 * for a list (`none` for an empty one). A connection has to count the same in all its ways.
 * @param short how the table writes a code.
 */
export function outcome(answer: Answer, short: Record<string, string> = {}): string {
  const code = answer.errors?.[0]?.extensions.code;
  if (code) return short[code] ?? code;
  const [value] = Object.values(answer.data) as any[];
  if (value === null || value === "hidden") return String(value);
  if (Array.isArray(value)) return String(value.length || "none");
  if (typeof value.totalCount !== "number") return "yes";
  const counts = new Set<number>([value.totalCount, value.nodes.length]);
  if (value.aggregates) counts.add(Number(value.aggregates.distinctCount.id));
  if (value.groupedAggregates)
    counts.add(
      value.groupedAggregates.reduce((sum: number, group: any) => sum + Number(group.distinctCount.id), 0),
    );
  return counts.size === 1 ? String([...counts][0] || "none") : `counts differ: ${[...counts].join(", ")}`;
}
