import type { Task } from "graphile-worker";
import { sweep } from "../jobs/sweep.ts";

/** Deadlines per transaction: all of one organization, and few enough that other changes of these records do not wait long. */
const batch = 200;

/** Expires records whose deadline has passed, so that their events and mails do not wait for a reader. Idempotent. */
const task: Task = (_payload, helpers) => sweep(helpers, "app_private.expire_due($1)", batch, [], 1);

export default task;
