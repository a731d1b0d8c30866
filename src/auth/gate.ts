/** Thrown by a gate whose queue is full. */
export class GateFull extends Error {
  constructor() {
    super("Too many are waiting already.");
    this.name = "GateFull";
  }
}

/**
 * Lets a bounded number of jobs run at once; others wait in order, a bounded number of them too.
 * @returns a function that runs a job when its turn comes, and throws GateFull when the queue is full
 */
export function createGate(atOnce: number, waitingAtMost: number): <T>(job: () => Promise<T>) => Promise<T> {
  let running = 0;
  const waiting: (() => void)[] = [];

  return async (job) => {
    if (running >= atOnce) {
      if (waiting.length >= waitingAtMost) throw new GateFull();
      // Whoever finishes hands its place over, so nobody can slip in between.
      await new Promise<void>((resolve) => waiting.push(resolve));
    } else running++;
    try {
      return await job();
    } finally {
      const next = waiting.shift();
      if (next) next();
      else running--;
    }
  };
}
