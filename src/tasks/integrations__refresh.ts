import type { Task } from "graphile-worker";

/** Refreshes the credentials of integrations before they end. Run twice: nothing more to do. */
const task: Task = async (_payload, { integrations }) => integrations.keep();

export default task;
