import type { Task } from "graphile-worker";
import { idOf } from "../jobs/payload.ts";
import { actionsOf } from "../payments/processorEvents.ts";
import { ProcessorRefusal } from "../providers/payments/index.ts";
import type { DatabaseValue } from "../database/databaseValue.ts";

/** Sends the refund {id} to the processor: an overpayment, or a refund of a cancelled purchase. Idempotent. */
const task: Task = async (payload, helpers) => {
  const { rows } = await helpers.query<{ facts: DatabaseValue }>(
    "select app_private.refund_to_make($1) as facts",
    [idOf(payload)],
  );
  const facts = rows[0]?.facts;
  if (!facts) return;
  try {
    await actionsOf(helpers).refund(facts);
  } catch (error) {
    // Recorded as failed; retrying is useless.
    if (!(error instanceof ProcessorRefusal)) throw error;
  }
};

export default task;
