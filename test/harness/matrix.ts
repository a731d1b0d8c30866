/** Permissions as a table in the test itself: operations below each other, people beside each other, what comes of it in the cells. */
import type { Answer, Person } from "./api.ts";
import { mutationOf } from "./records.ts";

/** What somebody tries. */
export type Operation = (person: Person) => Promise<Answer>;

type Values = Record<string, unknown>;
/** Values, or what makes them anew for each try. */
export type Made = Values | ((person: Person) => Values | Promise<Values>);
const valuesFor = async (person: Person, made: Made) => (typeof made === "function" ? made(person) : made);

export interface Row {
  operation: string;
  /** The cells by the names of the people. */
  expected: Record<string, string>;
}

export interface Matrix {
  /** The people, in the order of the cells. */
  names: string[];
  rows: Row[];
}

/** Reads a table whose first line names the people. */
export function readMatrix(text: string): Matrix {
  const [header, ...lines] = text.trim().split("\n");
  const cells = (line: string) => line.split("|").map((cell) => cell.trim());
  const names = cells(header!).filter(Boolean);
  return {
    names,
    rows: lines.map((line) => {
      const [operation, ...expected] = cells(line);
      return {
        operation: operation!,
        expected: Object.fromEntries(names.map((name, i) => [name, expected[i]!])),
      };
    }),
  };
}

/** How tables write the codes that are too long for their cells. */
export const shortCodes: Record<string, string> = { FORBIDDEN: "FORBID", UNAUTHENTICATED: "UNAUTH" };

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

/** Lets all of them try the operation, one after the other: what came of it, by their names. */
export async function outcomes(
  people: Record<string, Person>,
  operation: Operation,
  short?: Record<string, string>,
): Promise<Record<string, string>> {
  const found: Record<string, string> = {};
  for (const [name, person] of Object.entries(people)) found[name] = outcome(await operation(person), short);
  return found;
}

/** Sends a document. */
export function ask(query: string, variables: Made = {}): Operation {
  return async (person) => person.ask(query, await valuesFor(person, variables));
}

/** Looks a record up by its id; gives a member of it where one is asked for, `hidden` where not even the record is seen. */
export function look(field: string, id: string, member?: string): Operation {
  return async (person) => {
    const selection = member ? `{ value: ${member} }` : "{ id }";
    const answer = await person.ask(`query ($id: ID!) { ${field}(id: $id) ${selection} }`, { id });
    if (!member || !answer.data) return answer;
    const record = answer.data[field];
    const shown = record?.value === null || Array.isArray(record?.value) ? record.value : "yes";
    return { ...answer, data: { value: record ? shown : "hidden" } };
  };
}

/** Calls an operation with an input. */
export function mutation(field: string, input: Made, selection = "{ __typename }"): Operation {
  return async (person) => {
    const answer = await person.ask(mutationOf(field, selection), { input: await valuesFor(person, input) });
    return { ...answer, data: answer.data && { value: "yes" } };
  };
}
