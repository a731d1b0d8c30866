/**
 * The short way for a saved file: the statements that changed are applied to the database at once, in a form that replaces
 * what is there. It need not be exact, since the whole schema is reconciled afterwards.
 */
import type { Client, DatabaseError } from "pg";
import { noteCurrent, onlyAdds, runCurrent } from "../database/current.ts";
import { runInFoundOrder, type Step } from "../database/foundOrder.ts";
import type { ObjectFile } from "../database/objects.ts";
import { schemaError } from "../database/schemaError.ts";
import type { SqlStatement } from "../database/sqlStatements.ts";

/** A file that was saved, and the texts of the statements that it had when it was last applied. */
export interface ChangedFile {
  file: ObjectFile;
  before: ReadonlySet<string>;
}

/**
 * Whether the API has to be built anew for what changed. Not for the body of a function, a policy or a trigger: these are
 * PostgreSQL's own affair, and hold from the next request on.
 */
export function changesApi(changed: readonly ChangedFile[]): boolean {
  return changed.some(({ file, before }) => {
    const frames = new Set([...before].map(frame));
    return [...file.definitions, ...file.rest].some(
      ({ text }) =>
        !before.has(text) &&
        !/^create\s+(?:policy|(?:constraint\s+)?trigger)\b/i.test(text) &&
        !frames.has(frame(text)),
    );
  });
}

/** A function without its body; any other statement as it is. */
function frame(text: string): string {
  const body = /^create\s[^]*?\bas\s+(\$\w*\$)([^]*)\1/i.exec(text);
  return body && /^create\s+(?:or\s+replace\s+)?(?:function|procedure)\b/i.test(text)
    ? text.replace(body[2]!, () => "")
    : text;
}

interface QuickStep extends Step {
  file: ObjectFile;
  statement: SqlStatement;
}

/** A fault of the text itself: syntax, or a name that is nowhere. Anything else may be for want of the whole. */
const faults = new Set(["42601", "42883", "42P01", "42703", "42704"]);

/** The migration that is being written, and what of it the database has. */
export interface ChangedCurrent {
  folder: string;
  text: string;
  applied: string;
}

/**
 * Applies what is new in the files, in one transaction.
 * @returns whether it could be done; nothing was changed otherwise.
 * @throws SchemaError for a fault in a file.
 */
export async function applyChanges(
  owner: Client,
  changed: readonly ChangedFile[],
  current: ChangedCurrent,
): Promise<boolean> {
  if (!onlyAdds(current.text, current.applied)) return false;
  const steps = (part: "definitions" | "rest") =>
    changed.flatMap(({ file, before }) =>
      file[part].filter(({ text }) => !before.has(text)).map((statement) => quickStep(file, statement)),
    );
  await owner.query("begin; set local lock_timeout = '500ms'; set local client_min_messages = warning");
  try {
    if (current.text !== current.applied) {
      await runCurrent(owner, current.folder, current.text, current.applied);
      await noteCurrent(owner, current.text);
    }
    for (const part of [steps("definitions"), steps("rest")]) {
      const left = await runInFoundOrder(
        owner,
        part.map((step) => [step]),
        ({ code }) => faults.has(code!),
      );
      const failed = left.find(({ error }) => faults.has(error.code!));
      if (failed) throw errorOf(failed.step, failed.error);
      if (left.length > 0) return false;
    }
    await owner.query("commit");
    return true;
  } finally {
    // After a commit there is nothing to roll back, and the server only says so.
    await owner.query("rollback");
  }
}

function quickStep(file: ObjectFile, statement: SqlStatement): QuickStep {
  const { text } = statement;
  const replaceable = /^create\s+(?:or\s+replace\s+)?(?=(?:function|procedure|view|aggregate)\b)/i;
  if (replaceable.test(text))
    return { file, statement, sql: text.replace(replaceable, "create or replace ") };
  return { file, statement, sql: dropBefore(text) + text };
}

const name = String.raw`((?:"[^"]+"|[\w.])+)`;
const policy = new RegExp(String.raw`^create\s+policy\s+${name}\s+on\s+${name}`, "i");
const trigger = new RegExp(
  String.raw`^create\s+(?:or\s+replace\s+)?(?:constraint\s+)?trigger\s+${name}\s[^]*?\son\s+${name}`,
  "i",
);

function dropBefore(text: string): string {
  for (const [word, pattern] of [
    ["policy", policy],
    ["trigger", trigger],
  ] as const) {
    const found = pattern.exec(text);
    if (found) return `drop ${word} if exists ${found[1]} on ${found[2]}; `;
  }
  return "";
}

/** PostgreSQL counts in what it was sent. */
function errorOf({ file, statement, sql }: QuickStep, error: DatabaseError): Error {
  const added = sql.length - statement.text.length;
  const position = Number(error.position);
  if (position > 0) error.position = String(Math.max(1, position - added));
  return schemaError(file, statement, error, bodyOffset(statement.text, error));
}

/** A fault in a function's body is told with its place in the body. */
function bodyOffset(
  text: string,
  { position, internalPosition, internalQuery }: DatabaseError,
): number | undefined {
  if (position || !internalPosition || !internalQuery) return undefined;
  const at = text.indexOf(internalQuery);
  return at < 0 ? undefined : at + Number(internalPosition) - 1;
}
