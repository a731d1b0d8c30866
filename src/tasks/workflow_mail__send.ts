import type { Task } from "graphile-worker";
import { deliverWithinQuota, postpone } from "../jobs/deliver.ts";
import { idOf, numberOf } from "../jobs/payload.ts";
import { marketing, unsubscribeLink } from "../notifications/unsubscribeLinks.ts";
import { composedMail } from "../providers/mail/mailTemplates.ts";

interface Mail {
  key: string;
  recipients: string[];
  subject: string;
  body: string;
  html: string | null;
  replyName: string;
  replyAddress: string | null;
  organization: string;
  workflow: string;
  toTeam: boolean;
  senderId: string | null;
  postalAddress: string | null;
  personId: string | null;
  organizationId: string;
}

/**
 * Sends the mail of the step {executionId, sequence} of a workflow.
 * Idempotent: another run only reaches those who did not receive it. Waits while the organization is above its quota.
 */
const task: Task = async (payload, helpers) => {
  const place = [idOf(payload, "executionId"), numberOf(payload, "sequence")];
  const { rows } = await helpers.query<Mail>(
    `select key, recipients, subject, body, html, reply_to_name as "replyName", reply_to_address as "replyAddress", organization, workflow, to_team as "toTeam",
       postal_address as "postalAddress", person_id as "personId", organization_id as "organizationId",
       case when not to_team then app_private.workflow_mail_sender($1) end as "senderId"
     from app_private.workflow_mail($1, $2)`,
    place,
  );
  const mail = rows[0];
  if (!mail) return;
  const { key, replyName, replyAddress } = mail;
  const unsubscribe =
    mail.personId === null
      ? undefined
      : await unsubscribeLink(helpers, { kind: marketing, readerId: mail.personId });
  const wait = await deliverWithinQuota(
    helpers,
    mail.organizationId,
    mail.recipients,
    {
      key,
      ...(replyAddress ? { replyTo: { name: replyName, address: replyAddress } } : {}),
      ...(unsubscribe && { unsubscribe }),
      ...composedMail({ ...mail, unsubscribe }),
    },
    mail.senderId,
  );
  if (wait > 0) await postpone(helpers, payload, wait);
  else await helpers.query("select app_private.note_workflow_mail($1, $2)", place);
};

export default task;
