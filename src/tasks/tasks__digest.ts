import type { Task } from "graphile-worker";

/** Members per transaction. */
const batch = 500;

/** Queues the mails with the tasks of the day, where it is morning. Run twice, it finds nobody. */
const task: Task = async (_payload, { query, abortSignal }) => {
  let after: string | null = null;
  for (;;) {
    const { rows }: { rows: { last: string | null }[] } = await query<{ last: string | null }>(
      "select app_private.queue_task_digests($1, $2) as last",
      [after, batch],
    );
    after = rows[0]!.last;
    if (after === null || abortSignal?.aborted) return;
  }
};

export default task;
