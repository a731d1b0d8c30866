/** The memory of a process and its child processes, without PostgreSQL. */
import { readdirSync, readFileSync } from "node:fs";

/** PERF: these are no files on a disk; to wait for each of them, many times a second, takes a core. */
function tell(file: string): string {
  try {
    return readFileSync(`/proc/${file}`, "utf8");
  } catch {
    return ""; // the process has ended meanwhile
  }
}

/** PERF: looking at every process of the machine for its parent takes ten times as long. */
function childrenOf(pid: number): number[] {
  let threads: string[];
  try {
    threads = readdirSync(`/proc/${pid}/task`);
  } catch {
    return [];
  }
  const children = threads.flatMap((thread) => tell(`${pid}/task/${thread}/children`).match(/\d+/g) ?? []);
  return children.map(Number).filter((child) => tell(`${child}/comm`) !== "postgres\n");
}

/** Resident memory in bytes; undefined where the system does not tell (it takes Linux) or the process is gone. */
export function residentMemory(pid: number): number | undefined {
  if (process.platform !== "linux") return undefined;
  const resident = (one: number) =>
    Number(/^VmRSS:\s+(\d+) kB/m.exec(tell(`${one}/status`))?.[1] ?? 0) * 1024;
  const own = resident(pid);
  if (own === 0) return undefined;
  const tree = childrenOf(pid);
  for (const one of tree) tree.push(...childrenOf(one));
  return tree.reduce((sum, one) => sum + resident(one), own);
}
