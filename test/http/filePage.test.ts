/** File contents at signed URLs: access, expiry, byte ranges, and file names. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { createFileAddresses, type AddressClaims } from "../../src/files/addresses.ts";
import { filePage } from "../../src/http/filePage.ts";
import { createFileStore, type FileStore } from "../../src/providers/files/index.ts";
import { scriptedDatabase, type ScriptedDatabase } from "./scriptedDatabase.ts";
import { startServer, type TestServer } from "./server.ts";

const key = "c0ffee".padEnd(64, "0");
const text = "0123456789";
const clock = { at: 600_000 };
const addresses = createFileAddresses([{ secret: "s".repeat(40) }], "https://plat.example", () => clock.at);
const shown = { is_public: true };
let dataDir: string;
let store: FileStore;
let database: ScriptedDatabase;
let server: TestServer;

beforeAll(async () => {
  dataDir = await mkdtemp(join(tmpdir(), "plat-page-"));
  store = createFileStore({ dataDir });
  await store.put(key, Readable.from([text]), { size: text.length, type: "text/plain" });
  database = scriptedDatabase([[/file_is_public/, [shown]]]);
  server = await startServer({ filePage: filePage({ store, addresses, pool: database.pool }) });
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await store.close();
  await rm(dataDir, { recursive: true });
});

const address = (claims: Partial<AddressClaims> = {}) => {
  const url = new URL(
    addresses.sign({
      key,
      name: "plan.txt",
      record: "app_public.plans.p1",
      expires: true,
      attachment: false,
      ...claims,
    }),
  );
  return url.pathname + url.search;
};
const get = (path: string, headers: Record<string, string> = {}, method = "GET") =>
  server.send({ method, path, headers });
const refusal = async (path: string) => {
  const { status, json } = await get(path);
  return [status, json.errors[0].extensions.code, json.errors[0].message];
};
const wrong = [403, "FORBIDDEN", "This URL is wrong or no longer valid; request a new one from the API."];

test("a URL that expires is valid without a session, and the content may be cached until then", async () => {
  database.queries.length = 0;
  const answer = await get(address());
  expect([answer.status, answer.text]).toEqual([200, text]);
  expect(answer.headers).toMatchObject({
    "cache-control": "private, max-age=1200, immutable",
    etag: `"${key}"`,
    "accept-ranges": "bytes",
    "content-type": "text/plain; charset=utf-8",
    "content-length": "10",
    "content-disposition": "inline; filename=plan.txt",
    "content-security-policy": "default-src 'none'; sandbox; frame-ancestors 'none'",
    "access-control-allow-origin": "*",
    "cross-origin-resource-policy": "cross-origin",
  });
  expect(answer.headers["content-range"]).toBeUndefined();
  expect(database.queries).toEqual([]);
});

test("a URL without expiry is valid while the record is public, which is checked as a visitor", async () => {
  const path = address();
  database.queries.length = 0;
  database.released.length = 0;
  clock.at += 1_200_000;
  try {
    const answer = await get(path);
    expect([answer.status, answer.headers["cache-control"]]).toEqual([200, "public, max-age=3600"]);
    expect(database.queries).toEqual([
      ["begin read only"],
      ["set local role plat_anonymous"],
      ["select app_hidden.file_is_public($1, $2, $3) as is_public", "app_public", "plans", key],
      ["rollback"],
    ]);
    expect(database.released).toHaveLength(1);
    shown.is_public = false;
    expect(await refusal(path)).toEqual(wrong);
    shown.is_public = true;
    expect(await refusal(address({ record: null, expires: true }).replace(/e=\d+/, "e=1"))).toEqual(wrong);
  } finally {
    clock.at -= 1_200_000;
  }
  const own = address({ record: null });
  clock.at += 1_200_000;
  expect(await refusal(own)).toEqual(wrong);
  clock.at -= 1_200_000;
});

test("a modified URL is refused, and missing content is not found", async () => {
  for (const path of [
    address().replace("plan.txt", "other.txt"),
    address().replace(/s=.*/, "s=x"),
    address().replace(/&s=.*/, ""),
    `${address()}x`,
  ])
    expect([path, await refusal(path)]).toEqual([path, wrong]);
  expect(await refusal(address({ key: "dead".padEnd(64, "0") }))).toEqual([
    404,
    "NOT_FOUND",
    "This file no longer exists.",
  ]);
});

test.each<[string, number, string, string | undefined]>([
  ["bytes=0-0", 206, "0", "bytes 0-0/10"],
  ["bytes=2-4", 206, "234", "bytes 2-4/10"],
  ["bytes=8-", 206, "89", "bytes 8-9/10"],
  ["bytes=9-100", 206, "9", "bytes 9-9/10"],
  ["bytes=-3", 206, "789", "bytes 7-9/10"],
  ["bytes=-100", 206, text, "bytes 0-9/10"],
  ["bytes=0-9", 206, text, "bytes 0-9/10"],
  ["bytes=-", 200, text, undefined],
  ["bytes=4-2", 200, text, undefined],
  ["bytes=0-1,3-4", 200, text, undefined],
  ["xbytes=0-1", 200, text, undefined],
  ["items=0-1", 200, text, undefined],
])("the range %s is answered with %i", async (range, status, content, header) => {
  const answer = await get(address(), { range });
  expect([answer.status, answer.text, answer.headers["content-range"]]).toEqual([status, content, header]);
  expect(answer.headers["content-length"]).toBe(String(content.length));
});

test.each(["bytes=10-", "bytes=10-12", "bytes=-0"])("the range %s is not satisfiable", async (range) => {
  const answer = await get(address(), { range });
  expect([answer.status, answer.headers["content-range"], answer.json.errors[0].message]).toEqual([
    416,
    "bytes */10",
    "The requested byte range is outside the file.",
  ]);
});

test("with If-Range for another content, the response is complete", async () => {
  const range = "bytes=2-4";
  expect((await get(address(), { range, "if-range": `"${key}"` })).text).toBe("234");
  expect((await get(address(), { range, "if-range": '"other"' })).text).toBe(text);
});

test.each<[string, number]>([
  [`"${key}"`, 304],
  [`W/"${key}"`, 304],
  [`"x", "${key}"`, 304],
  [" * ", 304],
  ['"x"', 200],
  [`x"${key}"`, 200],
])("a client with %s gets %i", async (known, status) => {
  const answer = await get(address(), { "if-none-match": known });
  expect([answer.status, answer.text]).toEqual([status, status === 304 ? "" : text]);
  expect(answer.headers["cache-control"]).toBe("private, max-age=1200, immutable");
});

test("HEAD has the headers without the content", async () => {
  const answer = await get(address(), { range: "bytes=2-4" }, "HEAD");
  expect([answer.status, answer.text, answer.headers["content-length"]]).toEqual([206, "", "3"]);
});

test("file names can have any characters, with an ASCII version for old clients", async () => {
  const { headers } = await get(address({ name: `Pläne "A" (1)'s*.png`, attachment: true }));
  expect(headers["content-disposition"]).toBe(
    `attachment; filename="Pl_ne \\"A\\" (1)'s*.png"; filename*=UTF-8''Pl%C3%A4ne%20%22A%22%20%281%29%27s%2A.png`,
  );
  expect(headers["content-type"]).toBe("image/png");
});

test("a refusal has no header of the file", async () => {
  const refused = await get(address(), { range: "bytes=10-" });
  expect(refused.status).toBe(416);
  expect(refused.headers).toMatchObject({
    "content-type": "application/json; charset=utf-8",
    "cache-control": "no-store",
    "content-range": "bytes */10",
  });
  for (const name of ["etag", "content-disposition", "accept-ranges", "last-modified"])
    expect([name, refused.headers[name]]).toEqual([name, undefined]);
});
