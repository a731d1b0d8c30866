import type { Task } from "graphile-worker";
import { deliverWithinQuota, postpone } from "../jobs/deliver.ts";
import { idOf } from "../jobs/payload.ts";
import { marketing, unsubscribeLink } from "../notifications/unsubscribeLinks.ts";
import { acceptedDraft } from "../providers/mail/mailTemplates.ts";

interface Mail {
  recipient: string;
  subject: string;
  body: string;
  sender: string;
  replyTo: string | null;
  organization: string;
  postalAddress: string | null;
  leadId: string;
  organizationId: string;
}

/** Sends the draft {id} to its lead, after a person has decided to send it. Idempotent: the mail is sent once. */
const task: Task = async (payload, helpers) => {
  const id = idOf(payload);
  const { rows } = await helpers.query<Mail>(
    `select recipient, subject, body, sender, reply_to as "replyTo", organization, postal_address as "postalAddress", lead_id as "leadId", organization_id as "organizationId"
     from app_private.generation_mail($1, $2)`,
    [id, idOf(payload, "senderId")],
  );
  const mail = rows[0];
  if (!mail) return;
  const unsubscribe = await unsubscribeLink(helpers, { kind: marketing, readerId: mail.leadId });
  const wait = await deliverWithinQuota(
    helpers,
    mail.organizationId,
    mail.recipient,
    {
      key: `generation ${id}`,
      ...(mail.replyTo && { replyTo: { name: mail.sender, address: mail.replyTo } }),
      unsubscribe,
      ...acceptedDraft({ ...mail, unsubscribe }),
    },
    idOf(payload, "senderId"),
  );
  if (wait > 0) await postpone(helpers, payload, wait);
};

export default task;
