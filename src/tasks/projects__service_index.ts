import type { Task } from "graphile-worker";
import { goThrough } from "../jobs/sweep.ts";

/** Projects per transaction. */
const batch = 200;

/** Computes the service index of every project anew; freshness fades by itself, so all of them count. */
const task: Task = (_payload, helpers) =>
  goThrough(helpers, "app_private.refresh_service_index($1, $2)", batch);

export default task;
