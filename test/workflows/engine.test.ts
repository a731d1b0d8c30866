import { afterAll, beforeAll, beforeEach, expect, test } from "@jest/globals";
import { randomUUID } from "node:crypto";
import { Webhook } from "standardwebhooks";
import type { Email } from "postal-mime";
import type { Workflows } from "../../src/workflows/runner.ts";
import { createSeal, secretOfWebhook } from "../../src/secrets/seal.ts";
import { secretKeys } from "../harness/api.ts";
import { createBuyer } from "../harness/deals.ts";
import { visit } from "../harness/visit.ts";
import { startWorld, type World } from "../harness/world.ts";
import { createOutbox, runJobs, type Outbox } from "../tasks/worker.ts";
import { startReceiver, status, type Receiver } from "../webhooks/receiver.ts";
import { until } from "../harness/until.ts";
import { createWorkflow, reaches, read, runWorkflows, start } from "./world.ts";

// Effects of steps, and outcomes of executions: the real worker, a real HTTPS receiver, the API.

let world: World;
let receiver: Receiver;
let outbox: Outbox;
let workflows: Workflows;

beforeAll(async () => {
  world = await startWorld(undefined, { loopbackWebhooks: true });
  [receiver, outbox, workflows] = await Promise.all([
    startReceiver(),
    createOutbox(),
    runWorkflows(world, 2000),
  ]);
});
afterAll(async () => {
  await workflows?.stop();
  await receiver?.close();
  await outbox?.remove();
  await world?.stop();
});
beforeEach(() => receiver.answers(status(204)));

let leads = 0;

async function lead(rest: Record<string, unknown> = {}): Promise<string> {
  const { createLead } = await world.owen.get(
    "mutation ($input: CreateLeadInput!) { createLead(input: $input) { id } }",
    {
      input: {
        projectId: world.project.id,
        name: "Lea <b>Lead</b>",
        email: `lea.${++leads}@example.com`,
        ...rest,
      },
    },
  );
  return createLead.id;
}

const sql = async (text: string, values: unknown[] = []): Promise<any[]> =>
  (await world.owner.query(text, values)).rows;

/** Ends the pause before the current step. */
const dueNow = (id: string) =>
  sql("update app_public.workflow_executions set scheduled_at = now() where id = $1 returning id", [id]);

const done = async (id: string) => {
  const execution = await reaches(world.owen, id, "COMPLETED");
  return execution.steps.map((run: any) => run.output);
};

test("each type of step has its effect, with the workflow as its actor", async () => {
  receiver.answers((_message, response) =>
    response.writeHead(200, { "content-type": "application/json" }).end('{"score": 42, "label": "good"}'),
  );
  const { createWebhook: webhook } = await world.owen.get(
    "mutation ($input: CreateWebhookInput!) { createWebhook(input: $input) { id secret } }",
    {
      input: { organizationId: world.harbour.id, url: `${receiver.url}/events`, events: ["webhook.updated"] },
    },
  );
  const subject = await lead();
  const workflow = await createWorkflow(world, [
    { type: "ASSIGN", config: { to: "MEMBER", memberId: world.max.id } },
    { type: "ADD_TAG", config: { tag: "vip" } },
    { type: "ADD_TAG", config: { tag: "old" } },
    { type: "REMOVE_TAG", config: { tag: "old" } },
    { type: "UPDATE_FIELD", config: { field: "status", value: "HOT" } },
    {
      type: "UPDATE_FIELD",
      config: { field: "company", value: "{{ lead.falloutNote }}{{ context.company }}" },
    },
    {
      type: "CREATE_TASK",
      config: { title: "Call {{ lead.name }}", type: "CALL", priority: "HIGH", dueInSeconds: 3600 },
    },
    { type: "CREATE_NOTE", config: { text: "{{ assignee.fullName }} calls.", pinned: true } },
    {
      type: "CALL_WEBHOOK",
      config: {
        url: `${receiver.url}/score`,
        body: { name: "{{ lead.name }}", of: ["{{ project.title }}"] },
      },
    },
    { type: "BRANCH", config: { condition: { ">": [{ var: "steps.9.body.score" }, 40] }, then: 12 } },
    { type: "STOP", config: { reason: "Not good enough." } },
    {
      type: "SEND_EMAIL",
      config: {
        subject: "Your score is {{ steps[9].body.score }}",
        body: "Dear {{ lead.name }},\n\nwelcome to {{ project.title }}.",
        html: "<p>Dear {{ lead.name }}</p>",
      },
    },
    { type: "NOTIFY_TEAM", config: { message: "{{ lead.name }} is {{ lead.status }}." } },
    { type: "CREATE_NOTE", waitSeconds: 3600, config: { text: "An hour later." } },
    { type: "WAIT", waitSeconds: 3600 },
    { type: "STOP" },
    { type: "CREATE_NOTE", config: { text: "Never." } },
  ]);
  const id = await start(world.owen, workflow, subject, { company: "Acme" });
  const waiting = await reaches(world.owen, id, (execution) => execution.currentStep === 14);
  expect(Date.parse(waiting.scheduledAt) - Date.now()).toBeGreaterThan(3_500_000);
  expect(waiting.steps.map((run: any) => [run.step.sequence, run.step.type, run.status])).toEqual([
    ...[
      "ASSIGN",
      "ADD_TAG",
      "ADD_TAG",
      "REMOVE_TAG",
      "UPDATE_FIELD",
      "UPDATE_FIELD",
      "CREATE_TASK",
      "CREATE_NOTE",
      "CALL_WEBHOOK",
      "BRANCH",
    ].map((type, index) => [index + 1, type, "SUCCEEDED"]),
    [12, "SEND_EMAIL", "SUCCEEDED"],
    [13, "NOTIFY_TEAM", "SUCCEEDED"],
  ]);
  await dueNow(id);
  await reaches(world.owen, id, (execution) => execution.currentStep === 15);
  await dueNow(id);
  await reaches(world.owen, id, "COMPLETED");

  const data = await world.owen.get(
    `query ($id: ID!) { lead(id: $id) { status company tags firstResponseAt assignee { id } notes { text pinned author { id } }
      tasks { title type priority dueAt assignee { id } createdBy { id } workflowExecution { id subject { __typename ... on Lead { id } } startedBy { id } } }
      workflowExecutions { id status } } }`,
    { id: subject },
  );
  expect(data.lead).toMatchObject({
    status: "HOT",
    company: "Acme",
    tags: ["vip"],
    firstResponseAt: expect.any(String),
    assignee: { id: world.max.id },
    notes: [
      { text: "Max Member calls.", pinned: true, author: null },
      { text: "An hour later.", pinned: false, author: null },
    ],
    tasks: [
      {
        title: "Call Lea <b>Lead</b>",
        type: "CALL",
        priority: "HIGH",
        assignee: { id: world.max.id },
        createdBy: null,
        workflowExecution: {
          id,
          subject: { __typename: "Lead", id: subject },
          startedBy: { id: world.owen.id },
        },
      },
    ],
    workflowExecutions: [{ id, status: "COMPLETED" }],
  });
  // The call is signed with the secret of the organization's webhook on the same host.
  const call = receiver.messages.find(({ path }) => path === "/score")!;
  expect(new Webhook(webhook.secret).verify(call.text, call.headers)).toEqual({
    executionId: id,
    workflowId: workflow,
    organizationId: world.harbour.id,
    subjectType: "LEAD",
    subjectId: subject,
    data: { name: "Lea <b>Lead</b>", of: ["Harbour View"] },
  });
  // The mails have a Message-ID that a second attempt would have too.
  await runJobs(world.database.ownerUrl, outbox.provider);
  const mails = await outbox.take();
  expect(
    mails.map((mail) => [mail.to![0]!.address, mail.subject, mail.replyTo?.[0]?.address]).toSorted(),
  ).toEqual(
    [
      [`lea.${leads}@example.com`, "Your score is 42", world.max.email],
      [world.max.email, expect.stringMatching(/^Workflow/), world.max.email],
    ].toSorted(),
  );
  const mail = mails.find((sent) => sent.subject === "Your score is 42")!;
  expect(mail.text).toContain("Dear Lea <b>Lead</b>,\n\nwelcome to Harbour View.");
  expect(mail.html).toContain("<p>Dear Lea &lt;b&gt;Lead&lt;/b&gt;</p>");
  expect(mail.messageId).toMatch(/^<[0-9a-f]{40}@/);
  // Its events have the workflow as actor, and the depth.
  const events = await sql(
    "select name, actor_type::text, actor_id, workflow_depth from app_public.events where subject_id = $1 and actor_type = 'WORKFLOW' order by id",
    [subject],
  );
  expect(events.map(({ name }) => name)).toEqual([
    "lead.assigned",
    ...Array(3).fill("lead.updated"),
    "lead.status_changed",
    "lead.updated",
    "lead.updated",
  ]);
  expect(new Set(events.map((e) => `${e.actor_id} ${e.workflow_depth}`))).toEqual(new Set(["null 1"]));
}, 40_000);

test("a call is not signed with the secret of another webhook, and not sent unsigned", async () => {
  const { createWebhook: webhook } = await world.owen.get(
    "mutation ($input: CreateWebhookInput!) { createWebhook(input: $input) { id } }",
    { input: { organizationId: world.harbour.id, url: "https://localhost:1/", events: ["webhook.deleted"] } },
  );
  const elsewhere = createSeal(secretKeys).seal("whsec_x", secretOfWebhook(randomUUID()));
  await sql("update app_private.webhook_secrets set sealed = $2 where webhook_id = $1", [
    webhook.id,
    elsewhere,
  ]);
  const call = {
    type: "CALL_WEBHOOK",
    config: { url: "https://localhost:1/call", body: {} },
    onError: "FAIL",
  };
  const execution = await start(world.owen, await createWorkflow(world, [call]), await lead());
  expect(await reaches(world.owen, execution, "FAILED")).toMatchObject({
    error: "The webhook at this host has a secret that is not its own: rotate it.",
  });
  await world.owen.get("mutation ($id: ID!) { deleteWebhook(input: { id: $id }) { id } }", webhook);
});

test("a failing step is retried, skipped, or ends the execution, as configured", async () => {
  const subject = await lead();
  const call = { type: "CALL_WEBHOOK", config: { url: `${receiver.url}/flaky`, body: {} } };
  receiver.answers(status(503));
  const retried = await start(world.owen, await createWorkflow(world, [call]), subject);
  const failedOnce = await reaches(world.owen, retried, (execution) => execution.attempts === 1);
  expect(failedOnce).toMatchObject({ status: "RUNNING", error: null, currentStep: 1 });
  expect(failedOnce.steps).toMatchObject([
    { attempt: 1, status: "FAILED", error: "The receiver answered 503.", output: { status: 503 } },
  ]);
  const pause = Date.parse(failedOnce.scheduledAt) - Date.parse(failedOnce.steps[0].finishedAt);
  expect(pause).toBeGreaterThan(7_000);
  expect(pause).toBeLessThan(13_000);
  receiver.answers(status(204));
  await dueNow(retried);
  const succeeded = await reaches(world.owen, retried, "COMPLETED");
  expect(succeeded.steps.map((run: any) => [run.attempt, run.status])).toEqual([
    [1, "FAILED"],
    [2, "SUCCEEDED"],
  ]);
  const calls = receiver.messages.filter(({ path }) => path === "/flaky");
  expect(new Set(calls.map(({ id }) => id)).size).toBe(1);
  expect(calls).toHaveLength(2);
  expect(calls[0]!.headers["webhook-signature"]).toBeDefined();

  receiver.answers(status(500));
  const [skips, fails, exhausts, escalates] = await Promise.all(
    (
      [
        ["SKIP", await lead()],
        ["FAIL", await lead()],
        ["RETRY", await lead()],
        ["ESCALATE", await lead()],
      ] as const
    ).map(async ([onError, id]) =>
      start(
        world.owen,
        await createWorkflow(world, [
          { ...call, onError },
          { type: "CREATE_NOTE", config: { text: "After." } },
        ]),
        id,
      ),
    ),
  );
  expect(await reaches(world.owen, skips!, "COMPLETED")).toMatchObject({
    steps: [{ status: "SKIPPED", error: "The receiver answered 500." }, { status: "SUCCEEDED" }],
  });
  expect(await reaches(world.owen, fails!, "FAILED")).toMatchObject({
    error: "The receiver answered 500.",
    currentStep: 1,
    completedAt: expect.any(String),
    steps: [{ status: "FAILED" }],
  });
  for (let attempt = 1; attempt < 5; attempt += 1) {
    await reaches(world.owen, exhausts!, (execution) => execution.attempts === attempt);
    await dueNow(exhausts!);
  }
  const exhausted = await reaches(world.owen, exhausts!, "FAILED");
  expect(exhausted.steps.map((run: any) => [run.attempt, run.status])).toEqual(
    [1, 2, 3, 4, 5].map((attempt) => [attempt, "FAILED"]),
  );
  expect(await reaches(world.owen, escalates!, "PAUSED")).toMatchObject({
    pauseReason: "Step 1 failed: The receiver answered 500.",
    currentStep: 1,
  });
  const { workflowExecution: failed } = await world.owen.get(
    "query ($id: ID!) { workflowExecution(id: $id) { escalationTickets { status kind title description availableActions lead { id } workflowExecution { id } } } }",
    { id: escalates },
  );
  expect(failed.escalationTickets).toEqual([
    {
      status: "OPEN",
      kind: "WORKFLOW_FAILURE",
      title: expect.stringMatching(/^Workflow \d+: step 1 failed$/),
      description: "The receiver answered 500.",
      availableActions: ["RETRY", "SKIP_STEP", "CANCEL_EXECUTION", "DISMISS"],
      lead: { id: expect.any(String) },
      workflowExecution: { id: escalates },
    },
  ]);
  // Resuming tries it again.
  receiver.answers(status(204));
  await world.owen.get("mutation ($id: ID!) { resumeWorkflowExecution(input: { id: $id }) { id } }", {
    id: escalates,
  });
  expect((await reaches(world.owen, escalates!, "COMPLETED")).steps.map((run: any) => run.status)).toEqual([
    "FAILED",
    "SUCCEEDED",
    "SUCCEEDED",
  ]);
}, 40_000);

test("a draft is written for the lead, once, and kept for people to send", async () => {
  const subject = await lead();
  const id = await start(
    world.owen,
    await createWorkflow(world, [
      { type: "DRAFT_WITH_AI", config: { instructions: "Welcome {{ lead.name }}." } },
      { type: "CREATE_NOTE", config: { text: "{{ steps[1].status }}: {{ steps[1].subject }}" } },
    ]),
    subject,
  );
  const [draft] = await done(id);
  expect(draft).toMatchObject({
    generationId: expect.any(String),
    status: expect.stringMatching(/^(COMPLETED|BLOCKED)$/),
  });
  const generations = await sql(
    "select id, requested_by_id from app_public.service_intelligence_generations where lead_id = $1",
    [subject],
  );
  expect(generations).toEqual([{ id: draft.generationId, requested_by_id: world.owen.id }]);
  const [unit] = await sql(
    "insert into app_public.buyers (project_id, first_name, last_name, price) values ($1, 'Bea', 'Buyer', 400000) returning id",
    [world.project.id],
  );
  const without = await start(
    world.owen,
    await createWorkflow(world, [{ type: "DRAFT_WITH_AI", onError: "FAIL" }], { subjectType: "BUYER" }),
    unit.id,
  );
  expect(await reaches(world.owen, without, "FAILED")).toMatchObject({
    error: "There is no lead to write to.",
  });
}, 30_000);

test("people decide if a step failed or asks them", async () => {
  receiver.answers(status(500));
  const call = {
    type: "CALL_WEBHOOK",
    config: { url: `${receiver.url}/fails`, body: {} },
    onError: "ESCALATE",
  };
  const note = { type: "CREATE_NOTE", config: { text: "After." } };
  const asks = {
    type: "ESCALATE",
    config: {
      title: "Is {{ lead.name }} serious?",
      kind: "APPROVAL_REQUIRED",
      priority: "URGENT",
      memberId: world.ada.id,
      dueInSeconds: 3600,
    },
  };
  const [retried, skipped, cancelled, resumed, last] = await Promise.all(
    [[call, note], [call, note], [call, note], [asks, note], [asks]].map(async (steps) =>
      start(world.owen, await createWorkflow(world, steps), await lead()),
    ),
  );
  const ticket = async (id: string, state = "PAUSED") => {
    await reaches(world.owen, id, state);
    const data = await world.owen.get(
      "query ($id: ID!) { workflowExecution(id: $id) { escalationTickets { id title kind priority dueAt assignee { id } availableActions } } }",
      { id },
    );
    expect(data.workflowExecution.escalationTickets).toHaveLength(1);
    return data.workflowExecution.escalationTickets[0];
  };
  const resolve = async (id: string, action: string, state?: string) => {
    const { resolveEscalationTicket } = await world.owen.get(
      "mutation ($input: ResolveEscalationTicketInput!) { resolveEscalationTicket(input: $input) { status actionStatus } }",
      { input: { id: (await ticket(id, state)).id, action } },
    );
    return resolveEscalationTicket;
  };
  expect(await ticket(resumed!)).toMatchObject({
    title: "Is Lea <b>Lead</b> serious?",
    kind: "APPROVAL_REQUIRED",
    priority: "URGENT",
    dueAt: expect.any(String),
    assignee: { id: world.ada.id },
    availableActions: ["RESUME_EXECUTION", "CANCEL_EXECUTION", "DISMISS"],
  });
  for (const failed of [retried!, skipped!, cancelled!]) await ticket(failed);
  receiver.answers(status(204));
  const resolved = { status: "RESOLVED", actionStatus: "SUCCEEDED" };
  expect(await resolve(retried!, "RETRY")).toEqual(resolved);
  expect(await resolve(skipped!, "SKIP_STEP")).toEqual(resolved);
  expect(await resolve(cancelled!, "CANCEL_EXECUTION")).toEqual(resolved);
  expect(await resolve(resumed!, "RESUME_EXECUTION")).toEqual(resolved);
  // The approval was the last step: nothing is left to do.
  expect(await resolve(last!, "RESUME_EXECUTION", "COMPLETED")).toEqual(resolved);
  const runs = async (id: string, state: string) =>
    (await reaches(world.owen, id, state)).steps.map((run: any) => `${run.step.type} ${run.status}`);
  expect(await runs(retried!, "COMPLETED")).toEqual([
    "CALL_WEBHOOK FAILED",
    "CALL_WEBHOOK SUCCEEDED",
    "CREATE_NOTE SUCCEEDED",
  ]);
  expect(await runs(skipped!, "COMPLETED")).toEqual([
    "CALL_WEBHOOK FAILED",
    "CALL_WEBHOOK SKIPPED",
    "CREATE_NOTE SUCCEEDED",
  ]);
  expect(await runs(cancelled!, "CANCELLED")).toEqual(["CALL_WEBHOOK FAILED"]);
  expect(await runs(resumed!, "COMPLETED")).toEqual(["ESCALATE SUCCEEDED", "CREATE_NOTE SUCCEEDED"]);
  // After it has continued, there is nothing to retry.
  receiver.answers(status(500));
  const moved = await start(world.owen, await createWorkflow(world, [call, note]), await lead());
  const { id: open } = await ticket(moved);
  await world.owen.get("mutation ($id: ID!) { cancelWorkflowExecution(input: { id: $id }) { id } }", {
    id: moved,
  });
  const { resolveEscalationTicket: failed } = await world.owen.get(
    "mutation ($id: ID!) { resolveEscalationTicket(input: { id: $id, action: RETRY }) { status actionError } }",
    { id: open },
  );
  expect(failed).toEqual({
    status: "FAILED",
    actionError: "The execution is CANCELLED and no longer waits at this step.",
  });
}, 40_000);

test("a step that cannot be executed does not block the others", async () => {
  const subjects = await Promise.all([lead(), lead(), lead()]);
  await sql(
    "update app_public.leads set tags = (select array_agg('t' || n) from generate_series(1, 50) n) where id = $1",
    [subjects[1]],
  );
  const workflow = await createWorkflow(world, [
    { type: "ADD_TAG", config: { tag: "more" }, onError: "FAIL" },
  ]);
  await world.owen.get("mutation ($input: BatchWorkflowInput!) { batchWorkflow(input: $input) { id } }", {
    input: { id: workflow, subjectIds: subjects },
  });
  const statuses = await until(
    () =>
      sql(
        "select subject_id, status::text, error from app_public.workflow_executions where workflow_id = $1 order by array_position($2, subject_id)",
        [workflow, subjects],
      ),
    (rows) => rows.every((row) => row.status === "COMPLETED" || row.status === "FAILED"),
  );
  expect(statuses.map((row) => row.status)).toEqual(["COMPLETED", "FAILED", "COMPLETED"]);
  expect(statuses[1].error).toBe("Use at most 50 tags, with at most 2,500 characters in total.");
}, 30_000);

test("states, fields and texts are validated for steps too", async () => {
  const wrong = await Promise.all(
    [
      // Lost leads need a reason, which cannot be checked in the definition.
      { type: "UPDATE_FIELD", config: { field: "status", value: "LOST" } },
      { type: "CREATE_TASK", config: { title: "{{ context.nothing }}" } },
      { type: "WAIT", config: { until: "lead.lostAt" } },
      { type: "SEND_EMAIL", config: { subject: "{{ context.nothing }}", body: "Text" } },
      { type: "CALL_WEBHOOK", config: { url: "https://localhost:1/closed", body: {} } },
    ].map(async (step) =>
      reaches(
        world.owen,
        await start(world.owen, await createWorkflow(world, [{ ...step, onError: "FAIL" }]), await lead()),
        "FAILED",
      ),
    ),
  );
  expect(wrong.map(({ error }) => error)).toEqual([
    "A lost lead requires a fallout reason.",
    "Must have 1 to 300 characters.",
    "lead.lostAt has no value.",
    "The subject or the text of the mail came out empty.",
    expect.stringMatching(/^There was no answer: /),
  ]);
}, 30_000);

test("a greeting by the first name works for every lead", async () => {
  const greeting = [{ type: "CREATE_NOTE", config: { text: "Hello {{ lead.firstName }}, thank you." } }];
  const workflow = await createWorkflow(world, greeting);
  const greeted = async (rest: Record<string, unknown>) => {
    const subject = await lead(rest);
    // Like leads from before names were split.
    if (rest.firstName === undefined)
      await sql("update app_public.leads set first_name = null, last_name = null where id = $1", [subject]);
    await reaches(world.owen, await start(world.owen, workflow, subject), "COMPLETED");
    const [note] = await sql("select text::text from app_public.lead_notes where lead_id = $1", [subject]);
    return note.text;
  };
  expect(
    await Promise.all(
      [
        { name: "R. Stone", firstName: "Bob" },
        { name: "Anna van den Berg" },
        { name: "王小明" },
        { name: "Mr. Larsen" },
      ].map(greeted),
    ),
  ).toEqual(["Bob", "Anna", "王小明", "Mr. Larsen"].map((name) => `Hello ${name}, thank you.`));
  const [data] = await sql(
    `with made as (insert into app_public.buyers (project_id, legal_name, email, price)
       values ($1, 'Bea Maria Buyer', null, 1), ($1, null, 'bea@buyer.example', 1) returning id, email)
     select array_agg(id order by email nulls first) as ids from made`,
    [world.project.id],
  );
  const names = await sql(
    `select d.data -> 'subject' ->> 'firstName' as name from unnest($1::uuid[]) with ordinality i (id, place)
     join app_private.subject_data('BUYER', $1) d on d.subject_id = i.id order by place`,
    [data.ids],
  );
  expect(names.map(({ name }) => name)).toEqual(["Bea Maria", "bea@buyer.example"]);
}, 30_000);

test("respects unsubscriptions and do-not-contact", async () => {
  const mail = [{ type: "SEND_EMAIL", config: { subject: "News", body: "News." }, onError: "FAIL" }];
  const workflow = await createWorkflow(world, mail);
  const asked = await lead();
  await sql("update app_public.leads set do_not_contact = true where id = $1", [asked]);
  expect(await reaches(world.owen, await start(world.owen, workflow, asked), "COMPLETED")).toMatchObject({
    steps: [{ status: "SKIPPED", error: "The lead asked not to be contacted.", output: null }],
  });
  expect(
    await reaches(world.owen, await start(world.owen, workflow, await lead({ email: null })), "FAILED"),
  ).toMatchObject({
    error: "The lead or buyer has no email address.",
  });
  // A batch sends marketing mail.
  const [silent, follower] = await Promise.all([lead(), lead({ subscribed: true })]);
  await world.owen.get("mutation ($input: BatchWorkflowInput!) { batchWorkflow(input: $input) { id } }", {
    input: { id: workflow, subjectIds: [silent, follower] },
  });
  const runs = await until(
    () =>
      sql(
        `select e.subject_id, r.status::text, r.error from app_public.workflow_executions e join app_public.workflow_step_runs r on r.execution_id = e.id
         where e.subject_id = any ($1) order by e.subject_id = $2`,
        [[silent, follower], follower],
      ),
    (rows) => rows.length === 2,
  );
  expect(runs).toMatchObject([
    { status: "SKIPPED", error: "The lead does not follow marketing mail." },
    { status: "SUCCEEDED" },
  ]);
  await runJobs(world.database.ownerUrl, outbox.provider);
  const mails = await outbox.take();
  expect(mails.map(({ subject }) => subject)).toEqual(["News"]);
}, 30_000);

test("marketing mail has an unsubscribe link that works without signing in", async () => {
  const { owen, harbour } = world;
  const change = (field: string, input: Record<string, unknown>, person = owen) =>
    person.get(
      `mutation ($input: ${field[0]!.toUpperCase()}${field.slice(1)}Input!) { ${field}(input: $input) { id } }`,
      { input },
    );
  await change("updateOrganization", {
    id: harbour.id,
    address: { thoroughfare: "1 Pier", locality: "Hamilton", country: "CA" },
  });
  const step = {
    type: "SEND_EMAIL",
    config: { subject: "News", body: "News.", html: "<body><p>News</p></BODY >\n" },
  };
  const news = await createWorkflow(world, [step]);
  const later = await createWorkflow(world, [{ ...step, waitSeconds: 3600 }]);
  const write = async (subject: string) => reaches(owen, await start(owen, news, subject), "COMPLETED");
  /** As if an event of their deal had started it. */
  const writeAbout = async (name: string, subject: string, workflow = later) => {
    const id = await start(owen, workflow, subject);
    const [event] = await sql(
      `update app_public.workflow_executions e set trigger_type = 'EVENT', scheduled_at = now(),
         trigger_event_id = (select v.id from app_public.events v where v.name = $2 order by v.id desc limit 1)
       where e.id = $1 returning trigger_event_id as id`,
      [id, name],
    );
    expect(event.id).not.toBeNull();
    return reaches(owen, id, "COMPLETED");
  };
  const sent = async () => {
    await runJobs(world.database.ownerUrl, outbox.provider);
    return outbox.take();
  };
  const linkIn = (mail: Email | undefined) =>
    mail?.headers.find(({ key }) => key === "list-unsubscribe")?.value.slice(1, -1);
  const press = async (link: string) => {
    const page = await visit(
      new URL(new URL(link).pathname, world.url),
      "POST",
      "List-Unsubscribe=One-Click",
    );
    expect([page.status, page.headers["set-cookie"]]).toEqual([200, undefined]);
    return page.text;
  };
  const linkOf = async (person: string) => {
    const [{ token }] = await sql("select app_private.sign_link('marketing', $1) as token", [person]);
    return `https://plat.example/unsubscribe/${token}`;
  };
  const consents = (...ids: string[]) =>
    sql(
      "select subscribed, unsubscribed_at is not null as gone from app_public.leads where id = any ($1) order by array_position($1, id)",
      [ids],
    );
  const changes = async (id: string) =>
    (
      await sql(
        "select name, actor_type::text, request_id, changes from app_public.events where subject_id = $1 and changes ? 'unsubscribedAt' order by id",
        [id],
      )
    ).map(({ changes: { subscribed, unsubscribedAt }, ...event }) => ({
      ...event,
      subscribed,
      withdrawn: unsubscribedAt.map((at: unknown) => at !== null),
    }));

  // The same person in two projects, and in another organization.
  const email = `wanda.${leads}@example.com`;
  const { createProject: annex } = await change("createProject", {
    organizationId: harbour.id,
    title: "Annex",
    currency: "CAD",
    status: "SELLING",
  });
  const { createProject: peak } = await change(
    "createProject",
    { organizationId: world.summit.id, title: "Peak", currency: "CAD", status: "SELLING" },
    world.olga,
  );
  const wanda = await lead({ email });
  const twin = await lead({ email, projectId: annex.id, subscribed: true });
  const { createLead: foreign } = await change(
    "createLead",
    { projectId: peak.id, name: "Wanda", email, subscribed: true },
    world.olga,
  );
  await change("updateProject", { id: annex.id, status: "ARCHIVED" });
  await write(wanda);
  const [mail] = await sent();
  const link = linkIn(mail)!;
  expect(link).toMatch(/^https:\/\/plat\.example\/unsubscribe\/marketing\./);
  expect(mail!.headers).toContainEqual(
    expect.objectContaining({ key: "list-unsubscribe-post", value: "List-Unsubscribe=One-Click" }),
  );
  expect(mail!.text).toContain(`\n${link}\n`);
  expect(mail!.text).toContain("Harbour Homes, 1 Pier, Hamilton");
  expect(mail!.html).toMatch(/^<p>News<\/p>\s+<p><a href="[^"]+">Unsubscribe [^]*Hamilton<\/p>\s*$/);
  expect(mail!.html).toContain(`href="${link}"`);

  // Opening the page changes nothing, and reveals nothing about them.
  const path = new URL(new URL(link).pathname, world.url);
  const asked = await visit(path);
  expect(asked.text).toContain("Stop marketing emails from Harbour Homes?");
  expect(await consents(wanda, twin)).toEqual([
    { subscribed: false, gone: false },
    { subscribed: true, gone: false },
  ]);
  const waiting = await lead({ email: `w.${leads}@example.com` });
  await write(waiting);
  const pressed = await press(link);
  expect(pressed).toContain("No more marketing emails from Harbour Homes");
  expect(pressed + asked.text).not.toContain("anda");
  for (let times = 0; times < 2; times++) expect(await press(link)).toBe(pressed);
  expect((await visit(path)).text).toBe(asked.text);
  expect(await consents(wanda, twin, foreign.id)).toEqual([
    { subscribed: false, gone: true },
    { subscribed: false, gone: true },
    { subscribed: true, gone: false },
  ]);
  const event = { name: "lead.updated", actor_type: "SYSTEM", request_id: expect.any(String) };
  expect(await changes(wanda)).toEqual([{ ...event, withdrawn: [false, true] }]);
  expect(await changes(twin)).toEqual([{ ...event, subscribed: [true, false], withdrawn: [false, true] }]);

  // Queued marketing mail is stopped too; requested mail is not.
  const [{ id: stopped }] = await sql("select id from app_public.leads where id = $1", [waiting]);
  await press(await linkOf(stopped));
  expect(await sent()).toEqual([]);
  expect(await write(wanda)).toMatchObject({
    steps: [{ status: "SKIPPED", error: "They have unsubscribed from marketing mail." }],
  });
  expect((await writeAbout("lead.created", wanda)).steps).toMatchObject([{ status: "SKIPPED" }]);
  await change("createAppointment", {
    leadId: wanda,
    type: "PHONE",
    startsAt: new Date(Date.now() + 86_400_000).toISOString(),
    endsAt: new Date(Date.now() + 90_000_000).toISOString(),
  });
  await writeAbout("appointment.created", wanda);
  const [confirmation, ...more] = await sent();
  expect([confirmation!.to![0]!.address, linkIn(confirmation), more]).toEqual([email, undefined, []]);
  expect(confirmation!.html).not.toContain("nsubscribe");

  // Others cannot see it, and nobody can write it.
  const subscription = `query ($id: ID!) { lead(id: $id) { subscribed unsubscribedAt } }`;
  expect((await owen.get(subscription, { id: wanda })).lead.unsubscribedAt).toEqual(expect.any(String));
  expect((await world.max.get(subscription, { id: wanda })).lead.unsubscribedAt).toEqual(expect.any(String));
  for (const person of [world.olga, world.anonymous])
    expect((await person.sees(subscription, { id: wanda })).lead).toBeNull();
  expect(
    (await owen.ask(`mutation { updateLead(input: { id: "${wanda}", unsubscribedAt: null }) { id } }`))
      .errors?.[0]?.message,
  ).toMatch(/unsubscribedAt/);

  // After the lead is deleted and created again, an entry by the team is no consent, but the person's own is.
  await change("deleteLead", { id: wanda });
  expect(await press(link)).toBe(pressed);
  const again = await lead({ email, subscribed: true });
  expect(await consents(again)).toEqual([{ subscribed: false, gone: true }]);
  await sql("update app_public.projects set visibility = 'PUBLIC' where id = $1", [world.project.id]);
  await change(
    "contactProject",
    { projectId: world.project.id, name: "Wanda", email, follow: true },
    world.anonymous,
  );
  expect(await consents(again)).toEqual([{ subscribed: false, gone: true }]);
  const [request] = await sent();
  const confirming = /https:\/\/plat\.example(\/confirm\/\w+)/.exec(request!.text!)![1]!;
  await visit(new URL(confirming, world.url), "POST");
  expect(await consents(again, twin)).toEqual([
    { subscribed: true, gone: false },
    { subscribed: false, gone: true },
  ]);
  expect((await write(again)).steps).toMatchObject([{ status: "SUCCEEDED" }]);
  const agreed = linkIn((await sent())[0])!;
  // A withdrawal by the team has the effect of the link.
  await change("updateLead", { id: again, subscribed: false });
  expect(await consents(again)).toEqual([{ subscribed: false, gone: true }]);
  expect((await write(again)).steps).toMatchObject([{ status: "SKIPPED" }]);
  await change("updateLead", { id: again, subscribed: true });

  // After a merge, the link of either lead applies to both.
  const other = await lead({ email: `wanda.other.${leads}@example.com`, subscribed: true });
  const [{ kept }] = await sql("select app_private.merge_duplicates($1, $2) as kept", [other, again]);
  expect([kept, await consents(kept)]).toEqual([again, [{ subscribed: true, gone: false }]]);
  await press(await linkOf(other));
  expect(await consents(kept)).toEqual([{ subscribed: false, gone: true }]);
  expect(await press(agreed)).toBe(pressed);
  const third = await lead({ email: `wanda.third.${leads}@example.com`, subscribed: true });
  await sql("select app_private.merge_duplicates($1, $2)", [third, kept]);
  expect(await consents(kept)).toEqual([{ subscribed: false, gone: true }]);

  // An unknown person, and an invalid link.
  const nobody = await linkOf(harbour.id);
  expect(await press(nobody)).toContain("No more marketing emails from this sender");
  const [, token] = link.split("/unsubscribe/marketing.");
  for (const forged of [`new_lead.${token}`, `marketing.${again}.${token!.split(".")[1]}`, "marketing"])
    expect((await visit(new URL(`/unsubscribe/${forged}`, world.url), "POST")).status).toBe(403);
}, 30_000);

test("marketing mail to a buyer requires the consent of their lead, or their own", async () => {
  const { owen } = world;
  const workflow = await createWorkflow(
    world,
    [{ type: "SEND_EMAIL", config: { subject: "Site news", body: "News." } }],
    { subjectType: "BUYER" },
  );
  const email = `bea.${++leads}@example.com`;
  const buyer = await createBuyer(owen, world.project, { email });
  const write = async () => reaches(owen, await start(owen, workflow, buyer), "COMPLETED");
  await write();
  await runJobs(world.database.ownerUrl, outbox.provider);
  const [mail] = await outbox.take();
  const link = mail!.headers.find(({ key }) => key === "list-unsubscribe")!.value.slice(1, -1);
  await visit(new URL(new URL(link).pathname, world.url), "POST");
  expect((await write()).steps).toMatchObject([{ status: "SKIPPED" }]);
}, 30_000);

test("an execution waits for an event of its subject or of a record that refers to it, and for no other", async () => {
  const wait = (config: Record<string, unknown>) => ({
    type: "WAIT_FOR_EVENT",
    config: { timeoutSeconds: 3600, ...config },
  });
  const note = { type: "CREATE_NOTE", config: { text: "{{ steps[1].event.name }}" } };
  const subject = await lead();
  const [task, hot, timeouts, stops] = await Promise.all([
    start(world.owen, await createWorkflow(world, [wait({ event: "task.created" }), note]), subject),
    start(
      world.owen,
      await createWorkflow(world, [
        wait({ event: "lead.*", conditions: { "==": [{ var: "event.data.status" }, "HOT"] } }),
        note,
      ]),
      subject,
    ),
    start(
      world.owen,
      await createWorkflow(world, [wait({ event: "lead.updated", onTimeout: 3 }), note, { type: "STOP" }]),
      await lead(),
    ),
    start(
      world.owen,
      await createWorkflow(world, [wait({ event: "lead.updated", onTimeout: "STOP" }), note]),
      await lead(),
    ),
  ]);
  await Promise.all(
    [task, hot, timeouts, stops].map((id) =>
      reaches(world.owen, id!, (execution) => execution.steps.length === 1),
    ),
  );
  const change = (id: string, input: Record<string, unknown>) =>
    world.owen.get("mutation ($input: UpdateLeadInput!) { updateLead(input: $input) { id } }", {
      input: { id, ...input },
    });
  await change(subject, { company: "Acme" });
  await change(await lead(), { status: "HOT" });
  await world.owen.get("mutation ($input: CreateTaskInput!) { createTask(input: $input) { id } }", {
    input: { leadId: subject, title: "Call" },
  });
  expect((await done(task!))[0]).toMatchObject({ event: { name: "task.created" }, timedOut: false });
  expect(await read(world.owen, hot!)).toMatchObject({ status: "RUNNING", steps: [{ status: "RUNNING" }] });
  // While it is paused nothing is executed, and no event is missed.
  await world.owen.get("mutation ($id: ID!) { pauseWorkflowExecution(input: { id: $id }) { id } }", {
    id: hot,
  });
  await change(subject, { status: "HOT" });
  await change(subject, { status: "WARM" });
  expect(await read(world.owen, hot!)).toMatchObject({ status: "PAUSED", steps: [{ status: "RUNNING" }] });
  await world.owen.get("mutation ($id: ID!) { resumeWorkflowExecution(input: { id: $id }) { id } }", {
    id: hot,
  });
  expect((await done(hot!))[0]).toMatchObject({ event: { name: "lead.status_changed" } });
  const late = [timeouts, stops];
  await sql(
    `update app_public.workflow_step_runs set output = output || jsonb_build_object('until', now()) where execution_id = any ($1)`,
    [late],
  );
  for (const id of late) await dueNow(id!);
  for (const id of late)
    expect(await done(id!)).toEqual(
      id === stops ? [{ event: null, timedOut: true }] : [{ event: null, timedOut: true }, null],
    );
  expect(await sql("select from app_private.workflow_waits")).toEqual([]);
}, 40_000);

test("a wait as the first step is executed as well", async () => {
  const workflow = await createWorkflow(world, [
    { type: "WAIT", waitSeconds: 3600 },
    { type: "ADD_TAG", config: { tag: "rested" } },
  ]);
  const id = await start(world.owen, workflow, await lead());
  const [execution] = await sql(
    "select status, current_step, scheduled_at > now() + interval '59 minutes' as later from app_public.workflow_executions where id = $1",
    [id],
  );
  expect(execution).toEqual({ status: "PENDING", current_step: 1, later: true });
  await dueNow(id);
  await reaches(world.owen, id, "COMPLETED");
});

test("a wait until a time of the record, with an offset", async () => {
  const workflow = await createWorkflow(world, [
    { type: "WAIT", config: { until: "lead.registeredAt", offsetSeconds: 7200 } },
    { type: "WAIT", config: { until: "lead.registeredAt", offsetSeconds: -60 } },
  ]);
  const id = await start(world.owen, workflow, await lead());
  const waiting = await reaches(world.owen, id, (execution) => execution.steps.length === 1);
  expect(waiting).toMatchObject({ status: "RUNNING", currentStep: 1, steps: [{ status: "RUNNING" }] });
  expect(Date.parse(waiting.scheduledAt) - Date.now()).toBeGreaterThan(7_000_000);
  await sql(
    "update app_public.leads set registered_at = now() - interval '3 hours' where id = (select subject_id from app_public.workflow_executions where id = $1)",
    [id],
  );
  await dueNow(id);
  expect(
    (await reaches(world.owen, id, "COMPLETED")).steps.map((run: any) => [
      run.step.sequence,
      run.attempt,
      run.status,
    ]),
  ).toEqual([
    [1, 1, "SUCCEEDED"],
    [2, 1, "SUCCEEDED"],
  ]);
}, 30_000);

test("a pause takes effect between steps; nothing is executed after cancelling has returned", async () => {
  const workflow = await createWorkflow(world, [
    ...Array.from({ length: 3 }, (_, n) => ({ type: "ADD_TAG", config: { tag: `t${n}` } })),
    { type: "CALL_WEBHOOK", config: { url: `${receiver.url}/slow` } },
    { type: "CREATE_NOTE", config: { text: "After." } },
  ]);
  await sql(
    "insert into app_public.leads (project_id, name) select $1, 'Many ' || n from generate_series(1, 200) n",
    [world.project.id],
  );
  let open: (() => void)[] = [];
  receiver.answers((_message, response) => void open.push(() => response.writeHead(204).end()));
  const { batchWorkflow: batch } = await world.owen.get(
    "mutation ($input: BatchWorkflowInput!) { batchWorkflow(input: $input) { counts } }",
    { input: { id: workflow, leadsFilter: { query: "Many" } } },
  );
  expect(Object.values(batch.counts as Record<string, number>).reduce((a, b) => a + b, 0)).toBe(200);
  // Calls are in progress, and steps are executed.
  await until(
    async () => open.length,
    (amount) => amount > 0,
  );
  const [held] = await sql(
    "select id from app_public.workflow_executions where workflow_id = $1 and holder is not null limit 1",
    [workflow],
  );
  const { pauseWorkflowExecution: paused } = await world.owen.get(
    'mutation ($id: ID!) { pauseWorkflowExecution(input: { id: $id, reason: "Wait a moment." }) { status pausedBy { id } pauseReason currentStep } }',
    { id: held.id },
  );
  expect(paused).toEqual({
    status: "PAUSED",
    pausedBy: { id: world.owen.id },
    pauseReason: "Wait a moment.",
    currentStep: 4,
  });
  const answering = setInterval(() => {
    for (const answer of open.splice(0)) answer();
  }, 20);
  const [atPause] = await until(
    () =>
      sql("select current_step, status::text from app_public.workflow_executions where id = $1", [held.id]),
    ([row]) => row.current_step === 5,
  );
  expect(atPause.status).toBe("PAUSED");
  const { cancelWorkflowExecutions: cancelled } = await world.owen.get(
    `mutation ($id: ID!) { cancelWorkflowExecutions(input: { workflowId: $id, reason: "Enough." }) {
      cancelledCount workflow { id counts } executions(first: 3) { status cancelReason cancelledAt } } }`,
    { id: workflow },
  );
  const facts = async () => ({
    calls: receiver.messages.filter(({ path }) => path === "/slow").length,
    runs: (
      await sql(
        "select count(*)::int as n, count(*) filter (where r.status = 'RUNNING')::int as open from app_public.workflow_step_runs r join app_public.workflow_executions e on e.id = r.execution_id where e.workflow_id = $1",
        [workflow],
      )
    )[0],
    tags: (await sql("select sum(cardinality(tags))::int as n from app_public.leads"))[0].n,
  });
  const before = await facts();
  expect(before.runs.open).toBe(0);
  expect(cancelled.cancelledCount).toBeGreaterThan(0);
  expect(cancelled.workflow.counts).toMatchObject({
    PENDING: 0,
    RUNNING: 0,
    PAUSED: 0,
    CANCELLED: cancelled.cancelledCount,
    COMPLETED: 200 - cancelled.cancelledCount,
  });
  expect(cancelled.executions).toEqual(
    Array(3).fill({ status: "CANCELLED", cancelReason: "Enough.", cancelledAt: expect.any(String) }),
  );
  // The worker continues with others.
  await done(await start(world.owen, await createWorkflow(world, [{ type: "STOP" }]), await lead()));
  expect(await facts()).toEqual(before);
  clearInterval(answering);
});

test("cancelling waits for the running call", async () => {
  const workflow = await createWorkflow(world, [
    { type: "CALL_WEBHOOK", config: { url: `${receiver.url}/waits` } },
    { type: "CREATE_NOTE", config: { text: "After." } },
  ]);
  let answer: (() => void) | undefined;
  receiver.answers((_message, response) => void (answer = () => response.writeHead(204).end()));
  const id = await start(world.owen, workflow, await lead());
  await until(async () => answer, Boolean);
  let answered = false;
  const cancelling = world.owen
    .ask("mutation ($id: ID!) { cancelWorkflowExecution(input: { id: $id }) { status } }", { id })
    .then((result) => {
      answered = true;
      return result;
    });
  await until(
    () => sql("select from pg_stat_activity where wait_event = 'advisory' and datname = current_database()"),
    (rows) => rows.length > 0,
  );
  expect(answered).toBe(false);
  answer!();
  // The running call has ended; the next step is not executed.
  const { data, errors } = await cancelling;
  const execution = await reaches(world.owen, id, (e) => ["CANCELLED", "COMPLETED"].includes(e.status));
  expect([errors?.[0]?.extensions.code ?? data.cancelWorkflowExecution.status, execution.status]).toEqual(
    errors ? ["INVALID_TRANSITION", "COMPLETED"] : ["CANCELLED", "CANCELLED"],
  );
  expect(execution.steps[0]).toMatchObject({ status: "SUCCEEDED" });
}, 30_000);

test("an execution ends if its subject is deleted", async () => {
  const workflow = await createWorkflow(world, [
    { type: "CREATE_NOTE", waitSeconds: 3600, config: { text: "Later." } },
  ]);
  const { createProject: project } = await world.owen.get(
    "mutation ($input: CreateProjectInput!) { createProject(input: $input) { id } }",
    {
      input: {
        organizationId: world.harbour.id,
        title: "Old",
        status: "SELLING",
        currency: "CAD",
        address: { country: "CA" },
      },
    },
  );
  const [deleted, archived, kept] = await Promise.all([lead(), lead({ projectId: project.id }), lead()]);
  const [a, b, c] = await Promise.all(
    [deleted, archived, kept].map((id) => start(world.owen, workflow, id!)),
  );
  await world.owen.get("mutation ($id: ID!) { deleteLead(input: { id: $id }) { id } }", { id: deleted });
  await world.owen.get(
    'mutation ($id: ID!) { updateProject(input: { id: $id, status: "ARCHIVED" }) { id } }'.replace(
      '"ARCHIVED"',
      "ARCHIVED",
    ),
    { id: project.id },
  );
  await world.owen.get("mutation ($id: ID!) { disableWorkflow(input: { id: $id }) { id } }", {
    id: workflow,
  });
  for (const id of [a, b, c]) await dueNow(id!);
  expect(await reaches(world.owen, c!, "COMPLETED")).toMatchObject({ steps: [{ status: "SUCCEEDED" }] });
  await until(
    () =>
      sql("select from app_public.workflow_executions where id = any ($1) and status = 'CANCELLED'", [
        [a, b],
      ]),
    (rows) => rows.length === 2,
  );
  const reasons = await sql(
    "select cancel_reason from app_public.workflow_executions where id = any ($1) order by array_position($1, id)",
    [[a, b]],
  );
  expect(reasons.map((row) => row.cancel_reason)).toEqual([
    "The lead was deleted.",
    "The project is archived.",
  ]);
}, 30_000);

test("cancelling a purchase cancels its executions", async () => {
  const [unit] = await sql(
    "insert into app_public.units (project_id, title, number, status, price) values ($1, 'Home', 'W1', 'AVAILABLE', 400000) returning id",
    [world.project.id],
  );
  const { convertLead: buyer } = await world.owen.get(
    "mutation ($input: ConvertLeadInput!) { convertLead(input: $input) { id } }",
    { input: { leadId: await lead(), unitId: unit.id, price: "400000" } },
  );
  const workflow = await createWorkflow(
    world,
    [
      {
        type: "UPDATE_FIELD",
        config: { field: "company", value: "{{ unit.number }} {{ lead.status }} {{ buyer.price }}" },
      },
      { type: "ASSIGN", config: { to: "NEXT_IN_TURN" } },
      { type: "ADD_TAG", config: { tag: "bought" } },
      { type: "WAIT", waitSeconds: 3600 },
    ],
    { subjectType: "BUYER" },
  );
  const id = await start(world.owen, workflow, buyer.id);
  await reaches(world.owen, id, (execution) => execution.currentStep === 4);
  const facts = await world.owen.get(
    `query ($id: ID!, $execution: ID!) { buyer(id: $id) { company assignee { id } lead { tags } workflowExecutions { id } }
      workflowExecution(id: $execution) { subjectId subject { __typename ... on Buyer { id } } } }`,
    { id: buyer.id, execution: id },
  );
  expect(facts).toEqual({
    buyer: {
      company: "W1 CONVERTED 400000",
      assignee: { id: world.max.id },
      lead: { tags: ["bought"] },
      workflowExecutions: [{ id }],
    },
    workflowExecution: { subjectId: buyer.id, subject: { __typename: "Buyer", id: buyer.id } },
  });
  const [reason] = await sql(
    "select id from app_public.fallout_reasons where project_id = $1 order by sequence limit 1",
    [world.project.id],
  );
  await world.owen.get("mutation ($input: UpdateBuyerInput!) { updateBuyer(input: $input) { id } }", {
    input: { id: buyer.id, status: "CANCELLED", falloutReasonId: reason.id },
  });
  expect(await read(world.owen, id)).toMatchObject({
    status: "CANCELLED",
    cancelReason: "The purchase was cancelled.",
  });
  expect(
    (
      await world.owen.refused(
        "mutation ($input: CreateWorkflowExecutionInput!) { createWorkflowExecution(input: $input) { id } }",
        {
          input: { workflowId: workflow, subjectId: buyer.id },
        },
      )
    ).code,
  ).toBe("CONFLICT");
}, 30_000);

test("a pause ends at resumeAt", async () => {
  const id = await start(
    world.owen,
    await createWorkflow(world, [
      { type: "ADD_TAG", config: { tag: "paused" } },
      { type: "WAIT", waitSeconds: 3600 },
    ]),
    await lead(),
  );
  await reaches(world.owen, id, (execution) => execution.currentStep === 2);
  const at = new Date(Date.now() + 60_000).toISOString();
  const { pauseWorkflowExecution: paused } = await world.owen.get(
    "mutation ($id: ID!, $at: DateTime) { pauseWorkflowExecution(input: { id: $id, resumeAt: $at }) { status resumeAt } }",
    { id, at },
  );
  expect(paused).toMatchObject({ status: "PAUSED", resumeAt: expect.any(String) });
  await sql("update app_public.workflow_executions set resume_at = now() where id = $1", [id]);
  const resumed = await reaches(world.owen, id, (execution) => execution.status !== "PAUSED");
  expect(resumed).toMatchObject({ status: "RUNNING", resumeAt: null, currentStep: 2 });
}, 30_000);
