/**
 * The archive: a folder, preferably on another disk, with everything that point-in-time recovery needs.
 *
 *     files/                       contents of files, by key, as in DATA_DIR/files
 *     <series>/wal/                the write-ahead log of one cluster, as archived by PostgreSQL
 *     <series>/backups/<begin>/    base.tar.gz, backup_manifest, contents.txt, keys/, and backup.json once it is complete
 *
 * A series belongs to one data folder and begins when that is created or restored. Two clusters with a common history,
 * such as a service and the copy of a restore drill, therefore never write to the same series.
 */
import { randomBytes } from "node:crypto";
import { chown, mkdir, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { canReach, type RunAs } from "./systemUser.ts";

/** Metadata of a complete backup. */
export interface BackupFacts {
  format: 1;
  /** By the database clock, ISO 8601. */
  startedAt: string;
  finishedAt: string;
  /** LSN as written by PostgreSQL. */
  startPosition: string;
  endPosition: string;
  timeline: number;
  /** The first WAL segment that recovery needs. */
  firstSegment: string;
  systemIdentifier: string;
  /** Version of the server, such as `18.4`. */
  serverVersion: string;
  /** Whether it is of the embedded database. */
  embedded: boolean;
  /** The name of the database in the cluster. */
  database: string;
  /** Bytes of the cluster, uncompressed. */
  bytes: number;
  /** SHA-256 of base.tar.gz. */
  sha256: string;
}

/** A complete backup in the archive. */
export interface ArchivedBackup {
  folder: string;
  /** The folder of its series. */
  series: string;
  facts: BackupFacts;
}

const seriesFile = "archive.series";

/** Folder for file contents in the archive. */
export const contentsFolder = (archive: string): string => join(archive, "files");
/** Folder for the WAL of a series. */
export const walFolder = (series: string): string => join(series, "wal");
/** Folder for the backups of a series. */
export const backupsFolder = (series: string): string => join(series, "backups");

/**
 * The series folder in the archive that belongs to a data folder; created if missing.
 * @param runAs user who runs the database and writes its WAL there.
 * @throws Error with a message for the user if that user cannot write there.
 */
export async function openSeries(archive: string, dataDir: string, runAs: RunAs): Promise<string> {
  const file = join(dataDir, seriesFile);
  // Empty if the disk was full when it was written.
  const known = (await readFile(file, "utf8").catch(ignoreMissing))?.trim() || undefined;
  const name = known ?? `${new Date().toISOString().replace(/[:.]/g, "-")}-${randomBytes(3).toString("hex")}`;
  const series = join(archive, name);
  // Contents and keys are accessible to the service only; the database user passes through to its own folder.
  await mkdir(archive, { recursive: true, mode: 0o711 });
  await mkdir(series, { recursive: true, mode: 0o711 });
  for (const folder of [contentsFolder(archive), backupsFolder(series), walFolder(series)])
    await mkdir(folder, { recursive: true, mode: 0o700 });
  if (runAs.uid !== undefined && runAs.gid !== undefined)
    await chown(walFolder(series), runAs.uid, runAs.gid);
  if (!canReach(walFolder(series), runAs))
    throw new Error(
      `The database's system user cannot reach ${walFolder(series)}: open the folders above it for passing (chmod o+x), or choose another ARCHIVE_DIR.`,
    );
  if (known === undefined) await writeFile(file, `${name}\n`);
  return series;
}

/** Complete backups of a series, oldest first. */
export async function backupsOf(series: string): Promise<ArchivedBackup[]> {
  const folder = backupsFolder(series);
  const names = (await readdir(folder).catch(ignoreMissing)) ?? [];
  const found = await Promise.all(
    names.toSorted().map(async (name) => {
      const text = await readFile(join(folder, name, "backup.json"), "utf8").catch(ignoreMissing);
      if (text === undefined) return [];
      return [{ folder: join(folder, name), series, facts: JSON.parse(text) as BackupFacts }];
    }),
  );
  return found.flat();
}

/** Complete backups of all series, oldest first. */
export async function allBackups(archive: string): Promise<ArchivedBackup[]> {
  const names = (await readdir(archive, { withFileTypes: true }).catch(ignoreMissing)) ?? [];
  const series = names.filter((entry) => entry.isDirectory() && entry.name !== "files");
  const found = await Promise.all(series.map(({ name }) => backupsOf(join(archive, name))));
  return found.flat().toSorted((a, b) => a.facts.finishedAt.localeCompare(b.facts.finishedAt));
}

/** Names of the archived WAL segments and timeline histories; compressed ones end with `.gz`. */
export async function archivedLog(series: string): Promise<string[]> {
  const names = (await readdir(walFolder(series)).catch(ignoreMissing)) ?? [];
  return names.filter((name) => /^([0-9A-F]{24}|[0-9A-F]{8}\.history)(\.gz)?$/.test(name)).toSorted();
}

/**
 * Removes all but the latest backups of a series, the WAL that only those needed, and file contents that are not
 * needed for any remaining recovery target.
 * @param keep number of backups to keep, at least 1.
 * @param stored keys of the contents that are stored now.
 */
export async function prune(
  archive: string,
  series: string,
  keep: number,
  stored: ReadonlySet<string>,
): Promise<void> {
  const backups = await backupsOf(series);
  const [kept, dropped] = [backups.slice(-keep), backups.slice(0, -keep)];
  for (const { folder } of dropped) await rm(folder, { recursive: true, force: true });
  const oldest = kept[0];
  if (!oldest) return;
  for (const name of await archivedLog(series))
    if (!name.includes(".history") && name.slice(0, 24) < oldest.facts.firstSegment)
      await rm(join(walFolder(series), name), { force: true });
  await pruneContents(archive, stored);
}

/** A content is needed if it is stored now, is listed by a backup, or was added after the oldest backup. */
async function pruneContents(archive: string, stored: ReadonlySet<string>): Promise<void> {
  const backups = await allBackups(archive);
  const since = Math.min(...backups.map(({ facts }) => Date.parse(facts.startedAt)));
  const listed = await Promise.all(backups.map(({ folder }) => listedContents(folder)));
  const needed = new Set([...stored, ...listed.flat()]);
  for await (const { key, path } of archivedContents(archive))
    if (!needed.has(key) && (await stat(path)).mtimeMs < since) await rm(path, { force: true });
}

/** Keys of the contents that a backup lists. */
export async function listedContents(backup: string): Promise<string[]> {
  return (await readFile(join(backup, "contents.txt"), "utf8")).split("\n").filter(Boolean);
}

async function* archivedContents(archive: string): AsyncGenerator<{ key: string; path: string }> {
  const folder = contentsFolder(archive);
  for (const start of (await readdir(folder).catch(ignoreMissing)) ?? []) {
    if (start.length !== 2) continue;
    for (const rest of await readdir(join(folder, start)))
      yield { key: start + rest, path: join(folder, start, rest) };
  }
}

function ignoreMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code !== "ENOENT") throw error;
}
