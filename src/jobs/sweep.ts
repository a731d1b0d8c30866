import type { JobHelpers } from "graphile-worker";
import { transaction } from "../database/transaction.ts";

/** A transaction of a sweep that takes longer than this is undone, so that it holds nobody up; the job is tried again. */
const longest = "30s";

/**
 * Runs a statement that works on a batch of rows, each time in a transaction of its own, until less than a batch was left
 * or the service stops. What a run does not get to, the next one does.
 * @param statement takes `values` and the size of the batch last, and gives how many rows it worked on.
 * @param least it goes on while it worked on so many; a whole batch unless given.
 */
export async function sweep(
  { withPgClient, abortSignal }: Pick<JobHelpers, "withPgClient" | "abortSignal">,
  statement: string,
  batch: number,
  values: readonly unknown[] = [],
  least = batch,
): Promise<void> {
  let amount: number;
  do {
    amount = await withPgClient((client) =>
      transaction(client, async () => {
        await client.query(`set local statement_timeout = '${longest}'`);
        const { rows } = await client.query<{ amount: number }>({
          text: `select ${statement} as amount`,
          values: [...values, batch],
        });
        return rows[0]!.amount;
      }),
    );
  } while (amount >= least && !abortSignal.aborted);
}

/**
 * Runs a statement on a batch of records after the other, each in a transaction of its own, until it has gone through all of them or
 * the service stops.
 * @param statement takes the id after which it goes on, null at the beginning, and the size of the batch; gives its last id, or null
 * where nothing is left.
 */
export async function goThrough(
  { query, abortSignal }: Pick<JobHelpers, "query" | "abortSignal">,
  statement: string,
  batch: number,
): Promise<void> {
  let last: string | null = null;
  do {
    const { rows }: { rows: { last: string | null }[] } = await query(`select ${statement} as last`, [
      last,
      batch,
    ]);
    last = rows[0]!.last;
  } while (last !== null && !abortSignal.aborted);
}
