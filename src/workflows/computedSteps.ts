/**
 * Steps that need computation, and executions that waited for an event which has occurred. They are leased, computed
 * outside of any transaction (src/compute), and then applied.
 */
import { FairSemaphore } from "../admission/fairSemaphore.ts";
import type { Party } from "../admission/party.ts";
import type { Compute } from "../compute/computePool.ts";
import type { Computed } from "../compute/tasks.ts";
import type { Line } from "../database/listener.ts";
import type { Engine } from "../engines/engine.ts";
import { batch, keyOf, placeOf, type Computations, type DueStep, type StepItem } from "./steps.ts";

/**
 * Time limit for computing executions, including time in the queue; after that they are due again, even if their
 * worker is alive.
 */
const computeLeaseSeconds = 600;

/** Row of app_private.wake_executions. */
interface Woken {
  organization_id: string;
  step_id: string;
  execution_id: string;
  attempt: number;
  event_ids: string[];
  item: string;
}

/** All writes wait in one queue. */
const writers: Party = { group: "writers", key: "writers" };

export class ComputedSteps {
  readonly #engine: Engine;
  readonly #compute: Compute;
  readonly #computations: Computations;
  /** Results are written a few batches at a time, so that the pool has connections for other work. */
  readonly #writing: FairSemaphore;

  /** @param writersAtOnce maximum number of concurrent writes */
  constructor(engine: Engine, compute: Compute, computations: Computations, writersAtOnce: number) {
    this.#engine = engine;
    this.#compute = compute;
    this.#computations = computations;
    this.#writing = new FairSemaphore({ capacity: writersAtOnce });
  }

  /** Leases executions, computes their step and applies it; returns whether there were any. */
  async take(due: DueStep, holder: Line): Promise<boolean> {
    const { rows } = await this.#engine.pool.query<StepItem>(
      "select * from app_private.claim_step($1, $2, $3, $4, $5, make_interval(secs => $6))",
      [...placeOf(due), batch.COMPUTED, holder.id, computeLeaseSeconds],
    );
    if (rows.length === 0) return false;
    this.#begin(due.organization_id, keyOf(due), rows, holder, () => this.#carryOut(due, rows, holder));
    return true;
  }

  async #carryOut(due: DueStep, items: StepItem[], holder: Line): Promise<void> {
    const step = JSON.parse(items.find((row) => row.step !== null)!.step!) as { id: string };
    const results = await this.#compute.runTexts(
      due.organization_id,
      "step",
      step,
      items.map(({ item }) => item!),
    );
    await this.#write("select app_private.complete_step($1, $2, $3)", [
      step.id,
      `[${results.join(",")}]`,
      holder.id,
    ]);
  }

  /** Resumes executions whose awaited event has arrived; returns whether there was something to check. */
  async wake(): Promise<boolean> {
    const holder = this.#engine.holder();
    if (!holder) return false;
    const { rows } = await this.#engine.pool.query<Woken>(
      "select * from app_private.wake_executions($1, $2, make_interval(secs => $3), $4)",
      [batch.COMPUTED, holder.id, computeLeaseSeconds, this.#computations.busy()],
    );
    for (const [organization, woken] of Map.groupBy(rows, (row) => row.organization_id))
      this.#begin(organization, "wake", woken, holder, () => this.#decide(organization, woken, holder));
    return rows.length > 0;
  }

  /** The event with which an execution continues, if any. */
  async #decide(organization: string, woken: Woken[], holder: Line): Promise<void> {
    const texts = await this.#compute.runTexts(
      organization,
      "event",
      null,
      woken.map(({ item }) => item),
    );
    const results = woken.map(({ step_id, execution_id, attempt, event_ids }, place) => {
      const found = JSON.parse(texts[place]!) as Computed<number>;
      return {
        stepId: step_id,
        executionId: execution_id,
        attempt,
        eventIds: event_ids,
        ...("over" in found
          ? { error: found.over, code: "LIMIT_EXCEEDED" }
          : { eventId: event_ids[found.value] ?? null }),
      };
    });
    await this.#write("select app_private.complete_wakeups($1, $2)", [JSON.stringify(results), holder.id]);
  }

  async #write(statement: string, values: unknown[]): Promise<void> {
    await this.#writing.run(writers, () => this.#engine.pool.query(statement, values));
  }

  /** Processes leased executions; those that fail are released. */
  #begin(
    organization: string,
    key: string,
    executions: readonly { execution_id: string }[],
    holder: Line,
    work: () => Promise<void>,
  ): void {
    const ids = executions.map(({ execution_id }) => execution_id);
    const letGo = holder.hold();
    this.#computations.begin(organization, key, async () => {
      try {
        await work();
      } catch (error) {
        await this.#engine.pool
          .query("select app_private.release_executions($1, $2)", [ids, holder.id])
          .catch(() => this.#engine.renew());
        throw error;
      } finally {
        letGo();
      }
    });
  }
}
