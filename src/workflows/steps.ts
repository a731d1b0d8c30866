/** What the parts of the workflow runner have in common: steps that are due, how much of them is taken at a time, and what is left alone for a while. */
import { ComputeStopped, type Compute } from "../compute/pool.ts";
import { isRetryable } from "../database/databaseErrors.ts";
import type { Engine } from "../engines/engine.ts";

/** Executions per transaction. */
export const batch = { SQL: 500, COMPUTED: 200, CALL: 32 };

/** Batches of one organization that are computed, or wait for it, at a time. */
const batchesAtOnce = 2;
/** How long it leaves a step alone that it cannot take, through a fault of the service. */
const faultPauseMs = 10_000;

/** Row of app_private.due_workflow_steps. */
export interface DueStep {
  workflow_id: string;
  steps_revision: number;
  sequence: number;
  way: keyof typeof batch;
  organization_id: string;
}

/** What computing a step for an execution takes; texts are JSON that is not read here. */
export interface StepItem {
  execution_id: string;
  /** Null for an execution that has lost what it is about. */
  item: string | null;
  /** With the first one. */
  step: string | null;
}

export const placeOf = ({ workflow_id, steps_revision, sequence }: DueStep) => [
  workflow_id,
  steps_revision,
  sequence,
];
export const keyOf = (due: DueStep): string => placeOf(due).join(" ");

/** What failed through a fault of the service, and is left alone for a while. */
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

/** What is computed beside everything else, a few batches of each organization at a time: no transaction is open, and no lane is taken. */
export class Computations {
  readonly #engine: Engine;
  readonly #compute: Compute;
  readonly #faults: Faults;
  readonly #ended: () => void;
  /** Batches at a time, by organization. */
  readonly #batches = new Map<string, number>();

  /** @param ended called when a batch is over, done or not */
  constructor(engine: Engine, compute: Compute, faults: Faults, ended: () => void) {
    this.#engine = engine;
    this.#compute = compute;
    this.#faults = faults;
    this.#ended = ended;
  }

  /** Whether an organization may have another batch computed now. */
  hasRoom(organization: string): boolean {
    return (this.#batches.get(organization) ?? 0) < batchesAtOnce && !this.#compute.isSpent(organization);
  }

  /** Organizations that have had their share for the moment. */
  busy(): string[] {
    const full = [...this.#batches].filter(([, batches]) => batches >= batchesAtOnce).map(([id]) => id);
    return [...this.#compute.spent(), ...full];
  }

  /** @param key of what is left alone for a while where the work fails */
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
