/**
 * The replaceable objects of the schema: functions, views, policies, triggers, grants, comments, and the rows that
 * generators of them write. Each stands once, in a file below migrations/objects, and is edited in place.
 */
import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { join, sep } from "node:path";
import type { ClientBase, DatabaseError } from "pg";
import { migrationsFolder } from "./committed.ts";
import { attempt, runInFoundOrder, type FailedStep, type Step } from "./foundOrder.ts";
import { schemaError, type SchemaError, type SqlFile } from "./schemaError.ts";
import { splitStatements, type SqlStatement } from "./sqlStatements.ts";
import { validateFunctions } from "./validateFunctions.ts";

/** A file of replaceable objects, taken apart. */
export interface ObjectFile extends SqlFile {
  /** The folder below `objects` that it lies in. */
  area: string;
  /** Functions, procedures, aggregates, views and types: what other statements build upon. */
  definitions: SqlStatement[];
  /** All that remains, in its order. */
  rest: SqlStatement[];
}

export interface ApplyOptions {
  /** Whose folder `objects` is read; that of the project where omitted. */
  folder?: string;
  /** Whether the bodies of functions are checked, too. */
  validate?: boolean;
  /**
   * Told once everything stands that the API shows, which is committed before; the triggers that follow, in the area `99-triggers`,
   * get a transaction of their own.
   */
  shown?: () => void;
}

export interface Applied {
  /** The tables of our schemas that got rows, as `schema.table`. */
  declaredTables: string[];
  statements: number;
}

interface ObjectStep extends Step {
  file: ObjectFile;
  isDefinition: boolean;
  statements: SqlStatement[];
}

/** The area of what follows from all tables and is never shown by the API. */
const triggers = "99-triggers";

const definition = /^create\s+(?:or\s+replace\s+)?(?:function|procedure|view|type|aggregate)\b/i;

/** Failures for want of a function, table, type, column, schema or row, which another statement may make. */
const missing = new Set(["42883", "42P01", "42704", "42703", "3F000", "23503"]);

/** As they were last read. PERF: who follows the files reads them several times after each save. */
const known = new Map<string, ObjectFile>();

/** The files below migrations/objects, in the order of their paths. */
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
 * A sum over the replaceable objects and the committed migrations: what the database should hold.
 * @param current the migration that is being written, where it counts.
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
 * transaction that is open. First all definitions, then what remains: the areas one after the other by name, and inside of
 * an area in an order that is found, so that a file may use what a later one makes.
 * @param client the owner's connection, in a transaction; one that wrote no rows before, since their tables would count.
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
    // A definition that waits may be shown.
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
    // A definition may need what a generator makes.
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
  return runInFoundOrder(client, groups, mayWait);
}

/** What others only miss is made by the one that is wrong itself. */
async function culprit(client: ClientBase, failed: FailedStep<ObjectStep>[]): Promise<SchemaError> {
  return await located(client, failed.find(({ error }) => !missing.has(error.code!)) ?? failed[0]!);
}

/** Whatever a generator reads may come from another file, so only a fault of syntax is one for certain. */
function mayWait({ code }: DatabaseError): boolean {
  return code !== "42601";
}

/** Which of the statements it was: they are run one by one. */
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
