import type { Task } from "graphile-worker";
import { deliver, isSettled } from "../jobs/deliver.ts";
import { idOf } from "../jobs/payload.ts";
import { oneTimeCode } from "../providers/mail/mailTemplates.ts";

/** With the back-off of the job runner, the next attempt comes after an hour: the user will request another code before. */
const usefulAttempts = 8;

/**
 * Mails a one-time code to the user {user_id}. The code is created here, so that it is not in a payload.
 * Idempotent: does nothing once the mail has been accepted; before that, a new code replaces the one that was not sent.
 */
const task: Task = async (payload, helpers) => {
  const userId = idOf(payload, "user_id");
  const { id, revision, attempts } = helpers.job;
  // A second request while the job waits is the same job in its next revision.
  const key = `otp ${id} ${revision}`;
  if (attempts > usefulAttempts || (await isSettled(helpers, key))) return;
  const { rows } = await helpers.query<{ email: string; code: string; expires_at: Date }>(
    "select email, code, expires_at from app_private.issue_user_otp($1)",
    [userId],
  );
  const otp = rows[0];
  if (!otp?.code) return;
  await deliver(helpers, {
    key,
    to: otp.email,
    ...oneTimeCode({ code: otp.code, expiresAt: otp.expires_at }),
  });
};

export default task;
