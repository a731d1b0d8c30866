import type { Task } from "graphile-worker";
import { actionsOf } from "../payments/processorEvents.ts";
import { ProcessorFailure } from "../providers/payments/index.ts";
import type { DatabaseValue } from "../database/databaseValue.ts";

const most = 100;
/** Events may be listed with a short delay. */
const overlapSeconds = 300;

/**
 * Reconciles payments, refunds and representatives whose result is unknown because a process died or the processor did not answer, and
 * reads events whose notification was lost. Idempotent.
 */
const task: Task = async (_payload, helpers) => {
  const { query, payments, logger, abortSignal } = helpers;
  const actions = actionsOf(helpers);
  const { rows } = await query<{ facts: DatabaseValue }>(
    "select app_private.payments_to_reconcile($1) as facts",
    [most],
  );
  let failures = 0;
  for (const { facts } of rows) {
    if (abortSignal?.aborted) return;
    const { kind, abandon } = facts;
    try {
      if (kind === "refund") await actions.refund(facts);
      else if (kind === "representative") await actions.submitRepresentative(facts);
      else if (kind === "account") await actions.refreshAccount(facts);
      else if (abandon || !facts.processorId) await actions.abandon(facts);
      else await actions.refreshPayment(facts);
    } catch (error) {
      logger.warn(`Asking the payment processor about a ${kind} failed: ${(error as Error).message}`, {
        event: "payments.reconcile_failed",
      });
      // The processor is unreachable: the others would time out as well.
      if (error instanceof ProcessorFailure && (failures += 1) === 3) return;
    }
    await query("select app_private.note_looked_at($1, $2)", [kind, facts.id ?? facts.organizationId]);
  }

  const { rows: swept } = await query<{ since: Date | null }>(
    "select app_private.sweep_processor_events() as since",
    [],
  );
  const since = swept[0]!.since;
  const from = since ? since.getTime() / 1000 - overlapSeconds : Date.now() / 1000 - 24 * 60 * 60;
  for (const event of await payments.eventsSince(from))
    if (event.objectId !== null || event.accountId !== null)
      await query("select app_private.take_processor_event($1)", [JSON.stringify(event)]);
};

export default task;
