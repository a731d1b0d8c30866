/** The memory of a process and of those that it has started, PostgreSQL apart. */
import { readdirSync, readFileSync } from "node:fs";

/** PERF: these are no files on a disk; to wait for each of hundreds, many times a second, takes a core. */
function tell(file: string): string {
  try {
    return readFileSync(`/proc/${file}`, "utf8");
  } catch {
    return ""; // the process has ended meanwhile
  }
}

/** Resident memory in bytes; undefined where the system does not tell (it takes Linux) or the process is gone. */
export function residentMemory(pid: number): number | undefined {
  if (process.platform !== "linux") return undefined;
  const processes = new Map<number, { parent: number; name: string }>();
  for (const name of readdirSync("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    const found = /^\d+ \((.*)\) \S (\d+) /s.exec(tell(`${name}/stat`));
    if (found) processes.set(Number(name), { name: found[1]!, parent: Number(found[2]) });
  }
  if (!processes.has(pid)) return undefined;
  const tree = [pid];
  for (const one of tree)
    for (const [child, { parent, name }] of processes)
      if (parent === one && name !== "postgres") tree.push(child);
  return tree.reduce(
    (sum, one) => sum + Number(/^VmRSS:\s+(\d+) kB/m.exec(tell(`${one}/status`))?.[1] ?? 0) * 1024,
    0,
  );
}
