import type { Task } from "graphile-worker";
import { deliver, isSettled } from "../jobs/deliver.ts";
import { idOf } from "../jobs/payload.ts";
import { oneTimeCode } from "../providers/mail/templates.ts";

/** Nobody waits for a code that long; whoever still wants one asks again. */
const uselessAfterMs = 60 * 60_000;

/**
 * Mails a one-time code to the user {id}. The code is made here, so that it stands in no payload.
 * Run twice: once the mail was taken nothing happens; before that, a new code replaces the one that was not sent.
 */
const task: Task = async (payload, helpers) => {
  const userId = idOf(payload);
  const key = `otp ${helpers.job.id}`;
  if (Date.now() - helpers.job.created_at.getTime() > uselessAfterMs || (await isSettled(helpers, key)))
    return;
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
