import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { mkdir, mkdtemp, readdir, rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  allBackups,
  archivedLog,
  backupsFolder,
  openSeries,
  prune,
  walFolder,
  type BackupFacts,
} from "../../src/database/backupSeries.ts";
import { segmentName } from "../../src/backup/takeBackup.ts";
import { archivedStore } from "../../src/providers/files/contents.ts";
import { createLocalFolder } from "../../src/providers/files/localFolder.ts";

let folder: string;
let archive: string;
let series: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "plat-archive-"));
  archive = join(folder, "archive");
  await mkdir(join(folder, "data"));
  series = await openSeries(archive, join(folder, "data"), {});
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const keyOf = (digit: number) => String(digit).repeat(64);
const contents = async (store = join(archive, "files")) =>
  (await readdir(store, { recursive: true })).filter((name) => name.length > 60).toSorted();

/** A backup that began on that day of January, and lists these contents. */
async function backup(day: number, listed: string[]): Promise<void> {
  const at = new Date(Date.UTC(2026, 0, day)).toISOString();
  const place = join(backupsFolder(series), at.replace(/[:.]/g, "-"));
  await mkdir(place);
  const facts = {
    startedAt: at,
    finishedAt: at,
    firstSegment: segmentName(`${day}/0`, 1, 2 ** 24),
  } as BackupFacts;
  await writeFile(join(place, "contents.txt"), listed.join("\n"));
  await writeFile(join(place, "backup.json"), JSON.stringify(facts));
}

async function content(digit: number, day: number): Promise<void> {
  const path = join(archive, "files", keyOf(digit).slice(0, 2), keyOf(digit).slice(2));
  await mkdir(join(path, ".."), { recursive: true });
  await writeFile(path, "content");
  await utimes(path, new Date(Date.UTC(2026, 0, day)), new Date(Date.UTC(2026, 0, day)));
}

test("names of segments equal those of PostgreSQL", () => {
  // Results of pg_walfile_name, for segments of 16 MB and of 1 GB.
  expect(segmentName("0/7000028", 1, 2 ** 24)).toBe("000000010000000000000007");
  expect(segmentName("2A/FF000000", 3, 2 ** 24)).toBe("000000030000002A000000FF");
  expect(segmentName("1/C0000001", 1, 2 ** 30)).toBe("000000010000000100000003");
});

test("the last backups are kept, with the WAL since the first of them and the contents needed since then", async () => {
  for (const [day, listed] of [
    [1, [1, 2]],
    [3, [2, 3]],
    [5, [3]],
  ] as const)
    await backup(day, listed.map(keyOf));
  for (const day of [1, 2, 3, 4])
    await writeFile(
      join(walFolder(series), `${segmentName(`${day}/0`, 1, 2 ** 24)}${day < 4 ? ".gz" : ""}`),
      "",
    );
  await writeFile(join(walFolder(series), "00000002.history"), "");
  // 1 was deleted before the second backup, 2 before the third, 3 after it; 4 was created after the second
  // and deleted, 5 still exists.
  for (const [digit, day] of [
    [1, 0],
    [2, 0],
    [3, 2],
    [4, 4],
    [5, 0],
  ] as const)
    await content(digit, day);

  await prune(archive, series, 2, new Set([keyOf(5)]));
  expect((await allBackups(archive)).map(({ facts }) => facts.startedAt.slice(0, 10))).toEqual([
    "2026-01-03",
    "2026-01-05",
  ]);
  expect(await archivedLog(series)).toEqual([
    "000000010000000300000000.gz",
    "000000010000000400000000",
    "00000002.history",
  ]);
  expect((await contents()).map((name) => name[0])).toEqual(["2", "3", "4", "5"]);
  await prune(archive, series, 1, new Set([keyOf(5)]));
  expect((await contents()).map((name) => name[0])).toEqual(["3", "5"]);
});

test("an unfinished backup is ignored", async () => {
  await mkdir(join(backupsFolder(series), "2026-01-01T00-00-00-000Z"));
  expect(await allBackups(archive)).toEqual([]);
});

test("a data folder keeps its series, another one has another", async () => {
  expect(await openSeries(archive, join(folder, "data"), {})).toBe(series);
  await mkdir(join(folder, "other"));
  expect(await openSeries(archive, join(folder, "other"), {})).not.toBe(series);
});

test("the archive contains content once it is stored, and keeps it after deletion", async () => {
  const place = join(folder, "files");
  const store = archivedStore(createLocalFolder(place), archive);
  const path = join(folder, "picture");
  await writeFile(path, "picture");
  await store.put(keyOf(7), { path }, { size: 7, type: "image/png" });
  expect([await contents(place), await contents()]).toEqual([
    [`77/${keyOf(7).slice(2)}`],
    [`77/${keyOf(7).slice(2)}`],
  ]);
  await store.delete([keyOf(7)]);
  expect([await contents(place), await contents()]).toEqual([[], [`77/${keyOf(7).slice(2)}`]]);
});
