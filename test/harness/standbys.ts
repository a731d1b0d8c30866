/** A primary and standbys with streaming replication, with the demo data. */
import { execFileSync } from "node:child_process";
import { createWriteStream } from "node:fs";
import { appendFile, chmod, mkdir, readFile, realpath, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { finished } from "node:stream/promises";
import { baseBackup } from "../../src/backup/baseBackup.ts";
import { findBinaries } from "../../src/database/binaries.ts";
import { embeddedSettings, embeddedUrl, fastSettings } from "../../src/database/embeddedServer.ts";
import { onConnection } from "../../src/database/onConnection.ts";
import { type Postmaster, startPostmaster } from "../../src/database/postmaster.ts";
import { databaseUser, type RunAs } from "../../src/database/systemUser.ts";
import { demoFolder } from "./demoFolder.ts";
import { until } from "./until.ts";

const settings = {
  ...embeddedSettings,
  ...fastSettings,
  wal_level: "replica",
  max_wal_senders: 10,
  // With synchronous replication, a commit waits for a standby.
  synchronous_commit: "on",
};

export interface Server {
  /** Connection string of the owner, a superuser, for this server only. */
  readonly url: string;
  readonly port: number;
  sql<Row extends object>(text: string): Promise<Row[]>;
}

export interface Standby extends Server {
  /** Kills it (SIGKILL). */
  kill(): Promise<void>;
  /** Starts it again on its port. */
  start(): Promise<void>;
}

export interface Replication extends AsyncDisposable {
  readonly primary: Server;
  readonly standbys: readonly Standby[];
  /** Connection string with all servers, whichever is the primary. */
  url(servers: readonly Server[]): string;
  /** Kills the primary (SIGKILL). */
  killPrimary(): Promise<void>;
}

export async function startReplication(standbys: number): Promise<Replication> {
  const folder = await demoFolder();
  const cluster = await realpath(join(folder.path, "postgres"));
  const data = join(cluster, "data");
  const runAs = databaseUser(data);
  const { postgres } = await findBinaries(runAs);
  const started: Postmaster[] = [];
  const stop = async () => {
    await Promise.all(started.toReversed().map((server) => server.stop()));
    await folder[Symbol.asyncDispose]();
  };
  const start = async (from: string, standby: boolean, port?: number): Promise<Server> => {
    const logFile = join(cluster, "..", `${standby ? "standby" : "primary"}${started.length}.log`);
    const server = await startPostmaster({ postgres, data: from, logFile, runAs, settings, port });
    started.push(server);
    return serverAt(await embeddedUrl(folder.path, server.port), server.port);
  };
  const startStandby = async (from: string): Promise<Standby> => {
    const server = await start(from, true);
    let postmaster = started.at(-1)!;
    return {
      ...server,
      kill: async () => {
        process.kill(await pidOf(from), "SIGKILL");
        await postmaster.exited;
      },
      start: async () => {
        await start(from, true, server.port);
        postmaster = started.at(-1)!;
      },
    };
  };
  try {
    const primary = await start(data, false);
    const copies: Standby[] = [];
    for (let n = 1; n <= standbys; n += 1)
      copies.push(await startStandby(await copy(primary, join(cluster, `standby${n}`), runAs)));
    return {
      primary,
      standbys: copies,
      url: (servers) => {
        const hosts = servers.map(({ port }) => `127.0.0.1:${port}`).join(",");
        return `${primary.url.replace(`127.0.0.1:${primary.port}`, hosts)}?target_session_attrs=read-write`;
      },
      killPrimary: async () => {
        process.kill(await pidOf(data), "SIGKILL");
        await started[0]!.exited;
      },
      [Symbol.asyncDispose]: stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

const serverAt = (url: string, port: number): Server => ({
  url,
  port,
  sql: async <Row extends object>(text: string) =>
    (await onConnection(url, (client) => client.query<Row>(text))).rows,
});

const pidOf = async (data: string): Promise<number> =>
  Number((await readFile(join(data, "postmaster.pid"), "utf8")).split("\n")[0]);

/** Copies the primary into a data folder for a standby. */
async function copy(primary: Server, folder: string, { uid, gid }: RunAs): Promise<string> {
  await mkdir(folder);
  const [tar, manifest] = ["base.tar", "manifest"].map((name) => createWriteStream(join(folder, `.${name}`)));
  await baseBackup({ connectionString: primary.url, tar: tar!, manifest: manifest! });
  await Promise.all([finished(tar!), finished(manifest!)]);
  execFileSync("tar", ["-xf", join(folder, ".base.tar"), "-C", folder]);
  for (const name of [".base.tar", ".manifest"]) await rm(join(folder, name));
  const source = new URL(primary.url);
  source.searchParams.set("application_name", "standby");
  await appendFile(join(folder, "postgresql.auto.conf"), `\nprimary_conninfo = '${source.href}'\n`);
  await writeFile(join(folder, "standby.signal"), "");
  await chmod(folder, 0o700);
  if (uid !== undefined) execFileSync("chown", ["-R", `${uid}:${gid}`, folder]);
  return folder;
}

/**
 * Promotes the standby that has received the most WAL.
 * @returns it
 */
export async function promote(standbys: readonly Server[]): Promise<Server> {
  const received = await Promise.all(
    standbys.map(async (server) => {
      const [row] = await server.sql<{ bytes: string }>(
        "select pg_last_wal_receive_lsn() - '0/0'::pg_lsn as bytes",
      );
      return { server, bytes: BigInt(row!.bytes) };
    }),
  );
  const [first] = received.toSorted((one, other) => (one.bytes > other.bytes ? -1 : 1));
  await first!.server.sql("select pg_promote()");
  await until(
    async () =>
      (await first!.server.sql<{ over: boolean }>("select not pg_is_in_recovery() as over"))[0]!.over,
  );
  return first!.server;
}
