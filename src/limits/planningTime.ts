/** The time limit for planning an operation. */
import { cpuMs } from "../base/cpuTime.ts";

/** CPU time for planning an operation (ms). A wide operation within the limits can take a second the first time. */
export const PLANNING_MS = 3_000;
/** Elapsed time (ms) of a second attempt, if the operating system gave most of the time to other processes. */
const AGAIN_MS = 60_000;

/** Whether planning was aborted for its duration. Grafast marks the error with a symbol that it does not export. */
export const isPlanningTimeout = (extensions: object): boolean =>
  Object.getOwnPropertySymbols(extensions).some(({ description }) => description === "timeout");

/** Errors of operations whose planning took too much CPU time. Grafast keeps and throws them again for a minute. */
const slow = new WeakSet<Error>();

/** The part of Grafast's event that has its time limits. */
interface PlanEvent {
  options: { timeouts?: object };
}

/**
 * Plans an operation within `PLANNING_MS`. Grafast limits elapsed time, and then refuses the operation for a minute; on a
 * busy machine this would refuse small operations too. So the operation is planned again unless it was planning that
 * took the time.
 * @param longestMs CPU time
 * @throws SafeError if planning takes too long
 */
export function planInTime<Plan>(next: () => Plan, event: PlanEvent, longestMs = PLANNING_MS): Plan {
  const began = cpuMs();
  try {
    return next();
  } catch (error) {
    const { extensions } = error as { extensions?: object };
    if (!extensions || !isPlanningTimeout(extensions)) throw error;
    if (cpuMs() - began > longestMs) slow.add(error as Error);
    if (slow.has(error as Error)) throw error;
    event.options = { ...event.options, timeouts: { ...event.options.timeouts, planning: AGAIN_MS } };
    return next();
  }
}
