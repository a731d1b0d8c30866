import { watch } from "node:fs";
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";

/** Milliseconds after which several writes of an editor count as one save. */
const expiryMs = 40;
/** For file systems without notifications, and editors that replace files. */
const lookEveryMs = 1000;

/**
 * Calls `changed` soon after an SQL file below a folder was saved, added or removed.
 * @returns a function that stops watching
 */
export async function watchFolder(folder: string, changed: () => void): Promise<() => void> {
  let last = await stateOf(folder);
  let timer: NodeJS.Timeout | undefined;
  let isChecking = false;
  const check = async () => {
    if (isChecking) return;
    isChecking = true;
    const now = await stateOf(folder).finally(() => (isChecking = false));
    if (now === last) return;
    last = now;
    changed();
  };
  const soon = () => {
    clearTimeout(timer);
    timer = setTimeout(() => void check(), expiryMs);
  };
  const watcher = watch(folder, { recursive: true }, soon);
  // Polling continues.
  watcher.on("error", () => undefined);
  const clock = setInterval(soon, lookEveryMs);
  return () => {
    watcher.close();
    clearInterval(clock);
    clearTimeout(timer);
  };
}

async function stateOf(folder: string): Promise<string> {
  const names = (await readdir(folder, { recursive: true })).filter((file) => file.endsWith(".sql"));
  const states = await Promise.all(
    names.toSorted().map(async (name) => {
      // It may be removed in the meantime.
      const found = await stat(join(folder, name)).catch(() => undefined);
      return `${name} ${found?.mtimeMs} ${found?.size} ${found?.ino}`;
    }),
  );
  return states.join("\n");
}
