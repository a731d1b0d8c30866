/**
 * Starts workflows by what happens and by the clock. A commit calls; the stream of each organization is read on from where it was
 * left, conditions are evaluated here, and executions are started in the transaction that moves the cursor. Any number of
 * processes may do so at once, and any of them may die.
 */
import type { PoolClient } from "pg";
import { openCallLine } from "../database/callLine.ts";
import { makeWorkPool } from "../database/pool.ts";
import { inTransaction } from "../database/transaction.ts";
import type { Logger } from "../log.ts";
import { onCall } from "../onCall.ts";
import { holds } from "./conditions.ts";
import { nextRun } from "./schedule.ts";

export interface TriggersOptions {
  /** The owner's. */
  connectionString: string;
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

interface Candidate {
  workflowId: string;
  subjectId: string;
  conditions?: unknown;
  data?: object;
}

/** Whether the conditions of a workflow let it be started. */
const passes = ({ conditions, data }: Candidate) => conditions === undefined || holds(conditions, data ?? {});

/** When a line is due next; null where it cannot be read any more. */
function nextTime(schedule: string, timeZone: string): Date | null {
  try {
    return nextRun(schedule, timeZone, new Date());
  } catch {
    return null;
  }
}

/** Starts to look after triggers, once the database can be reached. */
export async function startTriggers({ connectionString, log }: TriggersOptions): Promise<Triggers> {
  const pool = makeWorkPool({ connectionString, max: 3, applicationName: "plat-triggers", log });
  let stopping = false;

  /** False when it is to end. */
  const unlessStopping = async (work: (client: PoolClient) => Promise<boolean>): Promise<boolean> =>
    !stopping && inTransaction(pool, work);

  /** Reads on in one stream; whether there was one to read. */
  const readEvents = () =>
    unlessStopping(async (client) => {
      const { rows } = await client.query<{
        organization_id: string;
        upto: string;
        candidates: (Candidate & { sequence: number; eventId: string })[];
      }>("select * from app_private.claim_events($1)", [batch]);
      const [claim] = rows;
      if (!claim) return false;
      const starts = claim.candidates.filter(passes).map(({ sequence, eventId, workflowId, subjectId }) => ({
        sequence,
        eventId,
        workflowId,
        subjectId,
      }));
      await client.query("select app_private.start_by_events($1, $2, $3)", [
        claim.organization_id,
        claim.upto,
        JSON.stringify(starts),
      ]);
      return true;
    });

  /** Selects the subjects of the lines that are due. */
  const runSchedules = () =>
    unlessStopping(async (client) => {
      const { rows } = await client.query<{ workflow_id: string; schedule: string; time_zone: string }>(
        "select * from app_private.due_schedules()",
      );
      for (const { workflow_id, schedule, time_zone } of rows)
        await client.query("select app_private.run_schedule($1, $2)", [
          workflow_id,
          nextTime(schedule, time_zone),
        ]);
      return rows.length > 0;
    });

  /** Starts the next subjects of a line that was due; whether there were some. */
  const startRun = () =>
    unlessStopping(async (client) => {
      const { rows } = await client.query<{
        workflow_id: string;
        candidates: Candidate[];
        subjects: string[] | null;
      }>("select * from app_private.claim_run($1)", [batch]);
      const [claim] = rows;
      if (!claim) return false;
      const subjects = claim.subjects ?? claim.candidates.filter(passes).map(({ subjectId }) => subjectId);
      if (subjects.length > 0)
        await client.query("select app_private.start_by_schedule($1, $2)", [claim.workflow_id, subjects]);
      return true;
    });

  const report = (error: unknown) => {
    if (!stopping) log.warn({ err: error }, "The triggers could not be looked after; they are in a moment.");
  };
  // Apart from each other, so that a long schedule keeps no event waiting.
  const reader = onCall(async () => {
    while (await readEvents());
  }, report);
  const clock = onCall(async () => {
    await runSchedules();
    while (await startRun());
  }, report);

  const line = await openCallLine({
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
      await line.end();
      await pool.end();
    },
  };
}
