import type { Task } from "graphile-worker";

/** Claims per transaction: few enough that nobody who wants one of these units waits for long. */
const batch = 200;

/** Releases the claims that are over, so that their units and lots show as available soon. Run twice, it finds nothing. */
const task: Task = async (_payload, { query, abortSignal }) => {
  for (;;) {
    const { rows } = await query<{ released: number }>(
      "select app_private.release_expired_claims($1) as released",
      [batch],
    );
    if (rows[0]!.released < batch || abortSignal?.aborted) return;
  }
};

export default task;
