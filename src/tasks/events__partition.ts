import type { Task } from "graphile-worker";
import { takeSteps } from "../jobs/takeSteps.ts";

/**
 * Makes the partitions of events that are needed soon, and has tables with partitions analyzed. Idempotent: each step is a transaction, and
 * says what is left to do.
 */
const task: Task = async (_payload, helpers) => {
  await takeSteps(helpers, "app_private.make_event_partitions", "Partitions of events");
  if (!helpers.abortSignal.aborted) await helpers.query("select app_private.analyze_partitioned()");
};

export default task;
