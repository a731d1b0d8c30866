/**
 * The fast path for a saved file: the changed statements are applied to the database immediately, in a form that
 * replaces existing objects. It may be inexact, because the whole schema is reconciled afterwards.
 */
import type { Client, DatabaseError } from "pg";
import { noteCurrent, runCurrent } from "../database/current.ts";
import { attempt, runInDependencyOrder, type Step } from "../database/dependencyOrder.ts";
import type { ObjectFile } from "../database/objects.ts";
import { schemaError } from "../database/schemaError.ts";
import type { SqlStatement } from "../database/sqlStatements.ts";
import { dropRemoved, editOf, refersToDropped, type DroppedObjects } from "./editCurrent.ts";
import { attemptReplacing, isCall, undoCall } from "./undoCalls.ts";
import {
  commentTarget,
  grantsOnSame,
  createdObject,
  replacementFor,
  describesObject,
  undoStatement,
  withoutBody,
} from "./statementForms.ts";

/** A saved file, and the texts of its statements when it was last applied. */
export interface ChangedFile {
  file: ObjectFile;
  before: ReadonlySet<string>;
}

/**
 * Whether the change requires rebuilding the API. Bodies of functions, policies and triggers do not: they only exist
 * in PostgreSQL, and take effect with the next request.
 */
export function changesApi(changed: readonly ChangedFile[]): boolean {
  const shown = (texts: Iterable<string>) =>
    [...texts]
      .filter((text) => !["policy", "trigger"].includes(createdObject(text)?.kind ?? ""))
      .map(withoutBody)
      .toSorted()
      .join("\0");
  return changed.some(({ file, before }) => shown(textsOf(file)) !== shown(before));
}

/** The statements of a file. */
export function textsOf({ definitions, rest }: ObjectFile): Set<string> {
  return new Set([...definitions, ...rest].map(({ text }) => text));
}

interface QuickStep extends Step {
  file: ObjectFile;
  statement: SqlStatement;
}

/**
 * SQLSTATEs of errors in the text itself: syntax errors, and unknown names. Others may be caused by the partial
 * update.
 */
const faults = new Set(["42601", "42883", "42P01", "42703", "42704"]);

/** SQLSTATEs of dropping an object that was already dropped with another one. */
const missing = new Set(["42704", "42883", "42P01", "42703"]);

/** The migration that is being written, and the part of it that is applied. */
export interface ChangedCurrent {
  folder: string;
  text: string;
  applied: string;
}

/**
 * Applies the changes of the files, in one transaction.
 * @returns whether it was possible; otherwise nothing was changed
 * @throws SchemaError for an error in a file
 */
export async function applyChanges(
  owner: Client,
  all: readonly ObjectFile[],
  changed: readonly ChangedFile[],
  current: ChangedCurrent,
): Promise<boolean> {
  const edit = editOf(current.text, current.applied);
  if (!edit || changed.some(undoes)) return false;
  const calls = changed.flatMap((change) => lostOf(change).filter(isCall));
  await owner.query(
    "begin; set local lock_timeout = '500ms'; set local client_min_messages = warning; set local check_function_bodies = off",
  );
  try {
    for (const call of calls) if (!(await undoCall(owner, call))) return false;
    const dropped = await dropRemoved(owner, edit);
    if (!dropped) return false;
    await owner.query("set local check_function_bodies = on");
    if (current.text !== current.applied) {
      await runCurrent(owner, current.folder, current.text, edit.kept);
      await noteCurrent(owner, current.text);
    }
    const plans = withUnchanged(changed, dropped, all).map((change) => plan(change, dropped));
    for (const drop of plans.flatMap(({ drops }) => drops)) {
      const error = await attempt(owner, drop);
      // Something else depends on it, or there are two objects of that name.
      if (error && !missing.has(error.code!)) return false;
    }
    for (const part of [plans.flatMap(({ definitions }) => definitions), plans.flatMap(({ rest }) => rest)]) {
      const left = await runInDependencyOrder(
        owner,
        part.map((step) => [step]),
        ({ code }) => faults.has(code!),
        attemptReplacing,
      );
      const failed = left.find(({ error }) => faults.has(error.code!));
      if (failed) throw errorOf(failed.step, failed.error);
      if (left.length > 0) return false;
    }
    await owner.query("commit");
    return true;
  } finally {
    // After a commit there is nothing to roll back, which only causes a warning.
    await owner.query("rollback");
  }
}

/** If something was dropped, other files may have statements about it. */
function withUnchanged(
  changed: readonly ChangedFile[],
  { tables, others }: DroppedObjects,
  all: readonly ObjectFile[],
): ChangedFile[] {
  if (!tables && others.length === 0) return [...changed];
  const paths = new Set(changed.map(({ file }) => file.path));
  const unchanged = all.filter(({ path }) => !paths.has(path));
  return [...changed, ...unchanged.map((file) => ({ file, before: textsOf(file) }))];
}

/** Whether a statement was removed whose effect cannot be reverted here, such as a row. */
function undoes(change: ChangedFile): boolean {
  return leftover(change).some((text) => undoStatement(text) === undefined && !isCall(text));
}

function lostOf({ file, before }: ChangedFile): string[] {
  const now = textsOf(file);
  return [...before].filter((text) => !now.has(text));
}

/**
 * Effects of removed statements that still have to be reverted. Not those on a dropped object, comments that were
 * replaced by others, and grants whose roles now have more.
 */
function leftover({ file, before }: ChangedFile): string[] {
  const now = textsOf(file);
  const lost = [...before].filter((text) => !now.has(text));
  const added = [...now].filter((text) => !before.has(text));
  const gone = lost.flatMap((text) => createdObject(text) ?? []);
  const targets = new Set([...now].map(commentTarget));
  return lost.filter(
    (text) =>
      !createdObject(text) &&
      !gone.some(({ name }) => describesObject(text, name)) &&
      !(commentTarget(text) && targets.has(commentTarget(text))) &&
      !added.some((other) => other.startsWith(`${text.replace(/;$/, "")},`)),
  );
}

/**
 * Plans the changes. Removed statements are reverted. Functions with other arguments or results are recreated with
 * their comments and grants. All other statements are replaced, and so are those about dropped objects.
 */
function plan(change: ChangedFile, dropped: DroppedObjects) {
  const { file, before } = change;
  const undone = leftover(change);
  const now = textsOf(file);
  const added = [...now].filter((text) => !before.has(text)).map(createdObject);
  const lost = [...before].filter((text) => !now.has(text)).flatMap((text) => createdObject(text) ?? []);
  const gone = lost.filter(
    ({ kind, name, shape }) =>
      !added.some((made) => made?.kind === kind && made.name === name && made.shape === shape),
  );
  const remade = gone.filter(({ name }) => added.some((made) => made?.name === name));
  const steps = (statements: readonly SqlStatement[]) =>
    statements
      .filter(
        ({ text }) =>
          !before.has(text) ||
          refersToDropped(text, dropped) ||
          remade.some(({ name }) => describesObject(text, name)) ||
          undone.some((former) => grantsOnSame(former, text)),
      )
      .map((statement): QuickStep => ({ file, statement, sql: replacementFor(statement.text) }));
  return {
    drops: [
      ...gone.filter(({ name }) => !dropped.others.includes(name)).map(({ drop }) => drop),
      ...undone
        .filter((text) => !refersToDropped(text, dropped))
        .flatMap((text) => undoStatement(text) ?? []),
    ],
    definitions: steps(file.definitions),
    rest: steps(file.rest),
  };
}

/** Positions in errors of PostgreSQL refer to the text that was sent. */
function errorOf({ file, statement, sql }: QuickStep, error: DatabaseError): Error {
  const added = sql.length - statement.text.length;
  const position = Number(error.position);
  if (position > 0) error.position = String(Math.max(1, position - added));
  return schemaError(file, statement, error, bodyOffset(statement.text, error));
}

/** An error in a function's body is reported with its position in the body. */
function bodyOffset(
  text: string,
  { position, internalPosition, internalQuery }: DatabaseError,
): number | undefined {
  if (position || !internalPosition || !internalQuery) return undefined;
  const at = text.indexOf(internalQuery);
  return at < 0 ? undefined : at + Number(internalPosition) - 1;
}
