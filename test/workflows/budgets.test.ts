/**
 * Budgets of steps: exceeding one fails with a code and delays nobody else. Also steps that terminate their process.
 */
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import pino from "pino";
import { join } from "node:path";
import { startTriggers, type Triggers } from "../../src/workflows/triggers.ts";
import { killChild, startChild } from "../harness/child.ts";
import { testCompute } from "../harness/compute.ts";
import { until } from "../harness/until.ts";
import { createProject, startWorld, type World } from "../harness/world.ts";
import type { Workflows } from "../../src/workflows/runner.ts";
import { startReceiver, status, type Receiver } from "../webhooks/receiver.ts";
import { doubling, nestedAll, slowFilter, slowLoop } from "./bombs.ts";
import { createWorkflow, runWorkflows, start, type StepInput } from "./world.ts";

const compute = testCompute();
let world: World;
let receiver: Receiver;
let workflows: Workflows;
let triggers: Triggers;
/** A lead and a harmless workflow of another organization. */
let other: { workflow: string; lead: string };

beforeAll(async () => {
  world = await startWorld(undefined, { loopbackWebhooks: true });
  receiver = await startReceiver();
  const project = await createProject(world.olga, { organizationId: world.summit.id, title: "Summit Park" });
  const olgas = { ...world, owen: world.olga, harbour: world.summit, project };
  other = {
    workflow: await createWorkflow(
      olgas,
      [{ type: "CREATE_NOTE", config: { text: "Hello {{ lead.name }}" } }],
      {
        reentry: "ALWAYS",
      },
    ),
    lead: await lead(olgas),
  };
});
afterAll(async () => {
  await workflows?.stop();
  await triggers?.stop();
  await receiver?.close();
  await world?.stop();
});

async function lead({ owen, project }: Pick<World, "owen" | "project"> = world): Promise<string> {
  const { createLead } = await owen.get(
    "mutation ($input: CreateLeadInput!) { createLead(input: $input) { id } }",
    { input: { projectId: project.id, name: "Lea Lead" } },
  );
  return createLead.id;
}

const runsOf = async (id: string, person = world.owen) =>
  (
    await person.get(
      "query ($id: ID!) { workflowExecution(id: $id) { id status pauseReason steps { attempt status output error errorCode } } }",
      { id },
    )
  ).workflowExecution;
const execute = async (steps: StepInput[], rest = {}) =>
  start(world.owen, await createWorkflow(world, steps, rest), await lead());

/** The error of a step that exceeds its budget. */
const over = { error: expect.stringMatching(/takes? more/), errorCode: "LIMIT_EXCEEDED" };

test("an execution whose step killed two processes is suspended until people decide", async () => {
  // The receiver never responds, so that the processes are in the middle of the step.
  receiver.answers(() => {});
  const execution = await execute([{ type: "CALL_WEBHOOK", config: { url: `${receiver.url}/deadly` } }]);
  for (const _ of [1, 2]) {
    const doomed = startChild(
      [join(import.meta.dirname, "callWorker.ts"), world.database.ownerUrl, world.dataDir],
      { stdio: "ignore" },
    );
    await receiver.next();
    await killChild(doomed);
  }
  receiver.answers(status(204));
  workflows = await runWorkflows(world, undefined, undefined, { taskMs: 300 });
  const aside = await until(
    () => runsOf(execution),
    (found) => found.status === "PAUSED",
  );
  expect(aside).toMatchObject({
    pauseReason: expect.stringMatching(/ended twice/),
    steps: [
      { attempt: 1, status: "FAILED", error: expect.stringMatching(/ended twice/), errorCode: "INTERNAL" },
    ],
  });
  // The call was not repeated automatically.
  expect(receiver.messages.filter(({ path }) => path === "/deadly")).toHaveLength(2);
  const { organization } = await world.owen.get(
    `query ($id: ID!) { organization(id: $id) { escalationTickets { id kind status } } }`,
    { id: world.harbour.id },
  );
  expect(organization.escalationTickets).toMatchObject([{ kind: "WORKFLOW_FAILURE", status: "OPEN" }]);
  await world.owen.get(
    "mutation ($input: ResolveEscalationTicketInput!) { resolveEscalationTicket(input: $input) { status } }",
    { input: { id: organization.escalationTickets[0].id, action: "RETRY" } },
  );
  await until(
    () => runsOf(execution),
    (found) => found.status === "COMPLETED",
  );
});

test.each<[string, StepInput]>([
  ["a condition of 100⁴ steps", { type: "BRANCH", config: { condition: nestedAll(4) } }],
  ["a condition of 100⁶ steps", { type: "BRANCH", config: { condition: nestedAll(6) } }],
  [
    "150 texts, each of which is within the budget for a while",
    {
      type: "UPDATE_FIELD",
      config: {
        field: "metadata",
        value: Object.fromEntries(Array.from({ length: 150 }, (_, n) => [`k${n}`, slowLoop])),
      },
    },
  ],
  ["a text that doubles", { type: "CREATE_NOTE", config: { text: doubling } }],
  [
    "a filter that does not return",
    { type: "CREATE_TASK", config: { title: "Call", description: slowFilter } },
  ],
  ["the text of a message", { type: "SEND_SMS", config: { to: "MEMBER", body: doubling } }],
  [
    "the body of a call",
    { type: "CALL_WEBHOOK", config: { url: "https://localhost:1/", body: { a: slowLoop } } },
  ],
])("%s fails with a code, while the others continue", async (_, step) => {
  const config = step.config?.to === "MEMBER" ? { ...step.config, memberId: world.max.id } : step.config!;
  const bombs = await Promise.all(Array.from({ length: 3 }, () => execute([{ ...step, config }])));
  const honest = await start(world.olga, other.workflow, other.lead);
  await until(
    () => runsOf(honest, world.olga),
    (found) => found.status === "COMPLETED",
  );
  for (const bomb of bombs) {
    const [run] = await until(
      async () => (await runsOf(bomb)).steps,
      (steps) => steps[0]?.status === "FAILED",
    );
    expect(run).toMatchObject({ attempt: 1, output: null, ...over });
  }
  await world.owner.query(
    "update app_public.workflow_executions set scheduled_at = now() + interval '1 day' where id = any ($1)",
    [bombs],
  );
});

test("no transaction is open while a step is computed, and cancelling does not wait", async () => {
  const execution = await execute([{ type: "CREATE_NOTE", config: { text: slowFilter } }]);
  await until(async () => {
    const { rowCount } = await world.owner.query(
      "select from app_public.workflow_executions where id = $1 and holder is not null",
      [execution],
    );
    return rowCount === 1;
  });
  const { rows: open } = await world.owner.query(
    "select query from pg_stat_activity where datname = current_database() and application_name = 'plat-workflows' and state like 'idle in transaction%'",
  );
  expect(open).toEqual([]);
  const { cancelWorkflowExecution: cancelled } = await world.owen.get(
    "mutation ($id: ID!) { cancelWorkflowExecution(input: { id: $id }) { status } }",
    { id: execution },
  );
  expect(cancelled).toEqual({ status: "CANCELLED" });
  // A later result is discarded, and another step is executed.
  const next = await execute([{ type: "CREATE_NOTE", config: { text: "{{ lead.name }}" } }]);
  await until(
    () => runsOf(next),
    (found) => found.status === "COMPLETED",
  );
  expect(await runsOf(execution)).toMatchObject({ status: "CANCELLED", steps: [] });
});

test("conditions of events are bounded as well, in waits and triggers", async () => {
  const waiting = await execute([
    {
      type: "WAIT_FOR_EVENT",
      config: { event: "lead.updated", conditions: nestedAll(6), timeoutSeconds: 86_400 },
    },
  ]);
  await until(
    () => runsOf(waiting),
    (found) => found.steps[0]?.status === "RUNNING",
  );
  const { rows } = await world.owner.query<{ subject_id: string }>(
    "select subject_id from app_public.workflow_executions where id = $1",
    [waiting],
  );
  const trigger = { type: "EVENT", event: "lead.updated" };
  const steps = [{ type: "ADD_TAG", config: { tag: "seen" } }];
  const refused = await createWorkflow(world, steps, { trigger, conditions: nestedAll(6) });
  const started = await createWorkflow(world, steps, {
    trigger,
    conditions: { "==": [{ var: "lead.company" }, "Bright"] },
  });
  triggers = await startTriggers({
    connectionString: world.database.workerUrl,
    compute,
    log: pino({ level: "silent" }),
  });
  await world.owen.get("mutation ($input: UpdateLeadInput!) { updateLead(input: $input) { id } }", {
    input: { id: rows[0]!.subject_id, company: "Bright" },
  });
  const [run] = await until(
    async () => (await runsOf(waiting)).steps,
    (found) => found[0]?.status === "FAILED",
  );
  expect(run).toMatchObject(over);
  const read = async (id: string) =>
    (await world.owen.get("query ($id: ID!) { workflow(id: $id) { triggerError counts } }", { id })).workflow;
  await until(
    () => read(started),
    ({ counts }) => counts.COMPLETED === 1,
  );
  expect(
    await until(
      () => read(refused),
      ({ triggerError }) => triggerError,
    ),
  ).toMatchObject({ triggerError: expect.stringMatching(/takes more than 100,000 operations/) });
});

test("a definition that is too long to be parsed is refused", async () => {
  const text = `{{ lead.name }}${"x".repeat(60_000)}`;
  const steps = Array.from({ length: 20 }, () => ({
    type: "SEND_EMAIL",
    config: { subject: "Hello", body: "Hello", html: text },
  }));
  const made = world.owen.refused(
    "mutation ($input: CreateWorkflowInput!) { createWorkflow(input: $input) { id } }",
    {
      input: {
        organizationId: world.harbour.id,
        name: "Long",
        subjectType: "LEAD",
        trigger: { type: "MANUAL" },
        steps,
      },
    },
  );
  expect(await made).toMatchObject({
    code: "LIMIT_EXCEEDED",
    field: "steps",
    message: expect.stringMatching(/1,000,000 characters/),
  });
});
