import { afterAll, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { request } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { gunzipSync } from "node:zlib";
import pino from "pino";
import { EventArchives } from "../../src/archives/index.ts";
import { createFileStore, type FileStore } from "../../src/providers/files/index.ts";
import { contentsOf } from "../../src/cli/move/movedFiles.ts";
import { readMovedTables } from "../../src/cli/move/movedTables.ts";
import { storedContents } from "../../src/providers/files/contents.ts";
import { createSeal } from "../../src/secrets/seal.ts";
import { startDispatcher, type Dispatcher } from "../../src/webhooks/dispatcher.ts";
import { startReceiver, type Receiver } from "../webhooks/receiver.ts";
import { secretKeys, startApi, type Person } from "../harness/api.ts";
import { testCompute } from "../harness/compute.ts";
import { cast, createLead, startPortfolio, type Portfolio } from "../harness/portfolio.ts";
import { createIn } from "../harness/records.ts";
import { until } from "../harness/until.ts";
import { partyOf } from "../../src/admission/party.ts";
import { join as joinOrganization, programOf } from "../harness/world.ts";
import { startS3 } from "../harness/s3.ts";
import { password } from "../harness/signUp.ts";
import { readZip } from "../harness/zip.ts";
import { createOutbox, runJobs, type Outbox } from "../tasks/worker.ts";

// The archive of old events: what readers of the API, receivers of webhooks and erased persons notice of it.

let world: Portfolio;
let store: FileStore;
let outbox: Outbox;
beforeAll(async () => {
  world = await startPortfolio(undefined, { loopbackWebhooks: true });
  store = createFileStore({ dataDir: world.dataDir });
  outbox = await createOutbox();
});
afterAll(async () => {
  await outbox.remove();
  await world.stop();
});

const page = `query ($id: ID!, $first: Int, $after: String) { events(filter: { organizationId: $id, afterSequence: $after }, first: $first) {
  id sequence name data changes archivedAt erasedAt } }`;

const query = async (text: string, values: unknown[] = []) => (await world.owner.query(text, values)).rows;
const work = (of: FileStore = store) => runJobs(world.database.ownerUrl, outbox.provider, of);

/** Makes the events of an organization old, and lets everything that waits for them pass. */
async function age(organizationId: string): Promise<void> {
  await work();
  await query(
    `begin; set local session_replication_role = 'replica';
     update app_public.events set occurred_at = now() - interval '3000 days' where organization_id = '${organizationId}'; commit`,
  );
  await query("select app_private.skip_notifications()");
}

/** Runs the task that archives. */
async function archive(of?: FileStore): Promise<string[]> {
  await query("select app_private.add_job('events__archive')");
  return work(of);
}

/** The objects of the archive, with their lines. */
async function objects(organizationId: string): Promise<{ checksum: string; lines: any[] }[]> {
  const rows = await query(
    "select checksum from app_private.event_archives where organization_id = $1 and recorded_at is not null order by from_sequence",
    [organizationId],
  );
  return Promise.all(
    rows.map(async ({ checksum }) => {
      const text = gunzipSync(await readFile(pathOf(checksum))).toString();
      return {
        checksum,
        lines: text
          .trimEnd()
          .split("\n")
          .map((line) => JSON.parse(line)),
      };
    }),
  );
}
const pathOf = (checksum: string) => join(world.dataDir, "files", checksum.slice(0, 2), checksum.slice(2));

/** The contents of all files of the store, decompressed where they are compressed. */
async function contentsOfStore(): Promise<string> {
  const folder = join(world.dataDir, "files");
  const names = await readdir(folder, { recursive: true, withFileTypes: true });
  const texts = names
    .filter((file) => file.isFile())
    .map(async (file) => {
      const bytes = await readFile(join(file.parentPath, file.name));
      return (bytes[0] === 0x1f && bytes[1] === 0x8b ? gunzipSync(bytes) : bytes).toString();
    });
  return (await Promise.all(texts)).join("\n");
}

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

const unarchived = (event: Record<string, unknown>) => ({ ...event, archivedAt: undefined });
const read = async (person: Person, variables: Record<string, unknown> = {}) =>
  (await person.sees(page, { id: world.harbour.id, first: 100, ...variables })).events ?? [];

const ofRecords = `query ($lead: ID!, $project: ID!) {
  lead(id: $lead) { events { id sequence name data changes archivedAt erasedAt } notes { events { id name data changes archivedAt } } }
  project(id: $project) { leads(first: 5) { events { id name data changes archivedAt } } } }`;

/** The events that a person finds: of the organization, of records, and of records of these. */
async function readAll(person: Person): Promise<Record<string, unknown>[]> {
  const { lead, project } = await person.sees(ofRecords, {
    lead: world.leads.sams.id,
    project: world.project.id,
  });
  return [
    ...(await read(person)),
    ...(lead?.events ?? []),
    ...[...(lead?.notes ?? []), ...(project?.leads ?? [])].flatMap(({ events }) => events),
  ];
}

describe("old events", () => {
  const before: Record<string, unknown[]> = {};
  let people: Record<string, Person>;

  beforeAll(async () => {
    const { owen, project, park, leads, harbour } = world;
    for (let n = 1; n <= 50; n += 1) await createLead(owen, { projectId: park.id, name: `Lead ${n}` });
    for (const { id } of [project, park])
      await owen.get("mutation ($input: UpdateProjectInput!) { updateProject(input: $input) { id } }", {
        input: { id, metadata: { margin: 30 } },
      });
    await owen.get("mutation ($input: UpdateLeadInput!) { updateLead(input: $input) { id } }", {
      input: { id: leads.sams.id, name: "Sally Sams" },
    });
    const gone = await createLead(owen, { projectId: project.id, name: "Gone Gwen" });
    await owen.get("mutation ($input: DeleteLeadInput!) { deleteLead(input: $input) { id } }", {
      input: { id: gone.id },
    });
    await createIn(owen)("createLeadNote", { leadId: leads.sams.id, text: "Likes boats." });
    people = {
      ...cast(world),
      program: await programOf(world, world.owen, { scopes: ["lead.read", "audit.read", "org.member"] }),
      reader: await programOf(world, world.owen, { scopes: ["inventory.read"] }),
    };
    await age(harbour.id);
    for (const [who, person] of Object.entries(people)) before[who] = await readAll(person);
  });

  test("are archived in the order of their sequences, with their content", async () => {
    expect(before.owner!.length).toBeGreaterThan(10);
    expect((await archive()).join("\n")).not.toMatch(/error/i);
    const [object, ...others] = await objects(world.harbour.id);
    expect(others).toEqual([]);
    expect(object!.lines.map(({ sequence }) => Number(sequence))).toEqual(
      object!.lines.map((_, index) => index + 1),
    );
    const left = await query(
      "select count(*)::int as n from app_public.events where organization_id = $1 and (data <> '{}' or changes is not null or archived_at is null or erased_at is not null)",
      [world.harbour.id],
    );
    expect(left).toEqual([{ n: 0 }]);
    expect(await objects(world.summit.id)).toEqual([]);
  });

  test("are read by everybody as before, with masks and permissions", async () => {
    const seen = JSON.stringify(before.owner);
    expect(seen).toContain("margin");
    const after = Object.fromEntries(
      await Promise.all(
        Object.entries(people).map(async ([who, person]) => [who, (await readAll(person)).map(unarchived)]),
      ),
    );
    expect(after).toEqual(
      Object.fromEntries(
        Object.entries(before).map(([who, events]) => [
          who,
          (events as Record<string, unknown>[]).map(unarchived),
        ]),
      ),
    );
    const counts = Object.fromEntries(Object.entries(before).map(([who, events]) => [who, events.length]));
    expect(counts.owner).toBeGreaterThan(counts.seller!);
    expect(counts.seller).toBeGreaterThan(0);
    expect(counts).toMatchObject({ outsider: 0, anonymous: 0, reader: 0 });
    // Not everybody reads the same of the same event.
    const whole = new Map(
      (before.owner as { id: string; data: object }[]).map((event) => [event.id, event.data]),
    );
    const masked = (Object.values(before).flat() as { id: string; data: object }[]).find(
      ({ id, data }) => whole.has(id) && JSON.stringify(whole.get(id)) !== JSON.stringify(data),
    );
    expect(masked).toBeDefined();
    expect((await read(world.owen))[0]).toMatchObject({ archivedAt: expect.any(String), erasedAt: null });
  });

  test("cost two more statements, however many there are", async () => {
    const { owen, harbour } = world;
    const counts: number[] = [];
    for (const first of [1, 50]) {
      const { count, result } = await world.statements(() => owen.get(page, { id: harbour.id, first }));
      counts.push(count);
      expect(result.events[0]).toMatchObject({
        name: "organization.created",
        data: { name: "Harbour Homes" },
      });
    }
    const without = await world.statements(() =>
      owen.get("query ($id: ID!) { events(filter: { organizationId: $id }, first: 50) { id archivedAt } }", {
        id: harbour.id,
      }),
    );
    expect(counts).toEqual([without.count + 2, without.count + 2]);
  });

  test("are read through connections, records and deliveries alike", async () => {
    const { owen, harbour, leads } = world;
    const { eventsConnection } = await owen.get(
      `query ($id: ID!) { eventsConnection(filter: { organizationId: $id }, first: 2) { nodes { data } totalCount } }`,
      { id: harbour.id },
    );
    expect(eventsConnection.nodes[0].data).toMatchObject({ name: "Harbour Homes" });
    const { lead } = await owen.get("query ($id: ID!) { lead(id: $id) { events { name data changes } } }", {
      id: leads.sams.id,
    });
    expect(lead.events).toContainEqual(
      expect.objectContaining({ changes: expect.objectContaining({ name: ["Sams Sally", "Sally Sams"] }) }),
    );
  });

  test("are answered correctly by a query that was compiled before", async () => {
    const { owen, harbour } = world;
    const latest = `query Latest($id: ID!) { events(filter: { organizationId: $id }, orderBy: ID_DESC, first: 1) { name data changes archivedAt } }`;
    const ask = () => owen.ask(latest, { id: harbour.id }, { headers: { "if-none-match": '"none"' } });
    const late = { name: "lead.created", data: { name: "Late Lena" }, changes: null };
    await createIn(owen)("createLead", { projectId: world.project.id, name: "Late Lena" });
    const { compiled } = await world.documentCache();
    for (let times = 0; times < 4; times += 1) await ask();
    expect((await world.documentCache()).compiled).toBe(compiled + 1);
    const recent = await ask();
    expect(recent.data).toMatchObject({ events: [{ ...late, archivedAt: null }] });
    // No entity tag could say that it has not changed.
    expect(recent.headers.etag).toBeUndefined();
    await age(harbour.id);
    await archive();
    for (let times = 0; times < 3; times += 1)
      expect(await ask()).toMatchObject({
        status: 200,
        data: { events: [{ ...late, archivedAt: expect.any(String) }] },
      });
  });

  test("are in the export of the organization, with their content", async () => {
    const { owen, harbour, leads } = world;
    const { exportOrganization } = await owen.get(
      "mutation ($input: ExportOrganizationInput!) { exportOrganization(input: $input) { id } }",
      { input: { organizationId: harbour.id, files: false } },
    );
    await work();
    const { export: written } = await owen.get("query ($id: ID!) { export(id: $id) { url } }", {
      id: exportOrganization.id,
    });
    const events = readZip(await download(written.url))
      .get("events.jsonl")!
      .toString();
    const renamed = events
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line))
      .find(({ subjectId, changes }) => subjectId === leads.sams.id && changes?.name);
    expect(renamed).toMatchObject({
      changes: { name: ["Sams Sally", "Sally Sams"] },
      data: { name: "Sally Sams" },
    });
  });

  test("are unavailable, with a code, while their object is damaged or missing", async () => {
    const { owen, harbour } = world;
    const [{ checksum }] = (await objects(harbour.id)) as [{ checksum: string; lines: unknown[] }];
    const bytes = await readFile(pathOf(checksum));
    // A process without objects in memory.
    const archives = new EventArchives(store, { warn() {} });
    const find = async () => [{ event_id: "x", sequence: "1", checksum, filesize: bytes.length }];
    const never = async () => [];
    for (const damaged of [Buffer.concat([bytes.subarray(0, -9), Buffer.alloc(9)]), bytes.subarray(0, 20)]) {
      await writeFile(pathOf(checksum), damaged);
      const contents = await archives.contents(["x"], { party: partyOf("x", undefined), find, read: never });
      expect(contents.get("x")).toMatchObject({ name: "ArchiveUnreadable" });
    }
    await store.delete([checksum]);
    expect(
      (await archives.contents(["x"], { party: partyOf("x", undefined), find, read: never })).get("x"),
    ).toMatchObject({
      message: `The file store has no object ${checksum}.`,
    });
    // The service has it in memory until a row names another object.
    await query(
      "update app_private.event_archives set checksum = repeat('b', 64) where checksum = $1 and organization_id = $2",
      [checksum, harbour.id],
    );
    const answer = await owen.ask(page, { id: harbour.id, first: 2 });
    expect(answer.errors!.map(({ path, extensions: { code } }) => [path!.join("."), code])).toContainEqual([
      "events.0.data",
      "UNAVAILABLE",
    ]);
    expect(
      (
        await owen.ask(`query ($id: ID!) { events(filter: { organizationId: $id }, first: 2) { name } }`, {
          id: harbour.id,
        })
      ).errors,
    ).toBeUndefined();
    await query("update app_private.event_archives set checksum = $1 where checksum = repeat('b', 64)", [
      checksum,
    ]);
    await writeFile(pathOf(checksum), bytes);
    expect((await read(owen))[0]).toMatchObject({ data: { name: "Harbour Homes" } });
  });
});

describe("redelivery", () => {
  const compute = testCompute();
  let receiver: Receiver;
  let dispatcher: Dispatcher;
  beforeAll(async () => {
    receiver = await startReceiver();
    dispatcher = await startDispatcher({
      connectionString: world.database.workerUrl,
      seal: createSeal(secretKeys),
      loopback: true,
      compute,
      log: pino({ level: "silent" }),
      eventArchives: new EventArchives(store, { warn() {} }),
    });
  });
  afterAll(async () => {
    await query("update app_public.webhooks set status = 'DISABLED'");
    await receiver.close();
    await dispatcher.stop();
  });

  test("sends archived events with their content", async () => {
    const { owen, harbour } = world;
    const id = await createIn(owen)("createWebhook", {
      organizationId: harbour.id,
      url: receiver.url,
      events: ["lead.*"],
    });
    await owen.get("mutation ($input: RedeliverEventsInput!) { redeliverEvents(input: $input) { id } }", {
      input: { id, fromSequence: "1" },
    });
    const named = (name: string) =>
      receiver.messages.map(({ text }) => JSON.parse(text)).find((message) => message.data?.name === name);
    await until(
      () => named("Sally Sams"),
      (message) => message !== undefined,
    );
    expect(named("Sally Sams")).toMatchObject({
      type: "lead.updated",
      changes: { name: ["Sams Sally", "Sally Sams"] },
      data: { name: "Sally Sams" },
    });
  });
});

describe("a person who is erased", () => {
  const email = "petra.plumtree@person.example";
  const name = "Petra Plumtree";
  let lead: { id: string };

  beforeEach(async () => {
    const { owen, project, leads, harbour } = world;
    lead = await createLead(owen, { projectId: project.id, name, email });
    await createIn(owen)("createLeadNote", {
      leadId: leads.open.id,
      text: `A friend of ${name} at ${email}.`,
    });
    await age(harbour.id);
  });

  const erase = () =>
    world.owen.get(
      "mutation ($input: ErasePersonInput!) { erasePerson(input: $input) { id status removed } }",
      {
        input: { leadId: lead.id },
      },
    );
  const erasureOf = async (id: string) =>
    (await world.owen.get("query ($id: ID!) { erasure(id: $id) { status removed } }", { id })).erasure;

  test("is erased from the objects, before the certificate says so", async () => {
    const { owen } = world;
    await archive();
    expect(await contentsOfStore()).toContain(email);
    const { erasePerson } = await erase();
    expect(erasePerson).toMatchObject({ status: "RUNNING" });
    // At once for those who read it, though the object still has it.
    const { events } = await owen.get(
      "query ($ids: [ID!]) { events(filter: { subjectIds: $ids }, first: 5) { name data archivedAt erasedAt } }",
      { ids: [lead.id] },
    );
    expect(events[0]).toMatchObject({
      name: "lead.created",
      data: { name: null, email: null, projectId: world.project.id },
      archivedAt: expect.any(String),
      erasedAt: expect.any(String),
    });
    await work();
    expect(await erasureOf(erasePerson.id)).toMatchObject({
      status: "COMPLETED",
      removed: expect.arrayContaining([
        expect.objectContaining({ record: "events", fields: ["texts that named the person"] }),
      ]),
    });
    const contents = await contentsOfStore();
    expect(contents).toContain("Harbour Homes");
    for (const trace of [email, name, "Plumtree"]) expect(contents).not.toContain(trace);
    expect(await query("select from app_private.archived_event_erasures")).toEqual([]);
    expect(await query("select from app_private.event_archives where recorded_at is null")).toEqual([]);
    const notes = await owen.get(
      `query ($id: ID!) { events(filter: { organizationId: $id, names: ["lead_note.created"] }, orderBy: ID_DESC, first: 1) { data erasedAt } }`,
      { id: world.harbour.id },
    );
    expect(notes.events[0]).toMatchObject({
      data: { text: "A friend of [erased] at [erased]." },
      erasedAt: expect.any(String),
    });
  });

  test("is not archived if the erasure comes between reading and recording", async () => {
    let erasure: string | undefined;
    const erasing: FileStore = {
      ...store,
      async put(key, content, of) {
        await store.put(key, content, of);
        if (of.type === "application/gzip") erasure ??= (await erase()).erasePerson.id;
      },
    };
    await archive(erasing);
    await work();
    expect(await erasureOf(erasure!)).toMatchObject({ status: "COMPLETED" });
    expect(await contentsOfStore()).not.toContain(email);
    const [{ sequence }] = await query(
      "select sequence::int from app_public.events where subject_id = $1 and name = 'lead.created' and archived_at is not null",
      [lead.id],
    );
    const lines = (await objects(world.harbour.id)).flatMap((object) => object.lines);
    expect(lines.find((line) => Number(line.sequence) === sequence)).toMatchObject({
      name: "lead.created",
      data: { name: null, email: null },
    });
  });

  test("is not in what a process left behind that died between storing and recording", async () => {
    const dying: FileStore = {
      ...store,
      async put(key, content, of) {
        await store.put(key, content, of);
        if (of.type === "application/gzip") throw new Error("It died.");
      },
    };
    await archive(dying);
    expect(await contentsOfStore()).toContain(email);
    expect(await query("select from app_private.event_archives where recorded_at is null")).toHaveLength(1);
    await erase();
    await work();
    expect(await contentsOfStore()).not.toContain(email);
    expect(await query("select from app_private.event_archives where recorded_at is null")).toEqual([]);
  });
});

test("what a process left behind is overwritten by the next run, and removed if nobody needs it", async () => {
  const { owen, project, harbour } = world;
  await createLead(owen, { projectId: project.id, name: "Left Lou" });
  await age(harbour.id);
  let puts = 0;
  const dying: FileStore = {
    ...store,
    async put(key, content, of) {
      await store.put(key, content, of);
      puts += 1;
      throw new Error("It died.");
    },
  };
  await archive(dying);
  expect(puts).toBe(1);
  const left = await query("select checksum from app_private.event_archives where recorded_at is null");
  await query("update graphile_worker._private_jobs set run_at = now() where last_error is not null");
  await archive();
  expect((await objects(harbour.id)).map(({ checksum }) => checksum)).toContain(left[0].checksum);
  // Of another run that was not repeated.
  await query(
    `insert into app_private.event_archives (checksum, organization_id, from_sequence, to_sequence, amount, filesize, inserted_at)
     values (repeat('c', 64), $1, 1, 1, 1, 1, now() - interval '2 hours')`,
    [harbour.id],
  );
  await archive();
  expect(await query("select from app_private.event_archives where recorded_at is null")).toEqual([]);
});

test("an organization has the content erased instead, if it chooses so", async () => {
  const { owen, harbour, project } = world;
  await owen.get(
    "mutation ($input: UpdateOrganizationRetentionInput!) { updateOrganizationRetention(input: $input) { archivesEvents } }",
    { input: { organizationId: harbour.id, archivesEvents: false } },
  );
  await createLead(owen, { projectId: project.id, name: "Erased Ed" });
  await age(harbour.id);
  const known = await objects(harbour.id);
  await archive();
  expect((await objects(harbour.id)).length).toBe(known.length);
  await query("select app_private.add_job('organizations__retain')");
  await work();
  const { events } = await owen.get(
    `query ($id: ID!) { events(filter: { organizationId: $id }, orderBy: ID_DESC, first: 1) { data archivedAt erasedAt } }`,
    { id: harbour.id },
  );
  expect(events).toEqual([{ data: {}, archivedAt: null, erasedAt: expect.any(String) }]);
  // What was archived before is still read.
  expect((await read(owen))[0]).toMatchObject({ data: { name: "Harbour Homes" } });
});

test("an account that is erased is erased from the objects by a job", async () => {
  const { harbour, owen } = world;
  const quinn = await world.signUp("Quinn Quitter");
  await joinOrganization(world, harbour.id, quinn, "ADMIN");
  await owen.get(
    "mutation ($input: UpdateOrganizationRetentionInput!) { updateOrganizationRetention(input: $input) { archivesEvents } }",
    { input: { organizationId: harbour.id, archivesEvents: true } },
  );
  await query(
    `insert into app_public.organization_invites (organization_id, email, role) values ($1, $2, 'MEMBER')`,
    [harbour.id, quinn.email],
  );
  await age(harbour.id);
  await archive();
  expect(await contentsOfStore()).toContain(quinn.email);
  const { eraseAccount } = await quinn.get(
    "mutation ($input: EraseAccountInput!) { eraseAccount(input: $input) { kept } }",
    { input: { password } },
  );
  expect(eraseAccount.kept).toContainEqual(expect.objectContaining({ record: "archivedEvents" }));
  await work();
  expect(await contentsOfStore()).not.toContain(quinn.email);
  expect(await query("select from app_private.archived_event_erasures")).toEqual([]);
});

test("another store has the objects as well, and gives them back", async () => {
  const { olga, summit, database } = world;
  const folder = await mkdtemp(join(tmpdir(), "plat-s3-"));
  const s3 = await startS3(folder);
  const bucket = createFileStore({ s3: s3.options, dataDir: folder });
  const api = await startApi(database, { s3: s3.options });
  try {
    await age(summit.id);
    await archive(bucket);
    const [{ checksum }] = await query(
      "select checksum from app_private.event_archives where organization_id = $1 and recorded_at is not null",
      [summit.id],
    );
    expect(await s3.keys()).toContain(checksum);
    const person = api.person(olga.token!, olga.id);
    const names = "query ($id: ID!) { events(filter: { organizationId: $id }, first: 1) { data } }";
    s3.failReads("503");
    const refused = await person.refused(names, { id: summit.id });
    expect(refused).toMatchObject({ code: "UNAVAILABLE", retryAfterSeconds: 10 });
    s3.failReads(undefined);
    const { events } = await person.get(names, { id: summit.id });
    expect(events).toEqual([{ data: expect.objectContaining({ name: "Summit Sales" }) }]);
  } finally {
    await api.stop();
    await bucket.close();
    await s3.close();
    await rm(folder, { recursive: true });
  }
}, 60_000);

test("backups and moves to another installation include the objects", async () => {
  const { harbour, summit, database } = world;
  const checksums = (await objects(harbour.id)).map(({ checksum }) => checksum);
  expect(await storedContents(database.ownerUrl)).toEqual(expect.arrayContaining(checksums));
  const client = await world.owner.connect();
  try {
    const tables = await readMovedTables(client);
    const moved = async (organizationId: string) =>
      (await contentsOf(client, tables, { organizationId, userIds: [] })).map(({ checksum }) => checksum);
    expect(await moved(harbour.id)).toEqual(expect.arrayContaining(checksums));
    expect(await moved(summit.id)).not.toContain(checksums[0]);
  } finally {
    client.release();
  }
});

test("an organization that is deleted takes its objects along", async () => {
  const { owen, harbour } = world;
  const known = await objects(harbour.id);
  expect(known.length).toBeGreaterThan(0);
  await owen.get(
    "mutation ($input: RequestOrganizationDeletionInput!) { requestOrganizationDeletion(input: $input) { id } }",
    { input: { organizationId: harbour.id, password } },
  );
  await query("update app_public.organization_deletions set final_at = now() - interval '1 hour'");
  await query("select app_private.queue_due_deletions()");
  await work();
  await query("select app_private.add_job('files__sweep')");
  await work();
  expect(await query("select status from app_public.organization_deletions")).toEqual([
    { status: "COMPLETED" },
  ]);
  expect(
    await query("select from app_private.event_archives where organization_id = $1", [harbour.id]),
  ).toEqual([]);
  for (const { checksum } of known) expect(await store.size(checksum)).toBeUndefined();
});
