import type { Task } from "graphile-worker";

/** Rows per transaction: short enough that no repeat waits for it. */
const batch = 5_000;

/** Deletes the idempotency keys that are over, with the answers that were kept under them. Run twice, it finds nothing. */
const task: Task = async (_payload, { query }) => {
  let deleted: number;
  do {
    const { rows } = await query<{ deleted: number }>(
      "select app_private.sweep_idempotency_keys($1) as deleted",
      [batch],
    );
    deleted = rows[0]!.deleted;
  } while (deleted === batch);
};

export default task;
