import type { Task } from "graphile-worker";

/** Files per transaction, which locks their exports while the store deletes. */
const batch = 100;

/**
 * Deletes the files of exports that expired, failed or were cancelled, and has those written whose job is lost. Run twice, it
 * finds nothing.
 */
const task: Task = async (_payload, { withPgClient, fileStore, abortSignal }) => {
  for (;;) {
    const deleted = await withPgClient(async (client) => {
      await client.query("begin");
      try {
        const { rows } = await client.query<{ key: string }>("select app_private.sweep_exports($1) as key", [
          batch,
        ]);
        await fileStore.delete(rows.map(({ key }) => key));
        await client.query("commit");
        return rows.length;
      } catch (error) {
        await client.query("rollback");
        throw error;
      }
    });
    if (deleted < batch || abortSignal?.aborted) return;
  }
};

export default task;
