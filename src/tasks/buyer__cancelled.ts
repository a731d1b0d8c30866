import type { Task } from "graphile-worker";
import { deliverWithinQuota } from "../jobs/deliver.ts";
import { idOf, idsOf } from "../jobs/payload.ts";
import { purchaseCancelled, type CancelledPurchase } from "../providers/mail/mailTemplates.ts";

interface Cancelled extends CancelledPurchase {
  recipients: string[];
  organization_id: string;
}

/**
 * Notifies the buyers of the purchase {id} that it was cancelled, and what happens to the charges {charge_ids} and the deposits
 * {deposit_ids}. Idempotent: another run only reaches those who did not receive it.
 * @throws if the quota does not allow a mail; the job is retried then.
 */
const task: Task = async (payload, helpers) => {
  const id = idOf(payload);
  const { rows } = await helpers.query<Cancelled>("select * from app_private.cancellation_mail($1, $2, $3)", [
    id,
    idsOf(payload, "charge_ids"),
    idsOf(payload, "deposit_ids"),
  ]);
  for (const { recipients, organization_id: organizationId, ...purchase } of rows) {
    const message = { key: `purchase cancelled ${id}`, ...purchaseCancelled(purchase) };
    const wait = await deliverWithinQuota(helpers, organizationId, recipients, message);
    if (wait > 0) throw new Error(`There is no room for a mail to a buyer for ${wait} s.`);
  }
};

export default task;
