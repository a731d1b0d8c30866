import { readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";

/** Unfinished files of a folder: those whose names begin so, or to which nobody has written since. */
export type Leftovers = { name: string } | { before: Date };

/** Removes the files that processes left behind when they died. */
export async function removeLeftovers(folder: string, which: Leftovers): Promise<void> {
  const files = await readdir(folder).catch(() => []);
  for (const file of files.filter((name) => name.endsWith(".part"))) {
    const path = join(folder, file);
    const isOver = "name" in which ? file.startsWith(which.name) : await isOlder(path, which.before);
    if (isOver) await rm(path, { force: true });
  }
}

async function isOlder(path: string, before: Date): Promise<boolean> {
  const found = await stat(path).catch(() => undefined);
  return found !== undefined && found.mtime < before;
}
