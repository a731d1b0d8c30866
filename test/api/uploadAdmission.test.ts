/** Uploads that are refused before any content is stored, and contents that are stored but not used. */
import { randomUUID } from "node:crypto";
import { mkdirSync, watch } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import type { Person } from "../harness/api.ts";
import { paddedPng, picture, upload, type UploadOptions } from "../harness/upload.ts";
import { createProject, programOf, startWorld, type World } from "../harness/world.ts";
import { until } from "../harness/until.ts";

let world: World;
let archived: { id: string };
let reader: Person;
const quota = 40_000_000;

beforeAll(async () => {
  world = await startWorld(undefined, { fileQuota: quota });
  archived = await createProject(world.owen, { organizationId: world.harbour.id, title: "Old" });
  await world.owen.get("mutation ($id: ID!) { updateProject(input: { id: $id, status: ARCHIVED }) { id } }", {
    id: archived.id,
  });
  reader = await programOf(world, world.ada, { readOnly: true });
});
afterAll(() => world.stop());

const documentMutation = `mutation ($input: UploadProjectDocumentInput!) {
  uploadProjectDocument(input: $input) { id checksum } }`;
const imageMutation = `mutation ($input: UploadProjectImageInput!) { uploadProjectImage(input: $input) { id checksum } }`;
const importMutation = `mutation ($input: ImportUnitsInput!) { importUnits(input: $input) { createdCount failedCount } }`;

const send = (
  person: Person,
  mutation: string,
  bytes: Buffer,
  input: Record<string, unknown> = {},
  options?: UploadOptions,
) =>
  upload(
    world,
    person,
    mutation,
    { input: { projectId: world.project.id, file: null, ...input } },
    { "variables.input.file": { bytes } },
    options,
  );
const dataUri = (bytes: Buffer) => `data:;base64,${bytes.toString("base64")}`;
const extensionsOf = (answer: { errors: { extensions: Record<string, any> }[] | undefined }) =>
  answer.errors?.[0]?.extensions;

/** Names of the files that were created in the folder for incoming content during the work. */
async function arrivals(work: () => Promise<void>): Promise<string[]> {
  const folder = join(world.dataDir, "incoming");
  mkdirSync(folder, { recursive: true });
  const names = new Set<string>();
  const end = `end-${randomUUID()}`;
  const watcher = watch(folder, (_event, name) => void names.add(String(name)));
  try {
    await work();
    // The watcher reports in order, so all earlier files have been reported.
    mkdirSync(join(folder, end));
    await until(() => names.has(end));
  } finally {
    watcher.close();
  }
  return [...names].filter((name) => name !== end);
}

const contents = async () =>
  (await readdir(join(world.dataDir, "files"), { recursive: true, withFileTypes: true }).catch(() => []))
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => parentPath.slice(-2) + name)
    .toSorted();
const known = async () =>
  (await world.owner.query("select count(*)::int as n from app_private.stored_files")).rows[0].n as number;
const used = async (id: string | null) => {
  const { rows } = await world.owner.query(
    "select bytes::int from app_private.storage_used where owner_id = $1",
    [id],
  );
  return (rows[0]?.bytes ?? 0) as number;
};

const pdf = (size: number) => {
  const begin = Buffer.from("%PDF-1.7\n");
  return Buffer.concat([begin, Buffer.alloc(size - begin.length, 32)]);
};
const csv = Buffer.from("Unit #,Price\n101,425000\n");

test("an accepted file is first stored in the folder for incoming content", async () => {
  const names = await arrivals(async () => {
    expect((await send(world.ada, documentMutation, pdf(1_000))).errors).toBeUndefined();
  });
  expect(names).toEqual([expect.stringMatching(/^upload-.*\.part$/)]);
});

describe("nothing of a file is stored", () => {
  const large = pdf(49_000_000);
  const cases: [string, () => Promise<any>, Record<string, unknown>][] = [
    [
      "of a user without the permission",
      () => send(world.max, documentMutation, large),
      { code: "FORBIDDEN" },
    ],
    [
      "for a project of others",
      () => send(world.olga, documentMutation, large),
      { code: "NOT_FOUND", field: "projectId" },
    ],
    [
      "for a project that is not there",
      () => send(world.ada, documentMutation, large, { projectId: "no-such-project" }),
      { code: "NOT_FOUND" },
    ],
    ["by a token that may only read", () => send(reader, documentMutation, large), { code: "FORBIDDEN" }],
    [
      "for an archived project",
      () => send(world.ada, documentMutation, large, { projectId: archived.id }),
      { code: "PROJECT_ARCHIVED" },
    ],
    [
      "with another invalid value",
      () => send(world.ada, documentMutation, pdf(1_000), { title: "x".repeat(1_000) }),
      { code: "BAD_USER_INPUT", field: "title" },
    ],
    ["to import, of who may not", () => send(world.max, importMutation, csv), { code: "FORBIDDEN" }],
    [
      "to import into a project of others",
      () => send(world.olga, importMutation, csv),
      { code: "NOT_FOUND", field: "projectId" },
    ],
    [
      "to import into an archived project",
      () => send(world.ada, importMutation, csv, { projectId: archived.id }),
      { code: "PROJECT_ARCHIVED" },
    ],
    [
      "that does not begin like an accepted type",
      () => send(world.ada, documentMutation, Buffer.concat([Buffer.from("\x7fELF"), pdf(20_000_000)])),
      { code: "UNSUPPORTED_FILE" },
    ],
    [
      "that is not a picture, if one is required",
      () => send(world.ada, imageMutation, pdf(4_000_000)),
      { code: "UNSUPPORTED_FILE" },
    ],
    [
      "that is markup",
      () => send(world.ada, documentMutation, Buffer.from("<svg xmlns='http://www.w3.org/2000/svg'/>")),
      { code: "UNSUPPORTED_FILE" },
    ],
    [
      "that is announced as too large",
      async () => send(world.ada, imageMutation, await paddedPng(6_000_000)),
      { code: "PAYLOAD_TOO_LARGE", limit: 5_242_880 },
    ],
    [
      "above the quota",
      () => send(world.ada, documentMutation, pdf(45_000_000)),
      { code: "LIMIT_EXCEEDED", limit: quota, field: "file" },
    ],
    [
      "of who lacks the permission, as a data URI",
      async () =>
        world.max.ask(imageMutation, {
          input: { projectId: world.project.id, file: dataUri(await picture()) },
        }),
      { code: "FORBIDDEN" },
    ],
    [
      "that is not a picture, as a data URI",
      () =>
        world.ada.ask(imageMutation, { input: { projectId: world.project.id, file: dataUri(pdf(5_000)) } }),
      { code: "UNSUPPORTED_FILE" },
    ],
  ];

  test.each(cases)("%s", async (_what, attempt, expected) => {
    const before = [await contents(), await known()];
    const names = await arrivals(async () => {
      expect(extensionsOf(await attempt())).toMatchObject(expected);
    });
    expect(names).toEqual([]);
    expect([await contents(), await known()]).toEqual(before);
  });
});

test("the check before an upload leaves nothing behind: no row, no event, no job", async () => {
  const counts = async () =>
    (
      await world.owner.query(`select (select count(*)::int from app_public.project_documents) as documents,
        (select count(*)::int from app_public.events) as events,
        (select count(*)::int from graphile_worker.jobs) as jobs`)
    ).rows[0];
  const before = await counts();
  expect(extensionsOf(await send(world.ada, documentMutation, Buffer.from("\x7fELF")))).toMatchObject({
    code: "UNSUPPORTED_FILE",
  });
  expect(await counts()).toEqual(before);
});

test("stored content is deleted with the response if it was refused or only read", async () => {
  const before = [await contents(), await known(), await used(world.harbour.id)];
  const key = { headers: { "graphql-preflight": "1", "idempotency-key": "once" } };
  const first = await send(world.ada, documentMutation, pdf(2_000), {}, key);
  expect(first.errors).toBeUndefined();
  const kept = [await contents(), await known(), await used(world.harbour.id)];
  expect(kept[2]).toBe((before[2] as number) + 2_000);
  // Another body under the same key is refused after its file was received.
  const mismatch = await send(world.ada, documentMutation, pdf(3_000), {}, key);
  expect(extensionsOf(mismatch)).toMatchObject({ code: "IDEMPOTENCY_MISMATCH" });
  const imported = await send(world.ada, importMutation, csv);
  expect(imported.data.importUnits).toMatchObject({ failedCount: 0 });
  await until(async () => (await known()) === kept[1]);
  expect([await contents(), await known(), await used(world.harbour.id)]).toEqual(kept);
});

test("shared content is kept while one upload of it remains", async () => {
  const bytes = pdf(5_000);
  const answers = await Promise.all(
    Array.from({ length: 6 }, (_, n) =>
      // Half of them are refused after they were stored.
      send(
        world.ada,
        documentMutation,
        bytes,
        {},
        {
          headers: {
            "graphql-preflight": "1",
            ...(n % 2 === 1 && { "idempotency-key": "once" }),
          },
        },
      ),
    ),
  );
  const made = answers.filter(({ errors }) => !errors).map(({ data }) => data.uploadProjectDocument);
  expect(made).toHaveLength(3);
  await until(async () => {
    const { rows } = await world.owner.query(
      "select pending from app_private.stored_files where checksum = $1",
      [made[0].checksum],
    );
    return rows[0].pending === 0;
  });
  expect(await contents()).toContain(made[0].checksum);
});

test("organizations and users have a storage quota; equal content counts once, and organizations are separate", async () => {
  const before = await used(world.harbour.id);
  const size = 9_000_000;
  const files = Array.from({ length: 6 }, (_, n) => {
    const bytes = pdf(size);
    bytes.write(`% ${n}`, 10);
    return bytes;
  });
  const answers = await Promise.all(files.map((bytes) => send(world.ada, documentMutation, bytes)));
  const room = Math.floor((quota - before) / size);
  expect(answers.filter(({ errors }) => !errors)).toHaveLength(room);
  expect(extensionsOf(answers.find(({ errors }) => errors)!)).toMatchObject({
    code: "LIMIT_EXCEEDED",
    limit: quota,
    field: "file",
  });
  await until(async () => (await used(world.harbour.id)) === before + room * size);
  const again = files[answers.findIndex(({ errors }) => !errors)]!;
  expect(extensionsOf(await send(world.owen, documentMutation, again))).toMatchObject({
    code: "LIMIT_EXCEEDED",
  });
  const small = Buffer.from("%PDF-1.7 small");
  expect((await send(world.owen, documentMutation, small)).errors).toBeUndefined();
  const total = await used(world.harbour.id);
  expect((await send(world.ada, documentMutation, small)).errors).toBeUndefined();
  expect(await used(world.harbour.id)).toBe(total);
  const project = await createProject(world.olga, { organizationId: world.summit.id, title: "Summit" });
  const elsewhere = await send(world.olga, documentMutation, pdf(size), { projectId: project.id });
  expect(elsewhere.errors).toBeUndefined();
  expect([await used(world.summit.id), await used(world.olga.id)]).toEqual([size, size]);
});
