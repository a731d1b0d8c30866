/** Affiliation: an agency is invited to a project, works there on its own leads, and leaves. */
import { createHash } from "node:crypto";
import { afterAll, afterEach, beforeAll, expect, test } from "@jest/globals";
import type { Person } from "../harness/api.ts";
import { signUpBuyer } from "../harness/deals.ts";
import { createIn, mutationOf, type Create } from "../harness/records.ts";
import { visit } from "../harness/visit.ts";
import { createProject, join, programOf, startWorld, type World } from "../harness/world.ts";
import { createOutbox, runJobs, type Outbox } from "../tasks/worker.ts";

let world: World;
let outbox: Outbox;
let create: Create;
/** OWNER, ADMIN and two MEMBERs of Summit Sales, an agency; OWNER of Third Homes; a buyer. */
let olga: Person, adam: Person, sam: Person, sue: Person, tess: Person, bea: Person;
let third: { id: string; slug: string };
let lead: string;

beforeAll(async () => {
  world = await startWorld();
  outbox = await createOutbox();
  create = createIn(world.owen);
  olga = world.olga;
  [adam, sam, sue, tess] = (await Promise.all(
    ["Adam Admin", "Sam Seller", "Sue Seller", "Tess Third"].map(world.signUp),
  )) as [Person, Person, Person, Person];
  await join(world, world.summit.id, adam, "ADMIN");
  await join(world, world.summit.id, sam, "MEMBER");
  await join(world, world.summit.id, sue, "MEMBER");
  third = (
    await tess.get(mutationOf("createOrganization", "{ id slug }"), { input: { name: "Third Homes" } })
  ).createOrganization;
  bea = (await signUpBuyer(world)).person;
  lead = await create("createLead", {
    projectId: world.project.id,
    name: "Lea Lead",
    email: "lea@example.com",
  });
});

// Each test begins with Summit Sales not affiliated.
afterEach(async () => {
  const { project } = await world.owen.get(
    "query ($p: ID!) { project(id: $p) { organizations { id role } } }",
    { p: world.project.id },
  );
  for (const { id, role } of project.organizations) if (role !== "OWNER") await ended(id);
  await mails();
});

afterAll(async () => {
  await world.stop();
  await outbox.remove();
});

const mails = async (): Promise<{ to: string; subject: string; text: string }[]> => {
  await runJobs(world.database.ownerUrl, outbox.provider);
  return (
    (await outbox.take())
      .map(({ to, subject, text }) => ({
        to: to![0]!.address!,
        subject: subject!,
        text: text!.replaceAll(/\s+/g, " "),
      }))
      // Mails about the security of the account are ignored.
      .filter(({ text }) => !text.includes("security of your account"))
  );
};

/** The same, including the mails of notifications. */
async function notified(): ReturnType<typeof mails> {
  await world.owner.query("select app_private.fan_out_notifications(1000)");
  await world.owner.query(
    "select graphile_worker.reschedule_jobs(array(select id from graphile_worker._private_jobs), run_at => now())",
  );
  return mails();
}

const inviteFields = `{ id status role permissions recipient projectTitle ownerName sendCount email declineReason principalToken { name }
  project { title } owner { name } organization { name } invitedBy { fullName } answeredBy { fullName } }`;
const createInvite = mutationOf("createProjectOrganization", inviteFields);
const accept = mutationOf(
  "acceptProjectOrganizationInvite",
  "{ id role permissions project { title } organization { name } }",
);
const decline = mutationOf("declineProjectOrganizationInvite", inviteFields);
const update = mutationOf("updateProjectOrganization", "{ id role permissions openDeals { leads } }");
const remove = mutationOf(
  "deleteProjectOrganization",
  "{ id deleted project { title } organization { name } handedOver { leads buyers holds reservations appointments tasks } }",
);
const updateLead = mutationOf("updateLead", "{ id name status assignee { fullName } version }");
const seesProject = "query ($p: ID!) { project(id: $p) { title } }";
const received = `query ($o: ID!) { organization(id: $o) { projectInvites ${inviteFields} } }`;
const sent = `query ($o: ID!, $p: ID!) { organization(id: $o) { sentProjectInvites { id status } }
  project(id: $p) { organizationInvites { id status recipient } } }`;
const parts = `query ($p: ID!) { project(id: $p) { organizations { role permissions organization { name email }
  people { id fullName email username title } openDeals { leads tasks } } } }`;

const invite = async (input: Record<string, unknown> = {}, by = world.owen): Promise<any> =>
  (
    await by.get(createInvite, {
      input: { projectId: world.project.id, organizationId: world.summit.slug, role: "AGENCY", ...input },
    })
  ).createProjectOrganization;

/** Invites Summit Sales and accepts the invitation. */
async function affiliated(input: Record<string, unknown> = {}): Promise<string> {
  const { id } = await invite(input);
  return (await olga.get(accept, { input: { id } })).acceptProjectOrganizationInvite.id;
}

/** Ends the affiliation of Summit Sales, with a handover of open records. */
async function ended(id: string): Promise<any> {
  const data = await world.owen.get(remove, { input: { id, handOver: true } });
  return data.deleteProjectOrganization;
}

test("an organization is invited by slug; before it accepts, each side sees only the invitation", async () => {
  const { owen, ada, max, project, harbour, summit } = world;
  const by = (person: Person, input: Record<string, unknown> = {}) =>
    person.refused(createInvite, {
      input: { projectId: project.id, organizationId: summit.id, role: "AGENCY", ...input },
    });
  expect(await by(max)).toMatchObject({ code: "FORBIDDEN", permission: "project.manage" });
  expect(await by(bea)).toMatchObject({ code: "FORBIDDEN", permission: "project.manage" });
  for (const person of [olga, tess])
    expect(await by(person)).toMatchObject({ code: "NOT_FOUND", field: "projectId" });
  expect(await by(world.anonymous)).toMatchObject({ code: "UNAUTHENTICATED" });
  expect(await by(owen, { role: "OWNER" })).toMatchObject({ code: "BAD_USER_INPUT", field: "role" });
  expect(await by(owen, { email: "a@example.com" })).toMatchObject({ code: "BAD_USER_INPUT" });
  expect(await by(owen, { organizationId: "no-such-firm" })).toMatchObject({ code: "NOT_FOUND" });
  expect(await by(owen, { organizationId: harbour.id })).toMatchObject({ code: "CONFLICT" });
  expect(await by(owen, { permissions: ["finance.read"] })).toMatchObject({ field: "permissions" });
  expect(await by(owen, { permissions: ["lead.write"] })).toMatchObject({ field: "permissions" });

  const made = await invite({ message: "Sell with us", permissions: ["lead.read", "inventory.read"] }, ada);
  expect(made).toMatchObject({
    status: "PENDING",
    role: "AGENCY",
    permissions: ["inventory.read", "lead.read", "project.read"],
    recipient: summit.slug,
    organization: null,
    email: null,
  });
  // Inviting again updates the same invitation.
  expect(await invite({ message: "Sell with us" })).toMatchObject({
    id: made.id,
    sendCount: 2,
    permissions: null,
  });
  const notices = await mails();
  expect(notices.map(({ to }) => to).sort()).toEqual([adam.email, olga.email].sort());
  for (const { subject, text } of notices) {
    expect(subject).toBe("Harbour Homes invites you to Harbour View");
    expect(text).toContain("Owen Owner of Harbour Homes invites Summit Sales to bring buyers as an agency");
    expect(text).toContain("Sell with us");
    expect(text).toContain(made.id);
  }

  for (const person of [olga, adam])
    expect((await person.get(received, { o: summit.id })).organization.projectInvites).toEqual([
      {
        id: made.id,
        status: "PENDING",
        role: "AGENCY",
        permissions: null,
        recipient: summit.slug,
        projectTitle: "Harbour View",
        ownerName: "Harbour Homes",
        sendCount: 2,
        email: null,
        declineReason: null,
        principalToken: null,
        project: null,
        owner: null,
        organization: { name: "Summit Sales" },
        invitedBy: null,
        answeredBy: null,
      },
    ]);
  expect((await sam.get(received, { o: summit.id })).organization).toEqual({ projectInvites: null });
  expect((await tess.get(received, { o: summit.id })).organization).toBeNull();
  for (const person of [olga, adam, sam]) {
    expect(await person.get(seesProject, { p: project.id })).toEqual({ project: null });
    expect(await person.get("query ($o: ID!) { organization(id: $o) { name } }", { o: harbour.id })).toEqual({
      organization: null,
    });
    expect(await person.get("query ($u: ID!) { user(id: $u) { fullName } }", { u: owen.id })).toEqual({
      user: null,
    });
  }
  expect(await owen.get(sent, { o: harbour.id, p: project.id })).toEqual({
    organization: { sentProjectInvites: [{ id: made.id, status: "PENDING" }] },
    project: { organizationInvites: [{ id: made.id, status: "PENDING", recipient: summit.slug }] },
  });
  expect(await max.get(sent, { o: harbour.id, p: project.id })).toEqual({
    organization: { sentProjectInvites: null },
    project: { organizationInvites: null },
  });
  expect(await owen.get("query ($o: ID!) { organization(id: $o) { name } }", { o: summit.id })).toEqual({
    organization: null,
  });
  expect(await owen.get("query ($u: ID!) { user(id: $u) { fullName } }", { u: sam.id })).toEqual({
    user: null,
  });
  expect(await owen.refused(updateLead, { input: { id: lead, assigneeId: sam.id } })).toMatchObject({
    code: "NOT_FOUND",
    field: "assigneeId",
  });

  // Who can accept the invitation.
  const answer = (person: Person) => person.refused(accept, { input: { id: made.id } });
  expect(await answer(owen)).toMatchObject({ code: "FORBIDDEN", permission: "org.admin" });
  for (const person of [sam, max, tess, bea])
    expect(await answer(person)).toMatchObject({ code: "NOT_FOUND" });
  expect(await answer(world.anonymous)).toMatchObject({ code: "UNAUTHENTICATED" });
  const narrow = await programOf(world, olga, { scopes: ["lead.read"], organizationId: summit.id });
  expect(await answer(narrow)).toMatchObject({ code: "NOT_FOUND" });
  expect(await adam.refused(accept, { input: { id: made.id, organizationId: third.id } })).toMatchObject({
    field: "organizationId",
  });
  expect(
    await adam.refused(mutationOf("revokeProjectOrganizationInvite"), { input: { id: made.id } }),
  ).toMatchObject({ code: "FORBIDDEN", permission: "project.manage" });
  const declined = await adam.get(decline, { input: { id: made.id, reason: "Not this season." } });
  expect(declined.declineProjectOrganizationInvite).toMatchObject({ status: "DECLINED", project: null });
  expect(await answer(olga)).toMatchObject({ code: "BAD_USER_INPUT", field: "id" });
  expect(await mails()).toMatchObject([
    { to: owen.email, subject: "summit-sales declined the invitation to Harbour View" },
  ]);
  const [known] = (
    await owen.get(`query ($p: ID!) { project(id: $p) { organizationInvites ${inviteFields} } }`, {
      p: project.id,
    })
  ).project.organizationInvites;
  expect(known).toMatchObject({
    status: "DECLINED",
    declineReason: "Not this season.",
    organization: null,
    answeredBy: null,
    invitedBy: { fullName: "Owen Owner" },
  });
});

test("it accepts, works on its own leads, and returns one", async () => {
  const { owen, max, project, harbour, summit } = world;
  const part = await affiliated();
  expect(await mails()).toMatchObject([
    { to: owen.email, subject: "Summit Sales takes part in Harbour View" },
  ]);
  expect(
    await owen.refused(createInvite, {
      input: { projectId: project.id, organizationId: summit.id, role: "SELLER" },
    }),
  ).toMatchObject({ code: "CONFLICT", existingId: part });

  // Both see the name of the other, but no further data.
  const name = (fullName: string, id: string | null) => ({
    id,
    fullName,
    email: null,
    username: null,
    title: null,
  });
  const ofSummit = {
    role: "AGENCY",
    permissions: null,
    organization: { name: "Summit Sales", email: null },
    people: [
      name("Adam Admin", adam.id),
      name("Olga Other", olga.id),
      name("Sam Seller", sam.id),
      name("Sue Seller", sue.id),
    ],
    openDeals: { leads: 0, tasks: 0 },
  };
  for (const person of [owen, max])
    expect((await person.get(parts, { p: project.id })).project.organizations).toEqual([
      ofSummit,
      expect.objectContaining({ role: "OWNER" }),
    ]);
  const seen = (await sam.get(parts, { p: project.id })).project.organizations;
  expect(seen).toMatchObject([
    { role: "AGENCY", organization: { name: "Summit Sales" }, openDeals: null },
    { role: "OWNER", organization: { name: "Harbour Homes", email: null }, openDeals: null },
  ]);
  // Of the owner's organization, only people who work with them on their leads are visible.
  expect(seen[1].people).toEqual([]);
  expect(
    await sam.get(
      "query ($o: ID!) { organization(id: $o) { name members { id } affiliations { id } phone } }",
      {
        o: harbour.id,
      },
    ),
  ).toEqual({ organization: { name: "Harbour Homes", members: null, affiliations: null, phone: null } });
  for (const person of [tess, bea])
    expect((await person.get(parts, { p: project.id })).project?.organizations ?? []).toEqual([]);

  // Owners, admins and members assign leads to its people; people of a BUILDER cannot be assigned.
  const assigned = await max.get(updateLead, { input: { id: lead, assigneeId: sam.id } });
  expect(assigned.updateLead).toMatchObject({ assignee: { fullName: "Sam Seller" } });
  expect(
    await owen.get(
      `query ($l: ID!) { lead(id: $l) { assignee { fullName email } assigneeOrganization { name email } } }`,
      {
        l: lead,
      },
    ),
  ).toEqual({
    lead: {
      assignee: { fullName: "Sam Seller", email: null },
      assigneeOrganization: { name: "Summit Sales", email: null },
    },
  });
  // The variables of the developer's workflows do not contain it either.
  const { rows } = await world.owner.query(
    "select data -> 'assignee' as assignee from app_private.subject_data('LEAD', $1, '{assignee}')",
    [[lead]],
  );
  expect(rows).toEqual([{ assignee: expect.objectContaining({ fullName: "Sam Seller", email: null }) }]);
  await create("createLeadNote", { leadId: lead, text: "Likes the garden." });
  expect(
    await sam.get("query ($l: ID!) { lead(id: $l) { name notes { author { fullName email } } } }", {
      l: lead,
    }),
  ).toEqual({ lead: { name: "Lea Lead", notes: [{ author: { fullName: "Owen Owner", email: null } }] } });
  expect((await sam.get(parts, { p: project.id })).project.organizations[1].people).toEqual([
    name("Owen Owner", owen.id),
  ]);
  for (const person of [sue, olga, tess, bea])
    expect(await person.get("query ($l: ID!) { lead(id: $l) { name } }", { l: lead })).toEqual({
      lead: null,
    });

  // They can unassign the lead, but not assign it to a colleague.
  expect(await sam.refused(updateLead, { input: { id: lead, assigneeId: sue.id } })).toMatchObject({
    code: "FORBIDDEN",
    permission: "lead.write",
    field: "assigneeId",
  });
  const reservation = await create("createReservation", {
    acceptedTerms: true,
    leadId: lead,
    unitId: await create("createUnit", {
      projectId: project.id,
      title: "Home 1",
      number: "1",
      price: "400000",
      status: "AVAILABLE",
    }),
  });
  const mine = await createIn(sam)("createTask", { leadId: lead, title: "Call", assigneeId: sam.id });
  const at = {
    startsAt: "2031-05-09T06:30:00Z",
    endsAt: "2031-05-09T07:30:00Z",
    timeZone: "America/Toronto",
  };
  const tour = await createIn(sam)("createAppointment", {
    leadId: lead,
    hostId: sam.id,
    type: "IN_PERSON_TOUR",
    ...at,
  });
  await mails();
  const reader = await programOf(world, sam, { scopes: ["lead.read"] });
  expect(await reader.refused(updateLead, { input: { id: lead, assigneeId: null } })).toMatchObject({
    code: "FORBIDDEN",
  });
  expect(
    (await sam.get(updateLead, { input: { id: lead, assigneeId: null, tags: ["garden"] } })).updateLead,
  ).toMatchObject({ id: lead, name: "Lea Lead", assignee: null });
  expect(await sam.get("query ($l: ID!) { lead(id: $l) { name } }", { l: lead })).toEqual({ lead: null });
  const notices = await notified();
  const back = notices.filter(({ text }) => text.includes("Sam Seller has given Lea Lead back"));
  expect(back.map(({ to }) => to).sort()).toEqual([owen, world.ada, max].map(({ email }) => email).sort());
  expect(
    await owen.get(
      `query ($l: ID!, $r: ID!, $t: ID!, $a: ID!) { lead(id: $l) { assignee { id } tags assigneeOrganization { name } events(first: 1) { name actor { fullName } } }
      reservation(id: $r) { assignee { id } } task(id: $t) { assignee { id } } appointment(id: $a) { host { id } } }`,
      { l: lead, r: reservation, t: mine, a: tour },
    ),
  ).toEqual({
    lead: {
      assignee: null,
      tags: ["garden"],
      assigneeOrganization: null,
      events: [{ name: "lead.assigned", actor: { fullName: "Sam Seller" } }],
    },
    reservation: { assignee: null },
    // Their tasks and appointments are unassigned too.
    task: { assignee: null },
    appointment: { host: null },
  });
  // A bulk update of their own leads.
  const many = await Promise.all(
    [sam, sam, sue].map(({ id: assigneeId }, i) =>
      create("createLead", { projectId: project.id, name: `Many ${i}`, assigneeId }),
    ),
  );
  const updateLeads = mutationOf(
    "updateLeads",
    "{ updatedCount refusedCount rows { outcome errors { code } } }",
  );
  expect(
    (await sam.get(updateLeads, { input: { ids: many, unassign: true, addTags: ["back"] } })).updateLeads,
  ).toMatchObject({ updatedCount: 2, refusedCount: 1 });
  expect(
    await owen.get(
      "query ($p: ID!) { project(id: $p) { leads(first: 3) { name tags assignee { fullName } } } }",
      {
        p: project.id,
      },
    ),
  ).toEqual({
    project: {
      leads: expect.arrayContaining([
        { name: "Many 0", tags: ["back"], assignee: null },
        { name: "Many 1", tags: ["back"], assignee: null },
        { name: "Many 2", tags: [], assignee: { fullName: "Sue Seller" } },
      ]),
    },
  });
  await owen.get(updateLead, { input: { id: many[2], assigneeId: null } });
  expect(await ended(part)).toMatchObject({ deleted: true, handedOver: { leads: 0 } });
});

test("ending an affiliation requires a handover of open records, otherwise it is refused", async () => {
  const { owen, ada, max, project, summit } = world;
  const part = await affiliated({ role: "SELLER" });
  const own = await create("createLead", { projectId: project.id, name: "Mine", assigneeId: sam.id });
  const lost = await create("createLead", { projectId: project.id, name: "Over", assigneeId: sam.id });
  const falloutReasonId = (
    await owen.get("query ($p: ID!) { project(id: $p) { falloutReasons { id } } }", { p: project.id })
  ).project.falloutReasons[0].id;
  await owen.get(updateLead, { input: { id: lost, status: "LOST", falloutReasonId } });
  const unitId = await create("createUnit", {
    projectId: project.id,
    title: "Home 2",
    number: "2",
    price: "400000",
    status: "AVAILABLE",
  });
  const reservation = await createIn(sam)("createReservation", { acceptedTerms: true, leadId: own, unitId });
  const at = {
    startsAt: "2031-03-09T06:30:00Z",
    endsAt: "2031-03-09T07:30:00Z",
    timeZone: "America/Toronto",
  };
  const visitId = await createIn(sam)("createAppointment", {
    leadId: own,
    hostId: sam.id,
    type: "IN_PERSON_TOUR",
    ...at,
  });
  const held = await create("createUnit", {
    projectId: project.id,
    title: "Home 3",
    number: "3",
    price: "1",
    status: "AVAILABLE",
  });
  await createIn(sam)("createUnitHold", { unitId: held });
  const task = await createIn(sam)("createTask", { leadId: own, title: "Call", assigneeId: sam.id });
  const feed = (
    await sam.get(mutationOf("createUserIntegration", "{ config }"), { input: { appKey: "calendar_feed" } })
  ).createUserIntegration.config.feedUrl;
  const page = async () => (await visit(new URL(new URL(feed).pathname, world.url))).text;
  expect(await page()).toContain(visitId);
  const token = await programOf(world, sam, {});
  const seesLead = 'query ($l: ID!) { lead(id: $l) { name } search(query: "Mine") { title } leads { id } }';
  expect(await token.get(seesLead, { l: own })).toMatchObject({
    lead: { name: "Mine" },
    leads: { length: 2 },
  });
  expect((await owen.get(parts, { p: project.id })).project.organizations[0].openDeals).toEqual({
    leads: 1,
    tasks: 1,
  });

  const end = (person: Person, input: Record<string, unknown> = {}) =>
    person.refused(remove, { input: { id: part, ...input } });
  const open = { leads: 1, holds: 1, reservations: 1, appointments: 1, tasks: 1 };
  expect(await end(owen)).toMatchObject({ code: "CONFLICT", dependents: open });
  expect(await end(adam)).toMatchObject({
    code: "CONFLICT",
    dependents: open,
    message: expect.stringContaining(": 1 lead, 1 hold, 1 reservation, 1 appointment, 1 task. Use handOver"),
  });
  for (const person of [max, sam])
    expect(await end(person, { handOver: true })).toMatchObject({
      code: "FORBIDDEN",
      permission: "project.manage",
    });
  for (const person of [tess, bea, world.anonymous])
    expect((await end(person, { handOver: true })).code).toMatch(/NOT_FOUND|UNAUTHENTICATED/);
  for (const assigneeId of [sue.id, tess.id])
    expect(await end(owen, { assigneeId })).toMatchObject({ code: "BAD_USER_INPUT", field: "assigneeId" });
  const reader = await programOf(world, owen, { scopes: ["project.read", "lead.*"] });
  expect(await end(reader, { handOver: true })).toMatchObject({
    code: "FORBIDDEN",
    permission: "project.manage",
  });
  // A change of the role that would hide its open deals is refused too.
  expect(await ada.refused(update, { input: { id: part, role: "BUILDER" } })).toMatchObject({
    code: "CONFLICT",
    dependents: open,
  });
  expect(await ada.refused(update, { input: { id: part, permissions: ["inventory.read"] } })).toMatchObject({
    code: "CONFLICT",
  });
  const owners = (
    await owen.get("query ($p: ID!) { project(id: $p) { organizations { id role } } }", { p: project.id })
  ).project.organizations[1].id;
  expect(await owen.refused(remove, { input: { id: owners } })).toMatchObject({
    code: "CONFLICT",
    field: "id",
  });
  expect(await owen.refused(update, { input: { id: owners, role: "SELLER" } })).toMatchObject({
    code: "CONFLICT",
  });
  expect(await page()).toContain(visitId);
  await mails();

  const result = await ada.get(remove, { input: { id: part, assigneeId: max.id } });
  expect(result.deleteProjectOrganization).toEqual({
    id: part,
    deleted: true,
    project: { title: "Harbour View" },
    // The organization is no longer visible.
    organization: null,
    handedOver: { leads: 1, buyers: 0, holds: 1, reservations: 1, appointments: 1, tasks: 1 },
  });
  expect(
    await owen.get(
      `query ($l: ID!, $o: ID!, $r: ID!, $a: ID!) {
        lead(id: $l) { assignee { fullName } tasks { assignee { fullName } } }
        reservation(id: $r) { assignee { fullName } } appointment(id: $a) { host { fullName } }
        over: lead(id: $o) { assignee { id fullName email } assigneeOrganization { name } } }`,
      { l: own, o: lost, r: reservation, a: visitId },
    ),
  ).toEqual({
    lead: { assignee: { fullName: "Max Member" }, tasks: [{ assignee: { fullName: "Max Member" } }] },
    reservation: { assignee: { fullName: "Max Member" } },
    appointment: { host: { fullName: "Max Member" } },
    // Ended records keep the name of their assignee.
    over: { assignee: { id: sam.id, fullName: "Sam Seller", email: null }, assigneeOrganization: null },
  });
  // Access ends immediately for sessions, tokens and feeds.
  for (const person of [sam, token]) {
    expect(await person.get(seesLead, { l: own })).toEqual({ lead: null, search: [], leads: [] });
    expect(await person.get(seesProject, { p: project.id })).toEqual({ project: null });
  }
  expect(await page()).not.toContain(visitId);
  expect(task).toBeTruthy();
  expect(
    (await mails()).filter(
      ({ subject }) => subject === "The participation of Summit Sales in Harbour View has ended",
    ),
  ).toMatchObject([{ to: olga.email }]);
  // Each organization has the events once in its stream.
  const history = (person: Person, organizationId: string) =>
    person.get(
      `query ($filter: EventsFilter) { eventsConnection(filter: $filter, first: 100) { nodes { name subjectId project { title } } } }`,
      { filter: { organizationId, subjectId: part } },
    );
  for (const [person, organization] of [
    [owen, world.harbour],
    [olga, summit],
  ] as const)
    expect(
      (await history(person, organization.id)).eventsConnection.nodes.map(({ name }: any) => name),
    ).toEqual(["affiliation.created", "affiliation.deleted"]);
  // The agency's stream, which its webhooks and workflows read, has no other events of the project.
  const { rows } = await world.owner.query(
    "select distinct subject_type as about from app_public.events where organization_id = $1 and project_id is not null order by 1",
    [summit.id],
  );
  expect(rows.map(({ about }) => about)).toEqual(["affiliation", "affiliation_invite"]);
  expect(await owen.refused(remove, { input: { id: part } })).toMatchObject({ code: "NOT_FOUND" });
});

test("purchases are handed over when the affiliation ends, and agreements sent to their buyers are voided", async () => {
  const { owen, project } = world;
  const part = await affiliated();
  const own = await create("createLead", { projectId: project.id, name: "Bo", assigneeId: sam.id });
  const [buyer, second] = await Promise.all(
    ["Bo", "Bo too"].map((legalName) =>
      create("createBuyer", { projectId: project.id, legalName, price: "1", assigneeId: sam.id }),
    ),
  );
  const seesBuyer =
    "query ($b: ID!) { buyer(id: $b) { legalName assignee { fullName } assigneeOrganization { name } } }";
  expect(await owen.get(seesBuyer, { b: buyer })).toEqual({
    buyer: {
      legalName: "Bo",
      assignee: { fullName: "Sam Seller" },
      assigneeOrganization: { name: "Summit Sales" },
    },
  });
  const updateBuyer = mutationOf("updateBuyer", "{ legalName price assignee { fullName } }");
  expect(await sam.refused(updateBuyer, { input: { id: buyer, assigneeId: sue.id } })).toMatchObject({
    code: "FORBIDDEN",
    permission: "buyer.write",
  });
  expect(await sam.get(updateBuyer, { input: { id: buyer, assigneeId: null } })).toEqual({
    updateBuyer: { legalName: "Bo", price: "1.00", assignee: null },
  });
  expect(await sam.get(seesBuyer, { b: buyer })).toEqual({ buyer: null });
  await sam.get("mutation ($input: InviteBuyerInput!) { inviteBuyer(input: $input) }", {
    input: { buyerId: second, email: "bo@example.com" },
  });
  expect(await ended(part)).toMatchObject({ handedOver: { leads: 1, buyers: 1 } });
  const { rows } = await world.owner.query(
    "select status from app_hidden.buyer_invites where buyer_id = $1",
    [second],
  );
  expect(rows).toEqual([{ status: "REVOKED" }]);
  expect(await owen.get("query ($l: ID!) { lead(id: $l) { assignee { id } } }", { l: own })).toEqual({
    lead: { assignee: null },
  });
});

test("of concurrent requests, one acceptance succeeds, and no deal is assigned to a person whose affiliation ended", async () => {
  const { owen, project } = world;
  const { id } = await invite();
  const answers = await Promise.all(
    [olga, adam, olga, adam].map((person) => person.ask(accept, { input: { id } })),
  );
  const codes = answers.map(({ errors }) => errors?.[0]?.extensions.code);
  expect(codes.filter((code) => code === undefined)).toHaveLength(1);
  expect(new Set(codes)).toEqual(new Set([undefined, "BAD_USER_INPUT"]));
  const part = answers.find(({ errors }) => !errors)!.data.acceptProjectOrganizationInvite.id;
  const fresh = await Promise.all(
    Array.from({ length: 8 }, (_, i) => create("createLead", { projectId: project.id, name: `Race ${i}` })),
  );
  const raced = await Promise.all([
    ...fresh.map((leadId) => owen.ask(updateLead, { input: { id: leadId, assigneeId: sam.id } })),
    world.ada.ask(remove, { input: { id: part, handOver: true } }),
  ]);
  // The later request is refused with a remedy: the assignee is no longer in the project, or there is an open
  // deal.
  for (const { errors } of raced)
    expect([undefined, "BAD_USER_INPUT", "NOT_FOUND", "CONFLICT"]).toContain(errors?.[0]?.extensions.code);
  if (raced.at(-1)!.errors) await ended(part);
  const { rows } = await world.owner.query(
    "select count(*)::int as amount from app_public.leads where assignee_id = $1 and status = 'NEW' and project_id = $2",
    [sam.id, project.id],
  );
  expect(rows).toEqual([{ amount: 0 }]);
});

test("lists show the organizations of assignees with a constant number of statements", async () => {
  const { owen, project } = world;
  await affiliated();
  const list = `query ($p: ID!, $n: Int) { project(id: $p) { leads(first: $n) { name assignee { fullName } assigneeOrganization { name } }
    organizations { people { fullName } openDeals { leads } } } }`;
  for (const assigneeId of [sam.id, sue.id, owen.id])
    await create("createLead", { projectId: project.id, name: "One of many", assigneeId });
  const one = await world.statements(() => owen.get(list, { p: project.id, n: 1 }));
  const many = await world.statements(() => owen.get(list, { p: project.id, n: 50 }));
  expect(many.result.project.leads.length).toBeGreaterThan(2);
  expect(many.count).toBe(one.count);
});

test("an email address is invited, and accepts for a newly created organization", async () => {
  const { owen, project } = world;
  const nia = await world.signUp("Nia New");
  await world.owner.query("update app_public.users set email_verified_at = null where id = $1", [nia.id]);
  const made = await invite({ organizationId: undefined, email: nia.email!.toUpperCase(), role: "BROKER" });
  expect(made).toMatchObject({ email: nia.email, recipient: nia.email, organization: null });
  const mail = (await mails()).find(({ subject }) => subject.includes("invites"));
  expect(mail).toMatchObject({ to: nia.email, subject: "Harbour Homes invites you to Harbour View" });
  const token = /#project-invite=(plat_project_[\w-]{43}) /.exec(mail!.text)![1]!;
  const { rows } = await world.owner.query(
    "select encode(token_hash, 'hex') as hash from app_private.project_organization_invite_tokens",
  );
  expect(rows).toEqual([{ hash: createHash("sha256").update(token).digest("hex") }]);
  const by = (person: Person, input: Record<string, unknown>) => person.refused(accept, { input });
  expect(await by(world.anonymous, { token })).toMatchObject({ code: "UNAUTHENTICATED" });
  expect(await by(olga, { token, organizationId: world.summit.id })).toMatchObject({
    code: "FORBIDDEN",
    field: "token",
  });
  expect(await by(nia, { token: `${token}x`, organizationId: third.id })).toMatchObject({ field: "token" });
  expect(await by(nia, { id: made.id })).toMatchObject({ code: "NOT_FOUND" });
  expect(await by(nia, { token })).toMatchObject({ code: "BAD_USER_INPUT", field: "organizationId" });
  // Only for organizations that they administer.
  expect(await by(nia, { token, organizationId: third.id })).toMatchObject({ code: "NOT_FOUND" });
  const { createOrganization: homes } = await nia.get(mutationOf("createOrganization", "{ id slug }"), {
    input: { name: "Nia's Brokers" },
  });
  const { id } = (await nia.get(accept, { input: { token, organizationId: homes.slug } }))
    .acceptProjectOrganizationInvite;
  expect(await by(nia, { token, organizationId: homes.id })).toMatchObject({ field: "token" });
  expect(await nia.get("{ viewer { emailVerifiedAt } }")).toEqual({
    viewer: { emailVerifiedAt: expect.any(String) },
  });
  expect(await nia.get(seesProject, { p: project.id })).toEqual({ project: { title: "Harbour View" } });
  const sentTo = await owen.get(
    `query ($p: ID!) { project(id: $p) { organizationInvites(first: 1) ${inviteFields} } }`,
    { p: project.id },
  );
  expect(sentTo.project.organizationInvites).toMatchObject([
    {
      status: "ACCEPTED",
      email: nia.email,
      organization: { name: "Nia's Brokers" },
      answeredBy: { fullName: "Nia New" },
    },
  ]);

  // The organization can leave by itself; the owner is notified.
  await mails();
  expect((await nia.get(remove, { input: { id } })).deleteProjectOrganization).toMatchObject({
    deleted: true,
    project: null,
    organization: { name: "Nia's Brokers" },
  });
  expect(await mails()).toMatchObject([{ to: owen.email, subject: "Nia's Brokers has left Harbour View" }]);

  const again = await invite({ organizationId: undefined, email: nia.email, role: "BROKER" });
  const [link] = await mails();
  const other = /#project-invite=(\S+) /.exec(link!.text)![1]!;
  expect(await nia.get(decline, { input: { token: other } })).toMatchObject({
    declineProjectOrganizationInvite: { id: again.id, status: "DECLINED", project: null, owner: null },
  });
  expect(await mails()).toMatchObject([
    { to: owen.email, subject: `${nia.email} declined the invitation to Harbour View` },
  ]);
});

test("an invitation depends on the permissions of its sender, and expires", async () => {
  const { owen, project, summit } = world;
  const program = await programOf(world, owen, { scopes: ["project.*", "lead.*", "inventory.*", "buyer.*"] });
  // A token cannot grant permissions that it lacks.
  expect(
    await program.refused(createInvite, {
      input: { projectId: project.id, organizationId: summit.id, role: "AGENCY" },
    }),
  ).toMatchObject({ code: "FORBIDDEN", permission: "sale.read" });
  const made = await invite({ permissions: ["lead.read"] }, program);
  expect(made).toMatchObject({ principalToken: { name: "Robot" } });
  const part = (await olga.get(accept, { input: { id: made.id } })).acceptProjectOrganizationInvite;
  expect(part).toMatchObject({
    permissions: ["lead.read", "project.read"],
    project: { title: "Harbour View" },
  });
  // Its permissions are those that were granted.
  const own = await create("createLead", { projectId: project.id, name: "Only read", assigneeId: sam.id });
  expect(await sam.get("query ($l: ID!) { lead(id: $l) { name } }", { l: own })).toEqual({
    lead: { name: "Only read" },
  });
  expect(
    await sam.get("query ($p: ID!) { viewer { permissions(projectId: $p) } }", { p: project.id }),
  ).toEqual({ viewer: { permissions: ["lead.read", "project.read"] } });
  expect(await sam.refused(updateLead, { input: { id: own, name: "Changed" } })).toMatchObject({
    code: "FORBIDDEN",
  });
  expect(await program.refused(update, { input: { id: part.id, permissions: null } })).toMatchObject({
    code: "FORBIDDEN",
    permission: "sale.read",
  });
  await mails();
  expect(
    (await owen.get(update, { input: { id: part.id, permissions: null } })).updateProjectOrganization,
  ).toMatchObject({
    permissions: null,
    openDeals: { leads: 1 },
  });
  expect(await mails()).toMatchObject([
    { to: olga.email, subject: "What Summit Sales may do in Harbour View" },
  ]);
  expect((await sam.get(updateLead, { input: { id: own, name: "Changed" } })).updateLead.name).toBe(
    "Changed",
  );
  // A member who leaves the agency loses its deals.
  const removed = await olga.get(
    mutationOf("removeOrganizationMember", "{ reassignedLeads removedProjects { title } }"),
    { input: { organizationId: summit.id, userId: sam.id } },
  );
  expect(removed.removeOrganizationMember).toEqual({
    reassignedLeads: 1,
    removedProjects: [{ title: "Harbour View" }],
  });
  expect(await owen.get("query ($l: ID!) { lead(id: $l) { assignee { id } } }", { l: own })).toEqual({
    lead: { assignee: null },
  });
  await join(world, summit.id, sam, "MEMBER");
  await ended(part.id);

  const pending = await invite({ permissions: ["lead.read"] }, program);
  const { rows } = await world.owner.query(
    "select principal_token_id as id from app_public.project_organization_invites where id = $1",
    [pending.id],
  );
  await owen.get(mutationOf("revokeAccessToken"), { input: { id: rows[0].id } });
  expect(await olga.refused(accept, { input: { id: pending.id } })).toMatchObject({
    code: "BAD_USER_INPUT",
    field: "id",
  });
  expect(
    (
      await olga.get(
        "query ($o: ID!) { organization(id: $o) { projectInvites(first: 1) { status revokedReason } } }",
        { o: summit.id },
      )
    ).organization.projectInvites,
  ).toEqual([{ status: "REVOKED", revokedReason: 'The access token "Robot" was revoked.' }]);

  const late = await invite();
  await world.owner.query(
    "update app_public.project_organization_invites set expires_at = now() where id = $1",
    [late.id],
  );
  expect(await olga.refused(accept, { input: { id: late.id } })).toMatchObject({
    code: "BAD_USER_INPUT",
    field: "id",
  });
  expect(
    await owen.refused(mutationOf("resendProjectOrganizationInvite"), { input: { id: late.id } }),
  ).toMatchObject({
    code: "CONFLICT",
  });
  const next = await invite();
  expect(next.id).not.toBe(late.id);
  const resent = await owen.get(mutationOf("resendProjectOrganizationInvite", "{ id sendCount }"), {
    input: { id: next.id },
  });
  expect(resent).toEqual({ resendProjectOrganizationInvite: { id: next.id, sendCount: 2 } });
  await owen.get(mutationOf("revokeProjectOrganizationInvite"), { input: { id: next.id } });
  expect(await olga.refused(accept, { input: { id: next.id } })).toMatchObject({
    code: "BAD_USER_INPUT",
    field: "id",
  });
  // Users without a confirmed address cannot send invitations.
  const { ada } = world;
  await world.owner.query("update app_public.users set email_verified_at = null where id = $1", [ada.id]);
  expect(
    await ada.refused(createInvite, {
      input: { projectId: project.id, organizationId: third.id, role: "VIEWER" },
    }),
  ).toMatchObject({ code: "FORBIDDEN", reason: "EMAIL_NOT_CONFIRMED" });
});

test("leads cannot be assigned to people of a BUILDER, and archived projects cannot invite organizations", async () => {
  const { owen, summit } = world;
  const project = await createProject(owen, { organizationId: world.harbour.id, title: "Built" });
  const { id } = await invite({ projectId: project.id, role: "BUILDER" });
  const part = (await olga.get(accept, { input: { id } })).acceptProjectOrganizationInvite.id;
  expect(
    await owen.refused(mutationOf("createLead"), {
      input: { projectId: project.id, name: "No", assigneeId: sam.id },
    }),
  ).toMatchObject({ code: "BAD_USER_INPUT", field: "assigneeId" });
  const waiting = await invite({ projectId: project.id, organizationId: third.id });
  await owen.get(mutationOf("updateProject"), { input: { id: project.id, status: "ARCHIVED" } });
  expect(await tess.refused(accept, { input: { id: waiting.id } })).toMatchObject({ field: "id" });
  expect(
    await owen.refused(createInvite, {
      input: { projectId: project.id, organizationId: third.id, role: "SELLER" },
    }),
  ).toMatchObject({ code: "PROJECT_ARCHIVED" });
  expect(await owen.refused(update, { input: { id: part, role: "SELLER" } })).toMatchObject({
    code: "PROJECT_ARCHIVED",
  });
  // An affiliation can be ended in any state of the project.
  expect((await olga.get(remove, { input: { id: part } })).deleteProjectOrganization.deleted).toBe(true);
  expect(summit.id).toBeTruthy();
});
