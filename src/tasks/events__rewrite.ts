import type { Task } from "graphile-worker";
import { runSteps } from "../jobs/runSteps.ts";

/**
 * Frees the space of emptied events: copies quarters that take far more than their rows need, and puts the copies in their place.
 * Idempotent: each step is a transaction that leaves what the next one continues from, whichever process takes it.
 */
const task: Task = (_payload, helpers) =>
  runSteps(helpers, "app_private.rewrite_events", "Rewriting of events");

export default task;
