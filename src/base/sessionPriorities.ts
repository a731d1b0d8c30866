import { readFileSync, writeFileSync } from "node:fs";

/** Milliseconds between two looks for new processes. */
const LOOK_EVERY_MS = 500;

/** Ids of children that were dealt with. */
type Known = Set<string>;

const childrenOf = (pid: number): string[] =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").split(" ").filter(Boolean);

/** Whether a process has started a session of its own, by the sixth field of its state; the second is its name. */
const leadsSession = (pid: string): boolean =>
  readFileSync(`/proc/${pid}/stat`, "utf8")
    .replace(/^.*\) /s, "")
    .split(" ", 4)[3] === pid;

/** Lowers the sessions of new children; the system accepts one at a time from users other than root. */
function lowerNew(pid: number, nice: number, known: Known): void {
  const children = childrenOf(pid);
  for (const child of known) if (!children.includes(child)) known.delete(child);
  for (const child of children) {
    if (known.has(child)) continue;
    try {
      // It has only just been started: the next look finds it.
      if (!leadsSession(child)) continue;
      writeFileSync(`/proc/${child}/autogroup`, `${nice}`);
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === "EAGAIN") return;
      // It has ended, or the system does not group by session.
    }
    known.add(child);
  }
}

/**
 * Lowers the priority of the sessions that the children of a process start. Linux divides the CPU among sessions
 * first ("autogroup" in sched(7)), and `nice` values only count within one; each process of PostgreSQL begins a session,
 * so ten busy connections would get ten times as much as this process with all its threads.
 * Best effort: has no effect on systems that do not group by session.
 * @param nice value of the sessions, at most 19
 * @returns ends it
 */
export function keepSessionsLow(pid: number, nice: number): () => void {
  const known: Known = new Set();
  const look = () => {
    try {
      lowerNew(pid, nice, known);
    } catch {
      // The process has ended, or the system does not list its children.
      clearInterval(timer);
    }
  };
  const timer = setInterval(look, LOOK_EVERY_MS).unref();
  look();
  return () => clearInterval(timer);
}
