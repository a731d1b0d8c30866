// oxlint-disable-next-line no-restricted-imports -- here it is
import { setTimeout as pause } from "node:timers/promises";

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
  const end = performance.now() + withinMs;
  for (let pauseMs = 1; ; pauseMs = Math.min(2 * pauseMs, 20)) {
    const found = await look();
    if (await isSo(found)) return found;
    if (performance.now() > end)
      throw new Error(`It was not so within ${withinMs} ms; at last: ${JSON.stringify(found, null, 2)}`);
    await pause(pauseMs);
  }
}
