import type { Task } from "graphile-worker";

/** Has agreements asked after whose provider has said nothing for an hour: a notice may have been lost. */
const task: Task = async (_payload, { query }) => {
  await query("select app_private.sync_envelopes(1000)");
};

export default task;
