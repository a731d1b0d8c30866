/** Retries of requests. */
export interface RetryOptions {
  /** Maximum number of attempts. Default: 4. */
  readonly attempts?: number;
  /** Maximum wait before the first retry, in milliseconds; it doubles with each. Default: 250. */
  readonly baseMs?: number;
  /** Maximum sum of all waits, in milliseconds. A longer `Retry-After` is not waited for. Default: 30,000. */
  readonly withinMs?: number;
}

/** The outcome of an attempt that may be retried. */
export interface Refusal<T> {
  /** Returns or throws the final result if there is no further attempt. */
  end(): T;
  /** The wait in milliseconds that the service requests. */
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
 * Milliseconds to wait before the retry: the requested wait, plus a random part of a time that doubles, so that many
 * clients do not return simultaneously.
 * @param failed number of failed attempts
 */
export function waitMs(
  failed: number,
  afterMs: number | undefined,
  { baseMs = 250 }: RetryOptions = {},
  random: () => number = Math.random,
): number {
  return (afterMs ?? 0) + random() * baseMs * 2 ** (failed - 1);
}

/** Waits. Rejects with the reason of the signal when it is aborted. */
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
 * Makes attempts until one returns a value.
 * @param attempt returns its value, or the refusal after which it is retried; errors that it throws end all attempts
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
