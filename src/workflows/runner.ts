/**
 * Takes the steps of workflows that are due; see migrations/committed/000104-workflow-engine.sql. The database decides everything:
 * this evaluates conditions, writes texts and calls others on its behalf. Any number of processes may do so at once; what one
 * of them held when it died is due again as soon as its connection is gone.
 */
import type { Pool, PoolClient } from "pg";
import { openCallLine, type Line } from "../database/callLine.ts";
import { isRetryable } from "../database/databaseErrors.ts";
import { makeWorkPool } from "../database/pool.ts";
import { inTransaction } from "../database/transaction.ts";
import { draftLeadEmail } from "../drafts/draftLeadEmail.ts";
import type { Logger } from "../log.ts";
import { onCall } from "../onCall.ts";
import { createDraftProvider, type DraftProvider } from "../providers/drafts/index.ts";
import type { SmsProvider } from "../providers/sms/index.ts";
import type { Seal } from "../seal.ts";
import { callWebhook, type Call } from "./call.ts";
import { holds } from "./conditions.ts";
import { inputOf, type Step } from "./input.ts";
import { handOver, type Message } from "./message.ts";

export interface WorkflowsOptions {
  /** The owner's. */
  connectionString: string;
  seal: Seal;
  /** Whether addresses may lead to this machine. */
  loopback: boolean;
  log: Logger;
  /** Who writes drafts; the embedded composer where left out. */
  drafts?: DraftProvider;
  /** What sends text messages. */
  sms: SmsProvider;
  /** How long a call may take. */
  timeoutMs?: number;
}

export interface Workflows {
  /** Takes no further steps, waits for those under way. */
  stop(): Promise<void>;
}

/** Calls on their way at a time, in one process. */
const capacity = 64;
/** Executions per transaction. */
const batch = { SQL: 500, COMPUTED: 200, CALL: 32 };
/** Transactions at a time, in one process. */
const lanes = [0, 1];
/** How long writing a draft may take. */
const draftMs = 120_000;
/** How often it looks without being called: for what waits for a time, and for calls that were missed. */
const lookEveryMs = 1000;
/** How long it leaves a step alone that it cannot take, through a fault of the service. */
const faultPauseMs = 10_000;

interface DueStep {
  workflow_id: string;
  steps_revision: number;
  sequence: number;
  way: keyof typeof batch;
}

interface Run {
  executionId: string;
  attempt: number;
  data: Record<string, unknown>;
  call: Call | null;
  /** The text message of a step that sends one, and when it was noted. */
  noted?: { message: Message; notedAt: number };
}

interface Woken {
  stepId: string;
  executionId: string;
  attempt: number;
  config: Record<string, unknown>;
  data: Record<string, unknown>;
  events: Record<string, unknown>[];
}

type Result = { executionId: string; attempt: number } & ({ input: unknown } | { error: string });

/** Starts to take steps, once the database can be reached. */
export async function startWorkflows(options: WorkflowsOptions): Promise<Workflows> {
  const {
    connectionString,
    seal,
    loopback,
    log,
    drafts = createDraftProvider(),
    sms,
    timeoutMs = 10_000,
  } = options;
  const pool = makeWorkPool({
    connectionString,
    max: lanes.length + 2,
    applicationName: "plat-workflows",
    log,
  });
  const underway = new Set<Promise<void>>();
  const faults = new Map<string, number>();
  let stopping = false;

  const take = async (client: Pool | PoolClient, due: DueStep, most: number) => {
    const { rows } = await client.query<{ taken: { step?: Step; runs?: Run[] | null } | null }>(
      "select app_private.take_workflow_step($1, $2, $3, $4) as taken",
      [due.workflow_id, due.steps_revision, due.sequence, most],
    );
    return rows[0]!.taken;
  };

  /** Whether there was something to do. */
  async function takeStep(due: DueStep): Promise<boolean> {
    if (due.way === "SQL") return (await take(pool, due, batch.SQL)) !== null;
    if (due.way === "CALL") return takeCalls(due);
    return inTransaction(pool, async (client) => {
      const taken = await take(client, due, batch.COMPUTED);
      if (taken?.step && taken.runs) await settle(client, taken.step, taken.runs.map(resultOf(taken.step)));
      return taken !== null;
    });
  }

  const settle = (client: PoolClient, step: Step, results: Result[]) =>
    client.query("select app_private.settle_workflow_step($1, $2)", [step.id, JSON.stringify(results)]);

  async function takeCalls(due: DueStep): Promise<boolean> {
    const room = Math.min(capacity - underway.size, batch.CALL);
    const current = line.current();
    // Without the line, what it holds would be taken for that of a dead one.
    if (room <= 0 || !current) return false;
    let locked: string[] = [];
    try {
      const taken = await inTransaction(pool, async (client) => {
        const found = await take(client, due, room);
        if (!found?.step || !found.runs) return found;
        const ids = found.runs.map(({ executionId }) => executionId);
        // Who cancels has the lock and waits for the row: it is theirs.
        locked = await inTurn(async () => {
          const { rows } = await current.client.query<{ id: string }>(
            "select x as id from unnest($1::uuid[]) x where pg_try_advisory_lock(app_private.execution_lock(x))",
            [ids],
          );
          return rows.map(({ id }) => id);
        });
        found.runs = found.runs.filter(({ executionId }) => locked.includes(executionId));
        await client.query("select app_private.hold_executions($1, $2, $3, make_interval(secs => $4))", [
          found.step.id,
          JSON.stringify(found.runs.map(({ executionId, attempt }) => ({ executionId, attempt }))),
          current.pid,
          (found.step.type === "DRAFT_WITH_AI" ? draftMs : timeoutMs) / 1000 + 20,
        ]);
        if (found.step.type === "SEND_SMS") found.runs = await beginMessages(client, found.step, found.runs);
        return found;
      });
      for (const run of taken?.runs ?? []) {
        start(taken!.step!, run, current);
        locked.splice(locked.indexOf(run.executionId), 1);
      }
      return taken !== null;
    } finally {
      if (locked.length > 0) await release(current, locked);
    }
  }

  /** Notes the messages of a step, and gives the runs that have one to hand over; the others are settled. */
  async function beginMessages(client: PoolClient, step: Step, runs: Run[]): Promise<Run[]> {
    const notedAt = Date.now();
    const { rows } = await client.query<{ messages: Record<string, Message> }>(
      "select app_private.begin_messages($1, $2) as messages",
      [step.id, JSON.stringify(runs.map(resultOf(step)))],
    );
    return runs.flatMap((run) => {
      const message = rows[0]!.messages[run.executionId];
      return message ? [{ ...run, noted: { message, notedAt } }] : [];
    });
  }

  /** One query after the other on the listening connection. */
  let turn: Promise<unknown> = Promise.resolve();
  function inTurn<T>(work: () => Promise<T>): Promise<T> {
    const result = turn.then(work);
    turn = result.catch(() => {});
    return result;
  }

  const release = async ({ client }: Line, ids: string[]): Promise<void> => {
    await inTurn(() =>
      client.query("select pg_advisory_unlock(app_private.execution_lock(x)) from unnest($1::uuid[]) x", [
        ids,
      ]),
    ).catch(() => {}); // a connection that broke holds nothing
  };

  function start(step: Step, run: Run, holder: Line): void {
    const calling = bringIn(step, run, holder).finally(() => {
      underway.delete(calling);
      worker.call();
    });
    underway.add(calling);
  }

  async function bringIn(step: Step, run: Run, holder: Line): Promise<void> {
    try {
      const result = await callOne(step, run);
      await pool.query("select app_private.settle_call($1, $2, $3)", [
        step.id,
        JSON.stringify(result),
        holder.pid,
      ]);
    } catch (error) {
      // It is called again when the lease is over.
      log.error({ err: error }, "A call of a workflow failed.");
    }
    await release(holder, [run.executionId]);
  }

  async function callOne(step: Step, run: Run): Promise<Result> {
    const { executionId, attempt, noted } = run;
    if (noted) return { executionId, attempt, input: await handOver(sms, noted.message, noted.notedAt) };
    const result = resultOf(step)(run);
    if ("error" in result) return result;
    if (step.type === "DRAFT_WITH_AI") return { executionId, attempt, ...(await draft(run, result.input)) };
    const input = await callWebhook(result.input as Record<string, unknown>, run.call!, {
      executionId,
      seal,
      loopback,
      timeoutMs,
      log,
    });
    return { executionId, attempt, input };
  }

  /** Asks for the draft of a step; a second attempt gets what the first one did. */
  async function draft({ call }: Run, input: unknown): Promise<{ input: unknown } | { error: string }> {
    const { leadId, requestedBy, messageId } = call!;
    if (!leadId) return { error: "There is no lead to write to." };
    try {
      const { instructions } = input as { instructions?: string };
      const { id, ...written } = await draftLeadEmail(pool, drafts, {
        leadId,
        requestedBy,
        instructions: instructions ?? null,
        request: messageId,
      });
      return { input: { generationId: id, ...written } };
    } catch (error) {
      return { error: (error as Error).message };
    }
  }

  /** Lets those go on for whom the event has come that they waited for. */
  async function wake(): Promise<boolean> {
    return inTransaction(pool, async (client) => {
      const { rows } = await client.query<{ woken: Woken[] | null }>(
        "select app_private.wake_executions($1) as woken",
        [batch.COMPUTED],
      );
      const { woken } = rows[0]!;
      const results = (woken ?? []).flatMap(({ stepId, executionId, attempt, config, data, events }) => {
        const event = events?.find((one) => holds(config.conditions, { ...data, event: one }));
        if (!event) return [];
        const { data: _data, changes: _changes, ...found } = event;
        return [{ stepId, executionId, attempt, input: { ...config, found } }];
      });
      if (results.length > 0)
        await client.query("select app_private.settle_wakeups($1)", [JSON.stringify(results)]);
      return woken !== null;
    });
  }

  /** Does the work, and again where others were in the way; a fault is logged, and the work left alone for a while. */
  async function tryTo(key: string, work: () => Promise<boolean>): Promise<boolean> {
    if (stopping || (faults.get(key) ?? 0) > Date.now()) return false;
    try {
      const found = await work();
      faults.delete(key);
      return found;
    } catch (error) {
      if (isRetryable(error)) return true;
      faults.set(key, Date.now() + faultPauseMs);
      report(error);
      return false;
    }
  }

  const report = (error: unknown) => {
    if (!stopping) log.warn({ err: error }, "Workflows could not be looked after; they are in a moment.");
  };
  const worker = onCall(async () => {
    for (let found = true; found;) {
      const { rows: due } = await pool.query<DueStep>("select * from app_private.due_workflow_steps()");
      found = await tryTo("wake", wake);
      // In turn, so that a long queue of one workflow keeps no other from going on.
      await Promise.all(
        lanes.map(async () => {
          for (const step of due) {
            const key = `${step.workflow_id} ${step.steps_revision} ${step.sequence}`;
            if (await tryTo(key, () => takeStep(step))) found = true;
          }
        }),
      );
    }
  }, report);
  const keeper = onCall(async () => {
    await pool.query("select app_private.free_executions(), app_private.resume_due_executions()");
    worker.call();
  }, report);

  const line = await openCallLine({
    connectionString,
    applicationName: "plat-workflows",
    log,
    listen: { channel: "plat_workflows", called: worker.call },
  }).catch(async (error: unknown) => {
    await pool.end();
    throw error;
  });
  line.keep(keeper.call, lookEveryMs);
  return {
    async stop() {
      stopping = true;
      await line.rest();
      await Promise.all([keeper.idle(), worker.idle()]);
      await Promise.all(underway);
      await worker.idle();
      await line.end();
      await pool.end();
    },
  };
}

/** What the config of a step comes to for an execution, or why it comes to nothing. */
const resultOf =
  (step: Step) =>
  ({ executionId, attempt, data }: Run): Result => {
    try {
      return { executionId, attempt, input: inputOf(step, data) };
    } catch (error) {
      return { executionId, attempt, error: (error as Error).message };
    }
  };
