import type { Task } from "graphile-worker";
import { idOf } from "../jobs/payload.ts";
import { actionsOf } from "../payments/processorEvents.ts";
import { ProcessorRefusal } from "../providers/payments/index.ts";

/** Accepts the dispute of the charge {id} at the processor, and resolves the ticket {ticket_id} with the result. Idempotent. */
const task: Task = async (payload, helpers) => {
  const { query, payments } = helpers;
  const ticketId = idOf(payload, "ticket_id");
  const { rows } = await query<{ intent: string; charge: string; payment: string }>(
    "select intent, charge, payment from app_private.disputed_charge($1)",
    [idOf(payload)],
  );
  const { intent, charge, payment } = rows[0]!;
  let refused: string | null = null;
  try {
    await payments.acceptDispute(charge);
  } catch (error) {
    if (!(error instanceof ProcessorRefusal)) throw error;
    refused = error.message;
  }
  await actionsOf(helpers).refreshPayment({ id: intent, processorId: payment });
  await query("select app_private.end_resolution($1, $2)", [ticketId, refused]);
};

export default task;
