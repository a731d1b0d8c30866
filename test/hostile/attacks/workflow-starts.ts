import type { Attack } from "../attack.ts";
import { makeLead, makeWorkflow, startExecution } from "../workflow.ts";

let workflow: string;

/** Valid steps, as many as one organization can start. */
export default {
  title: "an organization starts executions as fast as it can",
  async prepare(world) {
    workflow = await makeWorkflow(world, [
      { type: "BRANCH", config: { condition: { "==": [{ var: "lead.status" }, "NEW"] }, else: 3 } },
      { type: "CREATE_NOTE", config: { text: "Hello {{ lead.name | upcase }}" } },
      { type: "STOP", config: {} },
    ]);
  },
  async play(world) {
    await startExecution(world, workflow, await makeLead(world));
  },
} satisfies Attack;
