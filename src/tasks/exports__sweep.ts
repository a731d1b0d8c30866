import type { Task } from "graphile-worker";
import { transaction } from "../database/transaction.ts";

/** Files per transaction, which locks their exports while the store deletes. */
const batch = 100;

/** Deletes the files of exports that expired, failed or were cancelled, and requeues exports whose job is lost. Idempotent. */
const task: Task = async (_payload, { withPgClient, fileStore, abortSignal }) => {
  for (;;) {
    const deleted = await withPgClient((client) =>
      transaction(client, async () => {
        const { rows } = await client.query<{ key: string }>("select app_private.sweep_exports($1) as key", [
          batch,
        ]);
        await fileStore.delete(rows.map(({ key }) => key));
        return rows.length;
      }),
    );
    if (deleted < batch || abortSignal?.aborted) return;
  }
};

export default task;
