import type { DatabaseError } from "pg";
import { isRetryable, LOCK_NOT_AVAILABLE, sqlState } from "./databaseErrors.ts";
import type { Session } from "./session.ts";

/**
 * Expiry before reads: records past their deadline are expired before anybody reads them; see
 * migrations/objects/01-foundation/deadlines.sql.
 */
export interface Deadlines {
  /** SQL expression that raises {@link Deadlines.due} if something is due. */
  readonly probe: string;
  /** SQLSTATE raised by it; DETAIL is `{ "organizationId", "own" }`. */
  readonly due: string;
  /**
   * Statement that expires a batch, given these two; returns the number of expired records, negative if all are
   * locked.
   */
  readonly expire: string;
  /** Milliseconds that a statement waits for expiry in the viewer's organizations; then it reads stale data. */
  readonly patienceMs: number;
}

/** The deadlines of the service's own schema. */
export const serviceDeadlines: Deadlines = {
  probe: "app_private.raise_when_due()",
  due: "PLAT1",
  expire: "select app_private.expire_deadlines($1, $2)",
  patienceMs: 5000,
};

/**
 * Milliseconds for which a statement expires records of organizations that its viewer does not belong to; each round
 * takes at most 20 ms.
 */
const patienceForOthersMs = 40;
/** Milliseconds for which nobody expires records for others after there were too many, or they were locked. */
const pauseMs = 1000;

/** Represents all organizations that a viewer does not belong to. */
const others = "others";

/** Which deadlines a transaction ignores: all, or those of organizations that the viewer does not belong to. */
export type Stale = "on" | typeof others;

/** Organization → until when nobody waits for it, after a wait has just timed out. */
const staleUntil = new WeakMap<Deadlines, Map<string, number>>();

/**
 * Runs a statement. If the database reports that something is due, expires it in a separate transaction and runs the
 * statement again; the refusal rolled back the entire attempt. If there is more than can be expired in a few seconds,
 * for example after days of downtime, the statement reads stale data, as do others for a while; at once if someone
 * has locked what is due, or almost at once if it belongs to organizations that the viewer is not part of.
 * @param attempt gets the value of `plat.stale_reads` for its transaction; a session must not keep it, since a pooler
 * may pass it on
 */
export async function afterExpiry<T>(
  session: Session,
  deadlines: Deadlines | undefined,
  attempt: (stale?: Stale) => Promise<T>,
): Promise<T> {
  if (deadlines === undefined) return attempt();
  let stale: Stale | undefined;
  /** When it started to wait for its own organizations, and for others. */
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
      // A statement that reads stale data of its own organizations does not wait for others either.
      stale = whose.own ? "on" : others;
      if (whose.own) return attempt(stale);
    }
  }
}

/** Whether no lock was in the way. */
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
