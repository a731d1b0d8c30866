import type { Task } from "graphile-worker";
import { deliver, isSettled } from "../jobs/deliver.ts";
import { idOf } from "../jobs/payload.ts";
import { accountExists, verificationCode } from "../providers/mail/templates.ts";

/**
 * Mails the user {user_id} the code that confirms the address of the account; or, where somebody asked for an account with an
 * address that has one, says that to the owner of the address. The code is made here, so that it stands in no payload.
 * Run twice: once the mail was taken nothing happens; before that, a new code replaces the one that was not sent.
 */
const task: Task = async (payload, helpers) => {
  const userId = idOf(payload, "user_id");
  const { id, revision } = helpers.job;
  // Asked for again while the job waits, it is the same job in its next revision.
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
