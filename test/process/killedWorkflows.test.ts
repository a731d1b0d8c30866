/**
 * API and worker are killed repeatedly under load: webhooks get every committed event and none that was rolled back,
 * and each step of a workflow has its effect exactly once.
 * The long form makes a thousand changes, and kills five times.
 */
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { randomUUID } from "node:crypto";
import { Agent } from "node:https";
import { secretKeys } from "../harness/api.ts";
import { startService, temporaryFolder, type Service } from "../harness/service.ts";
import { sendRepeatedRequest, type RepeatedRequest } from "../harness/repeatedRequests.ts";
import { until } from "../harness/until.ts";
import { startWorld, type World } from "../harness/world.ts";
import { startReceiver, type Receiver } from "../webhooks/receiver.ts";
import { createWorkflow } from "../workflows/world.ts";
import { long } from "../harness/seeds.ts";

const committed = long ? 1000 : 30;
const rolledBack = committed / 5;
const kills = long ? 5 : 2;
/** Includes a restart of the service. */
const patience = { withinMs: long ? 500_000 : 60_000 };
/** The key with which the API of the harness signs. */
const jwtKeys = "test:a secret of the tests with at least 32 characters";

let world: World;
let receiver: Receiver;

beforeAll(async () => {
  world = await startWorld(undefined, { loopbackWebhooks: true });
  receiver = await startReceiver();
});
afterAll(async () => {
  await receiver?.close();
  await world?.stop();
});

test("nothing is lost, nothing invented, and nothing executed twice", async () => {
  await using folder = await temporaryFolder();
  const env = {
    DATABASE_URL: world.database.ownerUrl,
    DATA_DIR: folder.path,
    JWT_KEYS: jwtKeys,
    SECRET_KEYS: secretKeys.map(({ kid, secret }) => `${kid}:${secret}`).join(","),
    LOOPBACK_WEBHOOKS: "1",
  };
  await world.owen.get("mutation ($input: CreateWebhookInput!) { createWebhook(input: $input) { id } }", {
    input: { organizationId: world.harbour.id, url: `${receiver.url}/events`, events: ["lead.created"] },
  });
  await createWorkflow(
    world,
    [
      { type: "ADD_TAG", config: { tag: "new" } },
      { type: "CREATE_TASK", config: { title: "Call {{ lead.name }}" } },
      { type: "CALL_WEBHOOK", config: { url: `${receiver.url}/calls`, body: { name: "{{ lead.name }}" } } },
      { type: "CREATE_NOTE", config: { text: "Answer: {{ steps[3].status }}" } },
    ],
    { trigger: { type: "EVENT", event: "lead.created" } },
  );
  const wishes: RepeatedRequest[] = Array.from({ length: committed + rolledBack }, (_, n) => ({
    field: "createLead",
    key: randomUUID(),
    input: {
      projectId: world.project.id,
      email: `lead${n}@example.com`,
      // An agent without a name is refused after the lead and its event were written.
      ...(n % 6 === 5 ? { name: "Ghost", agent: { email: `agent${n}@example.com` } } : { name: "Real" }),
    },
  }));
  const agent = new Agent({ rejectUnauthorized: false, keepAlive: true, maxSockets: 8 });
  const answers: string[] = [];
  const running: { service?: Service } = {};
  let next = 0;
  /** Maximum number of changes that may have started so far. */
  let limit = 0;
  async function write(): Promise<void> {
    while (next < wishes.length) {
      await until(() => next < limit || next >= wishes.length, Boolean, patience);
      if (next >= wishes.length) return;
      const n = next++;
      for (let answer = "LOST"; answer === "LOST"; answers[n] = answer) {
        const { baseUrl } = (await until(() => running.service, Boolean, patience))!;
        answer = await sendRepeatedRequest(baseUrl, agent, world.owen, wishes[n]!);
      }
    }
  }
  const writing = Promise.all(Array.from({ length: 8 }, write));
  for (let round = 1; round <= kills; round += 1) {
    const doomed = await startService({ env });
    running.service = doomed;
    const calls = receiver.messages.filter(({ path }) => path === "/calls").length;
    const part = Math.floor((round * wishes.length) / (kills + 1));
    const answered = () => answers.filter(Boolean).length;
    limit = part;
    await until(() => answered() >= part, Boolean, patience);
    await until(() => receiver.messages.filter(({ path }) => path === "/calls").length > calls);
    // In the middle of it: changes, due steps and calls are in progress.
    limit = part + 8;
    await until(() => answered() > part);
    delete running.service;
    await doomed.stop("SIGKILL");
  }
  await using last = await startService({ env });
  running.service = last;
  limit = wishes.length;
  await writing;
  agent.destroy();
  expect(answers.filter((answer) => answer === "BAD_USER_INPUT")).toHaveLength(rolledBack);
  const leads = new Set(answers.filter((answer) => answer !== "BAD_USER_INPUT"));
  expect(leads.size).toBe(committed);

  const arrived = (path: string) =>
    new Set(receiver.messages.filter((m) => m.path === path).map(({ id }) => id));
  const count = async (text: string): Promise<any> => (await world.owner.query(text)).rows[0];
  await until(
    () => arrived("/events").size,
    (size) => size >= committed,
    patience,
  );
  const resume = `mutation ($input: ResumeWorkflowExecutionInput!) { resumeWorkflowExecution(input: $input) { id } }`;
  await until(
    async () => {
      const { n, aside } = await count(
        `select count(*) filter (where status = 'COMPLETED')::int as n,
           array_agg(id) filter (where status = 'PAUSED' and pause_reason like '%The service ended twice%') as aside
         from app_public.workflow_executions`,
      );
      // Steps that were running when the service died for the second time are left to people.
      for (const id of aside ?? []) await world.owen.get(resume, { input: { id } });
      return n as number;
    },
    (n) => n >= committed,
    patience,
  );
  const { rows: events } = await world.owner.query(
    "select id, subject_id from app_public.events where name = 'lead.created'",
  );
  expect(new Set(events.map((event) => event.subject_id))).toEqual(leads);
  expect(arrived("/events")).toEqual(new Set(events.map((event) => event.id)));
  expect(receiver.messages.filter(({ text }) => text.includes("Ghost"))).toEqual([]);
  // Each step exactly once, whatever the number of attempts: a call is repeated only under the same id.
  expect(
    await count(`select count(*)::int as executions, count(distinct subject_id)::int as subjects, sum(n)::int as steps, max(n)::int as most from (
      select e.subject_id, (select count(*) from app_public.workflow_step_runs r where r.execution_id = e.id and r.status = 'SUCCEEDED') as n
      from app_public.workflow_executions e) x`),
  ).toEqual({ executions: committed, subjects: committed, steps: 4 * committed, most: 4 });
  expect(
    await count(`select count(*)::int as leads, count(*) filter (where
        (select count(*) from app_public.tasks t where t.lead_id = l.id and t.title = 'Call Real') = 1
        and (select count(*) from app_public.lead_notes n where n.lead_id = l.id and n.text = 'Answer: 204') = 1
        and (select count(*) from app_public.events v where v.subject_id = l.id and v.name = 'lead.updated') = 1
        and l.tags::text[] = '{new}')::int as whole
      from app_public.leads l`),
  ).toEqual({ leads: committed, whole: committed });
  const calls = receiver.messages.filter(({ path }) => path === "/calls");
  expect(arrived("/calls").size).toBe(committed);
  expect(new Set(calls.map(({ event }) => event.subjectId))).toEqual(leads);
  expect(calls.length).toBeLessThan(committed + kills * 64);
}, 600_000);
