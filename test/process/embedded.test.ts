import { expect, test } from "@jest/globals";
import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Client } from "pg";
import { startEmbeddedPostgres } from "../../src/database/embeddedServer.ts";
import { migratedFolder, postmasterPid, temporaryFolder } from "../harness/service.ts";
import { until } from "../harness/until.ts";

async function ask(connectionString: string, text: string): Promise<unknown[]> {
  const client = new Client({ connectionString });
  await client.connect();
  try {
    return (await client.query<Record<string, unknown>>(text)).rows;
  } finally {
    await client.end();
  }
}

test("is durable, requires the password, and only listens on loopback", async () => {
  await using folder = await temporaryFolder();
  const first = await startEmbeddedPostgres({ dataDir: folder.path });
  await ask(first.connectionString, "create table kept as select 1 as one");
  await first.stop();
  const second = await startEmbeddedPostgres({ dataDir: folder.path });
  try {
    expect(await ask(second.connectionString, "table kept")).toEqual([{ one: 1 }]);
    const settings =
      "select current_setting('listen_addresses') as addresses, current_setting('fsync') as fsync, current_setting('synchronous_commit') as commit, current_setting('server_version_num')::int >= 180000 as recent";
    expect(await ask(second.connectionString, settings)).toEqual([
      { addresses: "127.0.0.1", fsync: "on", commit: "on", recent: true },
    ]);
    const wrong = new URL(second.connectionString);
    wrong.password = "wrong";
    await expect(ask(wrong.href, "select 1")).rejects.toMatchObject({ code: "28P01" });
  } finally {
    await second.stop();
  }
});

test("one folder serves one database at a time, and is released after stopping", async () => {
  await using folder = await temporaryFolder();
  const first = await startEmbeddedPostgres({ dataDir: folder.path, fast: true });
  await expect(startEmbeddedPostgres({ dataDir: folder.path, fast: true })).rejects.toThrow(
    /^Another Plat process is using/,
  );
  await first.stop();
  await first.exited;
  await (await startEmbeddedPostgres({ dataDir: folder.path, fast: true })).stop();
});

test("a start that was killed while it created the cluster is repaired by the next", async () => {
  await using folder = await temporaryFolder();
  await (await startEmbeddedPostgres({ dataDir: folder.path, fast: true })).stop();
  const half = join(folder.path, "postgres", "unfinished");
  await mkdir(half);
  await writeFile(join(half, "PG_VERSION"), "18\n");
  await (await startEmbeddedPostgres({ dataDir: folder.path, fast: true })).stop();
  await expect(readFile(join(half, "PG_VERSION"))).rejects.toMatchObject({ code: "ENOENT" });
});

test("an upgrade that was killed while it moved the new cluster into place is completed by the next start", async () => {
  await using folder = await temporaryFolder();
  const first = await startEmbeddedPostgres({ dataDir: folder.path, fast: true });
  await ask(first.connectionString, "create table kept as select 1 as one");
  await first.stop();
  const postgres = join(folder.path, "postgres");
  await mkdir(join(postgres, "unfinished-upgrade"), { mode: 0o711 });
  await rename(join(postgres, "data"), join(postgres, "unfinished-upgrade", "data"));
  const next = await startEmbeddedPostgres({ dataDir: folder.path, fast: true });
  try {
    expect(await ask(next.connectionString, "table kept")).toEqual([{ one: 1 }]);
  } finally {
    await next.stop();
  }
});

test("a killed server is started again once its remaining processes have ended", async () => {
  await using folder = await migratedFolder();
  const first = await startEmbeddedPostgres({ dataDir: folder.path, fast: true });
  const pid = await postmasterPid(folder.path);
  const children = await readFile(`/proc/${pid}/task/${pid}/children`, "utf8");
  const [one] = children.trim().split(" ").map(Number);
  process.kill(one!, "SIGSTOP");
  process.kill(pid, "SIGKILL");
  await first.exited;
  const starting = startEmbeddedPostgres({ dataDir: folder.path, fast: true });
  const log = join(folder.path, "postgres.log");
  await until(async () => (await readFile(log, "utf8")).includes("pre-existing shared memory block"));
  process.kill(one!, "SIGCONT");
  const second = await starting;
  expect(await ask(second.connectionString, "select 1 as one")).toEqual([{ one: 1 }]);
  await second.stop();
});

test("a server that cannot be started again has ended, and its folder is released", async () => {
  await using folder = await migratedFolder();
  const database = await startEmbeddedPostgres({ dataDir: folder.path, fast: true, againForMs: 0 });
  const [control, away] = ["global", "away"].map((name) => join(folder.path, "postgres", "data", name));
  await rename(control!, away!);
  process.kill(await postmasterPid(folder.path), "SIGKILL");
  await database.exited;
  await rename(away!, control!);
  const next = await startEmbeddedPostgres({ dataDir: folder.path, fast: true, againForMs: 0 });
  // A stopped server is not started again.
  await next.stop();
  await expect(postmasterPid(folder.path)).rejects.toMatchObject({ code: "ENOENT" });
});

test("a reused process id in the pid file does not prevent a start", async () => {
  await using folder = await temporaryFolder();
  await (await startEmbeddedPostgres({ dataDir: folder.path, fast: true })).stop();
  const data = join(folder.path, "postgres", "data");
  await writeFile(join(data, "postmaster.pid"), `${process.pid}\n${data}\n0\n5432\n\n\n\nready\n`);
  const next = await startEmbeddedPostgres({ dataDir: folder.path, fast: true });
  expect(await ask(next.connectionString, "select 1 as one")).toEqual([{ one: 1 }]);
  await next.stop();
});

test("a start that takes long after a crash is reported, not interrupted", async () => {
  await using folder = await temporaryFolder();
  const first = await startEmbeddedPostgres({ dataDir: folder.path, fast: true });
  await ask(first.connectionString, "create table kept (n int)");
  await ask(
    first.connectionString,
    "set synchronous_commit = on; insert into kept select generate_series(1, 300000)",
  );
  process.kill(await postmasterPid(folder.path), "SIGKILL");
  await first.exited;
  const notes: Record<string, unknown>[] = [];
  const note = (facts: object) => void notes.push({ ...facts });
  const second = await startEmbeddedPostgres({
    dataDir: folder.path,
    fast: true,
    logger: { info: note, warn: note },
    slowMs: 5,
  });
  try {
    expect(notes).toContainEqual({ event: "embedded.slow_start", seconds: expect.any(Number) });
    expect(await ask(second.connectionString, "select count(*)::int as n from kept")).toEqual([
      { n: 300_000 },
    ]);
  } finally {
    await second.stop();
  }
});
