import type { Task } from "graphile-worker";
import { sweepInBatches, sweep } from "../jobs/sweep.ts";

/** Organizations per transaction. */
const organizations = 20;
/** Persons per transaction. */
const persons = 5;

/** Deletes data beyond the retention periods of organizations, and redacts names of persons who were erased before. Idempotent. */
const task: Task = async (_payload, helpers) => {
  await sweepInBatches(helpers, "app_private.sweep_organizations($1, $2)", organizations);
  await sweep(helpers, "app_private.erase_expired_contracts($1)", persons);
};

export default task;
