import type { Task } from "graphile-worker";
import { sweep } from "../jobs/sweep.ts";

/** Rows per transaction. */
const batch = 5_000;

/** Deletes deliveries of webhooks that were over a month ago. Run twice, it finds nothing. */
const task: Task = (_payload, helpers) => sweep(helpers, "app_private.sweep_webhook_deliveries($1)", batch);

export default task;
