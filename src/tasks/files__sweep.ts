import type { Task } from "graphile-worker";
import { transaction } from "../database/transaction.ts";
import { thumbnailKey } from "../providers/files/index.ts";
import { removeLeftovers } from "../providers/files/leftovers.ts";

/** Contents per transaction, which locks them while the store deletes. */
const batch = 100;

/** Age in milliseconds at which an unfinished upload is considered abandoned. */
const leftAfter = 24 * 3_600_000;

/**
 * Deletes contents without a row: refused uploads, and files deleted a week ago; and uploads that a process left behind when it died.
 * Idempotent.
 */
const task: Task = async (_payload, { withPgClient, fileStore, incomingFolder, abortSignal }) => {
  const before = new Date(Date.now() - leftAfter);
  await removeLeftovers(incomingFolder, { before });
  await fileStore.sweep(before);
  for (;;) {
    const deleted = await withPgClient((client) =>
      transaction(client, async () => {
        const { rows } = await client.query<{ checksum: string }>(
          "select app_private.sweep_files($1) as checksum",
          [batch],
        );
        await fileStore.delete(rows.flatMap(({ checksum }) => [checksum, thumbnailKey(checksum)]));
        return rows.length;
      }),
    );
    if (deleted === 0 || abortSignal?.aborted) return;
  }
};

export default task;
