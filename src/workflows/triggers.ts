/**
 * Starts workflows by what happens and by the clock. A commit calls; the stream of each organization is read on from where it was
 * left, conditions are evaluated (src/compute) while no transaction is open, and executions are started in the one that moves the
 * cursor. Any number of processes may do so at once, and any of them may die.
 */
import { ComputeStopped, type Compute } from "../compute/pool.ts";
import type { Line } from "../database/listener.ts";
import { Engine, type EngineConnections, type Loop } from "../engines/engine.ts";

export interface TriggersOptions extends EngineConnections {
  /** Evaluates conditions. */
  compute: Compute;
}

export interface Triggers {
  /** Begins nothing further, waits for what is under way. */
  stop(): Promise<void>;
}

/** Events, or subjects of a schedule, for each transaction. */
const batch = 500;
/** How often it looks without being called: for the clock, and for calls that were missed. */
const lookEveryMs = 1000;

/** Organizations whose conditions are evaluated at a time. */
const atOnce = 8;
/** How long that may take, with what waits before: of a worker that lives but does not come back, another one takes it over. */
const leaseSeconds = 600;

interface Candidate {
  workflowId: string;
  subjectId: string;
  condition?: unknown;
  data?: object;
}

/** Candidates whose conditions hold, and why those of a workflow could not be evaluated. */
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

/** What is done for an organization with what was claimed. */
interface Claim {
  organization: string;
  holder: Line;
  work: () => Promise<unknown>;
  /** Gives back what was claimed, where the work failed. */
  release: () => Promise<unknown>;
}

/** Starts to look after triggers, once the database can be reached. */
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
  // Apart from each other, so that a long schedule keeps no event waiting.
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

/** What both kinds of triggers have in common: work for one organization beside that of others. */
abstract class TriggerReader {
  readonly loop: Loop;
  protected readonly engine: Engine;
  protected readonly compute: Compute;
  /** Organizations that are worked for. */
  readonly #underway = new Set<string>();

  constructor(engine: Engine, compute: Compute) {
    this.engine = engine;
    this.compute = compute;
    this.loop = engine.loop(() => this.readAll());
  }

  /** Claims what there is, until there is no more; whether there was something. */
  protected abstract readAll(): Promise<boolean>;

  /** By whose id something may be claimed now; undefined where enough is under way. */
  protected holder(): Line | undefined {
    return this.#underway.size >= atOnce ? undefined : this.engine.holder();
  }

  /** Organizations that are left alone for the moment. */
  protected busy(): string[] {
    return [...this.#underway, ...this.compute.spent()];
  }

  /** Does the work of an organization beside that of others, and looks for more afterwards. */
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

  /** Those whose conditions hold. */
  protected async evaluate<C extends Candidate>(organization: string, candidates: C[]): Promise<Passed<C>> {
    const items = candidates.map(({ condition, data }) => ({ condition, data }));
    // Nothing to evaluate needs no thread.
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

/** Starts workflows by what happens: reads on in the stream of each organization. */
class EventReader extends TriggerReader {
  protected override async readAll(): Promise<boolean> {
    let streams = 0;
    while (await this.#readOn()) streams += 1;
    return streams > 0;
  }

  /** Reads on in one stream; whether there was one to read. */
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

/** Starts workflows by the clock. */
class Clock extends TriggerReader {
  protected override async readAll(): Promise<boolean> {
    let found = await this.#runSchedules();
    while (await this.#startRun()) found += 1;
    return found > 0;
  }

  /** Selects the subjects of the schedules that are due; how many schedules these were. */
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
    // In a queue of its own: the clock of all waits for each of them.
    const [next] = await this.compute.run(`clock of ${organization_id}`, "schedule", null, [
      { schedule, timeZone, after },
    ]);
    await this.engine.pool.query("select app_private.run_schedule($1, $2, $3)", [
      workflow_id,
      "value" in next! ? next.value : null,
      was_due_at,
    ]);
  }

  /** Starts the next subjects of a schedule that was due; whether there were some. */
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
