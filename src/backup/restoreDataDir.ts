/** Point-in-time recovery: a backup, and the changes that were archived after it. */
import { createReadStream, createWriteStream } from "node:fs";
import {
  chmod,
  chown,
  copyFile,
  lstat,
  mkdir,
  readdir,
  readFile,
  rename,
  rm,
  writeFile,
} from "node:fs/promises";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { createGunzip } from "node:zlib";
import { prepareDataDir } from "../database/dataDir.ts";
import { findBinaries } from "../database/binaries.ts";
import { clusterFolder } from "../database/clusterFolder.ts";
import { adoptCluster, embeddedSettings, startEmbeddedPostgres } from "../database/embeddedServer.ts";
import { startPostmaster } from "../database/postmaster.ts";
import { databaseUser, type RunAs } from "../database/systemUser.ts";
import { lockFolder } from "../base/folderLock.ts";
import type { FileStore } from "../providers/files/index.ts";
import { createLocalFolder } from "../providers/files/localFolder.ts";
import {
  allBackups,
  archivedLog,
  contentsFolder,
  walFolder,
  type ArchivedBackup,
} from "../database/backupSeries.ts";
import { copyContents, storedContents } from "../providers/files/contents.ts";
import { readBackup } from "./verifyBackup.ts";

export interface RestoreOptions {
  archive: string;
  /** The point in time to restore; by default the end of the archive. */
  at?: Date | undefined;
  /** The folder of the backup to start from; by default the last one completed by then. */
  backup?: string | undefined;
  /** Receives the cluster: missing or empty. */
  into: string;
  /** The store that receives file contents. */
  store: FileStore;
  onProgress?: (step: string, bytes?: number, of?: number) => void;
}

export interface Restored {
  backup: ArchivedBackup;
  /** Commit time of the last change in the restored database; undefined if there was none after the backup. */
  lastChange: Date | undefined;
  /** Keys of contents that the database refers to and the archive does not have. */
  missing: string[];
}

/**
 * Restores a database, with its keys and files, into a data folder, as an embedded database: also one of another server.
 * @throws Error with a sentence for the user; partial results are removed.
 */
export async function restoreDataDir(options: RestoreOptions): Promise<Restored> {
  const { archive, into, store, onProgress = () => {} } = options;
  const backup = await chooseBackup(options);
  await requireEmpty(into);
  prepareDataDir(into);
  const unlock = lockFolder(into);
  const runAs = databaseUser(undefined);
  const { folder } = await clusterFolder(into, runAs);
  try {
    const [data, log] = [join(folder, "data"), join(folder, stagedLog)];
    const recovery = await unpack(backup, { ...options, data, log, runAs });
    const keys = join(backup.folder, "keys");
    for (const name of await readdir(keys)) await copyFile(join(keys, name), join(into, name));

    onProgress("Applying changes");
    const { postgres } = await findBinaries(runAs);
    const logFile = join(into, "postgres.log");
    if (!backup.facts.embedded) await ownSettings(data, runAs);
    const recovering = await startPostmaster({
      postgres,
      data,
      logFile,
      runAs,
      settings: { ...embeddedSettings, ...recovery.settings, hot_standby: "off" },
    }).catch(async (error: Error) => {
      throw new Error(await whyNot(error, logFile, options.at), { cause: error });
    });
    await recovering.stop();
    // The password of an embedded database may have changed since the backup, whose keys contain the previous one.
    const from = backup.facts.embedded ? undefined : backup.facts.database;
    await adoptCluster({ postgres, data, runAs, dataDir: into, from });
    unlock();
    onProgress("Copying files");
    const server = await startEmbeddedPostgres({ dataDir: into });
    try {
      const copies = createLocalFolder(contentsFolder(archive));
      const { missing } = await copyContents(copies, store, await storedContents(server.connectionString));
      const lastChange = lastCommit(await readFile(logFile, "utf8"));
      return { backup, lastChange: lastChange === undefined ? undefined : new Date(lastChange), missing };
    } finally {
      await server.stop();
    }
  } catch (error) {
    await rm(folder, { recursive: true, force: true });
    for (const name of await readdir(into)) await rm(join(into, name), { recursive: true, force: true });
    throw error;
  } finally {
    unlock();
    await rm(join(folder, stagedLog), { recursive: true, force: true });
  }
}

/**
 * Unpacks a cluster, also that of a data folder, for another server, configured to recover to the point in time when it is started.
 * @throws Error with a sentence for the user.
 */
export async function restoreCluster(options: RestoreOptions): Promise<{ backup: ArchivedBackup }> {
  const backup = await chooseBackup(options);
  await requireEmpty(options.into);
  const { settings } = await unpack(backup, {
    ...options,
    data: options.into,
    log: `${options.into}.wal`,
    runAs: {},
  });
  const lines = Object.entries(settings).map(
    ([name, value]) => `${name} = '${value.replaceAll("'", "''")}'\n`,
  );
  await writeFile(join(options.into, "postgresql.auto.conf"), lines.join(""), { flag: "a" });
  return { backup };
}

const stagedLog = "unfinished.wal";

async function chooseBackup({ archive, at, backup }: RestoreOptions): Promise<ArchivedBackup> {
  const all = await allBackups(archive);
  if (backup !== undefined) {
    const named = all.find(({ folder }) => folder === backup);
    if (!named) throw new Error(`${backup} is no complete backup of the archive ${archive}.`);
    return named;
  }
  const fit = all.filter(({ facts }) => !at || Date.parse(facts.finishedAt) <= at.getTime());
  const chosen = fit.at(-1);
  if (chosen) return chosen;
  throw new Error(
    all[0]
      ? `The first backup of ${archive} was finished at ${all[0].facts.finishedAt}: choose a moment after that.`
      : `There is no complete backup in ${archive}: name the archive's folder with ARCHIVE_DIR.`,
  );
}

async function requireEmpty(folder: string): Promise<void> {
  const names = await readdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "ENOENT") throw error;
    return [];
  });
  if (names.length > 0)
    throw new Error(
      `${folder} is not empty, and nothing is restored over what is there: move it away, or choose another folder with --into.`,
    );
}

interface Unpack extends RestoreOptions {
  data: string;
  /** Receives the archived changes, until they are applied. */
  log: string;
  runAs: RunAs;
}

/** @returns the settings that make a server recover to the point in time. */
async function unpack(
  backup: ArchivedBackup,
  { data, log, runAs, at, onProgress = () => {} }: Unpack,
): Promise<{ settings: Record<string, string> }> {
  const unfinished = `${data}.unfinished`;
  await rm(unfinished, { recursive: true, force: true });
  await mkdir(unfinished, { recursive: true, mode: 0o700 });
  const own = async (path: string) => {
    if (runAs.uid !== undefined && runAs.gid !== undefined) await chown(path, runAs.uid, runAs.gid);
  };
  let bytes = 0;
  await readBackup(backup.folder, async ({ name, type, mode }, content) => {
    const path = join(unfinished, name);
    if (type === "directory") await mkdir(path, { recursive: true });
    else
      await pipeline(
        content,
        async function* (source: AsyncIterable<Buffer>) {
          for await (const chunk of source) {
            onProgress("Unpacking", (bytes += chunk.length), backup.facts.bytes);
            yield chunk;
          }
        },
        createWriteStream(path, { flags: "wx" }),
      );
    await chmod(path, mode);
    await own(path);
  });
  await stageLog(backup, log, own);
  // Without it, the server would regard the log in its own folder as complete.
  await writeFile(join(unfinished, "recovery.signal"), "");
  await own(join(unfinished, "recovery.signal"));
  await chmod(unfinished, 0o700);
  await own(unfinished);
  if (await lstat(data).catch(() => undefined)) await rm(data, { recursive: true });
  await rename(unfinished, data);
  return {
    settings: {
      restore_command: `cp "${log.replaceAll("%", "%%")}/%f" "%p"`,
      recovery_target_action: "promote",
      ...(at && { recovery_target_time: at.toISOString().replace(/T(.*)Z/, " $1+00") }),
    },
  };
}

/** Copies the segments that recovery needs, uncompressed, to where the database's user can read them. */
async function stageLog(
  { series, facts }: ArchivedBackup,
  folder: string,
  own: (path: string) => Promise<void>,
): Promise<void> {
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true, mode: 0o700 });
  await own(folder);
  for (const name of await archivedLog(series)) {
    const plain = name.replace(/\.gz$/, "");
    if (!plain.endsWith(".history") && plain < facts.firstSegment) continue;
    const [from, to] = [join(walFolder(series), name), join(folder, plain)];
    if (name === plain) await copyFile(from, to);
    else await pipeline(createReadStream(from), createGunzip(), createWriteStream(to));
    await own(to);
  }
}

/** Commit time of the last change that recovery has applied, from the server's log. */
function lastCommit(log: string): string | undefined {
  return /last completed transaction was at log time (\S+ [\d:.]+)/
    .exec(log)?.[1]
    ?.replace(" ", "T")
    .concat("Z");
}

/** Replaces those of a server with other folders, certificates and rules, by those of a new embedded cluster. */
async function ownSettings(data: string, { uid, gid }: RunAs): Promise<void> {
  const files = {
    "postgresql.conf": "",
    "postgresql.auto.conf": "",
    "pg_ident.conf": "",
    "pg_hba.conf":
      "host all all 127.0.0.1/32 scram-sha-256\nhost replication all 127.0.0.1/32 scram-sha-256\n",
  };
  for (const [name, text] of Object.entries(files)) {
    await writeFile(join(data, name), text, { mode: 0o600 });
    if (uid !== undefined && gid !== undefined) await chown(join(data, name), uid, gid);
  }
}

/** The reason for a failed recovery from the log of the database, for the user. */
async function whyNot(failure: Error, logFile: string, at: Date | undefined): Promise<string> {
  const log = await readFile(logFile, "utf8").catch(() => "");
  if (at && /recovery ended before configured recovery target was reached/.test(log)) {
    const last = lastCommit(log);
    return `The archive does not reach ${at.toISOString()}${last ? `: its last change is of ${last}` : ""}. Omit --at to return to its end.`;
  }
  return failure.message;
}
