import type { Task } from "graphile-worker";

/** Refreshes the credentials of integrations before they expire. Idempotent. */
const task: Task = async (_payload, { integrations }) => integrations.keep();

export default task;
