import { request, type RequestOptions } from "node:https";
import type { IncomingHttpHeaders } from "node:http";
import { buffer } from "node:stream/consumers";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import sharp from "sharp";
import { createFileAddresses } from "../../src/files/addresses.ts";
import type { Person } from "../harness/api.ts";
import { picture } from "../harness/upload.ts";
import { startWorld, type World } from "../harness/world.ts";

let world: World;
let openProject: string;
let bytes: Buffer;

beforeAll(async () => {
  world = await startWorld();
  bytes = await sharp(await picture("jpeg", 800, 600))
    .withExif({ IFD0: { Copyright: "somebody" } })
    .toBuffer();
  const { createProject } = await world.owen.get(
    `mutation ($input: CreateProjectInput!) { createProject(input: $input) { id } }`,
    { input: { organizationId: world.harbour.id, title: "Open", currency: "CAD", visibility: "PUBLIC" } },
  );
  openProject = createProject.id;
});
afterAll(() => world.stop());

interface Served {
  status: number;
  headers: IncomingHttpHeaders;
  body: Buffer;
}

/** Requests a URL of the API from this server, although the URL has another host in these tests. */
function get(address: string, headers: Record<string, string> = {}, method = "GET"): Promise<Served> {
  const url = new URL(address);
  const options: RequestOptions = { method, headers, rejectUnauthorized: false };
  return new Promise((resolve, reject) => {
    request(new URL(url.pathname + url.search, world.url), options, (response) => {
      buffer(response).then(
        (body) => resolve({ status: response.statusCode!, headers: response.headers, body }),
        reject,
      );
    })
      .on("error", reject)
      .end();
  });
}

async function image(
  projectId: string,
  content = bytes,
): Promise<{ id: string; url: string; thumbnailUrl: string }> {
  const file = `data:image/jpeg;name=h%C3%A4user.jpg;base64,${content.toString("base64")}`;
  const { uploadProjectImage } = await world.ada.get(
    `mutation ($input: UploadProjectImageInput!) { uploadProjectImage(input: $input) { id url thumbnailUrl } }`,
    { input: { projectId, file } },
  );
  return uploadProjectImage;
}

async function document(
  text: string,
  input: Record<string, unknown> = {},
): Promise<{ id: string; url: string }> {
  const file = `data:text/plain;name=notes.txt;base64,${Buffer.from(text).toString("base64")}`;
  const { uploadProjectDocument } = await world.ada.get(
    `mutation ($input: UploadProjectDocumentInput!) { uploadProjectDocument(input: $input) { id url } }`,
    { input: { projectId: openProject, file, ...input } },
  );
  return uploadProjectDocument;
}

const urlFor = async (person: Person, id: string): Promise<string> =>
  (await person.get(`query ($id: ID!) { projectImage(id: $id) { url } }`, { id })).projectImage.url;

test("a private picture is served at its URL, and may only be cached privately", async () => {
  const { url, thumbnailUrl } = await image(world.project.id);
  const served = await get(url);
  expect(served.status).toBe(200);
  expect(served.body.equals(bytes)).toBe(true);
  expect(served.headers).toMatchObject({
    "content-type": "image/jpeg",
    "content-length": String(bytes.length),
    "x-content-type-options": "nosniff",
    "content-disposition": `inline; filename=h_user.jpg; filename*=UTF-8''h%C3%A4user.jpg`,
    "content-security-policy": expect.stringContaining("sandbox"),
    "cache-control": expect.stringMatching(/^private, max-age=(1[0-1]\d\d|1200|[6-9]\d\d), immutable$/),
  });
  const small = await get(thumbnailUrl);
  const { format, width, height, exif } = await sharp(small.body).metadata();
  expect({ format, width, height, exif }).toEqual({
    format: "webp",
    width: 480,
    height: 360,
    exif: undefined,
  });
  expect(small.headers["content-type"]).toBe("image/webp");
});

test("a modified URL is refused with JSON", async () => {
  const { url } = await image(world.project.id);
  const other = await image(world.project.id, await picture("jpeg", 5, 5));
  const [key, otherKey] = [url, other.url].map((address) => new URL(address).pathname.split("/")[2]!);
  const forged = [
    url.replace(key!, otherKey!),
    url.replace(".jpg", ".html"),
    url.replace(/e=\d+/, "e=9999999999"),
    url.replace(/e=\d+&/, ""),
    `${url}&a=1`,
    url.replace(/s=.{4}/, "s=AAAA"),
    url.replace(/&s=.*/, ""),
    url.replace(/r=[^&]+/, "r=users.x"),
  ];
  for (const address of forged) {
    const served = await get(address);
    expect([address, served.status]).toEqual([address, 403]);
    expect(JSON.parse(served.body.toString()).errors[0].extensions).toMatchObject({ code: "FORBIDDEN" });
    expect(served.headers["cache-control"]).toBe("no-store");
  }
});

test("a URL expires, and one signed by a retired key ends with it", () => {
  let now = Date.parse("2026-01-01T12:00:00Z");
  const old = { secret: "the former secret with 32 characters or more" };
  const present = { secret: "the present secret with 32 characters or more" };
  const claims = { key: "ab".repeat(32), name: "a b.png", record: null, expires: true, attachment: false };
  const open = (address: string, keys = [present, old]) => {
    const { pathname, searchParams } = new URL(address);
    return createFileAddresses(keys, "https://plat.example", () => now).open(pathname, searchParams);
  };
  const address = createFileAddresses([old], "https://plat.example", () => now).sign(claims);
  expect(open(address)).toEqual({
    key: claims.key,
    name: "a b.png",
    record: undefined,
    attachment: false,
    secondsLeft: 1200,
  });
  expect(open(address, [present])).toBeUndefined();
  now += 1_199_000;
  expect(open(address)!.secondsLeft).toBe(1);
  now += 1000;
  expect(open(address)!.secondsLeft).toBe(0);
  // Equal for some time, so that fetched content stays cached.
  const sign = () => createFileAddresses([present], "https://plat.example", () => now).sign(claims);
  const first = sign();
  now += 500_000;
  expect(sign()).toBe(first);
});

test("an expired URL of a private picture is refused", async () => {
  const { url } = await image(world.project.id);
  const { pathname } = new URL(url);
  const [, , key, name] = pathname.split("/");
  const keys = [{ secret: "a secret of the tests with at least 32 characters" }];
  const past = createFileAddresses(keys, "https://plat.example", () => Date.now() - 3_600_000);
  const claims = { key: key!, name: decodeURIComponent(name!), expires: true, attachment: false };
  expect((await get(past.sign({ ...claims, record: null }))).status).toBe(403);
  const { rows } = await world.owner.query("select id from app_public.project_images where checksum = $1", [
    key,
  ]);
  expect((await get(past.sign({ ...claims, record: `project_images.${rows[0].id}` }))).status).toBe(403);
});

test("a public picture has a permanent URL that may be cached publicly, until it is hidden", async () => {
  const { id } = await image(openProject);
  const address = await urlFor(world.anonymous, id);
  expect(address).not.toContain("e=");
  expect(await urlFor(world.anonymous, id)).toBe(address);
  const served = await get(address);
  expect([served.status, served.headers["cache-control"]]).toEqual([200, "public, max-age=3600"]);
  expect(served.headers["access-control-allow-origin"]).toBe("*");
  // The URL for a signed-in viewer is another one, and valid even if the picture is hidden meanwhile.
  expect(await urlFor(world.ada, id)).toContain("e=");
  const setVisibility = (visibility: string) =>
    world.owen.get(`mutation ($input: UpdateProjectInput!) { updateProject(input: $input) { id } }`, {
      input: { id: openProject, visibility },
    });
  await setVisibility("PRIVATE");
  expect((await get(address)).status).toBe(403);
  await setVisibility("PUBLIC");
  expect((await get(address)).status).toBe(200);
  await world.ada.get(`mutation ($id: ID!) { deleteProjectImage(input: { id: $id }) { deleted } }`, { id });
  expect((await get(address)).status).toBe(403);
});

test("documents are downloaded, not shown; text is never executed", async () => {
  await expect(document("<b>not", { public: true })).rejects.toThrow("UNSUPPORTED_FILE");
  const { url, id } = await document("b>not markup", { public: true });
  const served = await get(url);
  expect(served.headers).toMatchObject({
    "content-type": "text/plain; charset=utf-8",
    "content-disposition": "attachment; filename=notes.txt",
    "x-content-type-options": "nosniff",
  });
  // Valid while the document is public.
  const query = `query ($id: ID!) { projectDocument(id: $id) { url } }`;
  const { projectDocument } = await world.anonymous.get(query, { id });
  expect((await get(projectDocument.url)).status).toBe(200);
  await world.ada.get(
    `mutation ($id: ID!) { updateProjectDocument(input: { id: $id, public: false }) { id } }`,
    { id },
  );
  expect((await get(projectDocument.url)).status).toBe(403);
  expect(await world.anonymous.get(query, { id })).toEqual({ projectDocument: null });
});

test("byte ranges are served as requested", async () => {
  const text = "0123456789".repeat(10);
  const { url } = await document(text);
  const part = async (range: string, headers: Record<string, string> = {}) => {
    const { status, headers: given, body } = await get(url, { range, ...headers });
    return [status, given["content-range"], body.toString()];
  };
  expect(await part("bytes=0-4")).toEqual([206, "bytes 0-4/100", "01234"]);
  expect(await part("bytes=95-")).toEqual([206, "bytes 95-99/100", "56789"]);
  expect(await part("bytes=-3")).toEqual([206, "bytes 97-99/100", "789"]);
  expect(await part("bytes=98-500")).toEqual([206, "bytes 98-99/100", "89"]);
  expect((await part("bytes=100-")).slice(0, 2)).toEqual([416, "bytes */100"]);
  expect(await part("bytes=0-4", { "if-range": '"other"' })).toEqual([200, undefined, text]);
  for (const whole of ["bytes=5-2", "bytes=0-1,3-4", "lines=1-2", "bytes=-"])
    expect(await part(whole)).toEqual([200, undefined, text]);
});

test("supports conditional requests and HEAD; refuses other methods", async () => {
  const { url } = await document("the same");
  const { headers } = await get(url);
  const again = await get(url, { "if-none-match": `W/"x", ${headers.etag}` });
  expect([again.status, again.body.length, again.headers.etag]).toEqual([304, 0, headers.etag]);
  const head = await get(url, {}, "HEAD");
  expect([head.status, head.body.length, head.headers["content-length"]]).toEqual([200, 0, "8"]);
  const posted = await get(url, {}, "POST");
  expect([posted.status, posted.headers.allow]).toEqual([405, "GET, HEAD"]);
});
