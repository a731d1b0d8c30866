/** A thread that computes; started and terminated by computePool.ts. */
import { parentPort, workerData } from "node:worker_threads";
import { lowerPriority } from "../base/priority.ts";
import { BudgetExceeded, endedMessage } from "./budget.ts";
import { tasks, type TaskName } from "./tasks.ts";

export interface ThreadData {
  /** Where the thread publishes the item it works on, for the pool that may have to terminate it. */
  progress: SharedArrayBuffer;
}

/** A part of a job. Values are JSON texts: they pass from the database to the thread and back without being parsed on the event loop. */
export interface Part {
  task: TaskName;
  shared: string;
  items: string[];
  /** Index of the first item within the whole job. */
  from: number;
  /** Indexes of items for which a thread was terminated. */
  over: number[];
  /** Milliseconds after which the thread takes no further item, so that other tenants get their turn. */
  sliceMs: number;
}

export type ThreadMessage = { ready: true } | { results: string[] } | { fault: string };

const { progress } = workerData as ThreadData;
const at = new Int32Array(progress);

// Also after the embedded database has closed.
lowerPriority(10);

function resultsOf({ task: name, shared, items, from, over, sliceMs }: Part): string[] {
  const task = tasks[name] as {
    run(shared: unknown, item: unknown): unknown;
    over(message: string, item: unknown): unknown;
  };
  const common: unknown = JSON.parse(shared);
  const results: string[] = [];
  const end = performance.now() + sliceMs;
  for (const [index, text] of items.entries()) {
    if (index > 0 && performance.now() > end) break;
    Atomics.store(at, 0, from + index);
    const item: unknown = JSON.parse(text);
    let result: unknown;
    if (over.includes(from + index)) result = task.over(endedMessage, item);
    else
      try {
        result = task.run(common, item);
      } catch (error) {
        if (!(error instanceof BudgetExceeded)) throw error;
        result = task.over(error.message, item);
      }
    results.push(JSON.stringify(result));
  }
  return results;
}

const say = (message: ThreadMessage) => parentPort!.postMessage(message);
parentPort!.on("message", (part: Part) => {
  try {
    say({ results: resultsOf(part) });
  } catch (error) {
    say({ fault: String((error as Error).stack ?? error) });
  }
});
say({ ready: true });
