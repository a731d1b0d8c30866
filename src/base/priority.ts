import { getPriority, setPriority } from "node:os";

/**
 * Has a process or a thread yield to the event loop where both want the same processor: it answers everybody. As little as the
 * system allows it; without effect where it does not.
 * @param by how much nicer than the caller, as the system counts it, of 19 at most
 * @param pid of a process that the caller has started, before it starts others, which inherit it; the calling thread where
 * omitted, which only Linux tells from its process
 */
export function lowerPriority(by: number, pid?: number): void {
  if (pid === undefined && process.platform !== "linux") return;
  try {
    setPriority(pid ?? 0, Math.min(19, getPriority() + by));
  } catch {
    // It is a preference.
  }
}
