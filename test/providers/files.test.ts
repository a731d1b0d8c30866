import { randomBytes } from "node:crypto";
import { mkdir, mkdtemp, readdir, rm, stat, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { CreateMultipartUploadCommand, S3Client, UploadPartCommand } from "@aws-sdk/client-s3";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { createFileStore, FileStoreFailed, type FileStore } from "../../src/providers/files/index.ts";
import { startS3, type S3 } from "../harness/s3.ts";

// Both stores have the same behaviour: one in a folder, one in a server that speaks the S3 protocol.

let folder: string;
let server: S3;
const stores: Record<string, () => FileStore> = {
  "the folder": () => createFileStore({ dataDir: folder }),
  "the S3-compatible store": () => createFileStore({ s3: server.options, dataDir: folder }),
};

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "plat-stores-"));
  server = await startS3(join(folder, "s3"));
});
afterAll(async () => {
  await server.close();
  await rm(folder, { recursive: true, force: true });
});

const newKey = () => randomBytes(32).toString("hex");
const type = "application/pdf";
const putBytes = (store: FileStore, key: string, bytes: Buffer) =>
  store.put(key, Readable.from([bytes]), { size: bytes.length, type });

describe.each(Object.keys(stores))("%s", (name) => {
  let store: FileStore;
  beforeAll(() => {
    store = stores[name]!();
  });
  afterAll(() => store.close());

  test("returns stored content, completely and in part", async () => {
    const [key, bytes] = [newKey(), randomBytes(100_000)];
    await putBytes(store, key, bytes);
    expect(await store.size(key)).toBe(100_000);
    expect((await buffer((await store.get(key))!)).equals(bytes)).toBe(true);
    expect(
      (await buffer((await store.get(key, { start: 10, end: 19 }))!)).equals(bytes.subarray(10, 20)),
    ).toBe(true);
    expect((await buffer((await store.get(key, { start: 99_999, end: 99_999 }))!)).length).toBe(1);
  });

  test("accepts content in chunks, larger than one part", async () => {
    const key = newKey();
    const piece = randomBytes(1_000_000);
    const pieces = Readable.from(Array.from({ length: 12 }, () => piece));
    await store.put(key, pieces, { size: 12_000_000, type });
    expect(await store.size(key)).toBe(12_000_000);
    const from = await buffer((await store.get(key, { start: 11_000_000, end: 11_999_999 }))!);
    expect(from.equals(piece)).toBe(true);
  });

  test("accepts a file", async () => {
    const [key, bytes, path] = [newKey(), randomBytes(7_000_000), join(folder, newKey())];
    await writeFile(path, bytes);
    await store.put(key, { path }, { size: bytes.length, type });
    expect((await buffer((await store.get(key))!)).equals(bytes)).toBe(true);
  });

  test("accepts the same content again, also concurrently", async () => {
    const [key, bytes] = [newKey(), randomBytes(1000)];
    await Promise.all([1, 2, 3].map(() => putBytes(store, key, bytes)));
    await putBytes(store, key, bytes);
    expect((await buffer((await store.get(key))!)).equals(bytes)).toBe(true);
  });

  test("stores nothing of incomplete content", async () => {
    const key = newKey();
    const broken = Readable.from(
      (async function* () {
        yield randomBytes(6_000_000);
        throw new Error("broke off");
      })(),
    );
    await expect(store.put(key, broken, { size: 9_000_000, type })).rejects.toThrow("broke off");
    expect([await store.size(key), await store.get(key)]).toEqual([undefined, undefined]);
  });

  test("reports missing content, and deletes existing content", async () => {
    const [gone, there] = [newKey(), `${newKey()}.thumbnail`];
    expect([await store.size(gone), await store.get(gone)]).toEqual([undefined, undefined]);
    await putBytes(store, there, Buffer.from("x"));
    await store.delete([gone, there]);
    await store.delete([there]);
    await store.delete([]);
    expect(await store.size(there)).toBeUndefined();
  });
});

test("the folder is not accessible to others, and keys cannot leave it", async () => {
  const dataDir = await mkdtemp(join(folder, "own-"));
  const store = createFileStore({ dataDir });
  const key = newKey();
  await putBytes(store, key, Buffer.from("x"));
  const path = join(dataDir, "files", key.slice(0, 2));
  expect((await stat(path)).mode & 0o777).toBe(0o700);
  expect((await stat(join(path, key.slice(2)))).mode & 0o777).toBe(0o600);
  expect(await readdir(join(dataDir, "files", "unfinished"))).toEqual([]);
  for (const bad of ["../../etc/passwd", "a/b", "", "AB", "abc..d"])
    await expect(store.get(bad)).rejects.toThrow("Not a valid key");
});

test("unfinished uploads are swept when they are old", async () => {
  const { bucket, ...options } = server.options;
  const client = new S3Client({ ...options, forcePathStyle: true });
  const begin = () => client.send(new CreateMultipartUploadCommand({ Bucket: bucket, Key: newKey() }));
  const { UploadId, Key } = await begin();
  await client.send(
    new UploadPartCommand({ Bucket: bucket, Key, UploadId, PartNumber: 1, Body: randomBytes(1000) }),
  );
  await begin();
  client.destroy();
  const unfinished = join(folder, "files", "unfinished");
  await mkdir(unfinished, { recursive: true });
  for (const name of ["old.part", "new.part"]) await writeFile(join(unfinished, name), "x");
  const anHourAgo = new Date(Date.now() - 3_600_000);
  await utimes(join(unfinished, "old.part"), anHourAgo, anHourAgo);

  const before = new Date(Date.now() - 1_800_000);
  for (const open of Object.values(stores)) {
    const store = open();
    await store.sweep(before);
    await store.close();
  }
  expect(await readdir(unfinished)).toEqual(["new.part"]);
  expect(await server.unfinished()).toHaveLength(2);
  const store = stores["the S3-compatible store"]!();
  await store.sweep(new Date(Date.now() + 2000));
  await store.close();
  expect(await server.unfinished()).toEqual([]);
});

test("an unreachable store, or one that refuses the key, is reported", async () => {
  const away = createFileStore({
    s3: { ...server.options, endpoint: "http://127.0.0.1:9" },
    dataDir: folder,
  });
  await expect(putBytes(away, newKey(), Buffer.from("x"))).rejects.toThrow(FileStoreFailed);
  await expect(away.get(newKey())).rejects.toThrow(FileStoreFailed);
  const stranger = createFileStore({
    s3: { ...server.options, credentials: { accessKeyId: "nobody", secretAccessKey: "wrong" } },
    dataDir: folder,
  });
  await expect(putBytes(stranger, newKey(), Buffer.from("x"))).rejects.toThrow(FileStoreFailed);
  await expect(stranger.delete([newKey()])).rejects.toThrow(FileStoreFailed);
  await Promise.all([away.close(), stranger.close()]);
});
