import type { Task } from "graphile-worker";
import { deliver } from "../jobs/deliver.ts";
import { idOf } from "../jobs/payload.ts";
import { secondFactorRequired } from "../providers/mail/mailTemplates.ts";

/**
 * Notifies the members of the organization {id} without a second factor that it requires one.
 * Idempotent: another run only reaches those who did not receive it.
 */
const task: Task = async (payload, helpers) => {
  const id = idOf(payload);
  const { rows } = await helpers.query<{ email: string; organization: string; due_at: Date }>(
    "select * from app_private.members_without_second_factor($1)",
    [id],
  );
  const failures: unknown[] = [];
  for (const { email, organization, due_at: dueAt } of rows) {
    if (helpers.abortSignal.aborted) throw new Error("The service stops; the rest is sent later.");
    try {
      await deliver(helpers, {
        key: `second factor required ${helpers.job.id} ${helpers.job.revision} ${email}`,
        to: email,
        ...secondFactorRequired({ organization, dueAt, link: `${helpers.webUrl}/#second-factor` }),
      });
    } catch (error) {
      failures.push(error);
    }
  }
  if (failures.length > 0) throw failures[0];
};

export default task;
