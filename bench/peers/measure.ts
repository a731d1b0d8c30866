/** What processes take of the machine, as Linux tells it; NaN elsewhere. */
import { readdir, readFile } from "node:fs/promises";

/** Microseconds of CPU that a process has taken, all its threads. */
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

/** Microseconds of CPU of each of these processes. */
export async function cpuOfEach(pids: readonly number[]): Promise<Map<number, number>> {
  return new Map(await Promise.all(pids.map(async (pid) => [pid, await cpuOf(pid)] as const)));
}

/** What processes have taken since; those that began meanwhile, all of it. */
export const since = (before: ReadonlyMap<number, number>, after: ReadonlyMap<number, number>): number =>
  [...after].reduce((sum, [pid, time]) => sum + time - (before.get(pid) ?? 0), 0);

/** Megabytes of memory that a process has, and the most it had. */
export async function memoryOf(pid: number): Promise<{ now: number; most: number }> {
  const status = await readFile(`/proc/${pid}/status`, "utf8").catch(() => "");
  const of = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, "m").exec(status)?.[1]) / 1024;
  return { now: of("VmRSS"), most: of("VmHWM") };
}
