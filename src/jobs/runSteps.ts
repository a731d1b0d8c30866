import type { JobHelpers } from "graphile-worker";
import { isTransient, lockAttempts, pauseAfter } from "../database/lockRetry.ts";

/**
 * Calls a function that takes one step at a time, each in a transaction of its own, and says which, until nothing is left to do or the
 * service stops. A lock is waited for briefly, so that nobody queues behind it, and again after a pause.
 * @param step takes no arguments; returns null if nothing is left to do
 * @param subject what the log says of the steps, such as "Partitions of events"
 */
export async function runSteps(
  { query, logger, abortSignal }: Pick<JobHelpers, "query" | "logger" | "abortSignal">,
  step: string,
  subject: string,
): Promise<void> {
  for (let attempt = 1; !abortSignal.aborted; attempt++)
    try {
      const { rows } = await query<{ step: string | null }>(`select ${step}() as step`);
      if (rows[0]!.step === null) return;
      logger.info(`${subject}: ${rows[0]!.step}.`);
      attempt = 0;
    } catch (error) {
      if (!isTransient(error) || attempt === lockAttempts) throw error;
      await pauseAfter(attempt, () => {});
    }
}
