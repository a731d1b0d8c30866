/**
 * Pauses between attempts, in milliseconds: each twice as long as the one before, up to the longest. Each is made shorter by chance, by up
 * to a half, so that many processes that lost the same server do not come back in the same moment.
 */
export function backoff(firstMs = 100, longestMs = 5_000) {
  let next = firstMs;
  return {
    /** The next pause. */
    pause(): number {
      const pause = next * (0.5 + Math.random() / 2);
      next = Math.min(longestMs, next * 2);
      return pause;
    },
    /** After a success: the next pause is the first one again. */
    reset(): void {
      next = firstMs;
    },
  };
}
