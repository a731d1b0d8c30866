// oxlint-disable-next-line no-restricted-imports -- here it is
import { setTimeout as pause } from "node:timers/promises";

const longestPauseMs = 200;

/**
 * Calls `read` repeatedly until its result satisfies the condition, and returns it. All waiting in tests uses this
 * function: it has a time limit, reports the last result, and uses little CPU time.
 * @throws Error if the condition is not satisfied within the time limit.
 */
export async function until<T>(
  read: () => T | Promise<T>,
  isDone: (found: T) => unknown = Boolean,
  { withinMs = 20_000 }: { withinMs?: number } = {},
): Promise<T> {
  const began = performance.now();
  for (let pauseMs = 1; ; pauseMs = Math.min(2 * pauseMs, 20)) {
    const found = await read();
    if (await isDone(found)) return found;
    const waited = performance.now() - began;
    if (waited > withinMs)
      throw new Error(
        `The condition was not satisfied within ${withinMs} ms; last result: ${JSON.stringify(found, null, 2)}`,
      );
    // PERF: the pauses grow with the waiting time, up to a twentieth of it.
    await pause(Math.max(pauseMs, Math.min(waited / 20, longestPauseMs)));
  }
}
