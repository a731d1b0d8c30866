import type { Task } from "graphile-worker";
import { deliver } from "../jobs/deliver.ts";
import { organizationDeletion, type DeletionNotice } from "../providers/mail/mailTemplates.ts";

/** Mails per run; the next run continues. */
const most = 1000;

interface Row {
  key: string;
  email: string;
  organization: string;
  about: DeletionNotice;
  final_at: Date;
  requested_by: string | null;
}

/**
 * Reminds the owners of scheduled deletions of organizations, and queues those that are final. Idempotent: each reminder is sent once, and
 * each deletion queued once.
 */
const task: Task = async (_payload, helpers) => {
  await helpers.query("select app_private.queue_due_deletions()");
  const { rows } = await helpers.query<Row>("select * from app_private.deletion_mails($1)", [most]);
  const failures: unknown[] = [];
  for (const { key, email, organization, about, final_at: finalAt, requested_by: by } of rows) {
    if (helpers.abortSignal.aborted) throw new Error("The service stops; the rest is sent later.");
    try {
      const link = `${helpers.webUrl}/#organization-deletion`;
      await deliver(helpers, {
        key,
        to: email,
        ...organizationDeletion({ about, organization, finalAt, by, link }),
      });
    } catch (error) {
      failures.push(error);
    }
  }
  if (failures.length > 0) throw failures[0];
};

export default task;
