import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import sharp from "sharp";
import type { Person } from "../harness/api.ts";
import { multipartBody, paddedPng, picture, pixelBomb, sendRaw, upload } from "../harness/upload.ts";
import { affiliate, startWorld, type World } from "../harness/world.ts";
import { until } from "../harness/until.ts";

let world: World;

beforeAll(async () => {
  world = await startWorld();
});
afterAll(() => world.stop());

const imageMutation = `mutation ($input: UploadProjectImageInput!) { uploadProjectImage(input: $input) {
  id url thumbnailUrl title alt sequence filename filemime filesize width height checksum category insertedAt project { id }
} }`;
const documentMutation = `mutation ($input: UploadProjectDocumentInput!) { uploadProjectDocument(input: $input) {
  id url title description filename filemime filesize public checksum category uploadedBy { id } project { id }
} }`;

const image = (
  bytes: Buffer,
  { as = world.ada, name = "a.png", ...input }: { as?: Person; name?: string } & Record<string, unknown> = {},
) =>
  upload(
    world,
    as,
    imageMutation,
    { input: { projectId: world.project.id, file: null, ...input } },
    { "variables.input.file": { bytes, name } },
  );
const document = (
  bytes: Buffer,
  { as = world.ada, name = "a.pdf", ...input }: { as?: Person; name?: string } & Record<string, unknown> = {},
) =>
  upload(
    world,
    as,
    documentMutation,
    { input: { projectId: world.project.id, file: null, ...input } },
    { "variables.input.file": { bytes, name } },
  );
const dataUri = (bytes: Buffer, type = "image/png") => `data:${type};base64,${bytes.toString("base64")}`;
const codeOf = ({ errors }: { errors: { extensions: Record<string, unknown> }[] | undefined }) =>
  errors?.[0]?.extensions.code;
const pdf = Buffer.from("%PDF-1.7\n1 0 obj <<>> endobj\ntrailer <<>>\n%%EOF\n");

/** Files that are being received. */
const incoming = () => readdir(join(world.dataDir, "incoming")).catch(() => []);

test.each(["png", "jpeg", "webp", "gif", "avif"] as const)(
  "a picture in %s arrives with its measures",
  async (format) => {
    const bytes = await picture(format, 900, 600);
    const answer = await image(bytes, { title: " Garden ", alt: "A garden", category: "EXTERIOR" });
    expect(answer.errors).toBeUndefined();
    expect(answer.data.uploadProjectImage).toMatchObject({
      title: "Garden",
      alt: "A garden",
      category: "EXTERIOR",
      filemime: `image/${format}`,
      filename: `a.${format === "jpeg" ? "jpg" : format}`,
      filesize: bytes.length,
      width: 900,
      height: 600,
      url: expect.stringMatching(/^https:\/\/plat\.example\/files\//),
      thumbnailUrl: expect.stringMatching(/thumbnail\.webp/),
      project: { id: world.project.id },
    });
    expect(await incoming()).toEqual([]);
  },
);

test("pictures are ordered by upload; the first, or the one marked so, is the hero", async () => {
  const { createProject } = await world.owen.get(
    `mutation ($input: CreateProjectInput!) { createProject(input: $input) { id } }`,
    { input: { organizationId: world.harbour.id, title: "Queue", currency: "CAD" } },
  );
  const ids: string[] = [];
  for (const options of [{}, {}, { category: "HERO" }, { sequence: 0 }]) {
    const answer = await image(await picture(), { projectId: createProject.id, ...options });
    ids.push(answer.data.uploadProjectImage.id);
  }
  const query = `query ($id: ID!) { project(id: $id) { hero { id } images { id sequence } } }`;
  const { project } = await world.max.get(query, { id: createProject.id });
  expect(project.images.map((i: any) => [ids.indexOf(i.id), i.sequence])).toEqual([
    [0, 0],
    [3, 0],
    [1, 1],
    [2, 2],
  ]);
  expect(project.hero.id).toBe(ids[2]);
});

test("a data URI is accepted as well", async () => {
  const bytes = await picture();
  const answer = await world.ada.ask(imageMutation, {
    input: {
      projectId: world.project.slug,
      file: dataUri(bytes).replace(";base64", ";name=front%20door.png;base64"),
    },
  });
  expect(answer.errors).toBeUndefined();
  expect(answer.data.uploadProjectImage).toMatchObject({
    filename: "front door.png",
    filemime: "image/png",
    filesize: bytes.length,
    width: 60,
  });
});

test("several files in one request, with a variable each", async () => {
  const answer = await upload(
    world,
    world.ada,
    `mutation ($project: ID!, $a: Upload!, $b: Upload!) {
      one: uploadProjectImage(input: { projectId: $project, file: $a }) { filemime }
      two: uploadProjectDocument(input: { projectId: $project, file: $b }) { filemime }
    }`,
    { project: world.project.id, a: null, b: null },
    { "variables.a": { bytes: await picture("webp") }, "variables.b": { bytes: pdf } },
  );
  expect(answer.data).toEqual({ one: { filemime: "image/webp" }, two: { filemime: "application/pdf" } });
});

test("rotated, CMYK and animated pictures are stored as they are shown", async () => {
  const turned = await sharp(await picture("jpeg", 80, 30))
    .withMetadata({ orientation: 6 })
    .toBuffer();
  expect((await image(turned)).data.uploadProjectImage).toMatchObject({ width: 30, height: 80 });
  const cmyk = await sharp(await picture("jpeg"))
    .toColourspace("cmyk")
    .jpeg()
    .toBuffer();
  expect((await image(cmyk)).data.uploadProjectImage).toMatchObject({ width: 60, height: 40 });
  const moving = await sharp([await picture(), await picture("jpeg")], { join: { animated: true } })
    .gif()
    .toBuffer();
  expect((await image(moving)).data.uploadProjectImage).toMatchObject({ filemime: "image/gif", height: 40 });
});

test("an upload is executed once under an idempotency key", async () => {
  const bytes = await picture("png", 33, 44);
  const variables = { input: { projectId: world.project.id, file: null, idempotencyKey: "upload-1" } };
  const send = (file: Buffer) =>
    upload(world, world.ada, imageMutation, variables, { "variables.input.file": { bytes: file } });
  const first = await send(bytes);
  expect((await send(bytes)).data.uploadProjectImage.id).toBe(first.data.uploadProjectImage.id);
  expect(codeOf(await send(await picture("png", 1, 1)))).toBe("IDEMPOTENCY_MISMATCH");
});

test("documents of each type are recognized by their content", async () => {
  const cases: [Buffer, string, string][] = [
    [pdf, "price list.pdf", "application/pdf"],
    [Buffer.from("Unit #,Price\n101,425000\n102,430000\n"), "units.csv", "text/csv"],
    [Buffer.from("\ufeffUnit;Price\r\n1;2\r\n"), "bom.csv", "text/csv"],
    [Buffer.from("Grüße aus dem Büro. Nothing else.\n"), "notes.txt", "text/plain"],
    [await picture("jpeg"), "scan.jpg", "image/jpeg"],
  ];
  for (const [bytes, name, type] of cases) {
    const answer = await document(bytes, { name, category: "PRICE_LIST", public: true });
    expect(answer.data?.uploadProjectDocument).toMatchObject({
      filename: name,
      filemime: type,
      public: true,
      category: "PRICE_LIST",
      uploadedBy: { id: world.ada.id },
    });
  }
});

test("the type of a file is that of its content, whatever its name: a PNG named .pdf is a PNG", async () => {
  const answer = await image(await picture(), { name: "plan.pdf" });
  expect(answer.data.uploadProjectImage).toMatchObject({ filename: "plan.png", filemime: "image/png" });
  // And a PDF named .png is refused as a picture.
  const refused = await image(pdf, { name: "plan.png" });
  expect([refused.status, codeOf(refused), refused.errors![0]!.path]).toEqual([
    200,
    "UNSUPPORTED_FILE",
    ["uploadProjectImage"],
  ]);
});

const svg = Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>');
test.each<[string, Buffer | (() => Promise<Buffer>), string]>([
  ["an SVG", svg, "UNSUPPORTED_FILE"],
  [
    "an SVG with a prologue",
    Buffer.concat([Buffer.from('\n<?xml version="1.0"?>\n'), svg]),
    "UNSUPPORTED_FILE",
  ],
  ["a program", Buffer.from("\x7fELF\x02\x01\x01\0\0\0", "latin1"), "UNSUPPORTED_FILE"],
  ["a PNG of 30,000 × 30,000 pixels", pixelBomb(30_000), "UNSUPPORTED_FILE"],
  ["one of 40 KB that claims this size", pixelBomb(30_000).subarray(0, 40_000), "UNSUPPORTED_FILE"],
  [
    "a PNG that ends in the middle",
    async () => (await picture("png", 900, 900)).subarray(0, -300),
    "UNSUPPORTED_FILE",
  ],
  ["nothing", Buffer.alloc(0), "BAD_USER_INPUT"],
])("%s is refused, as a part and as a data URI", async (_what, given, code) => {
  const bytes = typeof given === "function" ? await given() : given;
  const before = await stored();
  const part = await image(bytes);
  expect([part.status, codeOf(part), part.data]).toEqual([200, code, { uploadProjectImage: null }]);
  const { code: second } = await world.ada.refused(imageMutation, {
    input: { projectId: world.project.id, file: dataUri(bytes) },
  });
  expect(second).toBe(code);
  expect([await incoming(), await stored()]).toEqual([[], before]);
});

test("SVG, HTML, ZIP and Office files with macros are refused as documents, too", async () => {
  for (const bytes of [
    svg,
    Buffer.from("<!doctype html><p>hello"),
    Buffer.from("PK\x03\x04".padEnd(200, "x"), "latin1"),
  ])
    expect(codeOf(await document(bytes))).toBe("UNSUPPORTED_FILE");
});

test("5 MB (5 × 1,048,576 bytes) are accepted, and one byte more is refused, in every way of uploading", async () => {
  const fits = await paddedPng(5_242_880);
  expect((await image(fits)).data.uploadProjectImage.filesize).toBe(5_242_880);
  const over = await paddedPng(5_242_881);
  const part = await image(over);
  expect([part.status, codeOf(part), part.errors![0]!.extensions.limit]).toEqual([
    413,
    "PAYLOAD_TOO_LARGE",
    5_242_880,
  ]);
  expect(
    await world.ada.refused(imageMutation, { input: { projectId: world.project.id, file: dataUri(over) } }),
  ).toMatchObject({ code: "PAYLOAD_TOO_LARGE", limit: 5_242_880 });
  expect(await incoming()).toEqual([]);
});

test("a document may have 50 MB (50 × 1,048,576 bytes), and not a byte more", async () => {
  const bytes = Buffer.concat([pdf, Buffer.alloc(52_428_801 - pdf.length, 32)]);
  expect((await document(bytes.subarray(0, -1))).data.uploadProjectDocument.filesize).toBe(52_428_800);
  const over = await document(bytes);
  expect([over.status, codeOf(over), over.errors![0]!.extensions.limit]).toEqual([
    413,
    "PAYLOAD_TOO_LARGE",
    52_428_800,
  ]);
});

test("an interrupted upload leaves nothing behind", async () => {
  const rows = () => world.owner.query("select count(*)::int as n from app_public.project_documents");
  const before = [await stored(), (await rows()).rows];
  const encoded = multipartBody(
    documentMutation,
    { input: { projectId: world.project.id, file: null } },
    { "variables.input.file": { bytes: Buffer.concat([pdf, Buffer.alloc(3_000_000, 32)]) } },
  );
  await expect(sendRaw(world, world.ada, encoded, { cutOffAfter: 1_000_000 })).rejects.toThrow("cut off");
  // Without the last boundary, but with a correct length.
  const short = await sendRaw(world, world.ada, { ...encoded, body: encoded.body.subarray(0, 2_000_000) });
  expect([short.status, codeOf(short)]).toEqual([400, "BAD_USER_INPUT"]);
  await until(incoming, (files) => files.length === 0);
  expect([await stored(), (await rows()).rows]).toEqual(before);
});

const names: [string, string][] = [
  ["../../etc/passwd", "passwd.png"],
  ["C:\\Users\\ada\\front.jpeg", "front.png"],
  ["..", "file.png"],
  ["a\u202egnp.exe", "agnp.exe.png"],
  ['x".png', "x_.png"],
  [".htaccess", "htaccess.png"],
  [`${"long".repeat(100)}.png`, `${"long".repeat(100).slice(0, 150)}.png`],
];
test.each(names)("the file name %s becomes %s", async (name, expected) => {
  const file = dataUri(await picture()).replace(";base64", `;name=${encodeURIComponent(name)};base64`);
  const { uploadProjectImage } = await world.ada.get(imageMutation, {
    input: { projectId: world.project.id, file },
  });
  expect(uploadProjectImage.filename).toBe(expected);
});

test.each(names.filter(([name]) => !/["\u202e]/.test(name)))(
  "the file name %s of a part becomes %s",
  async (name, expected) => {
    const answer = await image(await picture(), { name });
    expect(answer.data.uploadProjectImage.filename).toBe(expected);
  },
);

test("a cross-site form is refused", async () => {
  const encoded = multipartBody(
    imageMutation,
    { input: { projectId: world.project.id, file: null } },
    { "variables.input.file": { bytes: await picture() } },
  );
  const form = await sendRaw(world, world.ada, encoded, { headers: { origin: "https://evil.example" } });
  expect([form.status, codeOf(form)]).toEqual([403, "FORBIDDEN"]);
  for (const name of ["Apollo-Require-Preflight", "X-Requested-With"])
    expect((await sendRaw(world, world.ada, encoded, { headers: { [name]: "x" } })).errors).toBeUndefined();
});

test("refuses uploads without a token", async () => {
  const bytes = await picture();
  const part = await image(bytes, { as: world.anonymous });
  expect([part.status, codeOf(part)]).toEqual([401, "UNAUTHENTICATED"]);
  const { code } = await world.anonymous.refused(imageMutation, {
    input: { projectId: world.project.id, file: dataUri(bytes) },
  });
  expect(code).toBe("UNAUTHENTICATED");
});

test("owners and admins upload; members, sellers and outsiders cannot", async () => {
  const bytes = await picture();
  expect((await image(bytes, { as: world.owen })).errors).toBeUndefined();
  expect((await image(bytes, { as: world.max })).errors![0]!.extensions).toMatchObject({
    code: "FORBIDDEN",
    permission: "inventory.manage",
  });
  expect((await image(bytes, { as: world.olga })).errors![0]!.extensions).toMatchObject({
    code: "NOT_FOUND",
    field: "projectId",
  });
  const { createProject: other } = await world.owen.get(
    `mutation ($input: CreateProjectInput!) { createProject(input: $input) { id } }`,
    { input: { organizationId: world.harbour.id, title: "Shared", currency: "CAD" } },
  );
  await affiliate(world, other, world.summit, "SELLER");
  expect(codeOf(await image(bytes, { as: world.olga, projectId: other.id }))).toBe("FORBIDDEN");
});

test("pictures are visible with their project, documents to its people unless they are public", async () => {
  const { createProject } = await world.owen.get(
    `mutation ($input: CreateProjectInput!) { createProject(input: $input) { id } }`,
    { input: { organizationId: world.harbour.id, title: "Open", currency: "CAD", visibility: "PUBLIC" } },
  );
  const projectId = createProject.id;
  await image(await picture(), { projectId });
  await document(pdf, { projectId, title: "internal" });
  await document(pdf, { projectId, title: "brochure", public: true });
  const seen = async (person: Person) => {
    const { project } = await person.get(
      `query ($id: ID!) { project(id: $id) { images { id } documents { title } } }`,
      { id: projectId },
    );
    return [project.images.length, project.documents.map((d: any) => d.title).sort()];
  };
  expect(await seen(world.max)).toEqual([1, ["brochure", "internal"]]);
  expect(await seen(world.olga)).toEqual([1, ["brochure"]]);
  expect(await seen(world.anonymous)).toEqual([1, ["brochure"]]);
  await world.owen.get(`mutation ($input: UpdateProjectInput!) { updateProject(input: $input) { id } }`, {
    input: { id: projectId, visibility: "PRIVATE" },
  });
  const { rows } = await world.owner.query("select id from app_public.project_images where project_id = $1", [
    projectId,
  ]);
  const byId = `query ($id: ID!) { projectImage(id: $id) { id } }`;
  expect(await world.anonymous.get(byId, { id: rows[0].id })).toEqual({ projectImage: null });
  expect(await world.olga.get(byId, { id: rows[0].id })).toEqual({ projectImage: null });
});

test("a project has at most one avatar; deleting removes it", async () => {
  const mutation = `mutation ($input: UploadProjectAvatarInput!) { uploadProjectAvatar(input: $input) { id alt } }`;
  const input = { projectId: world.project.id, file: dataUri(await picture()), alt: "Logo" };
  await world.ada.get(mutation, { input });
  const { uploadProjectAvatar: second } = await world.ada.get(mutation, {
    input: { ...input, alt: "New logo" },
  });
  const query = `query ($id: ID!) { project(id: $id) { avatar { id alt url } } }`;
  expect((await world.max.get(query, { id: world.project.id })).project.avatar).toMatchObject(second);
  const remove = `mutation ($id: ID!) { deleteProjectAvatar(input: { projectId: $id }) { id deleted project { slug avatar { id } } } }`;
  expect((await world.max.refused(remove, { id: world.project.id })).code).toBe("FORBIDDEN");
  expect((await world.olga.refused(remove, { id: world.project.id })).code).toBe("NOT_FOUND");
  expect((await world.anonymous.refused(remove, { id: world.project.id })).code).toBe("UNAUTHENTICATED");
  expect(await world.ada.get(remove, { id: world.project.slug })).toEqual({
    deleteProjectAvatar: {
      id: second.id,
      deleted: true,
      project: { slug: world.project.slug, avatar: null },
    },
  });
  expect((await world.ada.refused(remove, { id: world.project.id })).code).toBe("NOT_FOUND");
});

test("only owners change the avatar of an organization", async () => {
  const mutation = `mutation ($input: UploadOrganizationAvatarInput!) {
    uploadOrganizationAvatar(input: $input) { alt width organization { slug } } }`;
  const input = { organizationId: world.harbour.slug, file: dataUri(await picture()), alt: "Anchor" };
  expect(await world.ada.refused(mutation, { input })).toMatchObject({
    code: "FORBIDDEN",
    permission: "org.owner",
  });
  expect((await world.max.refused(mutation, { input })).code).toBe("FORBIDDEN");
  expect((await world.anonymous.refused(mutation, { input })).code).toBe("UNAUTHENTICATED");
  expect(await world.owen.get(mutation, { input })).toEqual({
    uploadOrganizationAvatar: { alt: "Anchor", width: 60, organization: { slug: world.harbour.slug } },
  });
  const remove = `mutation ($id: ID!) { deleteOrganizationAvatar(input: { organizationId: $id }) { deleted organization { id } } }`;
  expect(await world.ada.refused(remove, { id: world.harbour.id })).toMatchObject({
    code: "FORBIDDEN",
    permission: "org.owner",
  });
  expect(await world.owen.get(remove, { id: world.harbour.id })).toEqual({
    deleteOrganizationAvatar: { deleted: true, organization: { id: world.harbour.id } },
  });
});

test("the first site plan is the primary one until another replaces it", async () => {
  const mutation = `mutation ($input: UploadSitePlanInput!) { uploadSitePlan(input: $input) { id isPrimary phase } }`;
  const add = async (input: Record<string, unknown>) =>
    (
      await world.ada.get(mutation, {
        input: { projectId: world.project.id, file: dataUri(await picture()), ...input },
      })
    ).uploadSitePlan;
  const first = await add({ phase: "1" });
  expect(first).toMatchObject({ isPrimary: true, phase: "1" });
  expect(await add({})).toMatchObject({ isPrimary: false });
  const third = await add({ isPrimary: true });
  const query = `query ($id: ID!) { project(id: $id) { sitePlans { id isPrimary } } }`;
  const primary = async () =>
    (await world.max.get(query, { id: world.project.id })).project.sitePlans.filter((p: any) => p.isPrimary);
  expect(await primary()).toEqual([{ id: third.id, isPrimary: true }]);
  const remove = `mutation ($id: ID!) { deleteSitePlan(input: { id: $id }) { id deleted project { id } } }`;
  expect((await world.max.refused(remove, { id: third.id })).code).toBe("FORBIDDEN");
  expect(await world.ada.get(remove, { id: third.id })).toEqual({
    deleteSitePlan: { id: third.id, deleted: true, project: { id: world.project.id } },
  });
});

test("a picture shows options of its own project, and can be the cover of a collection", async () => {
  const make = async (type: string, input: Record<string, unknown>): Promise<string> => {
    const field = `create${type}`;
    const data = await world.ada.get(
      `mutation ($input: Create${type}Input!) { ${field}(input: $input) { id } }`,
      { input },
    );
    return data[field].id;
  };
  const projectId = await make("Project", {
    organizationId: world.harbour.id,
    title: "Covered",
    currency: "CAD",
  });
  const optionOf = async (project: string) => {
    const categoryId = await make("SpecCategory", { projectId: project, title: "Kitchen" });
    const elementId = await make("SpecElement", { categoryId, title: "Counter" });
    return make("SpecOption", { elementId, title: "Oak" });
  };
  const [own, foreign] = [await optionOf(projectId), await optionOf(world.project.id)];
  expect(codeOf(await image(await picture(), { projectId, specOptionIds: [own, foreign] }))).toBe(
    "NOT_FOUND",
  );
  const { id } = (await image(await picture(), { projectId, specOptionIds: [own, own] })).data
    .uploadProjectImage;
  const shown = `query ($id: ID!) { projectImage(id: $id) { specOptions { id } } }`;
  expect((await world.max.get(shown, { id })).projectImage.specOptions).toEqual([{ id: own }]);
  const collectionId = await make("ProjectCollection", {
    organizationId: world.harbour.id,
    title: "Ours",
    public: true,
    projectIds: [projectId],
  });
  const cover = `query ($id: ID!) { projectCollection(id: $id) { cover { id } } }`;
  expect((await world.max.get(cover, { id: collectionId })).projectCollection.cover).toEqual({ id });
  // The project is private, so its picture is too.
  expect((await world.olga.get(cover, { id: collectionId })).projectCollection?.cover ?? null).toBeNull();
});

test("an upload writes an event of its project, without the content", async () => {
  const answer = await image(await picture(), { title: "Event" });
  const { rows } = await world.owner.query(
    "select name, project_id, actor_id, data from app_public.events where subject_id = $1",
    [answer.data.uploadProjectImage.id],
  );
  expect(rows).toEqual([
    expect.objectContaining({
      name: "project_image.created",
      project_id: world.project.id,
      actor_id: world.ada.id,
    }),
  ]);
  expect(rows[0].data).toMatchObject({ title: "Event", filemime: "image/png" });
  expect(rows[0].data).not.toHaveProperty("file");
});

test.each<[string, (encoded: string) => string]>([
  ["map before operations", (body) => body.replace('name="operations"', 'name="other"')],
  ["a map without a path", (body) => body.replace('["variables.input.file"]', "[]")],
  ["a path that does not exist", (body) => body.replace('"variables.input.file"', '"variables.input.none"')],
  ["a path into the prototype", (body) => body.replace('"variables.input.file"', '"variables.__proto__.x"')],
  ["a file that was not sent", (body) => body.replace('{"0":', '{"7":["variables.input.file"],"0":')],
  ["operations that are no JSON", (body) => body.replace('{"query"', "{query")],
])("a multipart request with %s is refused", async (_what, change) => {
  const { body, type } = multipartBody(
    imageMutation,
    { input: { projectId: world.project.id, file: null } },
    { "variables.input.file": { bytes: Buffer.from("x") } },
  );
  const answer = await sendRaw(world, world.ada, {
    type,
    body: Buffer.from(change(body.toString("latin1")), "latin1"),
  });
  expect([answer.status, codeOf(answer)]).toEqual([400, "BAD_USER_INPUT"]);
});

test("input cannot refer to content that was not sent", async () => {
  const { rows } = await world.owner.query("select checksum from app_private.stored_files limit 1");
  for (const file of [
    { checksum: rows[0].checksum, filename: "x.png" },
    rows[0].checksum,
    "data:image/png;base64,!",
  ])
    expect(
      (await world.ada.refused(imageMutation, { input: { projectId: world.project.id, file } })).code,
    ).toBe("BAD_USER_INPUT");
});

async function stored(): Promise<number> {
  const { rows } = await world.owner.query("select count(*)::int as n from app_private.stored_files");
  return rows[0].n;
}

test("an upload takes the same number of statements for any size", async () => {
  const sizes = [10_000, 4_000_000];
  const pictures = await Promise.all(sizes.map((size) => paddedPng(size)));
  await image(await picture());
  const counts: number[] = [];
  for (const bytes of pictures) {
    const { result, count } = await world.statements(() => image(bytes));
    expect(result.errors).toBeUndefined();
    counts.push(count);
  }
  expect(counts[1]).toBe(counts[0]);
  expect(counts[0]).toBeLessThanOrEqual(6);
});
