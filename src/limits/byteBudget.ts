/** A budget of bytes on their way in, with a share for each sender; who finds it used up waits. */
import { CodedError } from "../errors.ts";

export interface BudgetLimits {
  /** Bytes of all together that are on their way. */
  readonly total: number;
  /** Of one viewer, or of one network of strangers. */
  readonly ofOne: number;
  /** Of all strangers together. */
  readonly ofStrangers: number;
  /** So few never wait, nor are they counted. */
  readonly free: number;
}

/** Requests of one sender that wait; they are slowed down, not refused. */
const WAITING = 16;
/** How long one waits (ms). */
const PATIENCE = 20_000;

export interface Sender {
  readonly userId: string | null;
  /** The network of a stranger. */
  readonly network: string;
}

export type ByteBudget = ReturnType<typeof createByteBudget>;

/** Counts the bytes that are on their way in. */
export function createByteBudget(limits: BudgetLimits, patience = PATIENCE) {
  let total = 0;
  let ofStrangers = 0;
  const ofEach = new Map<string, number>();
  const waiting = new Set<{ key: string; tryAgain(): boolean }>();

  function take(bytes: number, key: string, isStranger: boolean): (() => void) | undefined {
    const own = ofEach.get(key) ?? 0;
    const strangers = isStranger ? bytes : 0;
    const fits =
      own + bytes <= limits.ofOne &&
      total + bytes <= limits.total &&
      ofStrangers + strangers <= limits.ofStrangers;
    if (!fits) return undefined;
    total += bytes;
    ofStrangers += strangers;
    ofEach.set(key, own + bytes);
    let taken = true;
    return () => {
      if (!taken) return;
      taken = false;
      total -= bytes;
      ofStrangers -= strangers;
      const left = ofEach.get(key)! - bytes;
      if (left === 0) ofEach.delete(key);
      else ofEach.set(key, left);
      for (const one of waiting) if (one.tryAgain()) waiting.delete(one);
    };
  }

  return {
    /**
     * Waits until there is room for so many bytes.
     * @param bytes as many as it may become
     * @returns gives the room back, once
     * @throws CodedError RATE_LIMITED where too many of the same sender wait, or one waits too long
     */
    async take(bytes: number, { userId, network }: Sender): Promise<() => void> {
      if (bytes <= limits.free) return () => {};
      const key = userId ?? `network ${network}`;
      const attempt = () => take(bytes, key, userId === null);
      const given = attempt();
      if (given) return given;
      let ahead = 0;
      for (const one of waiting) if (one.key === key) ahead++;
      if (ahead >= WAITING) throw tooMany();
      const { promise, resolve, reject } = Promise.withResolvers<() => void>();
      const entry = {
        key,
        tryAgain: () => {
          const later = attempt();
          if (later) resolve(later);
          return later !== undefined;
        },
      };
      waiting.add(entry);
      const timer = setTimeout(() => {
        waiting.delete(entry);
        reject(tooMany());
      }, patience);
      return promise.finally(() => clearTimeout(timer));
    },
  };
}

const tooMany = () =>
  new CodedError(
    "RATE_LIMITED",
    "Too many large requests are being read at the moment; send this one again in a second.",
    { retryAfterSeconds: 1 },
  );
