import type { Task } from "graphile-worker";
import { deliver, languageOfReader } from "../jobs/deliver.ts";
import { idOf } from "../jobs/payload.ts";
import { localize } from "../messages/recognize.ts";
import { SmsRefused } from "../providers/sms/index.ts";
import { signingCode } from "../providers/mail/signingLetters.ts";

/**
 * Sends the code that the signer {id} requested. The code is created here, so that it is not in a payload. Another run
 * sends another code, which replaces the first. If the number accepts no text messages, the code is sent by mail.
 */
const task: Task = async (payload, helpers) => {
  const id = idOf(payload);
  const { rows } = await helpers.query<{
    code: string;
    channel: "EMAIL" | "SMS";
    email: string;
    phone: string | null;
    message_id: string;
    title: string;
    organization_id: string;
    organization_name: string;
    expires_at: Date;
  }>("select * from app_private.issue_signing_code($1)", [id]);
  const issued = rows[0];
  if (!issued) return;
  const { code, title, organization_name: organization, expires_at: expiresAt } = issued;
  let sent: "EMAIL" | "SMS" | undefined;
  if (issued.channel === "SMS" && issued.phone !== null)
    try {
      const language = await languageOfReader(helpers, issued.email, issued.organization_id);
      const english = `${code} is your code to sign "${title.slice(0, 60)}" of ${organization.slice(0, 40)}. Never share it with anybody.`;
      const body = localize(english, language, "mails").message;
      await helpers.sms.send({ id: issued.message_id, to: issued.phone, body });
      sent = "SMS";
    } catch (error) {
      if (!(error instanceof SmsRefused)) throw error;
      helpers.logger.warn(`${error.message} The code goes by mail.`, { event: "text_message.failed" });
    }
  if (!sent) {
    // Another attempt has another code, and therefore another mail.
    const key = `signing_code ${issued.message_id}`;
    const letter = signingCode({ code, title, organization, expiresAt });
    if (await deliver(helpers, { key, to: issued.email, organizationId: issued.organization_id, ...letter }))
      sent = "EMAIL";
  }
  if (sent) await helpers.query("select app_private.note_code_sent($1, $2)", [id, sent]);
};

export default task;
