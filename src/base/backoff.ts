/**
 * Delays between attempts, in milliseconds. Each is twice the previous one, up to a maximum, and is reduced by a
 * random amount of up to half, so that processes that lost the same server do not all reconnect at the same moment.
 */
export function backoff(firstMs = 100, longestMs = 5_000) {
  let next = firstMs;
  return {
    /** The next delay. */
    pause(): number {
      const pause = next * (0.5 + Math.random() / 2);
      next = Math.min(longestMs, next * 2);
      return pause;
    },
    /** Call after a success: the next delay is the first one again. */
    reset(): void {
      next = firstMs;
    },
  };
}
