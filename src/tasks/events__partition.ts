import type { Task } from "graphile-worker";
import { runSteps } from "../jobs/runSteps.ts";

/**
 * Creates the partitions of events that are needed soon, and analyzes tables with partitions. Idempotent: each step is
 * a transaction and returns which steps remain.
 */
const task: Task = async (_payload, helpers) => {
  await runSteps(helpers, "app_private.make_event_partitions", "Partitions of events");
  if (!helpers.abortSignal.aborted) await helpers.query("select app_private.analyze_partitioned()");
};

export default task;
