import type { Task } from "graphile-worker";
import { sweep } from "../jobs/sweep.ts";

/** Rows per transaction. */
const batch = 5_000;

/** Deletes deliveries of webhooks that ended more than a month ago. Idempotent. */
const task: Task = (_payload, helpers) => sweep(helpers, "app_private.sweep_webhook_deliveries($1)", batch);

export default task;
