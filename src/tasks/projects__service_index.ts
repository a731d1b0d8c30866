import type { Task } from "graphile-worker";

/** Projects per transaction. */
const batch = 200;

/** Computes the service index of every project anew; freshness fades by itself, so all of them count. */
const task: Task = async (_payload, { query, abortSignal }) => {
  let after: string | null = null;
  for (;;) {
    const { rows }: { rows: { last: string | null }[] } = await query<{ last: string | null }>(
      "select app_private.refresh_service_index($1, $2) as last",
      [after, batch],
    );
    after = rows[0]!.last;
    if (after === null || abortSignal?.aborted) return;
  }
};

export default task;
