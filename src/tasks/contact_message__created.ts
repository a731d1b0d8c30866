import type { Task } from "graphile-worker";
import { deliverToEach } from "../jobs/deliver.ts";
import { idOf } from "../jobs/payload.ts";
import { projectContacted, type VisitorMessage } from "../providers/mail/templates.ts";

interface Message extends VisitorMessage {
  project: string;
  organization: string;
  leadCreated: boolean;
  recipients: string[];
}

/**
 * Tells the members who want to know of the message {id} to a project's sales office.
 * Run twice: goes to those only who did not get it.
 */
const task: Task = async (payload, helpers) => {
  const id = idOf(payload);
  const { rows } = await helpers.query<Message>(
    `select c.name, c.email, c.phone, c.text as message, c.lead_created as "leadCreated", p.title as project,
       o.name as organization, array(select app_private.contact_message_recipients(c.id)) as recipients
     from app_public.project_contact_messages c
     join app_public.projects p on p.id = c.project_id
     join app_public.organizations o on o.id = p.organization_id
     where c.id = $1`,
    [id],
  );
  const message = rows[0];
  if (!message) return;
  await deliverToEach(helpers, message.recipients, {
    key: `project contacted ${id}`,
    replyTo: { name: message.name, address: message.email },
    unsubscribe: `mailto:${helpers.operatorEmail}?subject=${encodeURIComponent(`No more notifications of ${message.organization}`)}`,
    ...projectContacted(message),
  });
};

export default task;
