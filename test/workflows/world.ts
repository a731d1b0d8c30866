import pino from "pino";
import { createCompute, type ComputeOptions } from "../../src/compute/computePool.ts";
import { createSmsProvider, type SmsProvider } from "../../src/providers/sms/index.ts";
import { createSeal } from "../../src/secrets/seal.ts";
import { startWorkflows, type Workflows } from "../../src/workflows/runner.ts";
import { secretKeys, type Person } from "../harness/api.ts";
import type { World } from "../harness/world.ts";
import { until } from "../harness/until.ts";

/** The real worker of workflows on the world's database. */
export async function runWorkflows(
  world: World,
  timeoutMs = 10_000,
  sms: SmsProvider = createSmsProvider({ dataDir: world.dataDir, baseUrl: "https://plat.example" }),
  computing: Omit<ComputeOptions, "log"> = {},
): Promise<Workflows> {
  const log = pino({ level: process.env.TEST_LOG ?? "silent" });
  const compute = createCompute({ log, ...computing });
  const workflows = await startWorkflows({
    connectionString: world.database.workerUrl,
    seal: createSeal(secretKeys),
    loopback: true,
    compute,
    log,
    sms,
    timeoutMs,
  });
  return {
    async stop() {
      await compute.stop();
      await workflows.stop();
    },
  };
}

export interface StepInput {
  type: string;
  config?: Record<string, unknown>;
  waitSeconds?: number;
  onError?: string;
}

let names = 0;

/** Creates and enables a workflow over the API. */
export async function createWorkflow(
  world: World,
  steps: StepInput[],
  rest: Record<string, unknown> = {},
): Promise<string> {
  const { createWorkflow: made } = await world.owen.get(
    "mutation ($input: CreateWorkflowInput!) { createWorkflow(input: $input) { id } }",
    {
      input: {
        organizationId: world.harbour.id,
        name: `Workflow ${++names}`,
        subjectType: "LEAD",
        trigger: { type: "MANUAL" },
        steps,
        ...rest,
      },
    },
  );
  await world.owen.get("mutation ($id: ID!) { enableWorkflow(input: { id: $id }) { id } }", { id: made.id });
  return made.id;
}

/** Starts a workflow over the API; returns the execution. */
export async function start(
  person: Person,
  workflowId: string,
  subjectId: string,
  context?: Record<string, unknown>,
): Promise<string> {
  const data = await person.get(
    "mutation ($input: CreateWorkflowExecutionInput!) { createWorkflowExecution(input: $input) { id status } }",
    { input: { workflowId, subjectId, context } },
  );
  return data.createWorkflowExecution.id;
}

export const executionFields = `id status currentStep attempts error cancelReason pauseReason scheduledAt startedAt completedAt resumeAt
  steps { attempt status output error startedAt finishedAt step { sequence type } }`;

export async function read(person: Person, id: string): Promise<any> {
  const data = await person.get(`query ($id: ID!) { workflowExecution(id: $id) { ${executionFields} } }`, {
    id,
  });
  return data.workflowExecution;
}

/** Waits until an execution has the status or satisfies the condition. */
export const reaches = (person: Person, id: string, wanted: string | ((execution: any) => boolean)) =>
  until(
    () => read(person, id),
    typeof wanted === "string" ? (execution) => execution.status === wanted : wanted,
  );
