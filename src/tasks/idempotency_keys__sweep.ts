import type { Task } from "graphile-worker";
import { sweep } from "../jobs/sweep.ts";

/** Rows per transaction: few enough that no repeated request waits for it. */
const batch = 5_000;

/** Deletes expired idempotency keys with their stored answers. Idempotent. */
const task: Task = (_payload, helpers) => sweep(helpers, "app_private.sweep_idempotency_keys($1)", batch);

export default task;
