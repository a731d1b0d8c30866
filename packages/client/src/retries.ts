/** When a request is sent again. */
export interface RetryOptions {
  /** How often a request is sent in all; 4 where omitted. */
  readonly attempts?: number;
  /** The longest wait before the first repeat, in milliseconds; it doubles with each; 250 where omitted. */
  readonly baseMs?: number;
  /** Milliseconds that all waits together may take: a longer `Retry-After` is not waited for; 30,000 where omitted. */
  readonly withinMs?: number;
}

/** What an attempt ended with, where it may be made again. */
export interface Refusal<T> {
  /** Gives what all ends with where it is not made again, or throws it. */
  end(): T;
  /** Milliseconds that the service asks to wait. */
  readonly afterMs?: number | undefined;
}

/** `Retry-After` in milliseconds: seconds, or a date. */
export function retryAfterMs(header: string | null, now = Date.now()): number | undefined {
  if (header === null || header.trim() === "") return undefined;
  const seconds = Number(header);
  const ms = Number.isNaN(seconds) ? Date.parse(header) - now : seconds * 1_000;
  return Number.isNaN(ms) ? undefined : Math.max(0, ms);
}

/**
 * Milliseconds to wait before the repeat: a random part of a time that doubles, so that many clients do not come back together; added to
 * what the service asks for.
 * @param failed how many attempts have failed
 */
export function waitMs(
  failed: number,
  afterMs: number | undefined,
  { baseMs = 250 }: RetryOptions = {},
  random: () => number = Math.random,
): number {
  return (afterMs ?? 0) + random() * baseMs * 2 ** (failed - 1);
}

/** Waits; ends early, with its reason, when the signal is aborted. */
export function pause(ms: number, signal?: AbortSignal | null): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const end = () => {
      clearTimeout(timer);
      reject(signal!.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", end);
      resolve();
    }, ms);
    signal?.addEventListener("abort", end, { once: true });
  });
}

/**
 * Makes attempts until one gives a value.
 * @param attempt gives its value, or the refusal after which the next one is made; what it throws ends all
 */
export async function withRetries<T>(
  attempt: () => Promise<{ value: T } | Refusal<T>>,
  options: RetryOptions | false,
  signal?: AbortSignal | null,
): Promise<T> {
  const { attempts = 4, withinMs = 30_000 } = options || { attempts: 1 };
  let waited = 0;
  for (let number = 1; ; number++) {
    const result = await attempt();
    if ("value" in result) return result.value;
    const ms = waitMs(number, result.afterMs, options || {});
    waited += ms;
    if (number >= attempts || waited > withinMs) return result.end();
    await pause(ms, signal);
  }
}
