import { getPriority, setPriority } from "node:os";

/**
 * Lowers the priority of a process or thread, so that the event loop, which serves all clients, gets the CPU first.
 * Best effort: has no effect on systems that do not support it.
 * @param by increment of the nice value, at most 19
 * @param pid a process started by the caller, before it starts others, which inherit the value; default: the calling
 * thread, which only Linux tells apart from its process
 */
export function lowerPriority(by: number, pid?: number): void {
  if (pid === undefined && process.platform !== "linux") return;
  try {
    setPriority(pid ?? 0, Math.min(19, getPriority() + by));
  } catch {
    // Best effort.
  }
}
