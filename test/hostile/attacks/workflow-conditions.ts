import { nestedAll } from "../../workflows/bombs.ts";
import type { Attack } from "../attack.ts";
import { makeLead, makeWorkflow, startExecution } from "../workflow.ts";

let workflow: string;

/** Another organization evaluates conditions with 100⁶ operations. */
export default {
  title: "conditions of 100 to the power of 6 operations",
  async prepare(world) {
    workflow = await makeWorkflow(world, [{ type: "BRANCH", config: { condition: nestedAll(6) } }]);
  },
  async play(world) {
    await startExecution(world, workflow, await makeLead(world));
  },
} satisfies Attack;
