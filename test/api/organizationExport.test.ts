import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { request } from "node:https";
import { buffer } from "node:stream/consumers";
import { createFileStore, type FileStore } from "../../src/providers/files/index.ts";
import { tooLarge } from "../../src/providers/files/incoming.ts";
import type { Person } from "../harness/api.ts";
import { createBuyer } from "../harness/deals.ts";
import { cast, createLead, startPortfolio, type Portfolio } from "../harness/portfolio.ts";
import { createIn } from "../harness/records.ts";
import { programOf } from "../harness/world.ts";
import { readZip } from "../harness/zip.ts";
import { createOutbox, runJobs, type Outbox } from "../tasks/worker.ts";

// All data of an organization as one archive: permissions, contents, and that it has no data of others.

let world: Portfolio;
let store: FileStore;
let outbox: Outbox;
let document: string;

const exporting = `mutation ($input: ExportOrganizationInput!) { exportOrganization(input: $input) { id status subject format filename } }`;
const reading = "query ($id: ID!) { export(id: $id) { status url error rowCount filesize progress } }";

beforeAll(async () => {
  world = await startPortfolio();
  store = createFileStore({ dataDir: world.dataDir });
  outbox = await createOutbox();
  const { owen, project } = world;
  const buyerId = await createBuyer(owen, project, {
    legalName: "Bruno Bought",
    email: "bruno@harbour.example",
  });
  document = await createIn(owen)("uploadBuyerDocument", {
    buyerId,
    category: "OTHER",
    file: `data:;name=deed.txt;base64,${Buffer.from("The deed of Bruno Bought.").toString("base64")}`,
  });
  await createLead(owen, {
    projectId: project.id,
    name: 'Lin \u2028 "Quote"\nLine',
    email: "lin@harbour.example",
  });
});
afterAll(async () => {
  await outbox.remove();
  await world.stop();
});

async function download(address: string): Promise<Buffer> {
  const { pathname, search } = new URL(address);
  return new Promise((resolve, reject) => {
    request(new URL(pathname + search, world.url), { rejectUnauthorized: false }, (response) => {
      buffer(response).then(resolve, reject);
    })
      .on("error", reject)
      .end();
  });
}

/** Requests the archive and returns its contents. */
async function archive(person: Person, rest: Record<string, unknown> = {}) {
  const input = { organizationId: world.harbour.id, ...rest };
  const { exportOrganization: requested } = await person.get(exporting, { input });
  const log = await runJobs(world.database.ownerUrl, outbox.provider, store);
  expect(log.filter((line) => /^(error|warn)/i.test(line))).toEqual([]);
  const { export: found } = await person.get(reading, { id: requested.id });
  expect(found).toMatchObject({ status: "COMPLETED", error: null, progress: 1 });
  const entries = readZip(await download(found.url));
  const records = (name: string): any[] =>
    (entries.get(`${name}.jsonl`)?.toString() ?? "")
      .split("\n")
      .slice(0, -1)
      .map((line) => JSON.parse(line));
  return {
    requested,
    found,
    entries,
    records,
    manifest: JSON.parse(entries.get("manifest.json")!.toString()),
  };
}

test("requires an owner, or a token with the permission", async () => {
  const { owen, olga, harbour } = world;
  const input = { organizationId: harbour.id };
  const lesser = await programOf(world, owen, { scopes: ["org.admin", "org.member", "report.*"] });
  const codes: Record<string, string> = {};
  for (const [who, person] of Object.entries({ ...cast(world), lesser })) {
    const answer = await person.ask(exporting, { input });
    codes[who] = answer.errors?.[0]?.extensions.code ?? answer.data.exportOrganization.status;
  }
  expect(codes).toEqual({
    owner: "PENDING",
    admin: "FORBIDDEN",
    member: "FORBIDDEN",
    seller: "FORBIDDEN",
    builder: "FORBIDDEN",
    outsider: "FORBIDDEN",
    anonymous: "UNAUTHENTICATED",
    lesser: "FORBIDDEN",
  });
  expect((await olga.refused(exporting, { input: { organizationId: harbour.id } })).code).toBe("FORBIDDEN");
  // No other operation creates such archives.
  const custom = `mutation ($input: CreateCustomExportInput!) { createCustomExport(input: $input) { id } }`;
  const other = { organizationId: harbour.id, name: "All", columns: ["id"] };
  for (const wrong of [
    { subject: "ORGANIZATION", format: "ZIP" },
    { subject: "ORGANIZATION", format: "JSONL" },
    { subject: "LEADS", format: "ZIP" },
  ])
    expect((await owen.refused(custom, { input: { ...other, ...wrong } })).code).toBe("BAD_USER_INPUT");
});

test("contains all data of the organization and its files, and nothing of others", async () => {
  const { owen, harbour, owner, max } = world;
  const { requested, found, entries, records, manifest } = await archive(owen);
  expect(requested).toMatchObject({
    subject: "ORGANIZATION",
    format: "ZIP",
    filename: expect.stringMatching(/\.zip$/),
  });
  // The number of rows of the organization in each table.
  const { rows: tables } = await owner.query<{ name: string; relation: string }>(
    `select app_hidden.camel(c.relname) as name, c.oid::regclass::text as relation from pg_class c
     join pg_attribute a on a.attrelid = c.oid and a.attname = 'organization_id'
     where c.relkind in ('r', 'p') and c.relnamespace = 'app_public'::regnamespace and c.relname not in ('project_organizations', 'exports', 'events') order by 1`,
  );
  for (const { name, relation } of tables) {
    const { rows } = await owner.query(
      `select count(*)::int as amount from ${relation} t where organization_id = $1 and (to_jsonb(t) ->> 'deleted_at') is null`,
      [harbour.id],
    );
    expect([name, records(name).length]).toEqual([name, rows[0].amount]);
    expect(manifest.records[name] ?? 0).toBe(rows[0].amount);
  }
  expect(records("leads").map(({ name }) => name)).toContain('Lin \u2028 "Quote"\nLine');
  expect(records("buyers")).toEqual([
    expect.objectContaining({
      legalName: "Bruno Bought",
      email: "bruno@harbour.example",
      organizationId: harbour.id,
    }),
  ]);
  expect(records("events").find(({ name }) => name === "buyer.created")).toMatchObject({
    data: { legalName: "Bruno Bought" },
    requestId: expect.any(String),
  });
  expect(records("organizations").map(({ name }) => name)).toEqual(["Harbour Homes"]);
  expect(records("users").map(({ id }) => id)).toContain(max.id);
  expect(found.rowCount).toBe(Object.values<number>(manifest.records).reduce((sum, count) => sum + count, 0));
  expect(entries.get(`files/buyerDocuments/${document}/deed.txt`)!.toString()).toBe(
    "The deed of Bruno Bought.",
  );
  expect(manifest).toMatchObject({ files: 1, missing: [] });
  const all = [...entries.values()].map(String).join("\n");
  const foreign = ["Foreign Fay", "Summit Peak", world.peak.id];
  expect(foreign.filter((text) => all.includes(text))).toEqual([]);
  // It contains no secrets.
  expect(all.match(/"\w*(password|sha256|sealed|secret)\w*"(?=:)|argon2/gi)).toBeNull();
  for (const person of [world.ada, max, world.olga, world.anonymous])
    expect((await person.sees(reading, { id: requested.id })).export?.url ?? null).toBeNull();
});

test("is limited to what the token may see, and optionally without files; a lost permission invalidates the URL", async () => {
  const { owen, owner, harbour } = world;
  const narrow = await programOf(world, owen, { scopes: ["org.owner", "org.member", "report.run"] });
  const { records, manifest } = await archive(narrow);
  expect(records("leads")).toEqual([]);
  expect(records("organizationUserConnections").length).toBeGreaterThan(0);
  expect(manifest.files).toBe(0);
  const { requested, entries } = await archive(owen, { files: false });
  expect([...entries.keys()].filter((name) => name.startsWith("files/"))).toEqual([]);
  await owner.query(
    "update app_public.organization_user_connections set role = 'OWNER' where user_id = $1 and organization_id = $2",
    [world.max.id, harbour.id],
  );
  await owner.query(
    "update app_public.organization_user_connections set role = 'MEMBER' where user_id = $1 and organization_id = $2",
    [owen.id, harbour.id],
  );
  expect((await owen.get(reading, { id: requested.id })).export.url).toBeNull();
});

test("an export that is too large refers to the operator's command", async () => {
  const { max, harbour, database } = world;
  const { exportOrganization: requested } = await max.get(exporting, {
    input: { organizationId: harbour.id },
  });
  const small: FileStore = { ...store, put: () => Promise.reject(tooLarge(2_000_000_000)) };
  await runJobs(database.ownerUrl, outbox.provider, small);
  expect((await max.get(reading, { id: requested.id })).export).toMatchObject({
    status: "FAILED",
    url: null,
    error: `The archive would be over 2 GB. Have one without files, or ask whoever runs the service to write one of any size: npm run organizations -- export ${harbour.slug} --to ${harbour.slug}.zip`,
  });
});
