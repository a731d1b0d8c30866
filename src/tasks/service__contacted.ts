import type { Task } from "graphile-worker";
import { deliver } from "../jobs/deliver.ts";
import { idOf } from "../jobs/payload.ts";
import { serviceContacted, type VisitorMessage } from "../providers/mail/mailTemplates.ts";

/**
 * Forwards the message {id} to the operator of the service.
 * Idempotent: does nothing once the mail has been accepted.
 */
const task: Task = async (payload, helpers) => {
  const id = idOf(payload);
  const { rows } = await helpers.query<VisitorMessage>(
    "select name, email, phone, message from app_private.service_message($1)",
    [id],
  );
  const message = rows[0];
  if (!message) return;
  await deliver(helpers, {
    key: `service contacted ${id}`,
    to: helpers.operatorEmail,
    replyTo: { name: message.name, address: message.email },
    ...serviceContacted(message),
  });
};

export default task;
