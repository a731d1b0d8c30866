import type { JobHelpers } from "graphile-worker";
import { paymentMoves, type PaymentMoves, type Query } from "./moves.ts";

/** The moves for a job, whose statements are those of the owner. */
export function movesOf({ payments, query }: Pick<JobHelpers, "payments" | "query">): PaymentMoves {
  return paymentMoves(payments, query as Query);
}

/** Writes down the present state of what an event is about, whatever the event itself said. */
export async function lookAt(helpers: JobHelpers, eventId: string): Promise<void> {
  const { rows } = await helpers.query<{ payment: any; account: any }>(
    `select app_private.payment_of_processor(e.object_id) as payment, app_private.account_to_sync(e.account_id) as account
     from app_private.processor_events e where e.id = $1 and e.handled_at is null`,
    [eventId],
  );
  const about = rows[0];
  if (!about) return;
  const moves = movesOf(helpers);
  if (about.payment) await moves.look(about.payment);
  else if (about.account) await moves.lookAtAccount(about.account);
  await helpers.query("select app_private.handled_processor_event($1)", [eventId]);
}
