/**
 * The replaceable objects of the schema: functions, views, policies, triggers, grants, comments, and the rows that
 * their generators write. Each is declared once, in a file below migrations/objects, and edited in place.
 */
import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { join, sep } from "node:path";
import type { ClientBase, DatabaseError } from "pg";
import { migrationsFolder } from "./committed.ts";
import { attempt, runInDependencyOrder, type FailedStep, type Step } from "./dependencyOrder.ts";
import { schemaError, type SchemaError, type SqlFile } from "./schemaError.ts";
import { splitStatements, type SqlStatement } from "./sqlStatements.ts";
import { validateFunctions } from "./validateFunctions.ts";

/** A parsed file of replaceable objects. */
export interface ObjectFile extends SqlFile {
  /** The folder below `objects` that contains it. */
  area: string;
  /** Functions, procedures, aggregates, views and types, on which other statements depend. */
  definitions: SqlStatement[];
  /** All other statements, in order. */
  rest: SqlStatement[];
}

export interface ApplyOptions {
  /** Folder that contains `objects`. Default: that of the project. */
  folder?: string;
  /** Whether function bodies are checked too. */
  validate?: boolean;
  /**
   * Called when everything that the API shows is created and committed; the triggers in the area `99-triggers` follow
   * in a transaction of their own.
   */
  shown?: () => void;
}

export interface Applied {
  /** Tables of our schemas that got rows, as `schema.table`. */
  declaredTables: string[];
  statements: number;
}

interface ObjectStep extends Step {
  file: ObjectFile;
  isDefinition: boolean;
  statements: SqlStatement[];
}

/** The area of objects derived from all tables, which the API never shows. */
const triggers = "99-triggers";

const definition = /^create\s+(?:or\s+replace\s+)?(?:function|procedure|view|type|aggregate)\b/i;

/** Failures because of a missing function, table, type, column, schema or row, which another statement may create. */
const missing = new Set(["42883", "42P01", "42704", "42703", "3F000", "23503"]);

/** Files as last read. PERF: watch mode reads them several times after each save. */
const known = new Map<string, ObjectFile>();

/** Files below migrations/objects, in path order. */
export async function readObjects(folder = migrationsFolder): Promise<ObjectFile[]> {
  const root = join(folder, "objects");
  const names = await readdir(root, { recursive: true }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "ENOENT") throw error;
    return [];
  });
  const files = names.filter((name) => name.endsWith(".sql")).toSorted();
  return await Promise.all(
    files.map(async (name) => {
      const path = join(root, name);
      const text = await readFile(path, "utf8");
      const before = known.get(path);
      if (before?.text === text) return before;
      const statements = splitStatements(text);
      const isDefinition = (statement: SqlStatement) => definition.test(statement.text);
      const file: ObjectFile = {
        path,
        text,
        area: name.includes(sep) ? name.split(sep)[0]! : "",
        definitions: statements.filter(isDefinition),
        rest: statements.filter((statement) => !isDefinition(statement)),
      };
      known.set(path, file);
      return file;
    }),
  );
}

/**
 * Hash of the replaceable objects and committed migrations: what the database should contain.
 * @param current text of current.sql, if it counts.
 */
export async function schemaHash(folder = migrationsFolder, current = ""): Promise<string> {
  const sum = createHash("sha256").update(current);
  for (const area of ["committed", "objects"]) {
    const names = await readdir(join(folder, area), { recursive: true }).catch(() => []);
    const files = names.filter((name) => name.endsWith(".sql")).toSorted();
    const texts = await Promise.all(files.map((name) => readFile(join(folder, area, name))));
    files.forEach((name, index) =>
      sum.update(`${area}/${name.split(sep).join("/")}\0${texts[index]!.length}\0`).update(texts[index]!),
    );
  }
  return `sha256:${sum.digest("hex")}`;
}

/**
 * Runs all files of replaceable objects on a database that has the migrations and none of the objects, inside the
 * open transaction. First all definitions, then the other statements: areas in order of name and, within an area, in
 * an order found by trial, so that a file can use what a later one creates.
 * @param client the owner's connection, in a transaction that has written no rows yet, since their tables would
 * count.
 * @throws SchemaError with file, line and column.
 */
export async function applyObjects(
  client: ClientBase,
  { folder = migrationsFolder, validate = false, shown }: ApplyOptions = {},
): Promise<Applied> {
  const files = await readObjects(folder);
  const settings = "set local check_function_bodies = off; set local client_min_messages = warning";
  await client.query(settings);
  let late = await run(
    client,
    files.map((file) => file.definitions.map((statement) => step(file, [statement], true))),
  );
  const declaredTables = new Set<string>();
  for (const area of new Set(files.map((file) => file.area))) {
    // The error of a definition that waits may be reported.
    if (area === triggers && shown && late.length === 0) {
      for (const table of await writtenTables(client)) declaredTables.add(table);
      await client.query("commit");
      shown();
      await client.query(`begin; ${settings}`);
      shown = undefined;
    }
    const rest = files
      .filter((file) => file.area === area && file.rest.length > 0)
      .map((file) => [step(file, file.rest, false)]);
    // A definition may need the output of a generator.
    const left = await run(client, [...late.map((failed) => [failed.step]), ...rest]);
    const failed = left.filter((one) => !one.step.isDefinition || !mayWait(one.error));
    if (failed.length > 0) throw await culprit(client, failed);
    late = left;
  }
  if (late.length > 0) throw await culprit(client, late);
  if (validate) await validateFunctions(client, files);
  for (const table of await writtenTables(client)) declaredTables.add(table);
  if (shown) {
    await client.query("commit");
    shown();
    await client.query("begin");
  }
  return {
    declaredTables: [...declaredTables].toSorted(),
    statements: files.reduce((sum, file) => sum + file.definitions.length + file.rest.length, 0),
  };
}

function step(file: ObjectFile, statements: SqlStatement[], isDefinition: boolean): ObjectStep {
  return { sql: statements.map(({ text }) => text).join("\n"), file, statements, isDefinition };
}

function run(client: ClientBase, groups: ObjectStep[][]): Promise<FailedStep<ObjectStep>[]> {
  return runInDependencyOrder(client, groups, mayWait);
}

/** Objects that others miss are created by the statement that is itself wrong. */
async function culprit(client: ClientBase, failed: FailedStep<ObjectStep>[]): Promise<SchemaError> {
  return await located(client, failed.find(({ error }) => !missing.has(error.code!)) ?? failed[0]!);
}

/** Anything that a generator reads may come from another file, so only syntax errors are certain. */
function mayWait({ code }: DatabaseError): boolean {
  return code !== "42601";
}

/** Finds the failing statement by running them one by one. */
async function located(client: ClientBase, failed: FailedStep<ObjectStep>): Promise<SchemaError> {
  const { file, statements } = failed.step;
  for (const statement of statements) {
    const failure = await attempt(client, statement.text);
    if (failure) return schemaError(file, statement, failure);
  }
  return schemaError(file, statements[0]!, failed.error);
}

async function writtenTables(client: ClientBase): Promise<string[]> {
  const { rows } = await client.query<{ name: string }>(`
    select format('%I.%I', schemaname, relname) as name from pg_stat_xact_user_tables
    where schemaname in ('app_public', 'app_hidden', 'app_private') and n_tup_ins + n_tup_upd + n_tup_del > 0
    order by 1`);
  return rows.map(({ name }) => name);
}
