import type { Task } from "graphile-worker";
import { isTransient, lockAttempts, pauseAfter } from "../database/lockRetry.ts";

/**
 * Creates the partitions of events that are needed soon, and analyzes tables with partitions. It waits for locks only
 * briefly, so that other statements do not queue behind it, and retries after a pause. Idempotent: each step is a
 * transaction and returns which steps remain.
 */
const task: Task = async (_payload, { query, logger, abortSignal }) => {
  for (let tries = 1; !abortSignal.aborted; tries++)
    try {
      const { rows } = await query<{ step: string | null }>(
        "select app_private.make_event_partitions() as step",
      );
      if (rows[0]!.step === null) {
        await query("select app_private.analyze_partitioned()");
        return;
      }
      logger.info(`Partitions of events: ${rows[0]!.step}.`);
      tries = 0;
    } catch (error) {
      if (!isTransient(error) || tries === lockAttempts) throw error;
      await pauseAfter(tries, () => {});
    }
};

export default task;
