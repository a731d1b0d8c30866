// oxlint-disable-next-line no-restricted-imports -- here it is
import { setTimeout as pause } from "node:timers/promises";

const longestPauseMs = 200;

/**
 * Looks again and again until what is found is as it should be, and gives it. Waiting in tests goes through here: it ends, says what
 * was found last, and leaves the processor to those that are waited for.
 * @throws Error when it is not so within that time.
 */
export async function until<T>(
  look: () => T | Promise<T>,
  isSo: (found: T) => unknown = Boolean,
  { withinMs = 20_000 }: { withinMs?: number } = {},
): Promise<T> {
  const began = performance.now();
  for (let pauseMs = 1; ; pauseMs = Math.min(2 * pauseMs, 20)) {
    const found = await look();
    if (await isSo(found)) return found;
    const waited = performance.now() - began;
    if (waited > withinMs)
      throw new Error(`It was not so within ${withinMs} ms; at last: ${JSON.stringify(found, null, 2)}`);
    // PERF: what takes seconds is looked at less and less often, at the price of a twentieth of the wait.
    await pause(Math.max(pauseMs, Math.min(waited / 20, longestPauseMs)));
  }
}
