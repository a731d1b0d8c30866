import type { Task } from "graphile-worker";
import { sweep } from "../jobs/sweep.ts";

/** Deadlines per transaction: all of one organization, few enough that nobody who wants one of these records waits for long. */
const batch = 200;

/** Expires what is due, so that its events and mails do not wait for somebody who reads. Run twice, it finds nothing. */
const task: Task = (_payload, helpers) => sweep(helpers, "app_private.expire_due($1)", batch, [], 1);

export default task;
