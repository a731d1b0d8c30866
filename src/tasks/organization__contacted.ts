import type { Task } from "graphile-worker";
import { deliverWithinQuota } from "../jobs/deliver.ts";
import { idOf } from "../jobs/payload.ts";
import { organizationContacted, type VisitorMessage } from "../providers/mail/mailTemplates.ts";

/**
 * Forwards the message {id} of a visitor to the organization's mailbox, or to its owners.
 * Idempotent: another run only reaches those who did not receive it.
 */
const task: Task = async (payload, helpers) => {
  const id = idOf(payload);
  const { rows } = await helpers.query<
    VisitorMessage & { organization: string; organizationId: string; mailboxes: string[] }
  >(
    `select name, email, phone, message, organization, organization_id as "organizationId", mailboxes
     from app_private.organization_message($1)`,
    [id],
  );
  const message = rows[0];
  if (!message) return;
  // Messages above the limit of an unconfirmed address remain in the database.
  await deliverWithinQuota(helpers, message.organizationId, message.mailboxes, {
    key: `organization contacted ${id}`,
    replyTo: { name: message.name, address: message.email },
    ...organizationContacted(message),
  });
};

export default task;
