import type { Task } from "graphile-worker";
import { sweep } from "../jobs/sweep.ts";

/** Rows of the backlog per transaction, each of some hundred records. A search waits for one transaction at most. */
const batch = 4;

/** Indexes records that were changed in bulk. Idempotent. */
const task: Task = (_payload, helpers) => sweep(helpers, "app_private.catch_up_search($1)", batch);

export default task;
