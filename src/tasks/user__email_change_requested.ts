import type { Task } from "graphile-worker";
import { deliver, isSettled } from "../jobs/deliver.ts";
import { idOf } from "../jobs/payload.ts";
import { addressIsTaken, formerAddressCode, newAddressCode } from "../providers/mail/mailTemplates.ts";

interface Issued {
  /** The new address. */
  wanted: string;
  /** Recipient of its mail; null if the address has reached its limit today. */
  email: string | null;
  code: string | null;
  former_email: string | null;
  former_code: string;
  stop_token: string;
  expires_at: Date;
}

/**
 * Mails the codes of the change of address requested by the user {user_id}: to the current address first, whose owner may have to stop it,
 * then to the new one. The codes are created here, so that they are not in a payload.
 * Idempotent: does nothing once both mails have been accepted; before that, new codes replace the former ones in both mails.
 */
const task: Task = async (payload, helpers) => {
  const userId = idOf(payload, "user_id");
  const { id, revision } = helpers.job;
  // A second request while the job waits is the same job in its next revision.
  const key = `email change ${id} ${revision}`;
  if (await isSettled(helpers, `${key} new`)) return;
  const { rows } = await helpers.query<Issued>("select * from app_private.issue_email_change($1)", [userId]);
  const issued = rows[0];
  if (!issued) return;
  const { email, code, former_email: formerEmail, former_code: formerCode, expires_at: expiresAt } = issued;
  const confirms = (text: string) => `${helpers.webUrl}/#confirm-email-change=${text}`;
  if (formerEmail !== null) {
    await deliver(helpers, {
      // With the codes of this attempt, even if an earlier one got here.
      key: `${key} former ${helpers.job.attempts}`,
      to: formerEmail,
      ...formerAddressCode({
        email: issued.wanted,
        code: formerCode,
        link: confirms(formerCode),
        stop: `${helpers.serviceUrl}/stop-email-change/${issued.stop_token}`,
        expiresAt,
      }),
    });
  }
  if (email === null) return;
  const letter = code === null ? addressIsTaken() : newAddressCode({ code, link: confirms(code), expiresAt });
  await deliver(helpers, { key: `${key} new`, to: email, ...letter });
};

export default task;
