/**
 * The baseline: the migrations were rewritten once, before the first release. A database of the last earlier version
 * adopts the new migrations as already run; it executes migrations/baseline.sql instead.
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Client, Pool } from "pg";
import type { Migration } from "./committed.ts";

/** Headers of migrations/baseline.sql. */
export interface Baseline {
  /** The last migration of the previous chain: its file and hash. */
  replaces: { file: string; hash: string };
  /** The last migration of the new chain whose effect such databases already have: its file and hash. */
  through: { file: string; hash: string };
  /** Statements that such a database needs to match a new one; may be empty. */
  bridge: string;
}

interface Applied {
  filename: string;
  hash: string;
}

/** The tracked marker of the baseline. */
export const baselineFile = "baseline.sql";

/** Reads the marker; folders of other chains have none. */
export async function readBaseline(folder: string): Promise<Baseline | undefined> {
  const path = join(folder, baselineFile);
  const text = await readFile(path, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "ENOENT") throw error;
  });
  if (text === undefined) return undefined;
  const [, file, hash] = /^--! Replaces: (\S+) (\S+)$/m.exec(text) ?? [];
  const [, last, lastHash] = /^--! Through: (\S+) (\S+)$/m.exec(text) ?? [];
  if (!file || !hash || !last || !lastHash)
    throw new Error(
      `${path} lacks one of its headers: "--! Replaces: <file> <hash>", "--! Through: <file> <hash>".`,
    );
  return {
    replaces: { file, hash },
    through: { file: last, hash: lastHash },
    bridge: text.replaceAll(/^--! .*$/gm, "").trim(),
  };
}

/** The migrations recorded in a database, in order. */
export async function appliedMigrations(owner: Client | Pool): Promise<Applied[]> {
  const { rows: there } = await owner.query<{ yes: boolean }>(
    "select to_regclass('graphile_migrate.migrations') is not null as yes",
  );
  if (!there[0]!.yes) return [];
  const { rows } = await owner.query<Applied>(
    "select filename, hash from graphile_migrate.migrations order by filename",
  );
  return rows;
}

/** Whether the database was made by the last version before the baseline: its last hash covers all previous ones. */
export function isBeforeBaseline(applied: readonly Applied[], baseline: Baseline | undefined): boolean {
  return baseline !== undefined && applied.at(-1)?.hash === baseline.replaces.hash;
}

/**
 * Moves such a database to the new chain, in one transaction: the statements of the bridge and the list of
 * migrations.
 * @param owner a connection that holds the migration lock.
 */
export async function adoptBaseline(
  owner: Client,
  baseline: Baseline,
  migrations: readonly Migration[],
): Promise<void> {
  const { file: through, hash: throughHash } = baseline.through;
  const last = migrations.findIndex(({ file, hash }) => file === through && hash === throughHash);
  if (last < 0)
    throw new Error(
      `${baselineFile} names ${through} with the hash ${throughHash}, which is not among the committed migrations.`,
    );
  await owner.query("begin");
  try {
    if (baseline.bridge) await owner.query(baseline.bridge);
    await owner.query("delete from graphile_migrate.migrations");
    for (const { key, hash, previous } of migrations.slice(0, last + 1))
      await owner.query(
        "insert into graphile_migrate.migrations (hash, previous_hash, filename) values ($1, $2, $3)",
        [hash, previous === "-" ? null : previous, key],
      );
    await owner.query("commit");
  } catch (error) {
    await owner.query("rollback");
    throw error;
  }
}

/**
 * @throws Error with a message if the database has migrations unknown to this version: because it is newer, because
 * one was edited, or because it is from before the baseline and was not fully migrated.
 */
export function requireKnownMigrations(
  applied: readonly Applied[],
  migrations: readonly Migration[],
  baseline: Baseline | undefined,
): void {
  const first = migrations[0];
  const older = baseline && first && applied[0] && applied[0].filename === first.key;
  if (older && applied[0]!.hash !== first.hash)
    throw new Error(
      `The database was created before the baseline of the migrations, and its last migration is ${applied.at(-1)!.filename}: first start the last version from before the baseline on it (its last migration is ${baseline.replaces.file}), then this one. If that one refuses it as well, a new database is needed: another DATA_DIR, or an empty database for DATABASE_URL.`,
    );
  for (const { filename, hash } of applied) {
    const migration = migrations.find(({ key }) => key === filename);
    if (!migration)
      throw new Error(
        `The database is newer than this version of Plat: it holds migration ${filename}, which is unknown here. Start the version that made it, or a later one.`,
      );
    if (migration.hash !== hash)
      throw new Error(
        `Migration ${migration.file} is not the one that this database was built with: a committed migration must not be edited, add a new one.`,
      );
  }
}
