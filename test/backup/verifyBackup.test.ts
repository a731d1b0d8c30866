/** What is said of base backups that cannot be read. */
import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { createHash } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { gzipSync } from "node:zlib";
import { pack } from "tar-stream";
import { readBackup } from "../../src/backup/verifyBackup.ts";

const content = Buffer.alloc(200_000, "content of a file ");
let folder: string;
let tar: Buffer;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "plat-backup-"));
  const Checksum = createHash("sha256").update(content).digest("hex");
  const manifest = { Files: [{ Path: "base/1", Size: content.length, Checksum }] };
  await writeFile(join(folder, "backup_manifest"), JSON.stringify(manifest));
  const archive = pack();
  archive.entry({ name: "base/1" }, content);
  archive.finalize();
  tar = await buffer(archive);
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const write = (bytes: Buffer) => writeFile(join(folder, "base.tar.gz"), bytes);
const damagedAt = (bytes: Buffer, place: number) => {
  const damaged = Buffer.from(bytes);
  damaged.write("damaged", place);
  return damaged;
};

test("a complete one is read", async () => {
  await write(gzipSync(tar));
  expect(await readBackup(folder)).toEqual({ files: 1, bytes: content.length });
});

test.each<[string, () => Buffer]>([
  ["compressed data", () => damagedAt(gzipSync(tar), 100)],
  ["its header", () => gzipSync(damagedAt(tar, 20))],
  ["its content", () => gzipSync(damagedAt(tar, 1_000))],
  ["its end", () => gzipSync(tar.subarray(0, 100_000))],
  ["the end of compressed data", () => gzipSync(tar).subarray(0, -20)],
  ["everything", () => Buffer.alloc(5_000, "x")],
])("%s can be damaged", async (_part, bytes) => {
  await write(bytes());
  await expect(readBackup(folder)).rejects.toThrow(/^The backup .* is damaged: (base.tar.gz|base\/1) /);
});

test("errors of the receiver and of the file system remain", async () => {
  await write(gzipSync(tar));
  const full = Object.assign(new Error("no space left"), { code: "ENOSPC" });
  await expect(readBackup(folder, () => Promise.reject(full))).rejects.toBe(full);
  await rm(join(folder, "base.tar.gz"));
  await expect(readBackup(folder)).rejects.toMatchObject({ code: "ENOENT" });
});
