import type { Task } from "graphile-worker";
import { sweepInBatches } from "../jobs/sweep.ts";

/** Projects per transaction. */
const batch = 200;

/** Recomputes the service index of every project, because freshness decreases with time. */
const task: Task = (_payload, helpers) =>
  sweepInBatches(helpers, "app_private.refresh_service_index($1, $2)", batch);

export default task;
