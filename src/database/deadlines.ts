import { isRetryable, sqlState } from "./databaseErrors.ts";
import type { Session } from "./session.ts";

/** What ends by itself is settled before anybody reads it; see migrations/committed/000060-deadlines.sql. */
export interface Deadlines {
  /** SQL expression that raises {@link Deadlines.due} while something is due. */
  readonly probe: string;
  /** SQLSTATE of that. */
  readonly due: string;
  /** Statement that settles some of it and gives how many. */
  readonly settle: string;
}

/** The deadlines of the service's own schema. */
export const settledDeadlines: Deadlines = {
  probe: "app_private.stop_when_due()",
  due: "PLAT1",
  settle: "select app_private.settle_due()",
};

/** How often a statement may meet something due. More than that and settling does not get on. */
const MOST_ROUNDS = 1000;

/**
 * Runs it; when the database says that something is due, has that settled, in a transaction of the service's own, and runs
 * it again. The refusal undid the whole attempt, so it was as if it had not been made.
 */
export async function afterDeadlines<T>(
  session: Session,
  deadlines: Deadlines | undefined,
  attempt: () => Promise<T>,
): Promise<T> {
  for (let rounds = 0; ; rounds += 1) {
    try {
      return await attempt();
    } catch (error) {
      if (deadlines === undefined || sqlState(error) !== deadlines.due || rounds === MOST_ROUNDS) throw error;
      if (session.client.getTransactionStatus() !== "I") await session.send([{ text: "rollback" }], true);
      try {
        await session.send([{ text: deadlines.settle, key: deadlines.settle }], true);
      } catch (conflict) {
        if (!isRetryable(conflict)) throw conflict; // else somebody else was in the way, and the next round tries again
      }
    }
  }
}
