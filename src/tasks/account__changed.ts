import type { Task } from "graphile-worker";
import { deliver } from "../jobs/deliver.ts";
import { accountChanged, type AccountChange } from "../providers/mail/mailTemplates.ts";

/**
 * Notifies the user {user_id} of the change {change} of their account, with its {facts}, its time {at} and the
 * {network} that it was made from. If {email}, a former address, is given, the mail goes there. Idempotent: the mail is
 * sent once.
 */
const task: Task = async (payload, helpers) => {
  const {
    user_id: userId,
    email,
    at,
    ...rest
  } = payload as {
    user_id: string;
    email?: string;
    at: string;
  } & AccountChange;
  const { rows } = await helpers.query<{ to: string | null }>(
    'select app_private.account_notice($1, $2) as "to"',
    [userId, email ?? null],
  );
  const { to } = rows[0]!;
  if (to === null) return;
  await deliver(helpers, {
    key: `account changed ${helpers.job.id}`,
    to,
    ...accountChanged({ ...rest, at: new Date(at) }),
  });
};

export default task;
