import { slowLoop } from "../../workflows/bombs.ts";
import type { Attack } from "../attack.ts";
import { makeLead, makeWorkflow, startExecution } from "../workflow.ts";

let workflow: string;

/** Each text would be within the budget if it had one of its own. */
export default {
  title: "steps of 150 texts with loops",
  async prepare(world) {
    const value = Object.fromEntries(Array.from({ length: 150 }, (_, n) => [`k${n}`, slowLoop]));
    workflow = await makeWorkflow(world, [{ type: "UPDATE_FIELD", config: { field: "metadata", value } }]);
  },
  async play(world) {
    await startExecution(world, workflow, await makeLead(world));
  },
} satisfies Attack;
