/** A complete service whose database, network, store, clock and disk can fail. */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
// oxlint-disable-next-line no-restricted-imports -- the interval at which the clock is read
import { setTimeout as pause } from "node:timers/promises";
import { Client, Pool } from "pg";
import { copyDataDir, removeDataDir } from "../../src/database/dataDirs.ts";
import { startEmbeddedPostgres, type EmbeddedPostgres } from "../../src/database/embeddedServer.ts";
import { freePort } from "../../src/network/freePort.ts";
import { secretKeys } from "../harness/api.ts";
import { testCertificate, type Certificate } from "../harness/certificate.ts";
import { demoFolder, loadedFolder } from "../harness/demoFolder.ts";
import { signIn } from "../harness/load.ts";
import { startProxy, type Proxy } from "../harness/proxy.ts";
import { postmasterPid, startService, temporaryFolder, type Service } from "../harness/service.ts";
import { startS3, type S3 } from "../harness/s3.ts";
import { until } from "../harness/until.ts";
import type { Fault, Played } from "./play.ts";
import { mountSmallDisk, type SmallDisk } from "./smallDisk.ts";

export interface Stage extends AsyncDisposable {
  played: Played;
  service: Service;
  /** Proxies to the database and to the store. */
  database: Proxy;
  store: Proxy;
  s3: S3;
  disk: SmallDisk | undefined;
  /** The files of TLS_CERT and TLS_KEY, and their original contents. */
  tls: { cert: string; key: string; was: Certificate };
  /** Shifts the clock of the service, by milliseconds. */
  setClock(offMs: number): Promise<void>;
  /** Not through the proxy. */
  owner: Pool;
  organizationId: string;
  faults: Record<"frozen" | "full" | "away" | "silent" | "slow" | "crowded" | "readOnly", Fault>;
}

const diskMegabytes = 400;

/** Signals all processes of the server of a data folder. */
async function signalServer(dataDir: string, signal: NodeJS.Signals): Promise<void> {
  const pid = await postmasterPid(dataDir);
  const children = (await readFile(`/proc/${pid}/task/${pid}/children`, "utf8"))
    .trim()
    .split(" ")
    .map(Number);
  // The postmaster last, because it would restart the others.
  for (const one of [pid, ...children]) process.kill(one, signal);
}

/**
 * @param env further settings of the service
 * @param startServer starts the database of a data folder. Default: as the service does
 */
export async function startStage(
  env: NodeJS.ProcessEnv = {},
  startServer: (dataDir: string) => Promise<Pick<EmbeddedPostgres, "connectionString" | "stop">> = (
    dataDir,
  ) => startEmbeddedPostgres({ dataDir }),
): Promise<Stage> {
  const disposals: (() => unknown)[] = [];
  const dispose = async () => {
    for (const step of disposals.splice(0).reverse()) await step();
  };
  try {
    const disk = await mountSmallDisk(diskMegabytes).catch((error: unknown) => {
      console.warn(
        `No file system can be mounted here, so no full disk is played: ${(error as Error).message}`,
      );
      return undefined;
    });
    let folder: string;
    if (disk) {
      disposals.push(() => disk[Symbol.asyncDispose]());
      folder = disk.path;
      await copyDataDir(await loadedFolder(), folder);
      disposals.push(() => removeDataDir(folder).catch(() => {}));
    } else {
      const made = await demoFolder();
      disposals.push(() => made[Symbol.asyncDispose]());
      folder = made.path;
    }
    const data = await temporaryFolder();
    disposals.push(() => data[Symbol.asyncDispose]());
    // As in production: acknowledged changes are durable.
    const postgres = await startServer(folder);
    disposals.push(() => postgres.stop());
    const database = await startProxy(Number(new URL(postgres.connectionString).port));
    disposals.push(() => database[Symbol.asyncDispose]());
    const s3 = await startS3(join(data.path, "s3"));
    disposals.push(() => s3.close());
    const store = await startProxy(Number(new URL(s3.options.endpoint!).port));
    disposals.push(() => store[Symbol.asyncDispose]());
    const port = await freePort();
    const was = await testCertificate();
    const tls = { cert: join(data.path, "cert.pem"), key: join(data.path, "key.pem"), was };
    await writeFile(tls.cert, was.cert);
    await writeFile(tls.key, was.key);
    const clock = join(data.path, "clock");
    const setClock = async (offMs: number) => {
      await writeFile(clock, String(offMs));
      // The next process reads the file.
      await pause(50);
    };
    const service = await startService({
      env: {
        DATABASE_URL: database.through(postgres.connectionString),
        DATA_DIR: join(data.path, "service"),
        TLS_CERT: tls.cert,
        TLS_KEY: tls.key,
        NODE_OPTIONS: `--import=${join(import.meta.dirname, "clock.mjs")}`,
        CLOCK_FILE: clock,
        MAIL: "outbox",
        MONITORING: `127.0.0.1:${port}`,
        SECRET_KEYS: secretKeys.map(({ kid, secret }) => `${kid}:${secret}`).join(","),
        JWT_KEYS: `a:${"k".repeat(32)}`,
        S3_BUCKET: s3.options.bucket,
        S3_ENDPOINT: store.through(s3.options.endpoint!).replace(/\/$/, ""),
        S3_REGION: s3.options.region,
        S3_ACCESS_KEY_ID: s3.options.credentials!.accessKeyId,
        S3_SECRET_ACCESS_KEY: s3.options.credentials!.secretAccessKey,
        ...env,
      },
    });
    disposals.push(() => service.stop());
    const owner = new Pool({ connectionString: postgres.connectionString, max: 2 });
    owner.on("error", () => {});
    owner.on("connect", (client) => void client.on("error", () => {}));
    disposals.push(() => owner.end());
    const { token, projectId, organizationId } = await signIn(service.baseUrl);
    const changes = async (value: string) => {
      await owner.query(`alter system set default_transaction_read_only = ${value}`);
      await owner.query("select pg_reload_conf()");
    };
    const crowd: Client[] = [];
    /** Waits until the load balancer has noticed, however slow the machine is. */
    const isTold = ({ red }: { red: readonly string[] }) =>
      red.includes("database") && red.includes("writes");
    const refused = (outcome: { writers: Record<string, number> }) =>
      Object.keys(outcome.writers).some((reply) => reply.includes("UNAVAILABLE"));
    return {
      service,
      database,
      store,
      s3,
      disk,
      tls,
      setClock,
      owner,
      organizationId,
      played: {
        baseUrl: service.baseUrl,
        monitoring: `http://127.0.0.1:${port}`,
        token,
        projectId,
        owner: () => owner,
      },
      faults: {
        frozen: {
          name: "The server is stopped (SIGSTOP)",
          begin: () => signalServer(folder, "SIGSTOP"),
          end: () => signalServer(folder, "SIGCONT"),
          lastsMs: 500,
          seen: isTold,
        },
        full: {
          name: "The disk is full",
          begin: async () => {
            // Log segments have space, but the data files have none.
            await owner.query("checkpoint");
            await owner.query("select pg_switch_wal()");
            disk?.fill();
          },
          end: () => disk?.clear(),
          lastsMs: 1_000,
          seen: refused,
        },
        away: {
          name: "Connections are cut and refused",
          begin: () => database.shut(),
          end: () => database.open(),
          lastsMs: 1_000,
          seen: isTold,
        },
        silent: {
          name: "Packets are swallowed",
          begin: () => database.hush(),
          end: () => database.open(),
          lastsMs: 1_000,
          seen: isTold,
        },
        slow: {
          name: "500 ms of latency",
          begin: () => database.delay(250),
          end: () => database.delay(0),
          lastsMs: 3_000,
        },
        crowded: {
          name: "No connection is free",
          begin: async () => {
            // A superuser uses the reserved connections as well.
            for (let tries = 0; tries < 1_000; tries += 1) {
              const client = new Client({
                connectionString: postgres.connectionString,
                application_name: "crowd",
              });
              client.on("error", () => {});
              try {
                await client.connect();
                crowd.push(client);
              } catch (error) {
                if ((error as { code?: string }).code !== "53300") throw error;
                const { rows } = await crowd[0]!.query<{ ended: boolean }>(
                  `select pg_terminate_backend(pid) as ended from pg_stat_activity
                   where backend_type = 'client backend' and application_name <> 'crowd'`,
                );
                if (rows.length === 0) return;
              }
            }
            throw new Error("There is still a free connection.");
          },
          end: async () => {
            await Promise.all(crowd.splice(0).map((client) => client.end()));
          },
          lastsMs: 1_000,
          seen: refused,
        },
        readOnly: {
          name: "The server takes no changes",
          begin: () => changes("on"),
          end: async () => {
            await owner.query("set session characteristics as transaction read write");
            await changes("default");
          },
          lastsMs: 1_000,
          seen: refused,
        },
      },
      [Symbol.asyncDispose]: dispose,
    };
  } catch (error) {
    await dispose();
    throw error;
  }
}

/** Waits until the service reports that it is ready. */
export const ready = ({ played }: Stage) =>
  until(async () => (await fetch(`${played.monitoring}/readyz`)).status === 200, Boolean, {
    withinMs: 30_000,
  });
