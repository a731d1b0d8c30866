import type { Task } from "graphile-worker";
import { storeCurrentState } from "../payments/processorEvents.ts";

/** Reads the current state of the object of the processor event {id}. Idempotent. */
const task: Task = async (payload, helpers) => {
  const id = (payload as { id?: unknown } | null)?.id;
  if (typeof id !== "string") throw new Error("The job's payload has no id.");
  await storeCurrentState(helpers, id);
};

export default task;
