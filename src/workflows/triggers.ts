/**
 * Starts workflows by events and schedules. It is notified of commits, reads the events of each organization from its
 * cursor, and evaluates conditions outside of any transaction (src/compute). Executions are started in the transaction
 * that advances the cursor. Any number of processes can run it, and each of them can die at any time.
 */
import { ComputeStopped, type Compute } from "../compute/computePool.ts";
import type { Line } from "../database/listener.ts";
import { Engine, type EngineConnections, type Loop } from "../engines/engine.ts";

export interface TriggersOptions extends EngineConnections {
  /** Evaluates conditions. */
  compute: Compute;
}

export interface Triggers {
  /** Stops taking work and waits for work in progress. */
  stop(): Promise<void>;
}

/** Events, or subjects of a schedule, per transaction. */
const batch = 500;
/** Poll interval, for schedules and missed notifications. */
const lookEveryMs = 1000;

/** Number of organizations whose conditions are evaluated at a time. */
const atOnce = 8;
/**
 * Time limit for that, including time in the queue; after that another worker takes over, even if this one is alive.
 */
const leaseSeconds = 600;

interface Candidate {
  workflowId: string;
  subjectId: string;
  condition?: unknown;
  data?: object;
}

/** Candidates whose conditions are met, and why the conditions of a workflow could not be evaluated. */
interface Passed<C> {
  passed: C[];
  refused: { workflowId: string; error: string }[];
}

/** Row of app_private.claim_events. */
interface ClaimedEvents {
  organization_id: string;
  upto: string;
  candidates: (Candidate & { sequence: number; eventId: string })[];
}

/** Row of app_private.due_schedules. */
interface DueSchedule {
  organization_id: string;
  workflow_id: string;
  schedule: string;
  time_zone: string;
  was_due_at: string | null;
}

/** Row of app_private.claim_run. */
interface ClaimedRun {
  run_id: string;
  organization_id: string;
  workflow_id: string;
  subject_ids: string[];
  items: Omit<Candidate, "workflowId">[] | null;
}

/** Processes a claim for an organization. */
interface Claim {
  organization: string;
  holder: Line;
  work: () => Promise<unknown>;
  /** Releases the claim if the processing failed. */
  release: () => Promise<unknown>;
}

/** Starts once the database is reachable. */
export async function startTriggers(options: TriggersOptions): Promise<Triggers> {
  const engine = new Engine({
    ...options,
    name: "plat-triggers",
    connections: 2,
    failure: {
      event: "workflow.trigger_failed",
      message: "Reading events for workflow triggers failed; retrying.",
    },
  });
  // Run concurrently, so that a long schedule does not delay events.
  const events = new EventReader(engine, options.compute);
  const clock = new Clock(engine, options.compute);
  await engine.start({
    listen: {
      channel: "plat_triggers",
      called: (payload) => (payload === "SCHEDULE" ? clock : events).loop.call(),
    },
    poll: () => {
      events.loop.call();
      clock.loop.call();
    },
    everyMs: lookEveryMs,
  });
  return engine;
}

/** Common base of both kinds of triggers: processes claims of several organizations concurrently. */
abstract class TriggerReader {
  readonly loop: Loop;
  protected readonly engine: Engine;
  protected readonly compute: Compute;
  /** Organizations in progress. */
  readonly #underway = new Set<string>();

  constructor(engine: Engine, compute: Compute) {
    this.engine = engine;
    this.compute = compute;
    this.loop = engine.loop(() => this.readAll());
  }

  /** Claims work until there is no more; returns whether there was any. */
  protected abstract readAll(): Promise<boolean>;

  /** The id under which work can be claimed; undefined at the concurrency limit. */
  protected holder(): Line | undefined {
    return this.#underway.size >= atOnce ? undefined : this.engine.holder();
  }

  /** Organizations that are suspended for the moment. */
  protected busy(): string[] {
    return [...this.#underway, ...this.compute.spent()];
  }

  /** Processes a claim concurrently and looks for more afterwards. */
  protected begin({ organization, holder, work, release }: Claim): void {
    this.#underway.add(organization);
    this.engine.lease(holder, async () => {
      try {
        await work();
      } catch (error) {
        await release().catch(() => {});
        if (!(error instanceof ComputeStopped)) this.engine.report(error);
        return;
      } finally {
        this.#underway.delete(organization);
      }
      this.loop.call();
    });
  }

  /** Candidates whose conditions are met. */
  protected async evaluate<C extends Candidate>(organization: string, candidates: C[]): Promise<Passed<C>> {
    const items = candidates.map(({ condition, data }) => ({ condition, data }));
    // Without conditions there is no need for a thread.
    const results = items.some(({ condition }) => condition !== undefined)
      ? await this.compute.run(organization, "condition", null, items)
      : items.map(() => ({ value: true }));
    const errors = new Map<string, string>();
    const passed = candidates.filter(({ workflowId }, place) => {
      const result = results[place]!;
      if ("over" in result) errors.set(workflowId, result.over);
      return "value" in result && result.value;
    });
    return { passed, refused: [...errors].map(([workflowId, error]) => ({ workflowId, error })) };
  }
}

/** Starts workflows by events: reads the stream of each organization from its cursor. */
class EventReader extends TriggerReader {
  protected override async readAll(): Promise<boolean> {
    let streams = 0;
    while (await this.#readOn()) streams += 1;
    return streams > 0;
  }

  /** Advances one stream; returns whether there was one. */
  async #readOn(): Promise<boolean> {
    const holder = this.holder();
    if (!holder) return false;
    const { rows } = await this.engine.pool.query<ClaimedEvents>(
      "select * from app_private.claim_events($1, $2, make_interval(secs => $3), $4)",
      [batch, holder.id, leaseSeconds, this.busy()],
    );
    const [claim] = rows;
    if (!claim) return false;
    const { organization_id: organization } = claim;
    this.begin({
      organization,
      holder,
      work: () => this.#start(claim, holder),
      release: () =>
        this.engine.pool.query("select app_private.release_stream($1, $2)", [organization, holder.id]),
    });
    return true;
  }

  async #start({ organization_id, upto, candidates }: ClaimedEvents, holder: Line): Promise<void> {
    const { passed, refused } = await this.evaluate(organization_id, candidates);
    const starts = passed.map(({ sequence, eventId, workflowId, subjectId }) => ({
      sequence,
      eventId,
      workflowId,
      subjectId,
    }));
    await this.engine.pool.query("select app_private.start_by_events($1, $2, $3, $4, $5)", [
      organization_id,
      upto,
      JSON.stringify(starts),
      JSON.stringify(refused),
      holder.id,
    ]);
  }
}

/** Starts workflows by schedules. */
class Clock extends TriggerReader {
  protected override async readAll(): Promise<boolean> {
    let found = await this.#runSchedules();
    while (await this.#startRun()) found += 1;
    return found > 0;
  }

  /** Selects the subjects of due schedules; returns the number of schedules. */
  async #runSchedules(): Promise<number> {
    const { rows } = await this.engine.pool.query<DueSchedule>(
      "select organization_id, workflow_id, schedule, time_zone, was_due_at::text from app_private.due_schedules()",
    );
    const after = new Date().toISOString();
    const results = await Promise.allSettled(rows.map((due) => this.#runSchedule(due, after)));
    const failed = results.find((result) => result.status === "rejected");
    if (failed && !(failed.reason instanceof ComputeStopped)) this.engine.report(failed.reason);
    return rows.length;
  }

  async #runSchedule(due: DueSchedule, after: string): Promise<void> {
    const { organization_id, workflow_id, schedule, time_zone: timeZone, was_due_at } = due;
    // Uses a separate queue, because all schedules wait for each of them.
    const [next] = await this.compute.run(`clock of ${organization_id}`, "schedule", null, [
      { schedule, timeZone, after },
    ]);
    await this.engine.pool.query("select app_private.run_schedule($1, $2, $3, $4, $5)", [
      workflow_id,
      "value" in next! ? next.value : null,
      was_due_at,
      schedule,
      timeZone,
    ]);
  }

  /** Starts the next subjects of a due schedule; returns whether there were any. */
  async #startRun(): Promise<boolean> {
    const holder = this.holder();
    if (!holder) return false;
    const { rows } = await this.engine.pool.query<ClaimedRun>(
      "select * from app_private.claim_run($1, $2, make_interval(secs => $3), $4)",
      [batch, holder.id, leaseSeconds, this.busy()],
    );
    const [claim] = rows;
    if (!claim) return false;
    this.begin({
      organization: claim.organization_id,
      holder,
      work: () => this.#start(claim, holder),
      release: () =>
        this.engine.pool.query("select app_private.release_run($1, $2)", [claim.run_id, holder.id]),
    });
    return true;
  }

  async #start(claim: ClaimedRun, holder: Line): Promise<void> {
    const { run_id, organization_id, workflow_id, subject_ids, items } = claim;
    const candidates = (items ?? subject_ids.map((subjectId) => ({ subjectId }))).map((item) => ({
      ...item,
      workflowId: workflow_id,
    }));
    const { passed, refused } = await this.evaluate(organization_id, candidates);
    await this.engine.pool.query("select app_private.start_run($1, $2, $3, $4, $5)", [
      run_id,
      subject_ids,
      passed.map(({ subjectId }) => subjectId),
      refused[0]?.error ?? null,
      holder.id,
    ]);
  }
}
