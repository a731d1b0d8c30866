import { readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { processName } from "./incoming.ts";

/** Unfinished files of a folder: those with the prefix, or those that were not written to since. */
export type Leftovers = { name: string } | { before: Date };

/** Removes files that dead processes left behind. */
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

/**
 * Removes uploads of dead processes of this machine; called at start, before uploads are accepted.
 * @param folder the folder of temporary files, which other processes may share
 */
export async function removeLeftoversOfDead(folder: string): Promise<void> {
  const [, machine] = /^(upload-\w+-)/.exec(processName)!;
  const files = await readdir(folder).catch(() => []);
  for (const file of files.filter((name) => name.endsWith(".part") && name.startsWith(machine!))) {
    const pid = Number(file.slice(machine!.length).split(".")[0]);
    if (pid === process.pid || !isAlive(pid)) await rm(join(folder, file), { force: true });
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}
