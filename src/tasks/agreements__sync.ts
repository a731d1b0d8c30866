import type { Task } from "graphile-worker";

/** Queues updates of agreements whose provider has been silent for an hour: a notification may have been lost. */
const task: Task = async (_payload, { query }) => {
  await query("select app_private.sync_envelopes(1000)");
};

export default task;
