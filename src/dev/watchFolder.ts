import { watch } from "node:fs";
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";

/** Editors write in several steps. */
const expiryMs = 40;
/** For file systems that tell nothing, and editors that put a new file in the place of the old one. */
const lookEveryMs = 1000;

/**
 * Calls back soon after a file of SQL below a folder was saved, added or removed.
 * @returns what stops it.
 */
export async function watchFolder(folder: string, changed: () => void): Promise<() => void> {
  let last = await stateOf(folder);
  let timer: NodeJS.Timeout | undefined;
  let looking = false;
  const look = async () => {
    if (looking) return;
    looking = true;
    const now = await stateOf(folder).finally(() => (looking = false));
    if (now === last) return;
    last = now;
    changed();
  };
  const soon = () => {
    clearTimeout(timer);
    timer = setTimeout(() => void look(), expiryMs);
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
      // It may go while we look.
      const found = await stat(join(folder, name)).catch(() => undefined);
      return `${name} ${found?.mtimeMs} ${found?.size} ${found?.ino}`;
    }),
  );
  return states.join("\n");
}
