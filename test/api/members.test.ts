import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { startApi, type Api, type Person } from "../harness/api.ts";
import { join } from "../harness/world.ts";
import { createOutbox, runJobs, type Outbox } from "../tasks/worker.ts";

let api: Api;
let outbox: Outbox;
let ada: Person, mia: Person;
let homes: string;

beforeAll(async () => {
  api = await startApi();
  outbox = await createOutbox();
  ada = await api.signUp("Ada");
  mia = await api.signUp("Mia");
});

afterAll(async () => {
  await api.stop();
  await outbox.remove();
});

const run = () => runJobs(api.database.ownerUrl, outbox.provider);

test("creates an organization, invites a person by mail, and adds them", async () => {
  const founded = await ada.get(
    'mutation { createOrganization(input: { name: "Homes", kind: BUILDER, email: "desk@example.com" }) { id slug kind email viewerRole } }',
  );
  expect(founded.createOrganization).toMatchObject({
    kind: "BUILDER",
    email: "desk@example.com",
    viewerRole: "OWNER",
  });
  homes = founded.createOrganization.id;
  const invited = await ada.get(
    `mutation ($o: ID!, $e: EmailAddress!) { createOrganizationInvite(input: { organizationId: $o, email: $e, role: ADMIN }) {
      id status role email sendCount invitedBy { id } organization { id } } }`,
    { o: founded.createOrganization.slug, e: mia.email!.toUpperCase() },
  );
  expect(invited.createOrganizationInvite).toMatchObject({
    status: "PENDING",
    role: "ADMIN",
    email: mia.email,
    sendCount: 1,
    invitedBy: { id: ada.id },
    organization: { id: homes },
  });
  await run();
  const mails = await outbox.take();
  const mailTo = (email: string) => mails.find(({ to }) => to![0]!.address === email)!.text!;
  const token = /#invite=(\S+)$/m.exec(mailTo(mia.email!))![1]!;
  // The address for enquiries has consented to receive them.
  const [, consent] = /\/confirm\/(\w+)/.exec(mailTo("desk@example.com"))!;
  await api.owner.query("select app_private.confirm_consent($1, null)", [consent]);
  const accept = `mutation ($t: String!) { acceptOrganizationInvite(input: { token: $t }) {
    role user { id } organization { id name viewerRole } notifications { newLead } } }`;
  expect(await ada.refused(accept, { t: token })).toMatchObject({ code: "FORBIDDEN" });
  expect(await api.anonymous.refused(accept, { t: token })).toMatchObject({ code: "UNAUTHENTICATED" });
  expect((await mia.get(accept, { t: token })).acceptOrganizationInvite).toEqual({
    role: "ADMIN",
    user: { id: mia.id },
    organization: { id: homes, name: "Homes", viewerRole: "ADMIN" },
    notifications: { newLead: true },
  });
  expect(await mia.refused(accept, { t: token })).toMatchObject({ code: "BAD_USER_INPUT", field: "token" });
});

test("omitted notification settings are unchanged", async () => {
  const { updateOrganizationNotifications } = await mia.get(
    `mutation ($o: ID!) { updateOrganizationNotifications(input: { organizationId: $o, notifications: { offer: false, task: null } }) {
      notifications { offer task newLead } } }`,
    { o: homes },
  );
  expect(updateOrganizationNotifications.notifications).toEqual({ offer: false, task: true, newLead: true });
});

test("only owners change roles and membership", async () => {
  const change = `mutation ($o: ID!, $u: ID!, $r: OrganizationRole!) {
    updateOrganizationMemberRole(input: { organizationId: $o, userId: $u, role: $r }) { role user { id } } }`;
  expect(await mia.refused(change, { o: homes, u: ada.id, r: "MEMBER" })).toMatchObject({
    code: "FORBIDDEN",
    permission: "org.owner",
  });
  expect(await ada.refused(change, { o: homes, u: ada.id, r: "MEMBER" })).toMatchObject({ code: "CONFLICT" });
  expect(await ada.get(change, { o: homes, u: mia.id, r: "MEMBER" })).toEqual({
    updateOrganizationMemberRole: { role: "MEMBER", user: { id: mia.id } },
  });
  const remove = `mutation ($o: ID!, $u: ID!) { removeOrganizationMember(input: { organizationId: $o, userId: $u }) {
    reassignedLeads removedProjects { title } user { id } organization { id members { user { id } } } } }`;
  expect(await mia.refused(remove, { o: homes, u: ada.id })).toMatchObject({ code: "FORBIDDEN" });
  expect(await ada.get(remove, { o: homes, u: mia.id })).toEqual({
    removeOrganizationMember: {
      reassignedLeads: 0,
      removedProjects: [],
      user: { id: mia.id },
      organization: { id: homes, members: [{ user: { id: ada.id } }] },
    },
  });
  expect(await mia.get("query ($o: ID!) { organization(id: $o) { id } }", { o: homes })).toEqual({
    organization: null,
  });
});

test("messages are forwarded, and rate-limited", async () => {
  const write =
    'mutation ($e: EmailAddress!) { contactService(input: { name: "Vi", email: $e, message: "Hello" }) }';
  for (let n = 0; n < 5; n++)
    expect(await api.anonymous.get(write, { e: "vi@example.com" })).toEqual({ contactService: true });
  expect(await api.anonymous.refused(write, { e: "VI@example.com" })).toMatchObject({
    code: "RATE_LIMITED",
    retryAfterSeconds: expect.any(Number),
  });
  const contact = `mutation ($o: ID!, $n: String!) {
    contactOrganization(input: { organizationId: $o, name: $n, email: "v2@example.com", message: "Hello" }) { name } }`;
  expect(await ada.get(contact, { o: homes, n: "Vi\r\nBcc: x@example.com" })).toEqual({
    contactOrganization: { name: "Homes" },
  });
  expect(await mia.refused(contact, { o: homes, n: "Vi" })).toMatchObject({ code: "NOT_FOUND" });
  expect(await ada.refused(contact, { o: homes, n: "  " })).toMatchObject({
    code: "BAD_USER_INPUT",
    field: "name",
  });
  await run();
  const mails = await outbox.take();
  expect(mails).toHaveLength(6);
  expect(mails.filter(({ to }) => to![0]!.address === "desk@example.com")).toMatchObject([
    { subject: "Message from Vi Bcc: x@example.com to Homes" },
  ]);
});

test("keeps one owner when two demote each other concurrently", async () => {
  const [uma, otto] = [await api.signUp("Uma"), await api.signUp("Otto")];
  const { createOrganization: shared } = await uma.get(
    'mutation { createOrganization(input: { name: "Shared" }) { id } }',
  );
  await join(api, shared.id, otto, "OWNER");
  const demote = (by: Person, whom: Person) =>
    by.ask(
      `mutation ($o: ID!, $u: ID!) { updateOrganizationMemberRole(input: { organizationId: $o, userId: $u, role: MEMBER }) { role } }`,
      { o: shared.id, u: whom.id },
    );
  const answers = await Promise.all(
    Array.from({ length: 100 }, (_, i) => (i % 2 ? demote(uma, otto) : demote(otto, uma))),
  );
  const codes = new Set(answers.map((answer) => answer.errors?.[0]?.extensions.code ?? "OK"));
  expect([...codes].filter((code) => !["OK", "FORBIDDEN", "CONFLICT"].includes(code))).toEqual([]);
  expect(codes).toContain("OK");
  const { rows } = await api.owner.query(
    "select role, count(*)::int from app_public.organization_user_connections where organization_id = $1 group by role order by role",
    [shared.id],
  );
  expect(rows).toEqual([
    { role: "MEMBER", count: 1 },
    { role: "OWNER", count: 1 },
  ]);
});
