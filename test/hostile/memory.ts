/** The memory of a process and of those that it has started, PostgreSQL apart. */
import { readdir, readFile } from "node:fs/promises";

/** Resident memory in bytes; undefined where the system does not tell (it takes Linux) or the process is gone. */
export async function residentMemory(pid: number): Promise<number | undefined> {
  const names = await readdir("/proc").catch(() => []);
  const processes = new Map<number, { parent: number; name: string }>();
  await Promise.all(
    names
      .filter((name) => /^\d+$/.test(name))
      .map(async (name) => {
        const status = await readFile(`/proc/${name}/stat`, "utf8").catch(() => "");
        const found = /^\d+ \((.*)\) \S (\d+) /s.exec(status);
        if (found) processes.set(Number(name), { name: found[1]!, parent: Number(found[2]) });
      }),
  );
  if (!processes.has(pid)) return undefined;
  const tree = [pid];
  for (const one of tree)
    for (const [child, { parent, name }] of processes)
      if (parent === one && name !== "postgres") tree.push(child);
  const sizes = await Promise.all(
    tree.map(async (one) => {
      const status = await readFile(`/proc/${one}/status`, "utf8").catch(() => "");
      return Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1] ?? 0) * 1024;
    }),
  );
  return sizes.reduce((sum, size) => sum + size, 0);
}
