import type { Task } from "graphile-worker";
import { sweepInBatches } from "../jobs/sweep.ts";

/** Members per transaction. */
const batch = 500;

/** Queues the daily task digests of members in whose time zone it is morning. Idempotent. */
const task: Task = (_payload, helpers) =>
  sweepInBatches(helpers, "app_private.queue_task_digests($1, $2)", batch);

export default task;
