/**
 * Executes due workflow steps; see migrations/objects/08-workflows/workflow-engine.sql. The database makes all
 * decisions; this process evaluates conditions, renders texts (src/compute) and makes external calls, outside of any
 * transaction. Any number of processes can run it. If a process dies, its leases become due again once its connection
 * is gone and is not reopened.
 */
import type { Compute } from "../compute/computePool.ts";
import { isRetryable } from "../database/databaseErrors.ts";
import { Engine, type EngineConnections, type Loop } from "../engines/engine.ts";
import { createDraftProvider, type DraftProvider } from "../providers/drafts/index.ts";
import type { SmsProvider } from "../providers/sms/index.ts";
import type { Seal } from "../secrets/seal.ts";
import { Calls, takeStep } from "./calls.ts";
import { ComputedSteps } from "./computedSteps.ts";
import { batch, Computations, Faults, keyOf, type DueStep } from "./steps.ts";

export interface WorkflowsOptions extends EngineConnections {
  seal: Seal;
  /** Whether URLs may point to this machine. */
  loopback: boolean;
  /** Evaluates conditions and renders texts. */
  compute: Compute;
  /** Drafting provider; default: the embedded composer. */
  drafts?: DraftProvider;
  /** Sends text messages. */
  sms: SmsProvider;
  /** Timeout of a call. */
  timeoutMs?: number;
}

export interface Workflows {
  /** Stops taking steps and waits for those in progress. */
  stop(): Promise<void>;
}

/** Maximum number of concurrent transactions per process. */
const lanes = [0, 1];
/** Poll interval, for waiting executions and missed notifications. */
const lookEveryMs = 1000;
/** Number of steps whose last turn is remembered. */
const mostRounds = 1000;

/** Starts once the database is reachable. */
export async function startWorkflows(options: WorkflowsOptions): Promise<Workflows> {
  const runner = new WorkflowRunner(options);
  await runner.start();
  return runner;
}

class WorkflowRunner implements Workflows {
  readonly #engine: Engine;
  readonly #faults = new Faults();
  readonly #computations: Computations;
  readonly #computed: ComputedSteps;
  readonly #calls: Calls;
  readonly #worker: Loop;
  readonly #keeper: Loop;
  /** Round in which each step was last executed; the one that has waited longest goes first. */
  readonly #rounds = new Map<string, number>();
  #round = 0;

  constructor(options: WorkflowsOptions) {
    const { compute, drafts = createDraftProvider(), timeoutMs = 10_000 } = options;
    this.#engine = new Engine({
      ...options,
      name: "plat-workflows",
      connections: lanes.length + 1,
      failure: { event: "workflow.run_failed", message: "Running workflow steps failed; retrying." },
    });
    this.#worker = this.#engine.loop(() => this.#takeDue());
    this.#keeper = this.#engine.loop(() => this.#resumeDue());
    const ended = this.#worker.call;
    this.#computations = new Computations(this.#engine, compute, this.#faults, ended);
    this.#computed = new ComputedSteps(this.#engine, compute, this.#computations, lanes.length);
    this.#calls = new Calls(this.#engine, this.#computations, { ...options, drafts, timeoutMs, ended });
  }

  start(): Promise<void> {
    return this.#engine.start({
      listen: { channel: "plat_workflows", called: this.#worker.call },
      poll: this.#keeper.call,
      everyMs: lookEveryMs,
    });
  }

  stop(): Promise<void> {
    return this.#engine.stop();
  }

  async #resumeDue(): Promise<boolean> {
    await this.#engine.pool.query(
      "select app_private.free_executions(), app_private.resume_due_executions()",
    );
    this.#worker.call();
    return false;
  }

  /** Executes due steps until there are none; returns whether there were any. */
  async #takeDue(): Promise<boolean> {
    let rounds = 0;
    for (let found = true; found && !this.#engine.isStopping; rounds += 1) {
      const { rows } = await this.#engine.pool.query<DueStep>(
        "select * from app_private.due_workflow_steps()",
      );
      const due = this.#inTurn(rows);
      found = await this.#tryTo("wake", () => this.#computed.wake());
      // Round-robin, so that a long queue of one workflow does not block others.
      await Promise.all(
        lanes.map(async () => {
          for (const step of due) if (await this.#tryTo(keyOf(step), () => this.#take(step))) found = true;
        }),
      );
    }
    return rounds > 1;
  }

  #inTurn(due: DueStep[]): DueStep[] {
    const roundOf = (step: DueStep) => this.#rounds.get(keyOf(step)) ?? 0;
    const sorted = due.toSorted((a, b) => roundOf(a) - roundOf(b));
    if (this.#rounds.size > mostRounds) this.#rounds.clear();
    return sorted;
  }

  /** Whether there was something to do. */
  async #take(due: DueStep): Promise<boolean> {
    if (due.way === "SQL") return (await takeStep(this.#engine.pool, due, batch.SQL)) !== null;
    const holder = this.#engine.holder();
    // A step that used up its share is resumed a little later.
    if (!holder || !this.#computations.hasRoom(due.organization_id)) return false;
    this.#round += 1;
    this.#rounds.set(keyOf(due), this.#round);
    return due.way === "CALL" ? this.#calls.take(due) : this.#computed.take(due, holder);
  }

  /** Does the work, and repeats it after lock conflicts. Errors are logged, and the step is suspended for a while. */
  async #tryTo(key: string, work: () => Promise<boolean>): Promise<boolean> {
    if (this.#engine.isStopping || this.#faults.isPaused(key)) return false;
    try {
      const found = await work();
      this.#faults.forget(key);
      return found;
    } catch (error) {
      if (isRetryable(error)) return true;
      this.#faults.note(key);
      this.#engine.report(error);
      return false;
    }
  }
}
