/** `npm run organizations`: operations on organizations from the command line. */
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Client } from "pg";
import type { Tenancies } from "../../src/database/tenancy.ts";
import { loadDemo } from "../../src/demo/index.ts";
import { createFileStore } from "../../src/providers/files/index.ts";
import { createTestDatabase, type TestDatabase } from "../harness/database.ts";
import { runToExit, temporaryFolder } from "../harness/service.ts";

import { readZip } from "../harness/zip.ts";

let database: TestDatabase;
let folder: Awaited<ReturnType<typeof temporaryFolder>>;
let slug: string;

const run = (...args: string[]) =>
  runToExit({
    entry: "src/cli/organizations.ts",
    args,
    env: {
      DATABASE_URL: database.ownerUrl,
      AUTHENTICATOR_URL: database.authenticatorUrl,
      DATA_DIR: folder.path,
    },
  });

async function query<R extends object>(text: string, values: unknown[] = []): Promise<R[]> {
  const client = new Client({ connectionString: database.ownerUrl });
  await client.connect();
  try {
    return (await client.query<R>(text, values)).rows;
  } finally {
    await client.end();
  }
}

beforeAll(async () => {
  [database, folder] = await Promise.all([createTestDatabase(), temporaryFolder()]);
  const store = createFileStore({ dataDir: folder.path });
  await loadDemo(database.ownerUrl, { store, incomingFolder: join(folder.path, "incoming") });
  await store.close();
  [{ slug }] = (await query<{ slug: string }>(
    `select o.slug from app_public.organizations o where exists (select from app_public.projects p
       where p.organization_id = o.id) order by o.inserted_at limit 1`,
  )) as [{ slug: string }];
});

afterAll(async () => {
  await database?.drop();
  await folder?.[Symbol.asyncDispose]();
});

test("lists them, and prints the usage", async () => {
  const { code, stdout } = await run();
  expect([code, stdout]).toEqual([
    0,
    expect.stringMatching(new RegExp(`^${slug}  [0-9a-f-]{36}  .*, \\d+ members$`, "m")),
  ]);
  for (const wrong of [
    ["delete"],
    ["export", slug],
    ["delete", slug, "more"],
    ["destroy", slug],
    ["cancel", slug, "--to", "x"],
  ])
    expect([wrong, (await run(...wrong)).code]).toEqual([wrong, 1]);
  expect((await run("delete", "no-such-one")).stderr).toContain(
    "There is no organization with the slug or id no-such-one.",
  );
});

test("shows how the rows of each table belong to an organization, and which refer to another one", async () => {
  const { code, stdout, stderr } = await run("tables", "--rows", "--json");
  expect([code, stderr]).toEqual([0, ""]);
  const { foreignKeys } = JSON.parse(stdout) as Tenancies;
  // The affiliation of an agency with the project of a developer.
  expect(foreignKeys.filter(({ crossing }) => crossing)).toEqual([
    expect.objectContaining({ table: "app_public.project_organizations", references: "app_public.projects" }),
  ]);
  const text = await run("tables");
  expect([text.code, text.stdout]).toEqual([
    0,
    expect.stringMatching(
      /^direct: [^]*^  app_private\.webhook_queue  delivery_id → app_public\.webhook_deliveries  organization_id$/m,
    ),
  ]);
  expect((await run("list", "--json")).code).toBe(1);
});

test("exports one as visible to an owner, records and files, without a worker", async () => {
  const file = join(folder.path, "all.zip");
  const { code, stdout, stderr } = await run("export", slug, "--to", file);
  expect([code, stderr]).toEqual([0, expect.not.stringContaining("Error")]);
  const entries = readZip(await readFile(file));
  const manifest = JSON.parse(entries.get("manifest.json")!.toString());
  const lines = (name: string) => entries.get(`${name}.jsonl`)!.toString().trimEnd().split("\n");
  expect(lines("leads").length).toBe(manifest.records.leads);
  expect(stdout).toContain(
    `contains ${Object.values<number>(manifest.records).reduce((a, b) => a + b)} records of ${slug}.`,
  );
  expect(manifest).toMatchObject({ missing: [], files: expect.any(Number) });
  expect([...entries.keys()].filter((name) => name.startsWith("files/")).length).toBe(manifest.files);
  // Nothing of it is stored in the database, and no file is overwritten.
  expect(await query("select from app_public.exports e where e.subject = 'ORGANIZATION'")).toEqual([]);
  await writeFile(file, "mine");
  expect((await run("export", slug, "--to", file)).stderr).toContain(
    "exists already; it is not overwritten.",
  );
  expect(await readFile(file, "utf8")).toBe("mine");
});

test("is deleted after 30 days, not without --yes, not while others depend on it, and not after a cancellation", async () => {
  const state = () =>
    query<{ status: string; reason: string; days: number; requested_by_id: string | null }>(
      `select status, reason, round(extract(epoch from final_at - now()) / 86400)::int as days, requested_by_id
       from app_public.organization_deletions order by id`,
    );
  const refused = await run("delete", slug);
  expect([refused.code, refused.stderr]).toEqual([
    1,
    expect.stringContaining("Open deals of this organization involve others"),
  ]);
  await query(`insert into app_public.organizations (name, slug) values ('Closing Homes', 'closing-homes')`);
  const tried = await run("delete", "closing-homes");
  expect([tried.code, tried.stdout + tried.stderr]).toEqual([
    0,
    expect.stringContaining("Nothing was changed: add --yes"),
  ]);
  expect(await state()).toEqual([]);
  const done = await run("delete", "closing-homes", "--yes", "--reason", "The contract has ended.");
  expect([done.code, done.stderr]).toEqual([0, ""]);
  expect(await state()).toEqual([
    { status: "SCHEDULED", reason: "The contract has ended.", days: 30, requested_by_id: null },
  ]);
  expect((await run()).stdout).toMatch(/^closing-homes .*to be deleted at \d{4}-/m);
  expect((await run("delete", "closing-homes", "--yes")).stderr).toContain("already been requested");
  expect((await run("cancel", "closing-homes", "--reason", "It goes on.")).stdout).toContain(
    "will not be deleted",
  );
  expect(await state()).toEqual([expect.objectContaining({ status: "CANCELLED" })]);
  expect((await run("cancel", "closing-homes")).stderr).toContain(
    "The deletion of this organization has not been requested.",
  );
});
