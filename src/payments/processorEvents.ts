import type { JobHelpers } from "graphile-worker";
import { paymentActions, type PaymentActions, type Query } from "./paymentActions.ts";
import type { DatabaseValue } from "../database/databaseValue.ts";

/** The actions for a job, whose statements run as plat_worker. */
export function actionsOf({ payments, query }: Pick<JobHelpers, "payments" | "query">): PaymentActions {
  return paymentActions(payments, query as Query);
}

/** Stores the current state of the object of an event, whatever the event itself contained. */
export async function storeCurrentState(helpers: JobHelpers, eventId: string): Promise<void> {
  const { rows } = await helpers.query<{ payment: DatabaseValue; account: DatabaseValue }>(
    "select payment, account from app_private.subject_of_processor_event($1)",
    [eventId],
  );
  const about = rows[0];
  if (!about) return;
  const actions = actionsOf(helpers);
  if (about.payment) await actions.refreshPayment(about.payment);
  else if (about.account) await actions.refreshAccount(about.account);
  await helpers.query("select app_private.handled_processor_event($1)", [eventId]);
}
