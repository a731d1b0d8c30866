import type { JobHelpers } from "graphile-worker";
import { transaction } from "../database/transaction.ts";

/** A sweep transaction that takes longer is rolled back, so that it does not block others; the job is retried. */
const longest = "30s";

/**
 * Runs a statement on batches of rows, each in its own transaction, until a batch is not full or the service stops.
 * The next run continues with the rest.
 * @param statement takes `values` and, as the last parameter, the batch size; returns the number of processed rows
 * @param least continue while at least this many rows were processed; default: the batch size
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
 * Runs a statement on successive batches of records, each in its own transaction, until it has gone through all of
 * them or the service stops.
 * @param statement takes the id after which to continue, null at first, and the batch size; returns the last id, or
 * null at the end
 */
export async function sweepInBatches(
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
