import { readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { processName } from "./incoming.ts";

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

/**
 * Removes what uploads of dead processes of this machine left behind; done when a process starts, before it takes any in.
 * @param folder where content on its way in rests, which other processes may use as well
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
