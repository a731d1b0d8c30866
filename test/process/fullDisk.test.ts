/**
 * A service with the embedded database whose disk is full: first the data folder, then also the write-ahead log,
 * without which PostgreSQL does not run. Clients are asked to retry, the process continues, and no acknowledged change
 * is lost.
 */
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { cp, readFile } from "node:fs/promises";
import { join } from "node:path";
import { Client, Pool } from "pg";
import { copyDataDir, removeDataDir } from "../../src/database/dataDirs.ts";
import { embeddedUrl } from "../../src/database/embeddedServer.ts";
import { freePort } from "../../src/network/freePort.ts";
import { play, type Fault, type Played } from "../faults/play.ts";
import { mountSmallDisk, type SmallDisk } from "../faults/smallDisk.ts";
import { loadedFolder } from "../harness/demoFolder.ts";
import { signIn } from "../harness/load.ts";
import { runToExit, startService, type Service } from "../harness/service.ts";
import { until } from "../harness/until.ts";

let disk: SmallDisk | undefined;
let service: Service;
let played: Played;
let owner: Pool;

beforeAll(async () => {
  disk = await mountSmallDisk(400).catch((error: unknown) => {
    console.warn(
      `No file system can be mounted here, so no full disk is played: ${(error as Error).message}`,
    );
    return undefined;
  });
  if (!disk) return;
  const loaded = await loadedFolder();
  await copyDataDir(loaded, disk.path);
  await cp(join(loaded, "files"), join(disk.path, "files"), { recursive: true });
  const port = await freePort();
  service = await startService({ env: { DATA_DIR: disk.path, MONITORING: `127.0.0.1:${port}` } });
  const pidFile = await readFile(join(disk.path, "postgres/data/postmaster.pid"), "utf8");
  owner = new Pool({
    connectionString: await embeddedUrl(disk.path, Number(pidFile.split("\n")[3])),
    max: 2,
  });
  owner.on("error", () => {});
  owner.on("connect", (client) => void client.on("error", () => {}));
  const { token, projectId } = await signIn(service.baseUrl);
  played = {
    baseUrl: service.baseUrl,
    monitoring: `http://127.0.0.1:${port}`,
    token,
    projectId,
    owner: () => owner,
  };
});
afterAll(async () => {
  await owner?.end();
  await service?.stop();
  if (!disk) return;
  await removeDataDir(disk.path).catch(() => {});
  await disk[Symbol.asyncDispose]();
});

const outcomesOf = (outcomes: Record<string, number>) => Object.keys(outcomes).toSorted();
const refused = (outcomes: Record<string, number>) =>
  Object.keys(outcomes).some((said) => said.includes("UNAVAILABLE"));
/** Plays a failure; if it does not end well, the logs of the service and its database say why. */
const playLogged = async (fault: Fault) => {
  try {
    return await play(played, fault);
  } catch (cause) {
    const log = await readFile(join(disk!.path, "postgres.log"), "utf8");
    throw new Error(`${service.log().slice(-4_000)}\n${log.slice(-4_000)}`, { cause });
  }
};
const fill = async () => {
  // The WAL has room in a segment of its own; the data files have none.
  await owner.query("checkpoint");
  await owner.query("select pg_switch_wal()");
  disk!.fill();
};

test("the data folder is full: reads succeed, changes are refused until there is space", async () => {
  if (!disk) return;
  const full: Fault = {
    name: "Full",
    begin: fill,
    end: () => disk!.clear(),
    lastsMs: 1_000,
    seen: ({ writers }) => refused(writers),
  };
  const { readers, writers, red, lost } = await playLogged(full);
  expect(outcomesOf(readers)).toEqual(["200"]);
  expect(
    outcomesOf(writers).filter((said) => !["200", "200 UNAVAILABLE, Retry-After: 15"].includes(said)),
  ).toEqual([]);
  expect({ red, lost }).toEqual({ red: ["writes"], lost: 0 });
  expect(service.log()).not.toContain('"event":"embedded.ended"');
});

test("a full disk of the write-ahead log stops the server, which restarts when there is space", async () => {
  if (!disk) return;
  const full: Fault = {
    name: "No log",
    begin: async () => {
      await fill();
      // Until it needs a segment that cannot be created.
      await until(async () => {
        const client = new Client({ ...(owner as unknown as { options: object }).options });
        client.on("error", () => {});
        try {
          await client.connect();
          await client.query("select pg_logical_emit_message(false, 'fill', 'x'), pg_switch_wal()");
        } catch {
          // It stops and restarts until its disk has no segment left.
        } finally {
          await client.end().catch(() => {});
        }
        return service.log().includes('"event":"embedded.start_failed"');
      });
    },
    end: () => disk!.clear(),
    lastsMs: 1_000,
    seen: ({ readers, writers, red }) => refused(readers) && refused(writers) && red.includes("writes"),
  };
  const { readers, writers, red, lost } = await playLogged(full);
  expect(
    [...outcomesOf(readers), ...outcomesOf(writers)].filter(
      (said) => said !== "200" && !/UNAVAILABLE, Retry-After: /.test(said),
    ),
  ).toEqual([]);
  expect({ red, lost }).toEqual({ red: ["database", "writes"], lost: 0 });
  expect(service.log()).toContain("as its disk is full: make room there");
  // A server that restarts itself on a full disk may hang.
  expect((await owner.query("show restart_after_crash")).rows).toEqual([{ restart_after_crash: "off" }]);
});

test("a backup onto a full disk fails with a message, and the next one is complete", async () => {
  if (!disk) return;
  const env = { DATA_DIR: disk.path, ARCHIVE_DIR: join(disk.path, "archive") };
  const backup = () => runToExit({ entry: "src/cli/backup.ts", env });
  disk.fill();
  const broken = await backup();
  disk.clear();
  expect(broken).toMatchObject({
    code: 1,
    stdout: "",
    stderr: expect.stringMatching(/^The disk of ARCHIVE_DIR or DATA_DIR is full/m),
  });
  const { code, stdout, stderr } = await backup();
  expect({ code, stderr }).toEqual({ code: 0, stderr: expect.stringContaining("Reading the backup back") });
  expect(stdout).toContain(" MiB, ");
});
