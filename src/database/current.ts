/** The migration in progress, migrations/current.sql: development applies it before it is committed. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Client } from "pg";
import { readCatalog, type CatalogObject } from "./catalog.ts";
import type { Migration } from "./committed.ts";
import { isStructure } from "./differences.ts";
import { attempt } from "./dependencyOrder.ts";
import { schemaError } from "./schemaError.ts";
import { splitStatements } from "./sqlStatements.ts";

export const currentFile = "current.sql";

/** Its text; empty when there is none, or only comments. */
export async function readCurrent(folder: string): Promise<string> {
  const text = await readFile(join(folder, currentFile), "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "ENOENT") throw error;
    return "";
  });
  return splitStatements(text).length === 0 ? "" : text;
}

/** The part of it that the database has, as recorded by graphile-migrate; empty if none. */
export async function appliedCurrent(owner: Client): Promise<string> {
  const { rows: there } = await owner.query<{ yes: boolean }>(
    "select to_regclass('graphile_migrate.current') is not null as yes",
  );
  if (!there[0]!.yes) return "";
  const { rows } = await owner.query<{ content: string }>(
    "select content from graphile_migrate.current where filename = $1",
    [currentFile],
  );
  return rows[0]?.content ?? "";
}

/**
 * If the applied text has been committed since as the next migration, the database already has that migration.
 * @returns whether that was the case
 */
export async function adoptCommitted(owner: Client, pending: readonly Migration[]): Promise<boolean> {
  const [next] = pending;
  if (!next || (await appliedCurrent(owner)).trim() !== next.body.trim()) return false;
  await owner.query("begin");
  await owner.query(
    "insert into graphile_migrate.migrations (hash, previous_hash, filename) values ($1, $2, $3)",
    [next.hash, next.previous === "-" ? null : next.previous, next.key],
  );
  await owner.query("delete from graphile_migrate.current where filename = $1", [currentFile]);
  await owner.query("commit");
  return true;
}

/**
 * Applies the text in one transaction. Whatever an earlier version of the text had added (tables, columns, keys,
 * indexes, types) is dropped first, so that it can be edited as a migration that runs once; what it had altered or
 * dropped stays.
 * @param chain the structure after the committed migrations.
 * @param here the catalog of the database, if already read.
 * @throws SchemaError
 */
export async function applyCurrent(
  owner: Client,
  folder: string,
  text: string,
  chain: readonly CatalogObject[],
  here?: readonly CatalogObject[],
): Promise<void> {
  await owner.query("begin");
  try {
    if (await appliedCurrent(owner)) await undo(owner, chain, here ?? (await readCatalog(owner)));
    await runCurrent(owner, folder, text);
    await noteCurrent(owner, text);
    await owner.query("commit");
  } catch (error) {
    await owner.query("rollback");
    throw error;
  }
}

/** Records what the database now has of it, as graphile-migrate does. */
export async function noteCurrent(owner: Client, text: string): Promise<void> {
  await owner.query("delete from graphile_migrate.current where filename = $1", [currentFile]);
  if (text)
    await owner.query("insert into graphile_migrate.current (filename, content) values ($1, $2)", [
      currentFile,
      text,
    ]);
}

/**
 * Runs the text in the open transaction, without the statements in `applied`.
 * @throws SchemaError
 */
export async function runCurrent(client: Client, folder: string, text: string, applied = ""): Promise<void> {
  const file = { path: join(folder, currentFile), text };
  for (const statement of splitStatements(text).slice(splitStatements(applied).length)) {
    const error = await attempt(client, statement.text);
    if (error) throw schemaError(file, statement, error);
  }
}

async function undo(
  owner: Client,
  chain: readonly CatalogObject[],
  here: readonly CatalogObject[],
): Promise<void> {
  const kept = new Set(chain.map(({ identity }) => identity));
  const added = here.filter((object) => isStructure(object) && !kept.has(object.identity));
  // Tables first: most dependent objects go with them, and a missing object is not a failure.
  for (const { drop } of added.toSorted((a, b) => Number(b.kind === "table") - Number(a.kind === "table")))
    await attempt(owner, /^drop |^alter table .* drop /.test(drop) ? `${drop} cascade` : drop);
}
