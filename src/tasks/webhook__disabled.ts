import type { Task } from "graphile-worker";
import { deliverToEach } from "../jobs/deliver.ts";
import { idOf } from "../jobs/payload.ts";
import { webhookDisabled } from "../providers/mail/templates.ts";

/**
 * Tells the owners that the webhook {id} was disabled by the service.
 * Run twice: goes to those only who did not get it.
 */
const task: Task = async (payload, helpers) => {
  const id = idOf(payload);
  const { rows } = await helpers.query<{
    url: string;
    reason: string;
    organization: string;
    owners: string[];
  }>(
    `select w.url, w.disabled_reason as reason, o.name as organization,
       array(select i.email::text from app_public.organization_user_connections m
         join app_public.users u on u.id = m.user_id and u.status = 'ACTIVE' and u.deleted_at is null
         join app_hidden.user_identities i on i.user_id = u.id
         where m.organization_id = o.id and m.role = 'OWNER') as owners
     from app_public.webhooks w join app_public.organizations o on o.id = w.organization_id
     where w.id = $1 and w.integration_id is null and w.status = 'DISABLED' and w.deleted_at is null and o.deleted_at is null`,
    [id],
  );
  const webhook = rows[0];
  if (!webhook) return;
  await deliverToEach(helpers, webhook.owners, {
    key: `webhook disabled ${id} ${helpers.job.id}`,
    ...webhookDisabled(webhook),
  });
};

export default task;
