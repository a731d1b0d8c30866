/**
 * Facts of the reference that are not in the schema: permissions, states and codes from the guides, and examples with
 * their responses.
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { repository } from "./guides.ts";
import { examples, type Example } from "./examples.ts";

export interface Facts {
  /** Permissions by mutation, as Markdown. */
  permissions: Record<string, string[]>;
  /** Transitions by record type: those by viewers, and those by the service. */
  states: Record<string, { from: string; byHand: string[]; byService: string[] }[]>;
  errors: { code: string; status: string; when: string }[];
  /** Examples of the explorer have a domain. */
  examples: ((Example | OperationExample) & Partial<Recorded>)[];
}

/** Results of an example, recorded by the tests. */
export interface Recorded {
  answer: unknown;
  /** Types of the events that it caused. */
  events: string[];
}

/**
 * An example of an operation that examples.ts does not show, found by the tests. All of them are in
 * docs/operation-examples.json.
 */
export type OperationExample = Omit<Example, "domain"> & { domain?: undefined };

/** The rows of the first table of a text. */
function rowsOf(text: string): string[][] {
  const lines = text.split("\n");
  const rule = lines.findIndex((line) => /^\|[ :|-]+\|$/.test(line));
  const end = lines.findIndex((line, index) => index > rule && !line.startsWith("|"));
  return lines.slice(rule + 1, end < 0 ? undefined : end).map((line) =>
    line
      .split("|")
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
}

const bare = (text: string) => text.replaceAll("`", "");
const listed = (text = "") => (text === "–" || text === "" ? [] : text.split(", "));

/** Reads the generated tables and recorded examples in docs/. @throws Error if a file is missing */
export async function readFacts(): Promise<Facts> {
  const [mutations, states, errors, recorded, found] = await Promise.all(
    [
      "docs/mutations.md",
      "docs/states.md",
      "docs/errors.md",
      "docs/examples.json",
      "docs/operation-examples.json",
    ].map((file) => readFile(join(repository, file), "utf8")),
  );
  const permissions: Facts["permissions"] = {};
  for (const [name = "", takes = ""] of rowsOf(mutations!)) (permissions[bare(name)] ??= []).push(takes);
  const machines = states!.split(/^## /m).slice(1);
  const known = JSON.parse(recorded!) as Record<string, Recorded>;
  return {
    permissions,
    states: Object.fromEntries(
      machines.map((text) => [
        text.slice(0, text.indexOf("\n")),
        rowsOf(text).map(([from = "", byHand, byService]) => ({
          from,
          byHand: listed(byHand),
          byService: listed(byService),
        })),
      ]),
    ),
    errors: rowsOf(errors!.slice(errors!.indexOf("<!-- errors -->"))).map(
      ([code = "", status = "", when = ""]) => ({ code: bare(code), status, when }),
    ),
    examples: [
      ...examples.map((example) => ({ ...example, ...known[example.name] })),
      ...(JSON.parse(found!) as (OperationExample & Recorded)[]),
    ],
  };
}
