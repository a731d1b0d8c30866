/** Folders of short-lived databases. */
import { access, chmod, constants, mkdtemp, readdir, readlink, stat, statfs } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { removeDataDir } from "./dataDirs.ts";
import { stopLeftover } from "./postmaster.ts";

const memory = "/dev/shm";
const gigabyte = 2 ** 30;
const day = 24 * 3_600_000;

/**
 * Creates an empty folder. The caller removes it with `removeDataDir`.
 * @param onDisk if programs are run from it, which memory file systems may forbid.
 */
export async function scratchFolder(name: string, { onDisk = false } = {}): Promise<string> {
  const maker = `${process.pid}n${await processNamespace()}`;
  const folder = await mkdtemp(join(onDisk ? tmpdir() : await place(), `plat-${name}-${maker}-`));
  // If root starts the database, it runs as another user, who must be able to traverse the folder.
  await chmod(folder, 0o711);
  return folder;
}

/** Stops and removes leftovers of killed processes. */
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
    // Pids of other machines mean nothing here.
    if (namespace === here ? isAlive(Number(pid)) : Date.now() - found.mtimeMs < day) continue;
    await stopLeftover(join(folder, "postgres", "data"));
    await removeDataDir(folder);
  }
}

/**
 * In memory if there is space: cloning a database creates two thousand files, which takes up to a second of CPU time
 * on disk and a tenth of that in memory. A cluster whose databases come and go takes some 500 MB. Otherwise in the
 * system's temporary folder.
 */
async function place(): Promise<string> {
  try {
    await access(memory, constants.W_OK | constants.X_OK);
    const { bavail, bsize } = await statfs(memory);
    if (bavail * bsize >= gigabyte && process.availableMemory() >= 2 * gigabyte) return memory;
  } catch {
    // Only Linux has such a folder.
  }
  return tmpdir();
}

/** Containers may share folders but have separate pids. */
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
