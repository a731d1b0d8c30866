/** Resources of processes, as reported by Linux; NaN on other systems. */
import { readdir, readFile } from "node:fs/promises";

/** Microseconds of CPU time of a process, with all its threads. */
export async function cpuOf(pid: number): Promise<number> {
  try {
    const threads = await readdir(`/proc/${pid}/task`);
    const times = await Promise.all(
      threads.map((thread) => readFile(`/proc/${pid}/task/${thread}/schedstat`, "utf8").catch(() => "0")),
    );
    return times.reduce((sum, text) => sum + Number(text.split(" ", 1)[0]) / 1000, 0);
  } catch {
    return Number.NaN;
  }
}

/** Microseconds of CPU time of each process. */
export async function cpuOfEach(pids: readonly number[]): Promise<Map<number, number>> {
  return new Map(await Promise.all(pids.map(async (pid) => [pid, await cpuOf(pid)] as const)));
}

/** CPU time since an earlier measurement; for processes that were started later, all of it. */
export const since = (before: ReadonlyMap<number, number>, after: ReadonlyMap<number, number>): number =>
  [...after].reduce((sum, [pid, time]) => sum + time - (before.get(pid) ?? 0), 0);

/** Megabytes of memory of a process: current, and peak. */
export async function memoryOf(pid: number): Promise<{ now: number; most: number }> {
  const status = await readFile(`/proc/${pid}/status`, "utf8").catch(() => "");
  const of = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, "m").exec(status)?.[1]) / 1024;
  return { now: of("VmRSS"), most: of("VmHWM") };
}
