import type { Task } from "graphile-worker";
import { deliverToEach } from "../jobs/deliver.ts";
import { affiliationChanged } from "../providers/mail/mailTemplates.ts";

type Change = Parameters<typeof affiliationChanged>[0];

/**
 * Notifies the other side of the change {what} of the participation of {organizationId} (or {email}, if an address was invited) in
 * {projectId}.
 * Idempotent: another run only reaches those who did not receive it.
 */
const task: Task = async (payload, helpers) => {
  const { what, projectId, organizationId, role, userId, email } = payload as {
    what: Change["what"];
    projectId: string;
    organizationId: string | null;
    role: string;
    userId: string | null;
    email: string | null;
  };
  const { rows } = await helpers.query<{
    recipients: string[];
    project: string;
    owner: string;
    organization: string | null;
  }>("select * from app_private.affiliation_notice($1, $2, $3, $4)", [
    what,
    projectId,
    organizationId,
    userId,
  ]);
  const [found] = rows;
  if (!found) return;
  const { recipients, project, owner, organization } = found;
  await deliverToEach(helpers, recipients, {
    key: `affiliation ${helpers.job.id}`,
    ...affiliationChanged({ what, project, owner, role, other: email ?? organization ?? "The organization" }),
  });
};

export default task;
