import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Finding } from "./rule.ts";
import { filesBelow, repository } from "./sources.ts";

/** One file of migrations/. */
export interface SqlFile {
  /** Relative to the repository. */
  path: string;
  text: string;
}

/** The SQL files below migrations/. */
export async function readSqlFiles(): Promise<SqlFile[]> {
  const paths = await filesBelow("migrations", /\.sql$/);
  return Promise.all(
    paths.map(async (path) => ({ path, text: await readFile(join(repository, path), "utf8") })),
  );
}

const longest = 120;

/** The finding of a line, if any. */
function lineRules(line: string): Pick<Finding, "rule" | "write">[] {
  const found: Pick<Finding, "rule" | "write">[] = [];
  const length = [...line].length;
  if (length > longest)
    found.push({ rule: "file-width", write: `Break the line: it has ${length} columns of ${longest}.` });
  if (line.includes("\t")) found.push({ rule: "file-tab", write: "Replace the tab by two spaces." });
  if (/\s$/.test(line)) found.push({ rule: "file-trailing-space", write: "Remove the trailing space." });
  return found;
}

/** `create function` without immutable, stable or volatile. */
const definition =
  /^create (?:or replace )?(function|procedure|view|table|domain|type|policy|trigger|(?:unique )?index) (?:if not exists )?("?[\w.%]+"?)([^]*?);/gim;

/**
 * Format of the SQL files: width, tabs, implicit volatility, duplicate definitions, and enumerations without descriptions.
 * The catalog contains none of this.
 */
export function checkFiles(files: readonly SqlFile[]): Finding[] {
  const findings: Finding[] = [];
  const places = new Map<string, string>();
  for (const { path, text } of files) {
    for (const [index, line] of text.split("\n").entries())
      for (const found of lineRules(line)) findings.push({ ...found, object: `${path}:${index + 1}` });
    // The upgrade from the schema before the baseline repeats what a new database gets from elsewhere.
    if (path === "migrations/baseline.sql") continue;
    for (const { kind, name, signature, head, index } of definitions(text)) {
      const place = `${path}:${text.slice(0, index).split("\n").length}`;
      const object = `${kind} ${name}${signature}`;
      const first = places.get(object);
      // A committed migration is never edited: a later one replaces its function.
      const replaces =
        isChain(path) &&
        first !== undefined &&
        isChain(first) &&
        /^create or replace/i.test(text.slice(index));
      if (first === undefined || replaces) places.set(object, place);
      else
        findings.push({
          rule: "object-twice",
          object: place,
          write: `Edit ${object} in ${first} instead of declaring it again.`,
        });
      if (kind === "function" && !/\b(immutable|stable|volatile)\b/i.test(head))
        findings.push({
          rule: "function-volatility",
          object: place,
          write: `Write immutable, stable or volatile after the language of ${name}; do not rely on the default.`,
        });
    }
  }
  return [...findings, ...undescribedEnums(files)];
}

/** Enumerations that a migration creates, and no file of objects describes. */
function undescribedEnums(files: readonly SqlFile[]): Finding[] {
  const calls = (name: string, inChain: boolean) =>
    files
      .filter(({ path }) => isChain(path) === inChain)
      .flatMap(({ path, text }) =>
        [...text.matchAll(new RegExp(`^select app_private\\.${name}\\('(\\w+)'`, "gm"))].map((match) => ({
          enumeration: match[1]!,
          place: `${path}:${text.slice(0, match.index).split("\n").length}`,
        })),
      );
  const described = new Set(calls("describe_enum", false).map(({ enumeration }) => enumeration));
  return calls("create_enum", true)
    .filter(({ enumeration }) => !described.has(enumeration))
    .map(({ enumeration, place }) => ({
      rule: "enum-described",
      object: place,
      write: `Describe it in migrations/objects: \`select app_private.describe_enum('${enumeration}', …);\`.`,
    }));
}

const isChain = (place: string) => /^migrations\/(committed\/|current\.sql)/.test(place);

interface Definition {
  kind: string;
  name: string;
  /** The arguments of a function, the table of a policy or trigger. */
  signature: string;
  /** The text before its body. */
  head: string;
  index: number;
}

/** Definitions at the beginning of a line; those of generators are in strings, indented. */
function* definitions(text: string): Generator<Definition> {
  for (const match of text.matchAll(definition)) {
    const kind = match[1]!.toLowerCase();
    const rest = match[3]!;
    const head = rest.split(/\bas\s+(?:\$|')/i)[0]!;
    yield {
      kind,
      name: match[2]!,
      signature: signatureOf(kind, rest),
      head,
      index: match.index,
    };
  }
}

function signatureOf(kind: string, rest: string): string {
  if (kind === "function" || kind === "procedure") {
    const types = parenthesized(rest)
      .split(",")
      .map((argument) =>
        argument
          .trim()
          .replace(/\s+(default|=)\s.*$/is, "")
          .replace(/\s+/g, " "),
      );
    return `(${types.join(", ")})`;
  }
  if (kind === "policy" || kind === "trigger") return ` on ${/\son\s+([\w.]+)/i.exec(rest)?.[1] ?? ""}`;
  return "";
}

/** The text between the first parenthesis and its counterpart. */
function parenthesized(text: string): string {
  const start = text.indexOf("(");
  if (start < 0) return "";
  let depth = 0;
  for (let at = start; at < text.length; at++) {
    if (text[at] === "(") depth++;
    if (text[at] === ")" && --depth === 0) return text.slice(start + 1, at);
  }
  return text.slice(start + 1);
}
