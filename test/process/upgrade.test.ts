/**
 * A major upgrade of PostgreSQL: an older data folder is refused with instructions, and following them copies each
 * row.
 */
import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { lstat, readdir, readFile, realpath, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { migratedDataDir } from "../../src/cli/migratedDataDir.ts";
import { findBinaries } from "../../src/database/binaries.ts";
import { copyDataDir, removeDataDir } from "../../src/database/dataDirs.ts";
import { startEmbeddedPostgres } from "../../src/database/embeddedServer.ts";
import { onConnection } from "../../src/database/onConnection.ts";
import { scratchFolder } from "../../src/database/scratchFolder.ts";
import { databaseUser } from "../../src/database/systemUser.ts";
import { upgradeDataDir } from "../../src/database/upgradeDataDir.ts";
import { contents, installed, killUpgrade, reduced, reducedRows } from "./upgradeWorld.ts";

let dataDir: string;
const tell = () => {};

beforeEach(async () => {
  dataDir = await scratchFolder("upgrade");
});
afterEach(() => removeDataDir(dataDir));

test("a data folder of another major version is refused with instructions", async () => {
  await copyDataDir(await migratedDataDir(), dataDir);
  const version = join(await realpath(join(dataDir, "postgres")), "data/PG_VERSION");
  const { major } = await findBinaries(databaseUser(undefined));
  expect(Number(await readFile(version, "utf8"))).toBe(major);
  await writeFile(version, `${major - 1}\n`);
  await expect(startEmbeddedPostgres({ dataDir, fast: true })).rejects.toThrow(
    `is of PostgreSQL ${major - 1}, and this version comes with ${major}: run \`npm run upgrade\``,
  );
  await writeFile(version, `${major + 1}\n`);
  await expect(startEmbeddedPostgres({ dataDir, fast: true })).rejects.toThrow(
    /start the version that it was used with/,
  );
  await expect(upgradeDataDir({ dataDir, migrate: async () => {}, tell })).rejects.toThrow(/no way back/);
});

test("each row is copied, sequences continue, the old database is kept; a folder in use or with an error is unchanged", async () => {
  const before = await startEmbeddedPostgres({ dataDir, fast: true });
  await onConnection(before.connectionString, (client) => client.query(`${reduced}; ${reducedRows}`));
  const old = await contents(before.connectionString);
  const idle = { dataDir, migrate: async () => {}, tell };
  await expect(upgradeDataDir(idle)).rejects.toThrow(/Another Plat process is using/);
  await before.stop();
  expect(await upgradeDataDir(idle)).toBeUndefined();

  const options = { dataDir, server: installed(), tell, evenSame: true, fast: true };
  // A differing schema is detected before anything is replaced.
  let migrated = 0;
  const differing = (url: string) =>
    onConnection(url, async (client) => {
      if (migrated++ === 1) await client.query(`${reduced}; create table app_public.further (id int)`);
    });
  await expect(upgradeDataDir({ ...options, migrate: differing })).rejects.toThrow(
    "These tables are in one of the two databases only: app_public.further.",
  );
  const again = await startEmbeddedPostgres({ dataDir, fast: true });
  expect(await contents(again.connectionString)).toEqual(old);
  await again.stop();

  // Killed while rows are copied, it leaves nothing that the previous version would find.
  await killUpgrade(dataDir, installed(), "rows");
  const { connectionString, stop } = await startEmbeddedPostgres({ dataDir, fast: true });
  expect(await contents(connectionString)).toEqual(old);
  const left = "select from pg_publication union all select from pg_replication_slots";
  await onConnection(connectionString, async (client) => expect((await client.query(left)).rowCount).toBe(0));
  await stop();
  expect((await readdir(join(dataDir, "postgres"))).filter((name) => name.startsWith("unfinished"))).toEqual(
    [],
  );

  const migrate = (url: string) => onConnection(url, (client) => client.query(reduced));
  const done = await upgradeDataDir({ ...options, migrate });
  expect(done).toMatchObject({ tables: 4, rows: 75_021, kept: expect.stringMatching(/data\.\d+\.before$/) });
  expect((await lstat(done!.kept)).isDirectory()).toBe(true);
  const after = await startEmbeddedPostgres({ dataDir, fast: true });
  try {
    expect(await contents(after.connectionString)).toEqual(old);
    await onConnection(after.connectionString, async (client) => {
      const { rows } = await client.query(
        "insert into app_public.leads (project_id, email) select id, 'new@example.com' from app_public.projects limit 1 returning number, length",
      );
      expect(rows).toEqual([{ number: "50001", length: 15 }]);
      expect((await client.query("select from pg_subscription")).rowCount).toBe(0);
    });
  } finally {
    await after.stop();
  }
});
