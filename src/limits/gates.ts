import { FairGate } from "./fairGate.ts";

/** Operations of this cost and above wait for each other: their rows and answers are in memory at the same time. */
export const LARGE_COST = 5_000;

/** The places for operations in one process. */
export const gates = {
  /** Everything from the first look at a document to the end of its answer. Large bodies of those who wait are counted by bodyMemory.ts. */
  operations: new FairGate({
    atOnce: 64,
    perParty: 8,
    kept: 16,
    strangers: 16,
    waitingPerParty: 256,
    waitingStrangers: 512,
    patienceMs: 15_000,
  }),
  largeOperations: new FairGate({ atOnce: 4, perParty: 2, kept: 1, strangers: 2 }),
  /** The schema in a form that nobody asked for before: a long piece of work for the event loop, and hardly ever needed. */
  newIntrospections: new FairGate({ atOnce: 2, patienceMs: 15_000 }),
};

/**
 * The places of operations on a pool of connections.
 * @param poolSize what shares are of
 * @param atOnce what operations have of it; the rest is for finding out who asks
 */
export function connectionGate(poolSize: number, atOnce: number): FairGate {
  const share = (part: number) => Math.max(1, Math.floor(poolSize * part));
  return new FairGate({
    atOnce: Math.max(1, atOnce),
    perParty: share(0.4),
    kept: atOnce > 4 ? 2 : 0,
    strangers: share(0.3),
    patienceMs: 15_000,
  });
}
