/** Shared by the parts of the workflow runner: due steps, batch sizes and back-off. */
import { ComputeStopped, type Compute } from "../compute/computePool.ts";
import { isRetryable } from "../database/databaseErrors.ts";
import type { Engine } from "../engines/engine.ts";

/** Executions per transaction. */
export const batch = { SQL: 500, COMPUTED: 200, CALL: 32 };

/** Maximum number of batches per organization that are computed or queued. */
const batchesAtOnce = 2;
/** Milliseconds for which a step is suspended after an internal error. */
const faultPauseMs = 10_000;

/** Row of app_private.due_workflow_steps. */
export interface DueStep {
  workflow_id: string;
  steps_revision: number;
  sequence: number;
  way: keyof typeof batch;
  organization_id: string;
}

/** Input for computing a step of an execution; texts are JSON that is not parsed here. */
export interface StepItem {
  execution_id: string;
  /** Null if the subject of the execution no longer exists. */
  item: string | null;
  /** Only with the first one. */
  step: string | null;
}

/** The key of a due step: workflow, revision of its steps, and sequence number. */
export const placeOf = ({ workflow_id, steps_revision, sequence }: DueStep) => [
  workflow_id,
  steps_revision,
  sequence,
];
/** The same key as text, for maps. */
export const keyOf = (due: DueStep): string => placeOf(due).join(" ");

/** Steps that are suspended after an internal error. */
export class Faults {
  readonly #pausedUntil = new Map<string, number>();

  isPaused(key: string): boolean {
    return (this.#pausedUntil.get(key) ?? 0) > performance.now();
  }

  note(key: string): void {
    this.#pausedUntil.set(key, performance.now() + faultPauseMs);
  }

  forget(key: string): void {
    this.#pausedUntil.delete(key);
  }
}

/** Concurrent computations, limited per organization. No transaction is open and no lane is occupied meanwhile. */
export class Computations {
  readonly #engine: Engine;
  readonly #compute: Compute;
  readonly #faults: Faults;
  readonly #ended: () => void;
  /** Number of batches in progress, by organization. */
  readonly #batches = new Map<string, number>();

  /** @param ended called when a batch has ended, successful or not */
  constructor(engine: Engine, compute: Compute, faults: Faults, ended: () => void) {
    this.#engine = engine;
    this.#compute = compute;
    this.#faults = faults;
    this.#ended = ended;
  }

  /** Whether another batch of the organization may be computed now. */
  hasRoom(organization: string): boolean {
    return (this.#batches.get(organization) ?? 0) < batchesAtOnce && !this.#compute.isSpent(organization);
  }

  /** Organizations that have used up their share for the moment. */
  busy(): string[] {
    const full = [...this.#batches].filter(([, batches]) => batches >= batchesAtOnce).map(([id]) => id);
    return [...this.#compute.spent(), ...full];
  }

  /** @param key what is suspended if the work fails */
  begin(organization: string, key: string, work: () => Promise<void>): void {
    this.#batches.set(organization, (this.#batches.get(organization) ?? 0) + 1);
    this.#engine.beside(async () => {
      try {
        await work();
      } catch (error) {
        if (error instanceof ComputeStopped || isRetryable(error)) return;
        this.#faults.note(key);
        this.#engine.report(error);
      } finally {
        const left = this.#batches.get(organization)! - 1;
        if (left > 0) this.#batches.set(organization, left);
        else this.#batches.delete(organization);
        this.#ended();
      }
    });
  }
}
