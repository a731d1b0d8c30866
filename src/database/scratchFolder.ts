/** Folders of databases that live for minutes. */
import { access, chmod, constants, mkdtemp, readdir, readlink, stat, statfs } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { removeDataDir } from "./dataDirs.ts";
import { stopLeftover } from "./postmaster.ts";

const memory = "/dev/shm";
const gigabyte = 2 ** 30;
const day = 24 * 3_600_000;

/**
 * An empty folder. Whoever makes it removes it, with `removeDataDir`.
 * @param onDisk where programs are run from it, too, which memory may forbid.
 */
export async function scratchFolder(name: string, { onDisk = false } = {}): Promise<string> {
  const maker = `${process.pid}n${await processNamespace()}`;
  const folder = await mkdtemp(join(onDisk ? tmpdir() : await place(), `plat-${name}-${maker}-`));
  // Started by root, the database runs as another user, who has to pass through.
  await chmod(folder, 0o711);
  return folder;
}

/** Stops and removes what processes have left behind that were killed. */
export async function removeLeftoverFolders(): Promise<void> {
  for (const parent of new Set([await place(), tmpdir()])) await removeLeftovers(parent);
}

async function removeLeftovers(parent: string): Promise<void> {
  const here = await processNamespace();
  for (const name of await readdir(parent)) {
    const [, pid, namespace] = /^plat-[a-z]+-(\d+)n(\d+)-\w{6}$/.exec(name) ?? [];
    if (!pid) continue;
    const folder = join(parent, name);
    const found = await stat(folder).catch(() => undefined);
    if (!found || found.uid !== process.getuid?.()) continue;
    // Numbers of processes elsewhere say nothing here.
    if (namespace === here ? isAlive(Number(pid)) : Date.now() - found.mtimeMs < day) continue;
    await stopLeftover(join(folder, "postgres", "data"));
    await removeDataDir(folder);
  }
}

/**
 * In memory where there is room: cloning a database makes two thousand files, which takes a processor up to a second where they
 * lie on a disk, and a tenth of one in memory. A cluster whose databases come and go takes some 500 MB. Otherwise in the system's
 * temporary folder.
 */
async function place(): Promise<string> {
  try {
    await access(memory, constants.W_OK | constants.X_OK);
    const { bavail, bsize } = await statfs(memory);
    if (bavail * bsize >= gigabyte && process.availableMemory() >= 2 * gigabyte) return memory;
  } catch {
    // There is no such folder, as on any system but Linux.
  }
  return tmpdir();
}

/** Containers may share folders, but count their processes each for itself. */
async function processNamespace(): Promise<string> {
  const text = await readlink("/proc/self/ns/pid").catch(() => "");
  return /\d+/.exec(text)?.[0] ?? "0";
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}
