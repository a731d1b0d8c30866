import type { Task } from "graphile-worker";
import { lookAt } from "../payments/processorEvents.ts";

/** Looks at what an event of the payment processor is about: {id}. Run twice, it finds the same state. */
const task: Task = async (payload, helpers) => {
  const id = (payload as { id?: unknown } | null)?.id;
  if (typeof id !== "string") throw new Error("The job's payload has no id.");
  await lookAt(helpers, id);
};

export default task;
