import type { Task } from "graphile-worker";
import { deliver, isSettled } from "../jobs/deliver.ts";
import { idOf } from "../jobs/payload.ts";
import { accountExists, verificationCode } from "../providers/mail/mailTemplates.ts";

/**
 * Mails the user {user_id} the code that confirms the address of the account; or, if somebody tried to create an account with an existing
 * address, informs the owner of the address. The code is created here, so that it is not in a payload.
 * Idempotent: does nothing once the mail has been accepted; before that, a new code replaces the one that was not sent.
 */
const task: Task = async (payload, helpers) => {
  const userId = idOf(payload, "user_id");
  const { id, revision } = helpers.job;
  // A second request while the job waits is the same job in its next revision.
  const key = `verification ${id} ${revision}`;
  if (await isSettled(helpers, key)) return;
  const { rows } = await helpers.query<{ email: string; code: string | null; expires_at: Date }>(
    "select email, code, expires_at from app_private.issue_verification($1)",
    [userId],
  );
  const issued = rows[0];
  if (!issued) return;
  const { email, code, expires_at: expiresAt } = issued;
  const letter =
    code === null
      ? accountExists()
      : verificationCode({ code, link: `${helpers.webUrl}/#verify=${code}`, expiresAt });
  await deliver(helpers, { key, to: email, ...letter });
};

export default task;
