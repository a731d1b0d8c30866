/** Workflows that attackers create in their own organization. */
import type { HostileWorld } from "./attack.ts";

/** Creates and enables a workflow for leads without a limit on executions per lead. */
export async function makeWorkflow(
  { get, attacker, organization }: HostileWorld,
  steps: { type: string; config: Record<string, unknown>; onError?: string }[],
): Promise<string> {
  const { createWorkflow } = await get(
    attacker,
    "mutation ($input: CreateWorkflowInput!) { createWorkflow(input: $input) { id } }",
    {
      input: {
        organizationId: organization.id,
        name: "Storm",
        subjectType: "LEAD",
        reentry: "ALWAYS",
        trigger: { type: "MANUAL" },
        steps,
      },
    },
  );
  await get(attacker, "mutation ($id: ID!) { enableWorkflow(input: { id: $id }) { id } }", {
    id: createWorkflow.id,
  });
  return createWorkflow.id;
}

/** Creates a lead in the attackers' project. */
export async function makeLead({ get, attacker, project, freshEmail }: HostileWorld): Promise<string> {
  const { createLead } = await get(
    attacker,
    "mutation ($input: CreateLeadInput!) { createLead(input: $input) { id } }",
    { input: { projectId: project.id, name: "Storm Lead", email: freshEmail() } },
  );
  return createLead.id;
}

/** Starts the workflow for a lead; a refusal, such as by a limit, is a response. */
export async function startExecution(
  { ask, attacker }: HostileWorld,
  workflowId: string,
  subjectId: string,
): Promise<void> {
  const { data, errors } = await ask(
    attacker,
    "mutation ($input: CreateWorkflowExecutionInput!) { createWorkflowExecution(input: $input) { id } }",
    { input: { workflowId, subjectId } },
  );
  const [error] = errors ?? [];
  if (error ? error.extensions.code !== "RATE_LIMITED" : !data.createWorkflowExecution.id)
    throw new Error(JSON.stringify(errors));
}
