import type { Task } from "graphile-worker";
import { deliverWithinQuota, isSettled } from "../jobs/deliver.ts";
import { idOf } from "../jobs/payload.ts";
import { renderItem, type Item } from "../notifications/items.ts";
import { unsubscribeLink } from "../notifications/unsubscribeLinks.ts";
import { notification } from "../providers/mail/mailTemplates.ts";

interface Mail {
  to: string;
  memberId: string;
  organizationId: string;
  kind: string;
  kindName: string;
  heading: string;
  organization: string;
  isDigest: boolean;
  count: number;
  /** The ids of the requests that caused the notifications, without duplicates. */
  requestIds: string[];
  items: Item[];
}

/**
 * Sends the notification mail {id}. Its content is fixed when it is first closed, and its key is its id. Idempotent:
 * another run has the same content and Message-ID, and does nothing once the mail has been accepted.
 */
const task: Task = async (payload, helpers) => {
  const id = idOf(payload);
  const key = `notification ${id}`;
  if (!(await isSettled(helpers, key))) {
    const { rows } = await helpers.query<{ mail: Mail | null }>(
      "select app_private.close_notification_mail($1) as mail",
      [id],
    );
    const mail = rows[0]!.mail;
    if (!mail) return;
    const unsubscribe = await unsubscribeLink(helpers, { kind: mail.kind, readerId: mail.memberId });
    const [first] = mail.items;
    const { name, email } = first!.data;
    // An unconfirmed address only gets a few mails; the others are dropped.
    await deliverWithinQuota(helpers, mail.organizationId, mail.to, {
      key,
      requestIds: mail.requestIds,
      // A single message of a visitor can be answered by replying to the mail.
      ...(mail.count === 1 &&
        first!.subjectType === "contact_message" && {
          replyTo: { name: String(name), address: String(email) },
        }),
      unsubscribe,
      ...notification({
        ...mail,
        items: mail.items.map((item) => renderItem(item, helpers.webUrl)),
        unsubscribe,
      }),
    });
  }
  await helpers.query("select app_private.drop_notification_mail($1)", [id]);
};

export default task;
