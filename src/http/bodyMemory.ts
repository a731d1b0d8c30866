/**
 * Memory for bodies: nobody's large bodies take what others need, and reading one large body after another leaves the event
 * loop to others in between.
 */
import { setTimeout as delay } from "node:timers/promises";
import { CodedError } from "../errors.ts";

export const bodyMemory = {
  /** Bytes of all bodies together that are being read or answered. */
  total: 96_000_000,
  /** Of one viewer, or of one network of strangers. */
  ofOne: 24_000_000,
  /** Of all strangers together. */
  ofStrangers: 24_000_000,
  /** Smaller bodies are never refused, nor counted. */
  free: 16_384,
} as const;

/** From so many bytes on a body waits its turn. */
const LARGE = 256_000;
/** The part of the time that large bodies may take from the event loop: a quarter. */
const PAUSE_FACTOR = 3;

/** Requests of one viewer or network that wait for memory; their senders are slowed down, not refused. */
const WAITING = 16;
/** How long one waits (ms). */
const PATIENCE = 20_000;

interface Sender {
  readonly userId: string | null;
  /** The network of a stranger. */
  readonly network: string;
}

/** Counts what bodies take in memory. */
export function createBodyMemory(
  limits: { [K in keyof typeof bodyMemory]: number } = bodyMemory,
  patience = PATIENCE,
) {
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
     * Waits until there is memory for a body.
     * @param bytes as many as the body may have
     * @returns gives the memory back, once
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

/** Bytes a second of large bodies: to decrypt, read and parse them takes a quarter of the event loop at this rate. */
const READ_RATE = 30_000_000;
let freeAt = 0;

/** Waits until a body of so many bytes may be read; meanwhile its sender is slowed down, not refused. */
export async function paceLarge(bytes: number): Promise<void> {
  if (bytes < LARGE) return;
  const now = performance.now();
  const from = Math.max(freeAt, now);
  freeAt = from + (bytes / READ_RATE) * 1_000;
  if (from > now) await delay(from - now);
}

let last: Promise<unknown> = Promise.resolve();

/** Does the work on a body of so many bytes: at once where it is small, else in its turn. */
export async function inTurnBySize<T>(bytes: number, work: () => T): Promise<T> {
  if (bytes < LARGE) return work();
  const before = last;
  const turn = Promise.withResolvers<void>();
  last = turn.promise;
  await before;
  const began = performance.now();
  try {
    return work();
  } finally {
    void delay((performance.now() - began) * PAUSE_FACTOR).then(turn.resolve);
  }
}
