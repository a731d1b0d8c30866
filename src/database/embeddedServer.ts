/** The embedded PostgreSQL server: creates its cluster, starts, restarts and stops it. */
import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import { chown, lstat, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { promisify } from "node:util";
import { escapeIdentifier, escapeLiteral } from "pg";
import { DatabaseClient } from "./client.ts";
import { backupsOf, openSeries, walFolder } from "./backupSeries.ts";
import { backoff } from "../base/backoff.ts";
import { prepareDataDir } from "./dataDir.ts";
import { lockFolder } from "../base/folderLock.ts";
import { loadOrCreateSecret } from "../secrets/loadOrCreateSecret.ts";
import { findBinaries } from "./binaries.ts";
import { clusterFolder } from "./clusterFolder.ts";
import { NotStarted, runAlone, startPostmaster, stopLeftover, type Postmaster } from "./postmaster.ts";
import { databaseUser, type RunAs } from "./systemUser.ts";
import type { Logger } from "../base/log.ts";

export interface EmbeddedOptions {
  dataDir: string;
  logger?: Pick<Logger, "info" | "warn">;
  /**
   * Milliseconds for which restarts are attempted after the server exits by itself; see keepRunning. Default: no
   * restarts.
   */
  againForMs?: number;
  /** Folder where PostgreSQL archives its WAL. Default: no archiving. */
  archive?: ArchiveOptions | undefined;
  /** For tests: faster, but nothing survives a crash of the machine. */
  fast?: boolean;
  /** Milliseconds between two messages about a slow start. Default: half a minute. */
  slowMs?: number;
}

export interface ArchiveOptions {
  /** See src/database/backupSeries.ts. */
  folder: string;
  /** Maximum time between a change and its archiving. */
  timeoutSeconds: number;
}

export interface EmbeddedPostgres {
  /** The owner of the database `plat`, who is the cluster's superuser. */
  connectionString: string;
  /** Resolves when the database is gone: after `stop`, or after a crash from which it could not be restarted. */
  exited: Promise<void>;
  stop(): Promise<void>;
}

/** A server that ran for as long starts with short back-off again. */
const ranWellMs = 60_000;

const database = "plat";
const owner = "plat";
const passwordName = "postgres.password";

/** For machines with little memory; durability is PostgreSQL's default. */
export const embeddedSettings = {
  listen_addresses: "127.0.0.1",
  unix_socket_directories: "",
  max_connections: 100,
  shared_buffers: "256MB",
  effective_cache_size: "1GB",
  work_mem: "8MB",
  maintenance_work_mem: "128MB",
  // JIT compilation costs more than it saves for our short queries.
  jit: "off",
  random_page_cost: 1.1,
  checkpoint_timeout: "15min",
  max_wal_size: "1GB",
  timezone: "UTC",
  log_timezone: "UTC",
  log_min_messages: "warning",
  log_checkpoints: "off",
  log_line_prefix: "%m [%p] %q%u@%d ",
};

/**
 * A few clients can keep all CPUs busy; the event loop, which serves everybody, has priority on a machine shared with
 * the database. With 10, nine busy connections together get as much as the event loop.
 */
const NICE = 10;

export const fastSettings = {
  fsync: "off",
  full_page_writes: "off",
  synchronous_commit: "off",
  autovacuum_naptime: "1h",
  // Many tests are about refusals.
  log_min_messages: "fatal",
  // Everything is in memory.
  io_method: "sync",
  // The folder may be in memory, where WAL takes space.
  wal_level: "minimal",
  max_wal_senders: 0,
  min_wal_size: "32MB",
  max_wal_size: "256MB",
};

/**
 * A server that is restarted by keepRunning does not restart itself after a crash: if its disk is full then, its startup
 * process fails, and PostgreSQL 18 continues without one, accepts no connections, and never ends.
 */
const keptSettings = { restart_after_crash: "off" };

/**
 * Creates (once) and starts the bundled PostgreSQL 18 below `dataDir`, reachable only on the loopback interface with
 * a random password.
 * @throws Error with a message for the user if the folder is in use or inaccessible, or programs are missing.
 */
export async function startEmbeddedPostgres(options: EmbeddedOptions): Promise<EmbeddedPostgres> {
  const { dataDir, logger, archive, againForMs, fast = false, slowMs } = options;
  prepareDataDir(dataDir);
  const unlock = lockFolder(dataDir);
  try {
    const existing = join(dataDir, "postgres", "data");
    const runAs = databaseUser((await lstat(existing).catch(() => undefined)) ? existing : undefined);
    const [{ folder, shownAs }, binaries] = [await clusterFolder(dataDir, runAs), await findBinaries(runAs)];
    const data = join(folder, "data");
    await refuseOtherMajor(data, binaries.major, shownAs);
    if (await stopLeftover(data))
      logger?.warn(
        { event: "embedded.stopped_leftover" },
        "Stopped a database that an earlier, killed process had left running.",
      );
    const isKnown = await lstat(join(dataDir, passwordName)).catch(() => undefined);
    const password = await loadOrCreateSecret(dataDir, passwordName);
    if (!(await lstat(data).catch(() => undefined))) {
      logger?.info({ event: "embedded.creating" }, `Creating the embedded database in ${shownAs}.`);
      await createCluster({ initdb: binaries.initdb, folder, data, password, runAs, fast });
    } else if (!isKnown) {
      await adoptCluster({ postgres: binaries.postgres, data, runAs, dataDir });
      logger?.warn(
        { event: "embedded.adopted" },
        "The password of the embedded database was lost; it has a new one.",
      );
    }
    const series = archive && (await openSeries(archive.folder, dataDir, runAs));
    if (series && (await backupsOf(series)).length === 0)
      logger?.warn(
        { event: "embedded.no_backup" },
        "The archive has no backup of this database yet, so nothing can be restored: run `npm run backup`.",
      );
    const start = {
      postgres: binaries.postgres,
      data,
      logFile: join(dataDir, "postgres.log"),
      runAs,
      settings: {
        ...embeddedSettings,
        ...(fast && fastSettings),
        ...(againForMs !== undefined && keptSettings),
        ...(series && archiveSettings(series, archive.timeoutSeconds)),
      },
      ...(!fast && { nice: NICE }),
      slowMs,
      onSlow: (seconds: number) =>
        logger?.warn(
          { event: "embedded.slow_start", seconds },
          `The embedded database has been starting for ${seconds} s. After a crash or from a backup, it replays its log, which can take minutes; do not interrupt it.`,
        ),
    };
    const postmaster = await startPostmaster(start);
    try {
      await createDatabase(await embeddedUrl(dataDir, postmaster.port, "postgres"));
    } catch (error) {
      await postmaster.stop();
      throw error;
    }
    // The folder stays locked until the server is gone.
    const kept = againForMs === undefined ? postmaster : keepRunning(postmaster, start, againForMs, logger);
    const exited = kept.exited.then(unlock);
    return {
      connectionString: await embeddedUrl(dataDir, postmaster.port),
      exited,
      stop: () => kept.stop().then(() => exited),
    };
  } catch (error) {
    unlock();
    throw error;
  }
}

/**
 * Restarts a server on the same port when it exits by itself: connected clients see a restart, and the process that
 * serves them continues. A full disk is waited for indefinitely; any other failure for `forMs`, after which `exited`
 * resolves.
 */
function keepRunning(
  first: Postmaster,
  start: Parameters<typeof startPostmaster>[0],
  forMs: number,
  logger: EmbeddedOptions["logger"],
): Pick<Postmaster, "exited" | "stop"> {
  let running = first;
  const stopping = new AbortController();
  const pauses = backoff();
  const restart = async (): Promise<boolean> => {
    for (const since = performance.now(); !stopping.signal.aborted;) {
      await delay(pauses.pause(), undefined, { signal: stopping.signal }).catch(() => {});
      if (stopping.signal.aborted) return false;
      try {
        await stopLeftover(start.data);
        running = await startPostmaster({ ...start, port: first.port });
        logger?.warn({ event: "embedded.started_again" }, "The embedded database is running again.");
        return true;
      } catch (error) {
        logger?.warn({ event: "embedded.start_failed", err: error }, "The embedded database did not start.");
        const waits = error instanceof NotStarted && error.isFull;
        if (!waits && performance.now() - since > forMs) return false;
      }
    }
    return false;
  };
  const keep = async () => {
    for (;;) {
      const since = performance.now();
      await running.exited;
      if (stopping.signal.aborted) return;
      logger?.warn({ event: "embedded.ended" }, "The embedded database stopped unexpectedly; restarting it.");
      if (performance.now() - since > ranWellMs) pauses.reset();
      if (!(await restart())) return;
      // The stop found the previous server.
      if (stopping.signal.aborted) return await running.stop();
    }
  };
  const exited = keep();
  return {
    exited,
    async stop() {
      stopping.abort();
      await running.stop();
      await exited;
    },
  };
}

/** Connection string of the owner of an embedded database while it listens on a port. */
export async function embeddedUrl(dataDir: string, port: number, name = database): Promise<string> {
  return `postgres://${owner}:${await loadOrCreateSecret(dataDir, passwordName)}@127.0.0.1:${port}/${name}`;
}

/** A WAL segment is archived when it is full, or has been in use for that long. */
function archiveSettings(series: string, timeoutSeconds: number): Record<string, string | number> {
  return {
    archive_mode: "on",
    archive_library: "basic_archive",
    "basic_archive.archive_directory": walFolder(series),
    archive_timeout: timeoutSeconds,
  };
}

/** Major version of PostgreSQL of a cluster; undefined without a cluster. */
export async function majorOf(data: string): Promise<number | undefined> {
  const text = await readFile(join(data, "PG_VERSION"), "utf8").catch(() => undefined);
  return text === undefined ? undefined : Number.parseInt(text, 10);
}

async function refuseOtherMajor(data: string, ours: number, shownAs: string): Promise<void> {
  const major = await majorOf(data);
  if (major === undefined || major === ours) return;
  throw new Error(
    major < ours
      ? `The database in ${shownAs} is of PostgreSQL ${major}, and this version comes with ${ours}: run \`npm run upgrade\` with the same settings, which copies it and keeps the old one.`
      : `The database in ${shownAs} is of PostgreSQL ${major}, and this version comes with ${ours}: start the version that it was used with.`,
  );
}

export interface NewCluster {
  initdb: string;
  folder: string;
  data: string;
  password: string;
  runAs: RunAs;
  fast: boolean;
}

interface Cluster {
  postgres: string;
  data: string;
  runAs: RunAs;
  dataDir: string;
  /** Name of our database in it, if it differs. */
  from?: string | undefined;
}

/**
 * Turns a cluster into the embedded one of a data folder: its owner can log in with the stored password, and its
 * database has the expected name. No server runs on it meanwhile.
 */
export async function adoptCluster({
  postgres,
  data,
  runAs,
  dataDir,
  from = database,
}: Cluster): Promise<void> {
  const password = escapeLiteral(await loadOrCreateSecret(dataDir, passwordName));
  await runAlone({ postgres, data, runAs }, [
    `do 'begin if to_regrole(''${owner}'') is null then create role ${owner}; end if; end'`,
    `alter role ${owner} superuser login password ${password}`,
    ...(from === database ? [] : [`alter database ${escapeIdentifier(from)} rename to ${database}`]),
  ]);
}

/** Created beside its final place and moved when complete, so that a crash leaves nothing half done. */
export async function createCluster({
  initdb,
  folder,
  data,
  password,
  runAs,
  fast,
}: NewCluster): Promise<void> {
  // A unique name: processes of an earlier, killed start may run on for a moment, and delete their folder when they
  // fail.
  const unfinished = join(folder, `unfinished-${randomUUID()}`);
  const passwordFile = `${unfinished}.password`;
  await writeFile(passwordFile, password, { mode: 0o600 });
  if (runAs.uid !== undefined && runAs.gid !== undefined) await chown(passwordFile, runAs.uid, runAs.gid);
  // Byte order with Unicode case rules: the same on every machine, and unaffected by library updates.
  const locale = ["--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C", "--encoding=UTF8"];
  const args = [`--pgdata=${unfinished}`, `--username=${owner}`, `--pwfile=${passwordFile}`, ...locale];
  args.push("--auth=scram-sha-256", ...(fast ? ["--no-sync", "--set=scram_iterations=1"] : []));
  try {
    await promisify(execFile)(initdb, args, { ...runAs, cwd: "/", env: { LC_ALL: "C", TZ: "UTC" } });
  } catch (error) {
    const { stderr, message } = error as Error & { stderr?: string };
    throw new Error(`The embedded database could not be created: ${stderr?.trim() || message}`, {
      cause: error,
    });
  }
  await rm(passwordFile);
  await rename(unfinished, data);
}

/**
 * Creates the database of the service unless it exists.
 * @param connectionString of a superuser, to another database of the cluster
 */
export async function createDatabase(connectionString: string): Promise<void> {
  const client = new DatabaseClient({ connectionString });
  await client.connect();
  try {
    const { rowCount } = await client.query("select from pg_database where datname = $1", [database]);
    if (rowCount === 0) await client.query(`create database ${escapeIdentifier(database)}`);
  } finally {
    await client.end();
  }
}
