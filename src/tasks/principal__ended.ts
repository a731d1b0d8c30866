import type { Task } from "graphile-worker";
import { deliverToEach } from "../jobs/deliver.ts";
import { automationsSuspended, type Suspended } from "../providers/mail/mailTemplates.ts";

/**
 * Notifies the owners of {organizationId} that {suspended} were suspended because their principal no longer has access.
 * Idempotent: another run only reaches those who did not receive it.
 */
const task: Task = async (payload, helpers) => {
  const { organizationId, suspended } = payload as { organizationId: string; suspended: Suspended[] };
  const { rows } = await helpers.query<{ organization: string; owners: string[] }>(
    "select organization, owners from app_private.suspension_notice($1)",
    [organizationId],
  );
  const [found] = rows;
  if (!found) return;
  await deliverToEach(helpers, found.owners, {
    key: `principal ended ${organizationId} ${helpers.job.id}`,
    ...automationsSuspended({ organization: found.organization, suspended }),
  });
};

export default task;
