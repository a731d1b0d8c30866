import type { Task } from "graphile-worker";
import { deliver } from "../jobs/deliver.ts";
import { secondFactorReminder } from "../providers/mail/mailTemplates.ts";

/** Reminders per run; the next run continues. */
const most = 1000;

/**
 * Reminds members who will be refused within a day because they have no second factor. Idempotent: repeats only reach those who were not
 * reached.
 */
const task: Task = async (_payload, helpers) => {
  const { rows } = await helpers.query<{ key: string; email: string; organization: string; due_at: Date }>(
    "select * from app_private.second_factor_reminders($1)",
    [most],
  );
  const failures: unknown[] = [];
  for (const { key, email, organization, due_at: dueAt } of rows) {
    if (helpers.abortSignal.aborted) throw new Error("The service stops; the rest is sent later.");
    try {
      const link = `${helpers.webUrl}/#second-factor`;
      await deliver(helpers, { key, to: email, ...secondFactorReminder({ organization, dueAt, link }) });
    } catch (error) {
      failures.push(error);
    }
  }
  if (failures.length > 0) throw failures[0];
};

export default task;
