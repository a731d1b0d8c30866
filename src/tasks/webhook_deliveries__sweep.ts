import type { Task } from "graphile-worker";

/** Rows per transaction. */
const batch = 5_000;

/** Deletes deliveries of webhooks that were over a month ago. Run twice, it finds nothing. */
const task: Task = async (_payload, { query, abortSignal }) => {
  for (;;) {
    const { rows } = await query<{ deleted: number }>(
      "select app_private.sweep_webhook_deliveries($1) as deleted",
      [batch],
    );
    if (rows[0]!.deleted < batch || abortSignal?.aborted) return;
  }
};

export default task;
