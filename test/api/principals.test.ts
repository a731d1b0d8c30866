import { afterAll, afterEach, beforeAll, expect, test } from "@jest/globals";
import pino from "pino";
import { testCompute } from "../harness/compute.ts";
import { createSeal } from "../../src/secrets/seal.ts";
import { startDispatcher, type Dispatcher } from "../../src/webhooks/dispatcher.ts";
import type { Workflows } from "../../src/workflows/runner.ts";
import { startTriggers } from "../../src/workflows/triggers.ts";
import { secretKeys, type Person } from "../harness/api.ts";
import { createBuyer } from "../harness/deals.ts";
import { createIn, mutationOf } from "../harness/records.ts";
import { join, programOf, startWorld, type World } from "../harness/world.ts";
import { until } from "../harness/until.ts";
import { createOutbox, runJobs } from "../tasks/worker.ts";
import { startReceiver, type Receiver } from "../webhooks/receiver.ts";
import { createWorkflow, reaches, runWorkflows, start } from "../workflows/world.ts";

// Objects that are created once and act later have the present rights of their principal, and end with it.
// The attacker's means: restricted access tokens, revoked ones, and former members.

const compute = testCompute();
let world: World;
let receiver: Receiver;
let dispatcher: Dispatcher;
let workflows: Workflows;

beforeAll(async () => {
  world = await startWorld(undefined, { loopbackWebhooks: true });
  receiver = await startReceiver();
  dispatcher = await startDispatcher({
    connectionString: world.database.workerUrl,
    seal: createSeal(secretKeys),
    loopback: true,
    compute,
    log: pino({ level: "silent" }),
  });
  workflows = await runWorkflows(world);
});
afterAll(async () => {
  await receiver.close();
  await Promise.all([dispatcher.stop(), workflows.stop()]);
  await world.stop();
});
afterEach(async () => {
  await world.owner.query("update app_public.webhooks set status = 'DISABLED' where status <> 'DISABLED'");
});

let leads = 0;
const lead = (name = "Vera") =>
  createIn(world.owen)("createLead", {
    projectId: world.project.id,
    name,
    email: `${name.toLowerCase()}.${++leads}@principal.example`,
  });

const program = (scopes: string[], person = world.owen, rest = {}): Promise<Person> =>
  programOf(world, person, { scopes, ...rest });

const hook = (person: Person, events: string[], url = receiver.url) =>
  person.ask(mutationOf("createWebhook", "{ id }"), {
    input: { organizationId: world.harbour.id, url, events },
  });
const hooked = async (person: Person, events: string[]): Promise<string> => {
  const { data, errors } = await hook(person, events);
  expect(errors).toBeUndefined();
  return data.createWebhook.id;
};
const webhook = async (id: string, person = world.owen) =>
  (
    await person.get(
      `query ($id: ID!) { webhook(id: $id) { status disabledReason principal { id } principalToken { name status }
        deliveries { status event { name } } } }`,
      { id },
    )
  ).webhook;
const tokenIdOf = async (person: Person): Promise<string> => {
  const { rows } = await world.owner.query(
    `select t.id from app_public.access_tokens t join app_private.access_token_secrets s on s.token_id = t.id
     where s.token_sha256 = sha256(convert_to($1, 'UTF8'))`,
    [person.token],
  );
  return rows[0].id;
};
const revoke = async (person: Person, by = world.owen) =>
  by.get("mutation ($id: ID!) { revokeAccessToken(input: { id: $id }) { id } }", {
    id: await tokenIdOf(person),
  });
const steps = (body: object = { mail: "{{ lead.email }}" }) => [
  { type: "CALL_WEBHOOK", config: { url: receiver.url, body } },
];
const workflowInput = (rest = {}) => ({
  input: {
    organizationId: world.harbour.id,
    name: "Exfiltration",
    subjectType: "LEAD",
    trigger: { type: "MANUAL" },
    steps: steps(),
    ...rest,
  },
});
const create = mutationOf("createWorkflow", "{ id }");
const enable = "mutation ($id: ID!) { enableWorkflow(input: { id: $id }) { id status } }";

test("a token can create a webhook only for events that it may read", async () => {
  const bare = await program(["org.admin"]);
  for (const [events, permission] of [
    [["*"], "buyer.pii"],
    [["lead.*"], "lead.read"],
    [["lead.created"], "lead.read"],
    [["unit.price_changed", "buyer.created"], "buyer.read"],
    [["lead_note.created"], "audit.read"],
  ] as const) {
    const { errors } = await hook(bare, [...events]);
    const { code, permission: lacking } = errors![0]!.extensions;
    expect([events, code, lacking]).toEqual([events, "FORBIDDEN", permission]);
  }
  await hooked(bare, ["webhook.*"]);
  const reader = await program(["org.admin", "lead.read"]);
  await hooked(reader, ["lead.*"]);
  expect((await hook(reader, ["lead.*", "buyer.*"])).errors![0]!.extensions.permission).toBe("buyer.read");
  await hooked(await program(["org.*", "audit.read"]), ["*"]);
});

test("a token cannot redirect or extend the webhook of another principal", async () => {
  const id = await hooked(world.owen, ["*"]);
  const bare = await program(["org.admin"]);
  const change = (input: object) =>
    bare.ask("mutation ($input: UpdateWebhookInput!) { updateWebhook(input: $input) { id } }", {
      input: { id, ...input },
    });
  expect((await change({ url: "https://localhost:9/mine" })).errors![0]!.extensions.code).toBe("FORBIDDEN");
  expect((await change({ events: ["lead.*"] })).errors![0]!.extensions.code).toBe("FORBIDDEN");
  expect((await change({ description: "Harmless", status: "PAUSED" })).errors).toBeUndefined();
  expect((await change({ status: "ENABLED" })).errors![0]!.extensions.code).toBe("FORBIDDEN");
  expect(await webhook(id)).toMatchObject({
    status: "PAUSED",
    principal: { id: world.owen.id },
    principalToken: null,
  });
});

test("deliveries contain what the principal may read at the time of sending, also waiting and replayed ones", async () => {
  const reader = await program(["org.admin", "lead.read"]);
  const id = await hooked(reader, ["lead.*"]);
  expect(await webhook(id)).toMatchObject({ principalToken: { name: "Robot", status: "ACTIVE" } });
  // As if tokens could be restricted later: the present rights apply, not those at creation.
  await lead("Nina");
  await until(receiver.next, (message) => message.event.type === "lead.created");
  const owners = "update app_public.webhooks set events = '{*}', status = 'ENABLED' where id = $1";
  await world.owner.query(owners, [id]);
  const before = receiver.messages.length;
  await createIn(world.owen)("createTask", { projectId: world.project.id, title: "Secret task" }).catch(
    () => {},
  );
  await reader.ask('mutation ($id: ID!) { redeliverEvents(input: { id: $id, fromSequence: "1" }) { id } }', {
    id,
  });
  await lead("Last");
  await until(receiver.next, (message) => message.text.includes("Last"));
  await until(
    async () =>
      (await world.owner.query("select from app_private.webhook_redeliveries where webhook_id = $1", [id]))
        .rowCount,
    (amount) => amount === 0,
  );
  await until(
    async () =>
      (await world.owner.query("select from app_private.webhook_queue where webhook_id = $1", [id])).rowCount,
    (amount) => amount === 0,
  );
  const kinds = new Set(receiver.messages.slice(before).map((message) => message.event.subjectType));
  expect([...kinds].filter((kind) => !["lead", "webhook"].includes(kind as string)).sort()).not.toContain(
    "task",
  );
  const { rows } = await world.owner.query(
    `select distinct r.read_permissions as wanted from app_public.webhook_deliveries d
     join app_public.events e on e.id = d.event_id join app_hidden.record_types r on r.subject = e.subject_type
     where d.webhook_id = $1`,
    [id],
  );
  for (const { wanted } of rows) expect(["lead.read", "org.admin"]).toEqual(expect.arrayContaining(wanted));
  // A delivery queued before the permission was lost is not sent.
  await world.owner.query(
    "insert into app_public.webhook_deliveries (organization_id, webhook_id, event_id, next_attempt_at) " +
      "select e.organization_id, $1, e.id, now() from app_public.events e where e.name = 'project.created' " +
      "and e.organization_id = $2 limit 1",
    [id, world.harbour.id],
  );
  await world.owner.query(
    "insert into app_private.webhook_queue (delivery_id, webhook_id) select d.id, d.webhook_id " +
      "from app_public.webhook_deliveries d where d.webhook_id = $1 and d.status = 'PENDING'",
    [id],
  );
  await until(
    () => webhook(id),
    ({ deliveries }: any) =>
      deliveries.some((d: any) => d.event?.name === "project.created" && d.status === "DISCARDED"),
  );
});

test("revoking a token disables what it created, visibly, and the owner can take it over", async () => {
  const outbox = await createOutbox();
  const robot = await program(["org.admin", "org.member", "org.owner", "lead.*", "workflow.*"], world.owen, {
    name: "Sales robot",
  });
  const id = await hooked(robot, ["lead.*"]);
  const { createWorkflow: flow } = await robot.get(create, workflowInput());
  await robot.get(enable, { id: flow.id });
  const kept = await hooked(world.owen, ["lead.*"]);
  await revoke(robot);
  expect(await webhook(id)).toMatchObject({
    status: "DISABLED",
    disabledReason: 'The access token "Sales robot" was revoked.',
    principalToken: { name: "Sales robot", status: "REVOKED" },
  });
  expect(await webhook(kept)).toMatchObject({ status: "ENABLED" });
  const flowOf = async () =>
    (
      await world.owen.get(
        "query ($id: ID!) { workflow(id: $id) { status disabledReason principal { id } principalToken { name } } }",
        { id: flow.id },
      )
    ).workflow;
  expect(await flowOf()).toMatchObject({
    status: "DISABLED",
    disabledReason: 'The access token "Sales robot" was revoked.',
  });
  const { rows } = await world.owner.query(
    "select name from app_public.events where subject_id = any ($1) order by sequence desc limit 2",
    [[id, flow.id]],
  );
  expect(rows.map(({ name }) => name).sort()).toEqual(["webhook.status_changed", "workflow.disabled"]);
  await runJobs(world.database.ownerUrl, outbox.provider);
  const mails = (await outbox.take()).filter(({ subject }) => subject?.includes("stopped"));
  expect(mails.map(({ to }) => to![0]!.address)).toEqual([world.owen.email]);
  expect(mails[0]!.text).toContain(receiver.url);
  expect(mails[0]!.text).toContain("Exfiltration");
  await outbox.remove();

  const seen = receiver.messages.length;
  await lead("Quiet");
  await until(
    () => webhook(kept),
    ({ deliveries }: any) => deliveries.some((d: any) => d.status === "SUCCEEDED"),
  );
  expect(receiver.messages.length - seen).toBe(1);

  await world.ada.get("mutation ($id: ID!) { updateWebhook(input: { id: $id, status: ENABLED }) { id } }", {
    id,
  });
  await world.ada.get(enable, { id: flow.id });
  expect(await webhook(id)).toMatchObject({
    status: "ENABLED",
    disabledReason: null,
    principal: { id: world.ada.id },
    principalToken: null,
  });
  expect(await flowOf()).toEqual({
    status: "ENABLED",
    disabledReason: null,
    principal: { id: world.ada.id },
    principalToken: null,
  });
});

test("an expired token disables what it created", async () => {
  const robot = await program(["org.admin", "lead.read"], world.owen, {
    expiresAt: new Date(Date.now() + 3_600_000).toISOString(),
  });
  const id = await hooked(robot, ["lead.*"]);
  await world.owner.query("update app_public.access_tokens set expires_at = now() where id = $1", [
    await tokenIdOf(robot),
  ]);
  await world.owner.query("select app_private.expire_due()");
  expect(await webhook(id)).toMatchObject({
    status: "DISABLED",
    disabledReason: 'The access token "Robot" has expired.',
  });
});

test("a principal ends when it leaves, loses the role or is suspended", async () => {
  for (const end of [
    (id: string) =>
      world.owen.get(
        "mutation ($o: ID!, $u: ID!) { removeOrganizationMember(input: { organizationId: $o, userId: $u }) { reassignedLeads } }",
        { o: world.harbour.id, u: id },
      ),
    (id: string) =>
      world.owen.get(
        "mutation ($o: ID!, $u: ID!) { updateOrganizationMemberRole(input: { organizationId: $o, userId: $u, role: MEMBER }) { id } }",
        { o: world.harbour.id, u: id },
      ),
    (id: string) => world.owner.query("update app_public.users set status = 'SUSPENDED' where id = $1", [id]),
  ]) {
    const admin = await world.signUp("Andy Admin");
    await join(world, world.harbour.id, admin, "ADMIN");
    const id = await hooked(admin, ["*"]);
    const { createWorkflow: flow } = await admin.get(create, workflowInput());
    await admin.get(enable, { id: flow.id });
    await end(admin.id!);
    expect(await webhook(id)).toMatchObject({
      status: "DISABLED",
      disabledReason: expect.stringMatching(/Whoever answers|cannot sign in/),
    });
    expect(
      (await world.owen.get("query ($id: ID!) { workflow(id: $id) { status } }", { id: flow.id })).workflow,
    ).toEqual({ status: "DISABLED" });
  }
});

test("a role that was lost without an event is noticed at the next delivery", async () => {
  const admin = await world.signUp("Ilse Admin");
  await join(world, world.harbour.id, admin, "ADMIN");
  const id = await hooked(admin, ["lead.*"]);
  // Bypasses the triggers, as another version of the service might.
  await world.owner.query(
    `begin; set local session_replication_role = replica;
     update app_public.organization_user_connections set role = 'MEMBER' where user_id = '${admin.id}'; commit`,
  );
  const seen = receiver.messages.length;
  await lead("Unseen");
  await until(
    () => webhook(id),
    ({ status }: any) => status === "DISABLED",
  );
  expect(receiver.messages).toHaveLength(seen);
});

test("a workflow has at most the rights of the token that created, changed or enabled it", async () => {
  const manager = await program(["workflow.manage", "workflow.read", "org.member"]);
  const refused = async (rest: object) => (await manager.refused(create, workflowInput(rest))).permission;
  expect(await refused({})).toBe("lead.read");
  const sender = await program(["workflow.*", "lead.read", "org.member"]);
  const denied = async (step: object, rest = {}) =>
    (await sender.refused(create, workflowInput({ steps: [step], ...rest }))).permission;
  expect(await denied({ type: "ADD_TAG", config: { tag: "hot" } })).toBe("lead.write");
  const writer = await program(["workflow.*", "lead.*", "org.member"]);
  const note = { type: "UPDATE_FIELD", config: { record: "BUYER", field: "company", value: "Sold" } };
  const { permission } = await writer.refused(create, workflowInput({ steps: [note] }));
  expect(permission).toBe("buyer.read");
  expect(await denied({ type: "SEND_EMAIL", config: { subject: "Hi", body: "You" } })).toBe("lead.write");
  expect(
    await denied({ type: "CALL_WEBHOOK", config: { url: receiver.url, body: { d: "{{ buyer.phone }}" } } }),
  ).toBe("buyer.read");
  expect(
    await denied(
      { type: "CALL_WEBHOOK", config: { url: receiver.url, body: { p: "{{ event.data.price }}" } } },
      { trigger: { type: "EVENT", event: "reservation.*" } },
    ),
  ).toBe("sale.read");

  // It cannot take over another workflow either.
  const id = await createWorkflow(world, steps());
  const change = "mutation ($input: UpdateWorkflowInput!) { updateWorkflow(input: $input) { id } }";
  expect(
    (await manager.refused(change, { input: { id, steps: steps({ all: "{{ lead.phone }}" }) } })).permission,
  ).toBe("lead.read");
  await world.owen.get("mutation ($id: ID!) { disableWorkflow(input: { id: $id }) { id } }", { id });
  expect((await manager.refused(enable, { id })).permission).toBe("lead.read");
});

test("running executions pause when their principal ends, and resume under a new one", async () => {
  const robot = await program(["workflow.*", "lead.read", "org.member"]);
  const { createWorkflow: flow } = await robot.get(
    create,
    workflowInput({
      steps: [{ type: "WAIT", waitSeconds: 1 }, { type: "WAIT", waitSeconds: 3600 }, ...steps()],
    }),
  );
  await robot.get(enable, { id: flow.id });
  const execution = await start(world.owen, flow.id, await lead("Paula"));
  await reaches(
    world.owen,
    execution,
    ({ currentStep, status }) => status === "RUNNING" && currentStep === 2,
  );
  await revoke(robot);
  const seen = receiver.messages.length;
  await world.owner.query("update app_public.workflow_executions set scheduled_at = now() where id = $1", [
    execution,
  ]);
  const paused = await reaches(world.owen, execution, "PAUSED");
  expect(paused.pauseReason).toBe(
    'The access token "Robot" was revoked. Enable the workflow again, then resume.',
  );
  expect(receiver.messages).toHaveLength(seen);
  await world.owen.get(enable, { id: flow.id });
  await world.owen.get("mutation ($id: ID!) { resumeWorkflowExecution(input: { id: $id }) { id } }", {
    id: execution,
  });
  await reaches(world.owen, execution, "COMPLETED");
  expect(receiver.messages.length).toBeGreaterThan(seen);
});

test("an event starts no workflow of an ended principal", async () => {
  const robot = await program(["workflow.*", "lead.read", "org.member"]);
  const { createWorkflow: flow } = await robot.get(
    create,
    workflowInput({
      trigger: { type: "EVENT", event: "lead.created" },
      conditions: { "==": [{ var: "lead.name" }, "Trigger"] },
    }),
  );
  await robot.get(enable, { id: flow.id });
  await world.owner.query(
    `begin; set local session_replication_role = replica;
     update app_public.access_tokens set revoked_at = now() where id = '${await tokenIdOf(robot)}'; commit`,
  );
  await lead("Trigger");
  const triggers = await startTriggers({
    connectionString: world.database.workerUrl,
    compute,
    log: pino({ level: "silent" }),
  });
  try {
    await until(
      async () =>
        (await world.owen.get("query ($id: ID!) { workflow(id: $id) { status } }", { id: flow.id })).workflow,
      ({ status }: any) => status === "DISABLED",
    );
  } finally {
    await triggers.stop();
  }
  const { rowCount } = await world.owner.query(
    "select from app_public.workflow_executions where workflow_id = $1",
    [flow.id],
  );
  expect(rowCount).toBe(0);
});

test("a token invites and assigns roles within its own scopes; its invitations end with it", async () => {
  const invite = mutationOf("createOrganizationInvite", "{ id status role principalToken { name } }");
  const input = (role: string, email: string) => ({
    input: { organizationId: world.harbour.id, email, role },
  });
  const admin = await program(["org.admin", "org.member"]);
  const owner = await program(["org.*"]);
  expect(await admin.refused(invite, input("ADMIN", "mallory@example.com"))).toMatchObject({
    code: "FORBIDDEN",
  });
  expect(await admin.refused(invite, input("MEMBER", "mallory@example.com"))).toMatchObject({
    code: "FORBIDDEN",
  });
  expect(await owner.refused(invite, input("OWNER", "mallory@example.com"))).toMatchObject({
    code: "FORBIDDEN",
  });
  const role = `mutation ($o: ID!, $u: ID!, $r: OrganizationRole!) {
    updateOrganizationMemberRole(input: { organizationId: $o, userId: $u, role: $r }) { role } }`;
  const change = (r: string) => ({ o: world.harbour.id, u: world.max.id, r });
  expect(await owner.refused(role, change("ADMIN"))).toMatchObject({
    code: "FORBIDDEN",
    permission: "audit.read",
  });
  expect(await owner.refused(role, change("OWNER"))).toMatchObject({ code: "FORBIDDEN" });

  const { rows } = await world.owner.query(
    "select array_agg(permission) as scopes from app_private.role_permissions where role = 'MEMBER' and not in_affiliated",
  );
  const member = await program(["org.admin", ...rows[0].scopes]);
  const { createOrganizationInvite: made } = await member.get(
    invite,
    input("MEMBER", "new.member@example.com"),
  );
  expect(made).toMatchObject({ status: "PENDING", principalToken: { name: "Robot" } });
  expect(await member.refused(invite, input("ADMIN", "new.admin@example.com"))).toMatchObject({
    code: "FORBIDDEN",
  });
  // Sending a pending invitation of an owner again does not extend its role.
  await world.owen.get(invite, input("ADMIN", "late.admin@example.com"));
  const { organization } = await world.owen.get(
    "query ($id: ID!) { organization(id: $id) { invites { id email } } }",
    { id: world.harbour.id },
  );
  const late = organization.invites.find(({ email }: any) => email === "late.admin@example.com");
  expect(
    await member.refused("mutation ($id: ID!) { resendOrganizationInvite(input: { id: $id }) { id } }", {
      id: late.id,
    }),
  ).toMatchObject({ code: "FORBIDDEN" });
  await revoke(member);
  const { rows: ended } = await world.owner.query(
    "select status, revoked_reason from app_public.organization_invites where id = $1",
    [made.id],
  );
  expect(ended).toEqual([{ status: "REVOKED", revoked_reason: 'The access token "Robot" was revoked.' }]);
});

test("a token can give a buyer access to a purchase only if it sees all of the purchase itself", async () => {
  const purchase = await createBuyer(world.owen, world.project);
  const invite =
    "mutation ($id: ID!, $email: EmailAddress!) { inviteBuyer(input: { buyerId: $id, email: $email }) }";
  const mine = { id: purchase, email: world.olga.email };
  for (const [scopes, code] of [
    [["buyer.write"], "NOT_FOUND"],
    [["buyer.read"], "FORBIDDEN"],
    [["buyer.read", "buyer.write"], "FORBIDDEN"],
  ] as const)
    expect([scopes, (await (await program([...scopes])).refused(invite, mine)).code]).toEqual([scopes, code]);
  const robot = await program(["buyer.*", "sale.read"]);
  await robot.get(invite, mine);
  const { rows } = await world.owner.query("select id from app_hidden.buyer_invites where buyer_id = $1", [
    purchase,
  ]);
  const { rows: issued } = await world.owner.query(
    "select token from app_private.issue_buyer_invite_token($1, 1)",
    [rows[0].id],
  );
  await revoke(robot);
  expect(
    await world.olga.refused(mutationOf("acceptBuyerInvite", "{ id }"), {
      input: { token: issued[0].token },
    }),
  ).toMatchObject({ code: "BAD_USER_INPUT" });
});

test("an invitation is valid only while its sender may invite", async () => {
  const admin = await world.signUp("Amy Admin");
  await join(world, world.harbour.id, admin, "ADMIN");
  const guest = await world.signUp("Gus Guest");
  const { createOrganizationInvite: made } = await admin.get(
    mutationOf("createOrganizationInvite", "{ id }"),
    {
      input: { organizationId: world.harbour.id, email: guest.email, role: "ADMIN" },
    },
  );
  const { rows } = await world.owner.query("select token from app_private.issue_invite_token($1, 1)", [
    made.id,
  ]);
  // Bypasses the triggers, which would have revoked it.
  await world.owner.query(
    `begin; set local session_replication_role = replica;
     update app_public.organization_user_connections set role = 'MEMBER' where user_id = '${admin.id}'; commit`,
  );
  expect(
    await guest.refused(mutationOf("acceptOrganizationInvite", "{ role }"), {
      input: { token: rows[0].token },
    }),
  ).toMatchObject({ code: "BAD_USER_INPUT", field: "token" });
});

test("a token created by a token has at most its permissions", async () => {
  const parent = await program(["lead.read", "org.member"], world.owen, { organizationId: world.harbour.id });
  const make = mutationOf("createAccessToken", "{ token scopes organization { id } }");
  expect(await parent.refused(make, { input: { name: "x", scopes: ["lead.*"] } })).toMatchObject({
    code: "FORBIDDEN",
  });
  const { createAccessToken: child } = await parent.get(make, { input: { name: "child" } });
  expect(child).toMatchObject({
    scopes: ["lead.read", "org.member"],
    organization: { id: world.harbour.id },
  });
});

test("a feed created with a token ends with it, and so does its URL", async () => {
  const robot = await programOf(world, world.ada, {});
  const { createUserIntegration: feed } = await robot.get(
    mutationOf("createUserIntegration", "{ id config }"),
    {
      input: { appKey: "calendar_feed" },
    },
  );
  const { rows } = await world.owner.query(
    "select app_private.feed_of(lookup) as feed from app_private.integration_secrets where integration_id = $1",
    [feed.id],
  );
  expect(rows).toHaveLength(1);
  await revoke(robot, world.ada);
  const { userIntegration } = await world.ada.get(
    "query ($id: ID!) { userIntegration(id: $id) { status statusReason principalToken { name status } } }",
    { id: feed.id },
  );
  expect(userIntegration).toEqual({
    status: "DISABLED",
    statusReason: 'The access token "Robot" was revoked.',
    principalToken: { name: "Robot", status: "REVOKED" },
  });
  const { refreshUserIntegration: again } = await world.ada.get(
    "mutation ($id: ID!) { refreshUserIntegration(input: { id: $id }) { status config principalToken { name } } }",
    { id: feed.id },
  );
  expect(again).toMatchObject({ status: "ENABLED", principalToken: null });
  expect(again.config.feedUrl).not.toBe(feed.config.feedUrl);
});

test("an integration sends what the token that connected it may read, and ends with it", async () => {
  const connect = mutationOf("createOrganizationIntegration", "{ id status principalToken { name } }");
  const input = (events: string[]) => ({
    input: {
      organizationId: world.harbour.id,
      appKey: "crm_sync",
      config: { url: receiver.url, events, mapping: { mail: "data.email" } },
    },
  });
  const bare = await program(["org.admin"]);
  expect(await bare.refused(connect, input(["lead.*"]))).toMatchObject({
    code: "FORBIDDEN",
    permission: "lead.read",
  });
  const reader = await program(["org.admin", "lead.read"]);
  const { createOrganizationIntegration: made } = await reader.get(connect, input(["lead.*"]));
  expect(made).toMatchObject({ status: "ENABLED", principalToken: { name: "Robot" } });
  const change = `mutation ($id: ID!, $config: JSON) {
    updateOrganizationIntegration(input: { id: $id, config: $config }) { id } }`;
  expect(
    await bare.refused(change, { id: made.id, config: input(["webhook.*"]).input.config }),
  ).toMatchObject({
    code: "FORBIDDEN",
  });
  expect(
    await reader.refused(change, { id: made.id, config: input(["lead.*", "buyer.*"]).input.config }),
  ).toMatchObject({ code: "FORBIDDEN", permission: "buyer.read" });
  await revoke(reader);
  const { organizationIntegration } = await world.owen.get(
    "query ($id: ID!) { organizationIntegration(id: $id) { status statusReason } }",
    { id: made.id },
  );
  expect(organizationIntegration).toEqual({
    status: "DISABLED",
    statusReason: 'The access token "Robot" was revoked.',
  });
  const { rows } = await world.owner.query(
    "select status from app_public.webhooks where integration_id = $1",
    [made.id],
  );
  expect(rows).toEqual([{ status: "DISABLED" }]);
});

test("an export that a token requested is cancelled with it", async () => {
  const robot = await program(["report.*", "lead.read", "org.member"]);
  const { createCustomExport: source } = await robot.get(mutationOf("createCustomExport", "{ id }"), {
    input: { organizationId: world.harbour.id, name: "All leads", subject: "LEADS", format: "CSV" },
  });
  const { runCustomExport: run } = await robot.get(
    "mutation ($id: ID!) { runCustomExport(input: { id: $id }) { id status principalToken { name } } }",
    { id: source.id },
  );
  expect(run).toMatchObject({ status: "PENDING", principalToken: { name: "Robot" } });
  await revoke(robot);
  const { organization } = await world.owen.get(
    "query ($id: ID!) { organization(id: $id) { exports { id status error } } }",
    { id: world.harbour.id },
  );
  expect(organization.exports).toContainEqual({
    id: run.id,
    status: "CANCELLED",
    error: 'The access token "Robot" was revoked.',
  });
});

test("only viewers of the webhook see on whose behalf it acts", async () => {
  const robot = await program(["org.admin", "lead.read"]);
  const id = await hooked(robot, ["lead.*"]);
  for (const [person, seen] of [
    [world.owen, { principalToken: { name: "Robot", status: "ACTIVE" } }],
    [world.ada, { principalToken: { name: "Robot", status: "ACTIVE" } }],
    [world.max, null],
    [world.olga, null],
    [world.anonymous, null],
  ] as const)
    expect(
      (await person.sees("query ($id: ID!) { webhook(id: $id) { principalToken { name status } } }", { id }))
        .webhook,
    ).toEqual(seen);
});
