import { randomBytes } from "node:crypto";
import { mkdtemp, readdir, rm, stat, writeFile } from "node:fs/promises";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import S3rver from "s3rver";
import {
  createFileStore,
  FileStoreFailed,
  type FileStore,
  type S3Options,
} from "../../src/providers/files/index.ts";

// Both stores keep the same promises: one in a folder, one in a server that speaks the S3 protocol.

let folder: string;
let server: S3rver;
let s3: S3Options;
const stores: Record<string, () => FileStore> = {
  "the folder": () => createFileStore({ dataDir: folder }),
  "the S3-compatible store": () => createFileStore({ s3, dataDir: folder }),
};

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "plat-stores-"));
  server = new S3rver({
    port: 0,
    address: "127.0.0.1",
    silent: true,
    directory: join(folder, "s3"),
    configureBuckets: [{ name: "plat", configs: [] }],
  });
  const { port }: AddressInfo = await server.run();
  s3 = {
    bucket: "plat",
    region: "us-east-1",
    endpoint: `http://127.0.0.1:${port}`,
    credentials: { accessKeyId: "S3RVER", secretAccessKey: "S3RVER" },
  };
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

  test("gives back what it took, whole and in part", async () => {
    const [key, bytes] = [newKey(), randomBytes(100_000)];
    await putBytes(store, key, bytes);
    expect(await store.size(key)).toBe(100_000);
    expect((await buffer((await store.get(key))!)).equals(bytes)).toBe(true);
    expect(
      (await buffer((await store.get(key, { start: 10, end: 19 }))!)).equals(bytes.subarray(10, 20)),
    ).toBe(true);
    expect((await buffer((await store.get(key, { start: 99_999, end: 99_999 }))!)).length).toBe(1);
  });

  test("takes a content that arrives in pieces, larger than one part", async () => {
    const key = newKey();
    const piece = randomBytes(1_000_000);
    const pieces = Readable.from(Array.from({ length: 12 }, () => piece));
    await store.put(key, pieces, { size: 12_000_000, type });
    expect(await store.size(key)).toBe(12_000_000);
    const from = await buffer((await store.get(key, { start: 11_000_000, end: 11_999_999 }))!);
    expect(from.equals(piece)).toBe(true);
  });

  test("takes a file", async () => {
    const [key, bytes, path] = [newKey(), randomBytes(7_000_000), join(folder, newKey())];
    await writeFile(path, bytes);
    await store.put(key, { path }, { size: bytes.length, type });
    expect((await buffer((await store.get(key))!)).equals(bytes)).toBe(true);
  });

  test("takes the same content again, also at the same time", async () => {
    const [key, bytes] = [newKey(), randomBytes(1000)];
    await Promise.all([1, 2, 3].map(() => putBytes(store, key, bytes)));
    await putBytes(store, key, bytes);
    expect((await buffer((await store.get(key))!)).equals(bytes)).toBe(true);
  });

  test("keeps nothing of a content that broke off", async () => {
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

  test("says that there is nothing, and deletes what is there", async () => {
    const [gone, there] = [newKey(), `${newKey()}.thumbnail`];
    expect([await store.size(gone), await store.get(gone)]).toEqual([undefined, undefined]);
    await putBytes(store, there, Buffer.from("x"));
    await store.delete([gone, there]);
    await store.delete([there]);
    await store.delete([]);
    expect(await store.size(there)).toBeUndefined();
  });
});

test("the folder keeps out of others' hands, and keys within it", async () => {
  const store = stores["the folder"]!();
  const key = newKey();
  await putBytes(store, key, Buffer.from("x"));
  const path = join(folder, "files", key.slice(0, 2));
  expect((await stat(path)).mode & 0o777).toBe(0o700);
  expect((await stat(join(path, key.slice(2)))).mode & 0o777).toBe(0o600);
  expect((await readdir(path)).filter((file) => file.endsWith(".part"))).toEqual([]);
  for (const bad of ["../../etc/passwd", "a/b", "", "AB", "abc..d"])
    await expect(store.get(bad)).rejects.toThrow("no key");
});

test("a store that cannot be reached, or refuses the key, says so", async () => {
  const away = createFileStore({ s3: { ...s3, endpoint: "http://127.0.0.1:9" }, dataDir: folder });
  await expect(putBytes(away, newKey(), Buffer.from("x"))).rejects.toThrow(FileStoreFailed);
  await expect(away.get(newKey())).rejects.toThrow(FileStoreFailed);
  const stranger = createFileStore({
    s3: { ...s3, credentials: { accessKeyId: "nobody", secretAccessKey: "wrong" } },
    dataDir: folder,
  });
  await expect(putBytes(stranger, newKey(), Buffer.from("x"))).rejects.toThrow(FileStoreFailed);
  await expect(stranger.delete([newKey()])).rejects.toThrow(FileStoreFailed);
  await Promise.all([away.close(), stranger.close()]);
});
