import type { Task } from "graphile-worker";

/** Deadlines per transaction: few enough that nobody who wants one of these records waits for long. */
const batch = 50;

/** Settles what is due, so that its events and mails do not wait for somebody who reads. Run twice, it finds nothing. */
const task: Task = async (_payload, { query, abortSignal }) => {
  for (;;) {
    const { rows } = await query<{ settled: number }>("select app_private.settle_due($1) as settled", [
      batch,
    ]);
    if (rows[0]!.settled < batch || abortSignal?.aborted) return;
  }
};

export default task;
