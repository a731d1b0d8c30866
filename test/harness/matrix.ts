/** Permissions as a table in the test: a row for each operation, a column for each person, the outcome in the cells. */
import type { Answer, Person } from "./api.ts";
import { mutationOf } from "./records.ts";

/** An operation that is tried. */
export type Operation = (person: Person) => Promise<Answer>;

type Values = Record<string, unknown>;
/** Values, or a function that creates them for each attempt. */
export type Variables = Values | ((person: Person) => Values | Promise<Values>);
const valuesFor = async (person: Person, variables: Variables) =>
  typeof variables === "function" ? variables(person) : variables;

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

/** Abbreviations of codes that are too long for the cells. */
export const shortCodes: Record<string, string> = { FORBIDDEN: "FORBID", UNAUTHENTICATED: "UNAUTH" };

/**
 * The outcome of a response as written in the table: the code of its refusal, `null`, `hidden`, `yes` for a value, the
 * number for a list (`none` for an empty one). All counts of a connection must be equal.
 * @param short abbreviations of codes
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

/** Executes the operation as each person, one after the other. Returns the outcomes by their names. */
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
export function ask(query: string, variables: Variables = {}): Operation {
  return async (person) => person.ask(query, await valuesFor(person, variables));
}

/** Queries a record by its id. Returns a field of it, if one is requested, or `hidden` if the record is not visible. */
export function readById(field: string, id: string, member?: string): Operation {
  return async (person) => {
    const selection = member ? `{ value: ${member} }` : "{ id }";
    const answer = await person.ask(`query ($id: ID!) { ${field}(id: $id) ${selection} }`, { id });
    if (!member || !answer.data) return answer;
    const record = answer.data[field];
    const shown = record?.value === null || Array.isArray(record?.value) ? record.value : "yes";
    return { ...answer, data: { value: record ? shown : "hidden" } };
  };
}

/** Executes a mutation with an input. */
export function mutation(field: string, input: Variables, selection = "{ __typename }"): Operation {
  return async (person) => {
    const answer = await person.ask(mutationOf(field, selection), { input: await valuesFor(person, input) });
    return { ...answer, data: answer.data && { value: "yes" } };
  };
}
