/** Takes an online backup of a database, into a series of the archive. */
import { createHash } from "node:crypto";
import { createReadStream, createWriteStream } from "node:fs";
import { copyFile, mkdir, open, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { PassThrough } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGzip } from "node:zlib";
import type { DatabaseError } from "pg";
import { onConnection } from "../database/onConnection.ts";
import type { FileStore } from "../providers/files/index.ts";
import { createLocalFolder } from "../providers/files/localFolder.ts";
import {
  archivedLog,
  backupsFolder,
  contentsFolder,
  prune,
  walFolder,
  type ArchivedBackup,
  type BackupFacts,
} from "../database/backupSeries.ts";
import { baseBackup } from "./baseBackup.ts";
import { copyContents, storedContents } from "../providers/files/contents.ts";
import { readBackup } from "./verifyBackup.ts";

/** Secrets and certificates of a data folder: data sealed or signed with them cannot be read without them. */
export const keyFiles = ["jwt.key", "secrets.key", "postgres.password", "certificate.pem", "key.pem"];

export interface BackupOptions {
  /** A login that owns the database and may replicate. */
  loginUrl: string;
  embedded: boolean;
  archive: string;
  /** The folder of the archive for the data folder. */
  series: string;
  dataDir: string;
  store: FileStore;
  /** Number of backups of the series that are kept. Default: all. */
  keep?: number | undefined;
  /** Called periodically with the progress, with bytes of an estimate while the cluster is copied. */
  onProgress?: (step: string, bytes?: number, of?: number) => void;
}

export interface BackupResult extends ArchivedBackup {
  files: number;
  contents: number;
  /** Keys of contents that the database refers to and the store does not have. */
  missing: string[];
}

/**
 * Takes a backup and reads it back. An incomplete backup does not count: the next one removes it.
 * @throws Error with a sentence for the user; then there is no new backup, and none was removed.
 */
export async function takeBackup(options: BackupOptions): Promise<BackupResult> {
  const { loginUrl, archive, series, dataDir, store, onProgress = () => {} } = options;
  await removeUnfinished(series);
  const copies = createLocalFolder(contentsFolder(archive));
  onProgress("Copying files");
  // Once before, because some may be deleted in the meantime, and once after, because others are added.
  const keys = new Set(await storedContents(loginUrl));
  await copyContents(store, copies, [...keys]);

  const server = await onConnection(loginUrl, async (client) => {
    const { rows } = await client.query<{
      systemIdentifier: string;
      serverVersion: string;
      segmentBytes: string;
      database: string;
      now: Date;
    }>(
      `select system_identifier::text as "systemIdentifier", current_setting('server_version') as "serverVersion",
         pg_size_bytes(current_setting('wal_segment_size'))::text as "segmentBytes",
         current_database() as database, clock_timestamp() as now
       from pg_control_system()`,
    );
    return rows[0]!;
  });
  const folder = join(backupsFolder(series), server.now.toISOString().replace(/[:.]/g, "-"));
  await mkdir(folder, { mode: 0o700 });
  const tar = new PassThrough();
  const manifest = createWriteStream(join(folder, "backup_manifest"), { mode: 0o600 });
  const written = pipeline(
    tar,
    createGzip({ level: 1 }),
    createWriteStream(join(folder, "base.tar.gz"), { mode: 0o600 }),
  );
  const [base] = await Promise.all([
    baseBackup({
      connectionString: loginUrl,
      tar,
      manifest,
      onProgress: (bytes, of) => onProgress("Copying the database", bytes, of),
    }).catch((error: Error) => {
      tar.destroy(error);
      throw error;
    }),
    written,
  ]);
  const finishedAt = await endOfLog(loginUrl);

  onProgress("Copying files");
  const after = await storedContents(loginUrl);
  for (const key of after) keys.add(key);
  const { missing } = await copyContents(store, copies, after);
  await writeFile(join(folder, "contents.txt"), [...keys].map((key) => `${key}\n`).join(""), { mode: 0o600 });
  await copyKeys(dataDir, join(folder, "keys"));

  onProgress("Reading the backup back");
  const { files, bytes } = await readBackup(folder);
  const facts: BackupFacts = {
    format: 1,
    startedAt: server.now.toISOString(),
    finishedAt,
    ...base,
    firstSegment: segmentName(base.startPosition, base.timeline, Number(server.segmentBytes)),
    systemIdentifier: server.systemIdentifier,
    serverVersion: server.serverVersion,
    embedded: options.embedded,
    database: server.database,
    bytes,
    sha256: await checksum(join(folder, "base.tar.gz")),
  };
  await syncToDisk(join(folder, "backup_manifest"));
  await syncToDisk(join(folder, "base.tar.gz"));
  await writeFile(join(folder, "backup.json.part"), `${JSON.stringify(facts, null, 2)}\n`, { mode: 0o600 });
  await syncToDisk(join(folder, "backup.json.part"));
  await rename(join(folder, "backup.json.part"), join(folder, "backup.json"));

  if (options.keep !== undefined) await prune(archive, series, options.keep, new Set(after));
  await compressLog(series);
  return { folder, series, facts, files, contents: keys.size, missing };
}

/** Archives the current segment, so that the backup can be restored immediately. */
async function endOfLog(loginUrl: string): Promise<string> {
  return onConnection(loginUrl, async (client) => {
    const { rows } = await client.query<{ now: Date }>("select clock_timestamp() as now");
    // On other servers, usually only superusers may; the segment is then archived when it is full or after archive_timeout.
    await client.query("select pg_switch_wal()").catch((error: DatabaseError) => {
      if (error.code !== "42501") throw error;
    });
    return rows[0]!.now.toISOString();
  });
}

/** The name of the segment with a position of the log. */
export function segmentName(position: string, timeline: number, segmentBytes: number): string {
  const [high = "0", low = "0"] = position.split("/");
  const segment = Math.floor(Number.parseInt(low, 16) / segmentBytes);
  const hex = (value: number) => value.toString(16).toUpperCase().padStart(8, "0");
  return hex(timeline) + hex(Number.parseInt(high, 16)) + hex(segment);
}

async function copyKeys(dataDir: string, to: string): Promise<void> {
  await mkdir(to, { mode: 0o700 });
  for (const name of keyFiles)
    await copyFile(join(dataDir, name), join(to, name)).catch((error: NodeJS.ErrnoException) => {
      // A value from a setting.
      if (error.code !== "ENOENT") throw error;
    });
}

async function removeUnfinished(series: string): Promise<void> {
  for (const name of await readdir(backupsFolder(series))) {
    const folder = join(backupsFolder(series), name);
    const complete = await readFile(join(folder, "backup.json")).catch(() => undefined);
    if (!complete) await rm(folder, { recursive: true, force: true });
  }
}

/** Segments that were closed early, to be archived in time, are mostly zeros. */
async function compressLog(series: string): Promise<void> {
  for (const name of await archivedLog(series)) {
    if (name.endsWith(".gz") || name.includes(".history")) continue;
    const file = join(walFolder(series), name);
    await pipeline(
      createReadStream(file),
      createGzip({ level: 1 }),
      createWriteStream(`${file}.gz.part`, { mode: 0o600 }),
    );
    await syncToDisk(`${file}.gz.part`);
    await rename(`${file}.gz.part`, `${file}.gz`);
    await rm(file);
  }
}

async function checksum(file: string): Promise<string> {
  const hash = createHash("sha256");
  await pipeline(createReadStream(file), hash);
  return hash.digest("hex");
}

/** Makes a file, and its name, durable. */
async function syncToDisk(path: string): Promise<void> {
  for (const each of [path, dirname(path)]) {
    const file = await open(each, "r");
    try {
      await file.sync();
    } finally {
      await file.close();
    }
  }
}
