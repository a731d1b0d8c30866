/** Dry runs, the input field `dryRun`: docs/dry-runs.md. */
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { readdir, readFile } from "node:fs/promises";
import { join as joinPath } from "node:path";
import { writingTasks } from "../../src/operations/effects.ts";
import type { Person } from "../harness/api.ts";
import { createLead, startPortfolio, type Portfolio } from "../harness/portfolio.ts";
import { expectNothingStored } from "../harness/expectNothingStored.ts";
import { createIn, mutationOf } from "../harness/records.ts";
import { digest } from "../harness/expectUnchanged.ts";
import { programOf } from "../harness/world.ts";
import { createWorkflow } from "../workflows/world.ts";

let world: Portfolio;
let tables: string[];

beforeAll(async () => {
  world = await startPortfolio();
  const { rows } = await world.owner.query<{ name: string }>(
    `select format('%I.%I', n.nspname, c.relname) as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
     where c.relkind = 'r' and (n.nspname like 'app\\_%' or n.nspname = 'graphile_worker') order by 1`,
  );
  tables = rows.map(({ name }) => name).filter((name) => name !== "app_private.sessions");
});
afterAll(() => world.stop());

const dry = async (person: Person, field: string, input: object, selection = "{ id }") =>
  expectNothingStored(world, () =>
    person.ask(mutationOf(field, selection), { input: { ...input, dryRun: true } }),
  );
const effectsOf = async (...of: Parameters<typeof dry>) => {
  const { errors, extensions } = await dry(...of);
  expect(errors).toBeUndefined();
  return extensions.effects;
};
const names = (effects: any): string[] => effects.events.map(({ name }: any) => name);

test("a dry run has the response of the operation, lists its effects, and stores nothing", async () => {
  await world.owen.get(mutationOf("createWebhook"), {
    input: { organizationId: world.harbour.id, url: "https://93.184.215.14/hook", events: ["lead.*"] },
  });
  const steps = [{ type: "ADD_TAG", config: { tag: "new" } }];
  const trigger = { type: "EVENT", event: "lead.created" };
  const starts = (value: string) => ({ "==": [{ var: "lead.company" }, value] });
  const started = await createWorkflow(world, steps, { trigger, conditions: starts("Acme") });
  await createWorkflow(world, steps, { trigger, conditions: starts("Another") });
  const before = await digest(world, tables);
  const files = await readdir(joinPath(world.dataDir), { recursive: true });
  const { data, errors, extensions } = await dry(
    world.owen,
    "createLead",
    { projectId: world.project.id, name: "Dora Dry", company: "Acme", email: "dora@example.com" },
    "{ id name version project { title leads { id } } events { name } }",
  );
  expect(errors).toBeUndefined();
  // Fields of the record show it too.
  const { id } = data.createLead;
  expect(data.createLead.project.leads).toContainEqual({ id });
  expect(data.createLead).toMatchObject({ name: "Dora Dry", version: 1, events: [{ name: "lead.created" }] });
  const { effects } = extensions;
  expect(names(effects)).toContain("lead.created");
  expect(effects.events[0]).toMatchObject({ subjectId: data.createLead.id, data: { name: "Dora Dry" } });
  expect(effects.webhooks).toEqual([expect.objectContaining({ events: ["lead.created"] })]);
  expect(effects.workflows).toEqual([
    expect.objectContaining({ id: started, event: "lead.created", subjectId: data.createLead.id }),
  ]);
  expect(effects.moreEvents).toBe(0);
  expect(await digest(world, tables)).toEqual(before);
  expect(await readdir(joinPath(world.dataDir), { recursive: true })).toEqual(files);
  expect((await world.owen.get("query ($id: ID!) { lead(id: $id) { id } }", { id })).lead).toBeNull();
});

test("it is refused like the operation, also at the commit, and requires the same permissions", async () => {
  const input = { projectId: world.project.id, name: "Twice", email: "twice@example.com" };
  await createLead(world.owen, input);
  const conflict = await dry(world.owen, "createLead", input);
  expect(conflict.errors?.[0]?.extensions).toMatchObject({ code: "CONFLICT" });
  const stranger = await dry(world.olga, "createLead", { ...input, email: "other@example.com" });
  expect(stranger.errors?.[0]?.extensions.code).toMatch(/NOT_FOUND|FORBIDDEN/);
  const reader = await programOf(world, world.owen, { readOnly: true });
  expect(
    (await dry(reader, "createLead", { ...input, email: "x@example.com" })).errors?.[0]?.extensions,
  ).toMatchObject({ code: "FORBIDDEN" });
  const visitor = await dry(
    world.anonymous,
    "contactProject",
    {
      projectId: world.project.id,
      name: "Vera",
      email: "vera@example.com",
      message: "Hello",
    },
    "{ leadId }",
  );
  expect(visitor.errors?.[0]?.extensions).toMatchObject({ code: "UNAUTHENTICATED" });
});

test("mutations of a request see the effects of earlier ones; a refused one is undone alone", async () => {
  const document = `mutation ($lead: CreateLeadInput!, $bad: CreateLeadInput!) {
    first: createLead(input: $lead) { id }
    again: createLead(input: $lead) { id }
    bad: createLead(input: $bad) { id }
    other: updateProject(input: { id: "${world.project.id}", title: "Another", dryRun: true }) { title }
  }`;
  const lead = { projectId: world.project.id, name: "Once", email: "once@example.com", dryRun: true };
  const { data, errors, extensions } = await expectNothingStored(world, () =>
    world.owen.ask(document, { lead, bad: { ...lead, email: "no address" } }),
  );
  expect(data).toMatchObject({ first: { id: expect.any(String) }, other: { title: "Another" } });
  expect(errors?.map(({ path, extensions: { code } }) => [path![0], code])).toEqual([
    ["again", "CONFLICT"],
    ["bad", "BAD_USER_INPUT"],
  ]);
  expect(names(extensions.effects)).toEqual(expect.arrayContaining(["lead.created", "project.updated"]));
  const mixed = await expectNothingStored(world, () =>
    world.owen.ask(document, { lead, bad: { ...lead, dryRun: false, email: "good@example.com" } }),
  );
  expect(mixed).toMatchObject({ errors: [{ extensions: { code: "BAD_USER_INPUT", field: "dryRun" } }] });
  expect(mixed.data ?? null).toBeNull();
});

test("an idempotency key is neither stored nor answered", async () => {
  const key = { idempotencyKey: "dry then real" };
  const input = { projectId: world.project.id, name: "Keyed", ...key };
  expect((await dry(world.owen, "createLead", input)).errors).toBeUndefined();
  const real = await world.owen.ask(mutationOf("createLead"), { input });
  expect(real.errors).toBeUndefined();
  expect(real.extensions.effects).toBeUndefined();
  const after = await dry(world.owen, "createLead", input);
  expect(after.errors).toBeUndefined();
  expect(after.data.createLead.id).not.toBe(real.data.createLead.id);
});

test("reports mails, claims and amounts, each only with the required permission", async () => {
  const invited = await effectsOf(world.owen, "createOrganizationInvite", {
    organizationId: world.harbour.id,
    email: "ines@example.com",
    role: "MEMBER",
  });
  expect(invited.mails).toEqual([expect.objectContaining({ task: "organization_invite__created" })]);
  const ofNobody = await effectsOf(world.owen, "createUserOtp", { email: world.olga.email }, "");
  expect(ofNobody).toMatchObject({ events: [], mails: [], jobs: [] });
  const unit = await createIn(world.owen)("createUnit", {
    projectId: world.project.id,
    title: "Suite 1",
    number: "1",
    status: "AVAILABLE",
    price: "500000.00",
  });
  const lead = await createLead(world.owen, {
    projectId: world.project.id,
    name: "Rosa",
    assigneeId: world.max.id,
  });
  const reservation = { unitId: unit, leadId: lead.id, acceptedTerms: true };
  const reserved = await effectsOf(world.max, "createReservation", reservation);
  expect(reserved.claims).toEqual([
    { subjectType: "unit", subjectId: unit, from: "AVAILABLE", to: "RESERVED" },
  ]);
  expect(reserved.money).toEqual([
    expect.objectContaining({ event: "reservation.created", amount: "500000.00" }),
  ]);
  // Members do not see the subscribers of webhooks; the actor of an operation is not notified.
  expect(reserved).toMatchObject({ webhooks: [], workflows: [] });
  expect(reserved.notifications.length).toBeGreaterThan(0);
  await createIn(world.owen)("createReservation", reservation);
  const taken = await dry(world.max, "createReservation", reservation);
  expect(taken.errors?.[0]?.extensions).toMatchObject({ code: "INVENTORY_UNAVAILABLE" });
});

test("operations with a dry run of their own keep it, and operations with external effects have none", async () => {
  const { id } = await createLead(world.owen, { projectId: world.project.id, name: "Updated" });
  const input = { ids: [id], addTags: ["vip"] };
  const { data, errors, extensions } = await dry(world.owen, "updateLeads", input, "{ dryRun updatedCount }");
  expect(errors).toBeUndefined();
  expect(data.updateLeads).toEqual({ dryRun: true, updatedCount: 1 });
  expect(extensions.effects).toBeUndefined();
  for (const [field, outside] of [
    ["updatePassword", { currentPassword: "wrong password", newPassword: "another password" }],
    ["createProcessorCard", { token: "tok_visa" }],
    ["suggestLeadEmail", { leadId: id }],
    [
      "uploadProjectDocument",
      { projectId: world.project.id, file: "data:text/plain;name=a.txt;base64,YQ==", title: "A" },
    ],
  ] as const) {
    const refused = await dry(world.owen, field, outside);
    expect(refused.errors?.[0]?.extensions).toMatchObject({ code: "BAD_USER_INPUT", reason: "NO_DRY_RUN" });
  }
});

test("a dry run does not wait for the numbering of events, and does not block it", async () => {
  const document = `mutation ($lead: CreateLeadInput!, $invite: CreateProjectOrganizationInput!, $note: CreateLeadNoteInput!) {
    createProjectOrganization(input: $invite) { __typename }
    createLead(input: $lead) { events { name sequence } }
    createLeadNote(input: $note) { id }
  }`;
  const input = { projectId: world.project.id, dryRun: true };
  const { project, leads, harbour, summit } = world;
  const counters = async () =>
    (await world.owner.query("select * from app_private.event_counters order by stream_id")).rows;
  const before = await counters();
  expect(before.map(({ stream_id }) => stream_id)).toEqual(expect.arrayContaining([harbour.id, summit.id]));
  const locking = await world.owner.connect();
  try {
    // Commits lock these rows to number their events, also those of other organizations, such as an invited
    // one.
    await locking.query("begin; select from app_private.event_counters for update");
    const { errors, data, extensions } = await world.owen.ask(document, {
      lead: { ...input, name: "Unlocked" },
      invite: { projectId: project.id, organizationId: summit.slug, role: "SELLER", dryRun: true },
      note: { leadId: leads.open.id, text: "Unlocked", dryRun: true },
    });
    expect(errors).toBeUndefined();
    expect(data.createLead.events).toEqual([{ name: "lead.created", sequence: expect.any(String) }]);
    expect(names(extensions.effects)).toEqual(expect.arrayContaining(["lead.created", "lead_note.created"]));
  } finally {
    await locking.query("rollback");
    locking.release();
  }
  expect(await counters()).toEqual(before);
});

test("all tasks that write mails or text messages are listed", async () => {
  const folder = new URL("../../src/tasks/", import.meta.url);
  const writing: string[] = [];
  for (const file of await readdir(folder)) {
    const text = await readFile(new URL(file, folder), "utf8");
    // The effects list mails of notifications by kind.
    if (/jobs\/(?:deliver|invite)\.ts|signingMails\.ts/.test(text) && file !== "notification_mail__due.ts")
      writing.push(file.replace(".ts", ""));
  }
  expect([...writingTasks].toSorted()).toEqual(writing.toSorted());
});
