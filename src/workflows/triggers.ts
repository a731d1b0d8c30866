/**
 * Starts workflows by what happens and by the clock. A commit calls; the stream of each organization is read on from where it was
 * left, conditions are evaluated (src/compute) while no transaction is open, and executions are started in the one that moves the
 * cursor. Any number of processes may do so at once, and any of them may die.
 */
import type { Pool } from "pg";
import { ComputeStopped, type Compute } from "../compute/pool.ts";
import { openListener, type Line } from "../database/listener.ts";
import { isOutage } from "../database/outages.ts";
import { workPoolOf } from "../database/workConnections.ts";
import type { Logger } from "../base/log.ts";
import { coalesceCalls } from "../base/coalesceCalls.ts";

export interface TriggersOptions {
  /** That of plat_worker. */
  connectionString: string;
  /** The connections that the engines of a process share; its own where omitted. */
  pool?: Pick<Pool, "query" | "connect">;
  /** Evaluates conditions. */
  compute: Compute;
  log: Logger;
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

/** Starts to look after triggers, once the database can be reached. */
export async function startTriggers(options: TriggersOptions): Promise<Triggers> {
  const { connectionString, compute, log } = options;
  const pool = workPoolOf(options.pool, {
    connectionString,
    max: 3,
    applicationName: "plat-triggers",
    log,
  });
  /** What is on its way, by organization: streams and lines of the clock apart, so that neither waits for the other. */
  const underway = { events: new Map<string, Promise<void>>(), runs: new Map<string, Promise<void>>() };
  let stopping = false;

  async function evaluate<C extends Candidate>(organization: string, candidates: C[]): Promise<Passed<C>> {
    const items = candidates.map(({ condition, data }) => ({ condition, data }));
    // Nothing to evaluate needs no thread.
    const results = items.some(({ condition }) => condition !== undefined)
      ? await compute.run(organization, "condition", null, items)
      : items.map(() => ({ value: true }));
    const errors = new Map<string, string>();
    const passed = candidates.filter(({ workflowId }, place) => {
      const result = results[place]!;
      if ("over" in result) errors.set(workflowId, result.over);
      return "value" in result && result.value;
    });
    return { passed, refused: [...errors].map(([workflowId, error]) => ({ workflowId, error })) };
  }

  /** Organizations that are left alone for the moment. */
  const busyIn = (ways: ReadonlyMap<string, Promise<void>>) => [...ways.keys(), ...compute.spent()];

  /** Does the work of an organization beside that of others; what it held is released where it fails. */
  function beside(
    ways: Map<string, Promise<void>>,
    organization: string,
    {
      holder,
      work,
      release,
      again,
    }: {
      holder: Line;
      work: () => Promise<unknown>;
      release: () => Promise<unknown>;
      again: () => void;
    },
  ): void {
    const letGo = holder.hold();
    const working = async () => {
      try {
        await work();
      } catch (error) {
        await release().catch(() => {});
        if (!(error instanceof ComputeStopped)) report(error);
        return;
      } finally {
        letGo();
        ways.delete(organization);
      }
      again();
    };
    ways.set(organization, working());
  }

  /** Reads on in one stream; whether there was one to read. */
  async function readEvents(): Promise<boolean> {
    const current = line.current();
    // Without the line, what it holds would be taken for that of a dead one.
    if (stopping || !current || underway.events.size >= atOnce) return false;
    const { id: holder } = current;
    const { rows } = await pool.query<{
      organization_id: string;
      upto: string;
      candidates: (Candidate & { sequence: number; eventId: string })[];
    }>("select * from app_private.claim_events($1, $2, make_interval(secs => $3), $4)", [
      batch,
      holder,
      leaseSeconds,
      busyIn(underway.events),
    ]);
    const [claim] = rows;
    if (!claim) return false;
    const { organization_id, upto, candidates } = claim;
    beside(underway.events, organization_id, {
      holder: current,
      work: async () => {
        const { passed, refused } = await evaluate(organization_id, candidates);
        const starts = passed.map(({ sequence, eventId, workflowId, subjectId }) => ({
          sequence,
          eventId,
          workflowId,
          subjectId,
        }));
        await pool.query("select app_private.start_by_events($1, $2, $3, $4, $5)", [
          organization_id,
          upto,
          JSON.stringify(starts),
          JSON.stringify(refused),
          holder,
        ]);
      },
      release: () => pool.query("select app_private.release_stream($1, $2)", [organization_id, holder]),
      again: reader.call,
    });
    return true;
  }

  /** Selects the subjects of the lines that are due. */
  async function runSchedules(): Promise<void> {
    const { rows } = await pool.query<{
      organization_id: string;
      workflow_id: string;
      schedule: string;
      time_zone: string;
      was_due_at: string | null;
    }>(
      "select organization_id, workflow_id, schedule, time_zone, was_due_at::text from app_private.due_schedules()",
    );
    const after = new Date().toISOString();
    const results = await Promise.allSettled(
      rows.map(async ({ organization_id, workflow_id, schedule, time_zone, was_due_at }) => {
        // In a queue of its own: the clock of all waits for each of them.
        const [next] = await compute.run(`clock of ${organization_id}`, "schedule", null, [
          { schedule, timeZone: time_zone, after },
        ]);
        await pool.query("select app_private.run_schedule($1, $2, $3)", [
          workflow_id,
          "value" in next! ? next.value : null,
          was_due_at,
        ]);
      }),
    );
    const failed = results.find((result) => result.status === "rejected");
    if (failed && !(failed.reason instanceof ComputeStopped)) report(failed.reason);
  }

  /** Starts the next subjects of a line that was due; whether there were some. */
  async function startRun(): Promise<boolean> {
    const current = line.current();
    if (stopping || !current || underway.runs.size >= atOnce) return false;
    const { id: holder } = current;
    const { rows } = await pool.query<{
      run_id: string;
      organization_id: string;
      workflow_id: string;
      subject_ids: string[];
      items: Omit<Candidate, "workflowId">[] | null;
    }>("select * from app_private.claim_run($1, $2, make_interval(secs => $3), $4)", [
      batch,
      holder,
      leaseSeconds,
      busyIn(underway.runs),
    ]);
    const [claim] = rows;
    if (!claim) return false;
    const { run_id, organization_id, workflow_id, subject_ids, items } = claim;
    beside(underway.runs, organization_id, {
      holder: current,
      work: async () => {
        const candidates = (items ?? subject_ids.map((subjectId) => ({ subjectId }))).map((item) => ({
          ...item,
          workflowId: workflow_id,
        }));
        const { passed, refused } = await evaluate(organization_id, candidates);
        await pool.query("select app_private.start_run($1, $2, $3, $4, $5)", [
          run_id,
          subject_ids,
          passed.map(({ subjectId }) => subjectId),
          refused[0]?.error ?? null,
          holder,
        ]);
      },
      release: () => pool.query("select app_private.release_run($1, $2)", [run_id, holder]),
      again: clock.call,
    });
    return true;
  }

  const report = (error: unknown) => {
    if (isOutage(error)) line.renew();
    if (!stopping)
      log.warn(
        { event: "workflow.trigger_failed", err: error },
        "Reading events for workflow triggers failed; retrying.",
      );
  };
  // Apart from each other, so that a long schedule keeps no event waiting.
  const reader = coalesceCalls(async () => {
    while (await readEvents());
  }, report);
  const clock = coalesceCalls(async () => {
    if (!stopping) await runSchedules();
    while (await startRun());
  }, report);

  const line = await openListener({
    connectionString,
    applicationName: "plat-triggers",
    log,
    listen: {
      channel: "plat_triggers",
      called: (payload) => (payload === "SCHEDULE" ? clock : reader).call(),
    },
  }).catch(async (error: unknown) => {
    await pool.end();
    throw error;
  });
  line.keep(() => {
    reader.call();
    clock.call();
  }, lookEveryMs);
  return {
    async stop() {
      stopping = true;
      await line.rest();
      await Promise.all([reader.idle(), clock.idle()]);
      await Promise.all([...underway.events.values(), ...underway.runs.values()]);
      await line.end();
      await pool.end();
    },
  };
}
