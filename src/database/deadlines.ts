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
  /** How long a statement waits until what is due is settled; then it reads what is there. */
  readonly patienceMs: number;
}

/** The deadlines of the service's own schema. */
export const settledDeadlines: Deadlines = {
  probe: "app_private.stop_when_due()",
  due: "PLAT1",
  settle: "select app_private.settle_due()",
  patienceMs: 5000,
};

/** Until when nobody waits, since somebody lost patience a moment ago. */
const behindUntil = new WeakMap<Deadlines, number>();

/** Connections on which somebody lost patience: the next statement does not. */
const unpunctual = new WeakSet<Session>();

/**
 * Runs it; when the database says that something is due, has that settled, in a transaction of the service's own, and runs
 * it again. The refusal undid the whole attempt, so it was as if it had not been made. Where there is more than can be
 * settled in a few seconds, such as after days of standstill, it goes on behind the clock instead, as do others for a while.
 */
export async function afterDeadlines<T>(
  session: Session,
  deadlines: Deadlines | undefined,
  attempt: () => Promise<T>,
): Promise<T> {
  const isDue = (error: unknown) => deadlines !== undefined && sqlState(error) === deadlines.due;
  let began: number | undefined;
  if (unpunctual.delete(session)) await session.send([{ text: "reset plat.behind" }], true);
  for (;;) {
    try {
      return await attempt();
    } catch (error) {
      if (!isDue(error)) throw error;
      if (session.client.getTransactionStatus() !== "I") await session.send([{ text: "rollback" }], true);
    }
    const { settle, patienceMs } = deadlines!;
    const now = performance.now();
    began ??= now;
    if (now - began > patienceMs) behindUntil.set(deadlines!, now + patienceMs);
    if (now < (behindUntil.get(deadlines!) ?? 0)) return behind(session, attempt);
    try {
      await session.send([{ text: settle, key: settle }], true);
    } catch (conflict) {
      if (!isRetryable(conflict)) throw conflict; // else somebody else was in the way, and the next round tries again
    }
  }
}

/** Runs it whatever is due. */
async function behind<T>(session: Session, attempt: () => Promise<T>): Promise<T> {
  unpunctual.add(session);
  await session.send([{ text: "set plat.behind = 'on'" }], true);
  return attempt();
}
