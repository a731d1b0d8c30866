import type { Task } from "graphile-worker";
import { deliver, isSettled } from "../jobs/deliver.ts";
import { idOf } from "../jobs/payload.ts";
import { oneTimeCode } from "../providers/mail/templates.ts";

/** With the job runner's growing pauses the next one comes after an hour: whoever still wants a code asks again. */
const usefulAttempts = 8;

/**
 * Mails a one-time code to the user {user_id}. The code is made here, so that it stands in no payload.
 * Run twice: once the mail was taken nothing happens; before that, a new code replaces the one that was not sent.
 */
const task: Task = async (payload, helpers) => {
  const userId = idOf(payload, "user_id");
  const { id, revision, attempts } = helpers.job;
  // Asked for again while the job waits, it is the same job in its next revision.
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
