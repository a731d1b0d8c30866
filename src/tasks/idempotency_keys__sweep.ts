import type { Task } from "graphile-worker";
import { sweep } from "../jobs/sweep.ts";

/** Rows per transaction: short enough that no repeat waits for it. */
const batch = 5_000;

/** Deletes the idempotency keys that are over, with the answers that were kept under them. Run twice, it finds nothing. */
const task: Task = (_payload, helpers) => sweep(helpers, "app_private.sweep_idempotency_keys($1)", batch);

export default task;
