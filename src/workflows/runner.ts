/**
 * Takes the steps of workflows that are due; see migrations/objects/08-workflows/workflow-engine.sql. The database decides everything:
 * this has conditions evaluated and texts written (src/compute) and calls others on its behalf, while no transaction is open. Any
 * number of processes may do so at once; what one of them held when it died is due again when its connection is gone and stays so.
 */
import type { Pool, PoolClient } from "pg";
import { ComputeStopped, type Compute } from "../compute/pool.ts";
import type { Computed, StepResult } from "../compute/tasks.ts";
import { openListener, type Line } from "../database/listener.ts";
import { isRetryable } from "../database/databaseErrors.ts";
import { isOutage, throughOutages } from "../database/outages.ts";
import { workPoolOf } from "../database/workConnections.ts";
import { inTransaction } from "../database/transaction.ts";
import { draftLeadEmail } from "../drafts/draftLeadEmail.ts";
import type { Logger } from "../base/log.ts";
import { coalesceCalls } from "../base/coalesceCalls.ts";
import { createDraftProvider, type DraftProvider } from "../providers/drafts/index.ts";
import type { SmsProvider } from "../providers/sms/index.ts";
import type { Seal } from "../secrets/seal.ts";
import { callWebhook, type Call } from "./callWebhook.ts";
import { handOver, type Message } from "./handOver.ts";

export interface WorkflowsOptions {
  /** That of plat_worker. */
  connectionString: string;
  /** The connections that the engines of a process share; its own where omitted. */
  pool?: Pick<Pool, "query" | "connect">;
  seal: Seal;
  /** Whether addresses may lead to this machine. */
  loopback: boolean;
  /** Evaluates conditions and writes texts. */
  compute: Compute;
  log: Logger;
  /** Who writes drafts; the embedded composer where omitted. */
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
/** Batches of one organization that are computed, or wait for it, at a time. */
const batchesAtOnce = 2;
/** How long executions may be computed, with what waits before them: those of a worker that lives but does not come back are due again. */
const computeLeaseSeconds = 600;
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
  organization_id: string;
}

/** What computing a step for an execution takes; texts are JSON that is not read here. */
interface StepItem {
  execution_id: string;
  /** Null for an execution that has lost what it is about. */
  item: string | null;
  /** With the first one. */
  step: string | null;
}

/** An execution for which somebody is called. */
interface Run {
  executionId: string;
  attempt: number;
  call: Call;
  /** What its config came to. */
  result: StepResult;
  /** The text message of a step that sends one, and when it was noted. */
  noted?: { message: Message; notedAt: number };
}

interface Taken {
  step?: { id: string; type: string };
  runs?: Omit<Run, "result">[] | null;
}

interface Woken {
  organization_id: string;
  step_id: string;
  execution_id: string;
  attempt: number;
  event_ids: string[];
  item: string;
}

type CallResult = { executionId: string; attempt: number } & (
  { input: unknown } | { error: string; code?: string }
);

/** Starts to take steps, once the database can be reached. */
export async function startWorkflows(options: WorkflowsOptions): Promise<Workflows> {
  const {
    connectionString,
    seal,
    loopback,
    compute,
    log,
    drafts = createDraftProvider(),
    sms,
    timeoutMs = 10_000,
  } = options;
  const pool = workPoolOf(options.pool, {
    connectionString,
    max: lanes.length + 2,
    applicationName: "plat-workflows",
    log,
  });
  const calls = new Set<Promise<void>>();
  /** Calls whose texts are being written. */
  let reserved = 0;
  const computations = new Set<Promise<void>>();
  /** Batches at a time, by organization. */
  const computing = new Map<string, number>();
  /** Steps whose calls are being written. */
  const writing = new Set<string>();
  const faults = new Map<string, number>();
  /** When steps were taken last, in rounds: who has waited longest goes first. */
  const rounds = new Map<string, number>();
  let round = 0;
  let stopping = false;

  const keyOf = ({ workflow_id, steps_revision, sequence }: DueStep) =>
    `${workflow_id} ${steps_revision} ${sequence}`;
  const placeOf = ({ workflow_id, steps_revision, sequence }: DueStep) => [
    workflow_id,
    steps_revision,
    sequence,
  ];

  const take = async (client: Pick<Pool, "query">, due: DueStep, most: number, ids?: string[]) => {
    const { rows } = await client.query<{ taken: Taken | null }>(
      "select app_private.take_workflow_step($1, $2, $3, $4, $5) as taken",
      [...placeOf(due), most, ids ?? null],
    );
    return rows[0]!.taken;
  };

  /** Whether there was something to do. */
  async function takeStep(due: DueStep): Promise<boolean> {
    if (due.way === "SQL") return (await take(pool, due, batch.SQL)) !== null;
    const current = line.current();
    // Without the line, what it holds would be taken for that of a dead one. Who has had its share comes back in a while.
    if (!current || (computing.get(due.organization_id) ?? 0) >= batchesAtOnce) return false;
    if (compute.isSpent(due.organization_id)) return false;
    rounds.set(keyOf(due), (round += 1));
    return due.way === "CALL" ? writeCalls(due) : computeStep(due, current);
  }

  /** Computes beside everything else: no transaction is open, and no lane is taken. */
  function beside(due: Pick<DueStep, "organization_id">, key: string, work: () => Promise<void>): void {
    const organization = due.organization_id;
    computing.set(organization, (computing.get(organization) ?? 0) + 1);
    const running = work()
      .catch((error: unknown) => {
        if (error instanceof ComputeStopped) return;
        if (!isRetryable(error)) {
          faults.set(key, performance.now() + faultPauseMs);
          report(error);
        }
      })
      .finally(() => {
        const left = computing.get(organization)! - 1;
        if (left > 0) computing.set(organization, left);
        else computing.delete(organization);
        computations.delete(running);
        worker.call();
      });
    computations.add(running);
  }

  /** Claims executions, and has the step computed and carried out for them. */
  async function computeStep(due: DueStep, current: Line): Promise<boolean> {
    const { id: holder } = current;
    const { rows } = await pool.query<StepItem>(
      "select * from app_private.claim_step($1, $2, $3, $4, $5, make_interval(secs => $6))",
      [...placeOf(due), batch.COMPUTED, holder, computeLeaseSeconds],
    );
    if (rows.length === 0) return false;
    const ids = rows.map(({ execution_id }) => execution_id);
    beside(due, keyOf(due), () =>
      orRelease(ids, current, async () => {
        const step = rows.find((row) => row.step !== null)!.step!;
        const results = await compute.runTexts(
          due.organization_id,
          "step",
          JSON.parse(step),
          rows.map(({ item }) => item!),
        );
        await inLane(() =>
          pool.query("select app_private.complete_step($1, $2, $3)", [
            (JSON.parse(step) as { id: string }).id,
            `[${results.join(",")}]`,
            holder,
          ]),
        );
      }),
    );
    return true;
  }

  /** What is held and not carried out is given back. */
  async function orRelease(ids: string[], holder: Line, work: () => Promise<unknown>): Promise<void> {
    const letGo = holder.hold();
    try {
      await work();
    } catch (error) {
      await pool
        .query("select app_private.release_executions($1, $2)", [ids, holder.id])
        .catch(() => line.renew());
      throw error;
    } finally {
      letGo();
    }
  }

  /** Computations that are done are written as many at a time as there are lanes, so that the pool has connections for others. */
  const inLane = limited(lanes.length);

  /** Has the texts of calls written, and then calls. */
  async function writeCalls(due: DueStep): Promise<boolean> {
    const key = keyOf(due);
    const room = Math.min(capacity - calls.size - reserved, batch.CALL);
    if (room <= 0 || writing.has(key)) return false;
    const { rows } = await pool.query<StepItem>("select * from app_private.look_at_step($1, $2, $3, $4)", [
      ...placeOf(due),
      room,
    ]);
    if (rows.length === 0) return false;
    writing.add(key);
    reserved += rows.length;
    beside(due, key, async () => {
      try {
        const step = rows.find((row) => row.step !== null)?.step ?? "null";
        const items = rows.flatMap(({ item }) => item ?? []);
        const results = await compute.runTexts(due.organization_id, "step", JSON.parse(step), items);
        const written = results.map((text) => JSON.parse(text) as StepResult);
        await takeCalls(
          due,
          rows.map(({ execution_id }) => execution_id),
          new Map(written.map((result) => [result.executionId, result])),
        );
      } finally {
        writing.delete(key);
        reserved -= rows.length;
      }
    });
    return true;
  }

  async function takeCalls(
    due: DueStep,
    ids: string[],
    written: ReadonlyMap<string, StepResult>,
  ): Promise<void> {
    const current = line.current();
    if (!current || stopping) return;
    let locked: string[] = [];
    try {
      const taken = await inTransaction(pool, async (client) => {
        const found = await take(client, due, ids.length, ids);
        // One that has gone on to another attempt meanwhile is looked at again.
        const runs = (found?.runs ?? []).flatMap((run): Run[] => {
          const result = written.get(run.executionId);
          return result?.attempt === run.attempt ? [{ ...run, result }] : [];
        });
        if (!found?.step || runs.length === 0) return undefined;
        // Who cancels has the lock and waits for the row: it is theirs.
        const { rows } = await current.query<{ id: string }>(
          "select x as id from unnest($1::uuid[]) x where pg_try_advisory_lock(app_private.execution_lock(x))",
          [runs.map(({ executionId }) => executionId)],
        );
        locked = rows.map(({ id }) => id);
        const { step } = found;
        let held = runs.filter(({ executionId }) => locked.includes(executionId));
        await client.query("select app_private.hold_executions($1, $2, $3, make_interval(secs => $4))", [
          step.id,
          JSON.stringify(held.map(({ executionId, attempt }) => ({ executionId, attempt }))),
          current.id,
          (step.type === "DRAFT_WITH_AI" ? draftMs : timeoutMs) / 1000 + 20,
        ]);
        if (step.type === "SEND_SMS") held = await beginMessages(client, step, held);
        return { step, held };
      });
      for (const run of taken?.held ?? []) {
        start(taken!.step, run, current);
        locked.splice(locked.indexOf(run.executionId), 1);
      }
    } finally {
      if (locked.length > 0) await release(current, locked);
    }
  }

  /** Notes the messages of a step, and gives the runs that have one to hand over; the others are completed. */
  async function beginMessages(client: PoolClient, step: { id: string }, runs: Run[]): Promise<Run[]> {
    const notedAt = performance.now();
    const { rows } = await client.query<{ messages: Record<string, Message> }>(
      "select app_private.begin_messages($1, $2) as messages",
      [step.id, JSON.stringify(runs.map(({ result }) => result))],
    );
    return runs.flatMap((run) => {
      const message = rows[0]!.messages[run.executionId];
      return message ? [{ ...run, noted: { message, notedAt } }] : [];
    });
  }

  const release = async ({ query }: Line, ids: string[]): Promise<void> => {
    await query("select pg_advisory_unlock(app_private.execution_lock(x)) from unnest($1::uuid[]) x", [
      ids,
    ]).catch(() => {}); // a connection that broke holds nothing
  };

  function start(step: { id: string; type: string }, run: Run, holder: Line): void {
    const letGo = holder.hold();
    const calling = bringIn(step, run, holder).finally(() => {
      letGo();
      calls.delete(calling);
      worker.call();
    });
    calls.add(calling);
  }

  async function bringIn(step: { id: string; type: string }, run: Run, holder: Line): Promise<void> {
    try {
      const result = await callOne(step, run);
      await throughOutages(() =>
        pool.query("select app_private.complete_call($1, $2, $3)", [
          step.id,
          JSON.stringify(result),
          holder.id,
        ]),
      );
    } catch (error) {
      // It is called again when the lease is over.
      log.error({ event: "workflow.call_failed", err: error }, "A call of a workflow failed unexpectedly.");
    }
    await release(holder, [run.executionId]);
  }

  async function callOne({ type }: { type: string }, run: Run): Promise<CallResult> {
    const { executionId, attempt, noted, result } = run;
    if (noted) return { executionId, attempt, input: await handOver(sms, noted.message, noted.notedAt) };
    if ("error" in result) return result;
    if (type === "DRAFT_WITH_AI") return { executionId, attempt, ...(await draft(run, result.input)) };
    const input = await callWebhook(result.input, run.call, {
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
    const { leadId, requestedBy, messageId, organizationId } = call;
    if (!leadId) return { error: "There is no lead to write to." };
    try {
      const { instructions } = input as { instructions?: string };
      const { id, ...written } = await draftLeadEmail(
        pool,
        drafts,
        { compute, tenant: `drafts of ${organizationId}` },
        {
          leadId,
          requestedBy,
          instructions: instructions ?? null,
          request: messageId,
        },
      );
      return { input: { generationId: id, ...written } };
    } catch (error) {
      return { error: (error as Error).message };
    }
  }

  /** Lets those go on for whom the event has come that they waited for; whether there was something to look at. */
  async function wake(): Promise<boolean> {
    const current = line.current();
    if (!current) return false;
    const { id: holder } = current;
    const { rows } = await pool.query<Woken>(
      "select * from app_private.wake_executions($1, $2, make_interval(secs => $3), $4)",
      [
        batch.COMPUTED,
        holder,
        computeLeaseSeconds,
        [
          ...compute.spent(),
          ...[...computing].filter(([, batches]) => batches >= batchesAtOnce).map(([id]) => id),
        ],
      ],
    );
    for (const [organization_id, woken] of Map.groupBy(rows, (row) => row.organization_id)) {
      const ids = woken.map(({ execution_id }) => execution_id);
      beside({ organization_id }, "wake", () =>
        orRelease(ids, current, () => decide(organization_id, woken, holder)),
      );
    }
    return rows.length > 0;
  }

  /** Which of the events an execution goes on with, if any. */
  async function decide(organization: string, woken: Woken[], holder: number): Promise<void> {
    const texts = await compute.runTexts(
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
    await inLane(() =>
      pool.query("select app_private.complete_wakeups($1, $2)", [JSON.stringify(results), holder]),
    );
  }

  /** Does the work, and again where others were in the way; a fault is logged, and the work left alone for a while. */
  async function tryTo(key: string, work: () => Promise<boolean>): Promise<boolean> {
    if (stopping || (faults.get(key) ?? 0) > performance.now()) return false;
    try {
      const found = await work();
      faults.delete(key);
      return found;
    } catch (error) {
      if (isRetryable(error)) return true;
      faults.set(key, performance.now() + faultPauseMs);
      report(error);
      return false;
    }
  }

  const report = (error: unknown) => {
    if (isOutage(error)) line.renew();
    if (!stopping)
      log.warn({ event: "workflow.run_failed", err: error }, "Running workflow steps failed; retrying.");
  };
  const worker = coalesceCalls(async () => {
    for (let found = true; found;) {
      const { rows } = await pool.query<DueStep>("select * from app_private.due_workflow_steps()");
      const due = rows.toSorted((a, b) => (rounds.get(keyOf(a)) ?? 0) - (rounds.get(keyOf(b)) ?? 0));
      if (rounds.size > 1000) rounds.clear();
      found = await tryTo("wake", wake);
      // In turn, so that a long queue of one workflow keeps no other from going on.
      await Promise.all(
        lanes.map(async () => {
          for (const step of due) {
            if (await tryTo(keyOf(step), () => takeStep(step))) found = true;
          }
        }),
      );
    }
  }, report);
  const keeper = coalesceCalls(async () => {
    await pool.query("select app_private.free_executions(), app_private.resume_due_executions()");
    worker.call();
  }, report);

  const line = await openListener({
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
      await Promise.all(computations);
      await Promise.all(calls);
      await worker.idle();
      await line.end();
      await pool.end();
    },
  };
}

/** Does so many things at a time, in the order in which they came. */
function limited(most: number): <T>(work: () => Promise<T>) => Promise<T> {
  const waiting: (() => void)[] = [];
  let running = 0;
  return async (work) => {
    if (running >= most) await new Promise<void>((turn) => waiting.push(turn));
    else running += 1;
    try {
      return await work();
    } finally {
      const next = waiting.shift();
      if (next) next();
      else running -= 1;
    }
  };
}
