/**
 * Steps that make external calls: webhooks, drafts, text messages. First, their texts are rendered (src/compute). Then
 * the executions are leased in one transaction. Each call is made outside of any transaction.
 */
import type { Pool, PoolClient } from "pg";
import type { Logger } from "../base/log.ts";
import type { Compute } from "../compute/computePool.ts";
import type { StepResult } from "../compute/tasks.ts";
import type { Line } from "../database/listener.ts";
import { retryDuringOutages } from "../database/outages.ts";
import { inTransaction } from "../database/transaction.ts";
import { draftLeadEmail } from "../drafts/draftLeadEmail.ts";
import type { Engine } from "../engines/engine.ts";
import type { DraftProvider } from "../providers/drafts/index.ts";
import type { SmsProvider } from "../providers/sms/index.ts";
import type { Seal } from "../secrets/seal.ts";
import { callWebhook, type Call } from "./callWebhook.ts";
import { sendTextMessage, type Message } from "./sendTextMessage.ts";
import { batch, keyOf, placeOf, type Computations, type DueStep, type StepItem } from "./steps.ts";

/** Maximum number of calls in flight per process, and of one organization, whose receivers may not answer. */
const capacity = 128;
const ofOrganization = 32;
/** Timeout of drafting. */
const draftMs = 120_000;

/** An execution that makes a call. */
interface Run {
  executionId: string;
  attempt: number;
  call: Call;
  /** Evaluated config of the step. */
  result: StepResult;
  /** The text message of the step, if it sends one, and when it was recorded. */
  noted?: { message: Message; notedAt: number };
}

interface Step {
  id: string;
  type: string;
}

interface Taken {
  step?: Step;
  runs?: Omit<Run, "result">[] | null;
}

type CallResult = { executionId: string; attempt: number } & (
  { input: unknown } | { error: string; code?: string }
);

interface CallsOptions {
  seal: Seal;
  /** Whether URLs may point to this machine. */
  loopback: boolean;
  compute: Compute;
  drafts: DraftProvider;
  sms: SmsProvider;
  log: Logger;
  /** Timeout of a call. */
  timeoutMs: number;
  /** Called when a call has ended. */
  ended: () => void;
}

/** Executes a step; `ids` are the executions, by default the next ones due. */
export async function takeStep(
  client: Pick<Pool, "query">,
  due: DueStep,
  most: number,
  ids?: string[],
): Promise<Taken | null> {
  const { rows } = await client.query<{ taken: Taken | null }>(
    "select app_private.take_workflow_step($1, $2, $3, $4, $5) as taken",
    [...placeOf(due), most, ids ?? null],
  );
  return rows[0]!.taken;
}

export class Calls {
  readonly #engine: Engine;
  readonly #computations: Computations;
  readonly #options: CallsOptions;
  /** Calls in flight by organization, including those whose texts are being rendered. */
  readonly #inFlight = new Map<string, number>();
  /** Steps whose texts are being rendered. */
  readonly #writing = new Set<string>();

  constructor(engine: Engine, computations: Computations, options: CallsOptions) {
    this.#engine = engine;
    this.#computations = computations;
    this.#options = options;
  }

  /** Renders the texts of calls, then makes the calls; returns whether there were any. */
  async take(due: DueStep): Promise<boolean> {
    const key = keyOf(due);
    const room = Math.min(this.#room(due.organization_id), batch.CALL);
    if (room <= 0 || this.#writing.has(key)) return false;
    const { rows } = await this.#engine.pool.query<StepItem>(
      "select * from app_private.look_at_step($1, $2, $3, $4)",
      [...placeOf(due), room],
    );
    if (rows.length === 0) return false;
    this.#writing.add(key);
    this.#count(due.organization_id, rows.length);
    this.#computations.begin(due.organization_id, key, async () => {
      try {
        await this.#begin(due, rows, await this.#write(due, rows));
      } finally {
        this.#writing.delete(key);
        this.#count(due.organization_id, -rows.length);
      }
    });
    return true;
  }

  /** Texts of calls, by execution. */
  async #write(due: DueStep, rows: StepItem[]): Promise<ReadonlyMap<string, StepResult>> {
    const step = rows.find((row) => row.step !== null)?.step ?? "null";
    const items = rows.flatMap(({ item }) => item ?? []);
    const texts = await this.#options.compute.runTexts(due.organization_id, "step", JSON.parse(step), items);
    const results = texts.map((text) => JSON.parse(text) as StepResult);
    return new Map(results.map((result) => [result.executionId, result]));
  }

  /** Leases the executions and starts their calls. */
  async #begin(
    due: DueStep,
    rows: readonly StepItem[],
    written: ReadonlyMap<string, StepResult>,
  ): Promise<void> {
    const holder = this.#engine.holder();
    if (!holder) return;
    const ids = rows.map(({ execution_id }) => execution_id);
    const locked = new Set<string>();
    try {
      const leased = await inTransaction(this.#engine.pool, (client) =>
        this.#lease(client, due, { ids, written, holder, locked }),
      );
      for (const run of leased?.runs ?? []) {
        this.#start(due.organization_id, leased!.step, run, holder);
        locked.delete(run.executionId);
      }
    } finally {
      if (locked.size > 0) await unlock(holder, [...locked]);
    }
  }

  async #lease(
    client: PoolClient,
    due: DueStep,
    {
      ids,
      written,
      holder,
      locked,
    }: { ids: string[]; written: ReadonlyMap<string, StepResult>; holder: Line; locked: Set<string> },
  ): Promise<{ step: Step; runs: Run[] } | undefined> {
    const found = await takeStep(client, due, ids.length, ids);
    // An execution that has moved on to another attempt is looked up again.
    const runs = (found?.runs ?? []).flatMap((run): Run[] => {
      const result = written.get(run.executionId);
      return result?.attempt === run.attempt ? [{ ...run, result }] : [];
    });
    if (!found?.step || runs.length === 0) return undefined;
    // A concurrent cancellation holds the lock and waits for the row: it wins.
    const { rows } = await holder.query<{ id: string }>(
      "select x as id from unnest($1::uuid[]) x where pg_try_advisory_lock(app_private.execution_lock(x))",
      [runs.map(({ executionId }) => executionId)],
    );
    for (const { id } of rows) locked.add(id);
    const { step } = found;
    const held = runs.filter(({ executionId }) => locked.has(executionId));
    const { timeoutMs } = this.#options;
    await client.query("select app_private.hold_executions($1, $2, $3, make_interval(secs => $4))", [
      step.id,
      JSON.stringify(held.map(({ executionId, attempt }) => ({ executionId, attempt }))),
      holder.id,
      (step.type === "DRAFT_WITH_AI" ? draftMs : timeoutMs) / 1000 + 20,
    ]);
    return { step, runs: step.type === "SEND_SMS" ? await beginMessages(client, step, held) : held };
  }

  /** How many further calls of an organization can be made. */
  #room(organizationId: string): number {
    const all = [...this.#inFlight.values()].reduce((sum, count) => sum + count, 0);
    return Math.min(capacity - all, ofOrganization - (this.#inFlight.get(organizationId) ?? 0));
  }

  #count(organizationId: string, by: number): void {
    const count = (this.#inFlight.get(organizationId) ?? 0) + by;
    if (count > 0) this.#inFlight.set(organizationId, count);
    else this.#inFlight.delete(organizationId);
  }

  #start(organizationId: string, step: Step, run: Run, holder: Line): void {
    this.#count(organizationId, 1);
    this.#engine.lease(holder, () =>
      this.#bringIn(step, run, holder).finally(() => {
        this.#count(organizationId, -1);
        this.#options.ended();
      }),
    );
  }

  async #bringIn(step: Step, run: Run, holder: Line): Promise<void> {
    try {
      const result = await this.#call(step, run);
      await retryDuringOutages(() =>
        this.#engine.pool.query("select app_private.complete_call($1, $2, $3)", [
          step.id,
          JSON.stringify(result),
          holder.id,
        ]),
      );
    } catch (error) {
      // The call is repeated when the lease expires.
      this.#options.log.error(
        { event: "workflow.call_failed", err: error },
        "An external call of a workflow step failed unexpectedly; the step is retried.",
      );
    }
    await unlock(holder, [run.executionId]);
  }

  async #call({ type }: Step, run: Run): Promise<CallResult> {
    const { executionId, attempt, noted, result } = run;
    const { sms, seal, loopback, timeoutMs, log } = this.#options;
    if (noted)
      return { executionId, attempt, input: await sendTextMessage(sms, noted.message, noted.notedAt) };
    if ("error" in result) return result;
    if (type === "DRAFT_WITH_AI")
      return { executionId, attempt, ...(await this.#draft(run.call, result.input)) };
    const input = await callWebhook(result.input, run.call, { executionId, seal, loopback, timeoutMs, log });
    return { executionId, attempt, input };
  }

  /** Requests the draft of a step; a second attempt gets the draft of the first one. */
  async #draft(call: Call, input: unknown): Promise<{ input: unknown } | { error: string }> {
    const { leadId, requestedBy, messageId, organizationId } = call;
    const { drafts, compute } = this.#options;
    if (!leadId) return { error: "There is no lead to write to." };
    try {
      const { instructions } = input as { instructions?: string };
      const { id, ...written } = await draftLeadEmail(
        this.#engine.pool,
        drafts,
        { compute, tenant: `drafts of ${organizationId}` },
        { leadId, requestedBy, instructions: instructions ?? null, request: messageId },
      );
      return { input: { generationId: id, ...written } };
    } catch (error) {
      return { error: (error as Error).message };
    }
  }
}

/** Records the messages of a step and returns the runs with a message to send; the others are completed. */
async function beginMessages(client: PoolClient, step: Step, runs: Run[]): Promise<Run[]> {
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

async function unlock({ query }: Line, ids: string[]): Promise<void> {
  await query("select pg_advisory_unlock(app_private.execution_lock(x)) from unnest($1::uuid[]) x", [
    ids,
  ]).catch(() => {}); // a connection that broke holds nothing
}
