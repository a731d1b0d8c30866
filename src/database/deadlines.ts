import type { DatabaseError } from "pg";
import { isRetryable, LOCK_NOT_AVAILABLE, sqlState } from "./databaseErrors.ts";
import type { Session } from "./session.ts";

/** What ends by itself has expired before anybody reads it; see migrations/objects/01-foundation/deadlines.sql. */
export interface Deadlines {
  /** SQL expression that raises {@link Deadlines.due} while something is due. */
  readonly probe: string;
  /** SQLSTATE of that; its DETAIL is `{ "organizationId", "own" }`. */
  readonly due: string;
  /** Statement that expires some of it, given these two, and gives how many, less than 0 where all of it is locked. */
  readonly expire: string;
  /** How long a statement waits until what is due in the viewer's organizations is expired; then it reads what is there. */
  readonly patienceMs: number;
}

/** The deadlines of the service's own schema. */
export const serviceDeadlines: Deadlines = {
  probe: "app_private.raise_when_due()",
  due: "PLAT1",
  expire: "select app_private.expire_deadlines($1, $2)",
  patienceMs: 5000,
};

/** How long a statement expires for organizations that its viewer has no part in; each round takes 20 ms at most. */
const patienceForOthersMs = 40;
/** How long nobody expires for others after there was more than that, or it was locked. */
const pauseMs = 1000;

/** Stands among organizations for all those that a viewer has no part in. */
const others = "others";

/** Whose deadlines a transaction does not look at: all, or those of organizations that the viewer has no part in. */
export type Stale = "on" | typeof others;
/** Organization → until when nobody waits for it, since somebody lost patience a moment ago. */
const staleUntil = new WeakMap<Deadlines, Map<string, number>>();

/**
 * Runs it; when the database says that something is due, has that expired, in a transaction of the service's own, and runs
 * it again. The refusal undid the whole attempt, so it was as if it had not been made. Where there is more than can be
 * expired in a few seconds, such as after days of standstill, it goes on behind the clock instead, as do others for a while; at once
 * where somebody has locked what is due, or nearly at once where it is of organizations that the viewer has no part in.
 * @param attempt is given the value of `plat.stale_reads` for its transaction, which is part of the transaction: a pooler may hand on the connection after it
 */
export async function afterExpiry<T>(
  session: Session,
  deadlines: Deadlines | undefined,
  attempt: (stale?: Stale) => Promise<T>,
): Promise<T> {
  if (deadlines === undefined) return attempt();
  let stale: Stale | undefined;
  /** When it began to wait for its own organizations, and for others. */
  const began: { own?: number; others?: number } = {};
  for (;;) {
    let whose: { organizationId: string; own: boolean };
    try {
      return await attempt(stale);
    } catch (error) {
      if (sqlState(error) !== deadlines.due) throw error;
      whose = JSON.parse((error as DatabaseError).detail!);
      if (session.client.getTransactionStatus() !== "I") await session.send([{ text: "rollback" }], true);
    }
    const now = performance.now();
    const { key, kind, patienceMs, longest } = whose.own
      ? ({
          key: whose.organizationId,
          kind: "own",
          patienceMs: deadlines.patienceMs,
          longest: deadlines.patienceMs,
        } as const)
      : ({ key: others, kind: "others", patienceMs: patienceForOthersMs, longest: pauseMs } as const);
    began[kind] ??= now;
    if (now - began[kind] > patienceMs) readStale(deadlines, key, longest);
    if (!mayReadStale(deadlines, key) && !(await expire(session, deadlines, whose)))
      readStale(deadlines, key, pauseMs);
    if (mayReadStale(deadlines, key)) {
      // Behind with its own, it does not wait for others either.
      stale = whose.own ? "on" : others;
      if (whose.own) return attempt(stale);
    }
  }
}

/** Whether nothing that is locked was in the way. */
async function expire(
  session: Session,
  { expire: text }: Deadlines,
  { organizationId, own }: { organizationId: string; own: boolean },
): Promise<boolean> {
  try {
    const { rows } = await session.send([{ text, values: [organizationId, own], key: text }], true);
    return Number((rows as unknown[][])[0]![0]) >= 0;
  } catch (error) {
    if (sqlState(error) === LOCK_NOT_AVAILABLE) return false;
    if (isRetryable(error)) return true; // somebody else was in the way, and the next round tries again
    throw error;
  }
}

function mayReadStale(deadlines: Deadlines, key: string): boolean {
  const until = staleUntil.get(deadlines)?.get(key) ?? 0;
  if (until > performance.now()) return true;
  staleUntil.get(deadlines)?.delete(key);
  return false;
}

function readStale(deadlines: Deadlines, key: string, forMs: number): void {
  if (!staleUntil.has(deadlines)) staleUntil.set(deadlines, new Map());
  const organizations = staleUntil.get(deadlines)!;
  const now = performance.now();
  for (const [other, until] of organizations) if (until <= now) organizations.delete(other);
  organizations.set(key, now + forMs);
}
