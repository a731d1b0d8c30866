import { doubling, slowFilter } from "../../workflows/bombs.ts";
import type { Attack } from "../attack.ts";
import { makeLead, makeWorkflow, startExecution } from "../workflow.ts";

let workflows: string[];

/** Filters that do not return, and texts that exhaust the memory. */
export default {
  title: "filters that take minutes, texts that double",
  async prepare(world) {
    workflows = [];
    for (const text of [slowFilter, doubling])
      workflows.push(await makeWorkflow(world, [{ type: "CREATE_NOTE", config: { text } }]));
  },
  async play(world) {
    const lead = await makeLead(world);
    for (const workflow of workflows) await startExecution(world, workflow, lead);
  },
} satisfies Attack;
