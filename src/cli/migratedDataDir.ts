/**
 * A data folder with the migrated database, created once for each content of the migrations: copying it takes a twentieth of migrating.
 * It is in node_modules/.cache/migrated. It is never started there, so that concurrent runs can share it.
 */
import { createHash, randomUUID } from "node:crypto";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { access, constants, mkdir, readdir, rename, stat, utimes } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { Client } from "pg";
import { copyDataDir, removeDataDir } from "../database/dataDirs.ts";
import { startEmbeddedPostgres } from "../database/embeddedServer.ts";
import { migrate } from "../database/migrate.ts";
import { scratchFolder } from "../database/scratchFolder.ts";

const repository = resolve(import.meta.dirname, "../..");
/** Files that determine the migrated database and its data folder. */
const sources = [
  "migrations",
  "src/database",
  "src/base",
  "src/secrets",
  "src/cli/migratedDataDir.ts",
  "package-lock.json",
];
/** Number of folders that are kept regardless of age, for switching between branches. */
const mostKept = 4;
const hour = 3_600_000;
const logger = { info() {}, warn: console.warn, error: console.error };

/**
 * Creates the folder if there is none for the current migrations.
 * @returns the folder, from which `copyDataDir` copies.
 */
export async function migratedDataDir(): Promise<string> {
  const cache = await cacheFolder();
  const folder = join(cache, contentKey());
  if (!(await stat(folder).catch(() => undefined))) {
    await removeStale(cache);
    await make(folder);
  }
  const now = new Date();
  await utimes(folder, now, now);
  return folder;
}

/** Among the installed packages; below the system's temporary folder if these belong to another user. */
async function cacheFolder(): Promise<string> {
  const folder = join(repository, "node_modules/.cache/migrated");
  try {
    await mkdir(folder, { recursive: true });
    await access(folder, constants.W_OK);
    return folder;
  } catch {
    const own = join(tmpdir(), `plat-migrated-of-${process.getuid?.()}`);
    await mkdir(own, { recursive: true, mode: 0o700 });
    if ((await stat(own)).uid !== process.getuid?.())
      throw new Error(`${own} belongs to another user: remove it.`);
    return own;
  }
}

/** Changes with everything that the migrated database depends on. */
function contentKey(): string {
  const hash = createHash("sha256").update(`${process.arch} ${process.getuid?.()}`);
  for (const source of sources)
    for (const file of filesOf(join(repository, source)))
      // PERF: sequentially; hundreds of small files take several times as long with asynchronous calls.
      hash.update(`\0${file.slice(repository.length)}\0`).update(readFileSync(file));
  return hash.digest("hex").slice(0, 24);
}

function filesOf(path: string): string[] {
  if (statSync(path).isFile()) return [path];
  const entries = readdirSync(path, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name))
    .toSorted();
}

/** Created elsewhere and moved when complete, so that an interrupted run leaves nothing incomplete. */
async function make(folder: string): Promise<void> {
  const unfinished = `${folder}.unfinished-${randomUUID()}`;
  const made = await scratchFolder("migrated");
  try {
    const postgres = await startEmbeddedPostgres({ dataDir: made, fast: true, logger });
    try {
      await migrate(postgres.connectionString, { logger, current: true });
      await forgetChanges(postgres.connectionString);
    } finally {
      await postgres.stop();
    }
    await mkdir(unfinished, { mode: 0o711 });
    await copyDataDir(made, unfinished);
    await rename(unfinished, folder).catch((error: NodeJS.ErrnoException) => {
      // Another run was faster; its result is equivalent.
      if (error.code !== "ENOTEMPTY" && error.code !== "EEXIST") throw error;
    });
  } finally {
    await removeDataDir(unfinished);
    await removeDataDir(made);
  }
}

/**
 * PERF: resets the statistics of changed rows. Otherwise, autovacuum would process the rows of the migrations at each
 * start of a copy.
 */
async function forgetChanges(connectionString: string): Promise<void> {
  const client = new Client({ connectionString });
  await client.connect();
  try {
    await client.query("select pg_stat_reset()");
  } finally {
    await client.end();
  }
}

/** Removes folders that were unused for an hour, except for the latest few. */
async function removeStale(cache: string): Promise<void> {
  const found = await Promise.all(
    (await readdir(cache)).map(async (name) => {
      const folder = join(cache, name);
      return { folder, usedAt: (await stat(folder).catch(() => undefined))?.mtimeMs ?? 0 };
    }),
  );
  const stale = found
    .toSorted((a, b) => b.usedAt - a.usedAt)
    .slice(mostKept - 1)
    .filter(({ usedAt }) => usedAt < Date.now() - hour);
  for (const { folder } of stale) await removeDataDir(folder);
}
