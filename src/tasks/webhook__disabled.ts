import type { Task } from "graphile-worker";
import { deliverToEach } from "../jobs/deliver.ts";
import { idOf } from "../jobs/payload.ts";
import { webhookDisabled } from "../providers/mail/mailTemplates.ts";

/**
 * Notifies the owners that the service disabled the webhook {id}.
 * Idempotent: another run only reaches those who did not receive it.
 */
const task: Task = async (payload, helpers) => {
  const id = idOf(payload);
  const { rows } = await helpers.query<{
    url: string;
    reason: string;
    organization: string;
    owners: string[];
  }>("select url, reason, organization, owners from app_private.disabled_webhook($1)", [id]);
  const webhook = rows[0];
  if (!webhook) return;
  await deliverToEach(helpers, webhook.owners, {
    key: `webhook disabled ${id} ${helpers.job.id}`,
    ...webhookDisabled(webhook),
  });
};

export default task;
