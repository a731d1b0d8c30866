/** Calls of one organization, whose receivers do not answer, and those of another. */
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { until } from "../harness/until.ts";
import { startWorld, type World } from "../harness/world.ts";
import { startReceiver, type Receiver } from "../webhooks/receiver.ts";
import { createWorkflow, runWorkflows, start } from "./world.ts";

let world: World;
let receiver: Receiver;
let workflows: Awaited<ReturnType<typeof runWorkflows>>;

beforeAll(async () => {
  world = await startWorld(undefined, { loopbackWebhooks: true });
  // No call ends during the test by itself.
  [receiver, workflows] = await Promise.all([startReceiver(), runWorkflows(world, 600_000)]);
});
afterAll(async () => {
  await receiver?.close();
  await workflows?.stop();
  await world?.stop();
});

test("an organization whose receivers do not answer has a share of the calls, and others do not wait", async () => {
  receiver.answers(({ path }, response) => {
    if (path !== "/silent") response.writeHead(204).end();
  });
  const silent = await createWorkflow(world, [
    { type: "CALL_WEBHOOK", config: { url: `${receiver.url}/silent` } },
  ]);
  await world.owner.query(
    "insert into app_public.leads (project_id, name) select $1, 'Many ' || n from generate_series(1, 100) n",
    [world.project.id],
  );
  await world.owen.get("mutation ($input: BatchWorkflowInput!) { batchWorkflow(input: $input) { counts } }", {
    input: { id: silent, leadsFilter: { query: "Many" } },
  });
  const callsOf = (wanted: string) => receiver.messages.filter(({ path }) => path === wanted).length;
  await until(() => callsOf("/silent") === 32);

  const ida = await world.signUp("Ida");
  const inOther = async (query: string, input: object) => (await ida.get(query, { input })) as any;
  const { createOrganization: other } = await inOther(
    "mutation ($input: CreateOrganizationInput!) { createOrganization(input: $input) { id } }",
    { name: "Inlet Homes" },
  );
  const { createProject: project } = await inOther(
    "mutation ($input: CreateProjectInput!) { createProject(input: $input) { id } }",
    { organizationId: other.id, title: "Inlet", status: "SELLING" },
  );
  const { createWorkflow: workflow } = await inOther(
    "mutation ($input: CreateWorkflowInput!) { createWorkflow(input: $input) { id } }",
    {
      organizationId: other.id,
      name: "Prompt",
      subjectType: "LEAD",
      trigger: { type: "MANUAL" },
      steps: [{ type: "CALL_WEBHOOK", config: { url: `${receiver.url}/prompt` } }],
    },
  );
  await inOther("mutation ($input: EnableWorkflowInput!) { enableWorkflow(input: $input) { id } }", {
    id: workflow.id,
  });
  for (let n = 1; n <= 3; n += 1) {
    const { createLead: lead } = await inOther(
      "mutation ($input: CreateLeadInput!) { createLead(input: $input) { id } }",
      { projectId: project.id, name: `Lead ${n}` },
    );
    await start(ida, workflow.id, lead.id);
    await until(() => callsOf("/prompt") === n);
  }
  expect(callsOf("/silent")).toBe(32);
});
