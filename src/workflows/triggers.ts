/**
 * Starts workflows by what happens and by the clock. A commit calls; the stream of each organization is read on from where it was
 * left, conditions are evaluated here, and executions are started in the transaction that moves the cursor. Any number of
 * processes may do so at once, and any of them may die.
 */
import { Client, Pool, type PoolClient } from "pg";
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
  const pool = new Pool({ connectionString, max: 3, application_name: "plat-triggers" });
  pool.on("error", (error) => log.warn({ err: error }, "A database connection of the triggers broke."));
  // A connection that breaks in the middle of a transaction: the statement that meets it says so.
  pool.on("connect", (client) => client.on("error", () => {}));
  let stopping = false;
  let listener: Client | undefined;

  /** False when it is to end. */
  async function inTransaction(work: (client: PoolClient) => Promise<boolean>): Promise<boolean> {
    if (stopping) return false;
    const client = await pool.connect();
    try {
      await client.query("begin");
      const result = await work(client);
      await client.query("commit");
      client.release();
      return result;
    } catch (error) {
      // Also rolls back what is open.
      client.release(true);
      throw error;
    }
  }

  /** Reads on in one stream; whether there was one to read. */
  const readEvents = () =>
    inTransaction(async (client) => {
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
    inTransaction(async (client) => {
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
    inTransaction(async (client) => {
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

  async function listen(): Promise<void> {
    const client = new Client({ connectionString, application_name: "plat-triggers" });
    client.on("notification", ({ payload }) => (payload === "SCHEDULE" ? clock : reader).call());
    client.on("error", (error) => {
      if (!stopping) log.warn({ err: error }, "The call line of the triggers broke.");
    });
    client.on("end", () => {
      if (listener === client) listener = undefined;
    });
    await client.connect();
    await client.query("listen plat_triggers");
    listener = client;
  }

  try {
    await listen();
  } catch (error) {
    await pool.end();
    throw error;
  }
  let connecting: Promise<void> | undefined;
  const look = () => {
    reader.call();
    clock.call();
    if (!listener)
      connecting ??= listen()
        .catch(report)
        .finally(() => (connecting = undefined));
  };
  const timer = setInterval(look, lookEveryMs);
  look();
  return {
    async stop() {
      stopping = true;
      clearInterval(timer);
      await connecting;
      await Promise.all([reader.idle(), clock.idle()]);
      await listener?.end();
      await pool.end();
    },
  };
}
