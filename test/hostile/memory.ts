/** The memory of a process and its child processes, without PostgreSQL. */
import { readdirSync, readFileSync } from "node:fs";

/**
 * PERF: synchronous, because these are not files on a disk; waiting for each of them many times a second takes a
 * whole core.
 */
function tell(file: string): string {
  try {
    return readFileSync(`/proc/${file}`, "utf8");
  } catch {
    return ""; // the process has ended meanwhile
  }
}

/** PERF: reading every process of the machine to find its parent takes ten times as long. */
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

/** Resident memory in bytes; undefined on systems other than Linux, or if the process has exited. */
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
