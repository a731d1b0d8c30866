import type { Task } from "graphile-worker";
import { deliverToEach } from "../jobs/deliver.ts";
import { automationsSuspended, type Suspended } from "../providers/mail/templates.ts";

/**
 * Tells the owners of {organizationId} what was suspended because whoever answered for it has ended: {suspended}.
 * Run twice: goes to those only who did not get it.
 */
const task: Task = async (payload, helpers) => {
  const { organizationId, suspended } = payload as { organizationId: string; suspended: Suspended[] };
  const { rows } = await helpers.query<{ organization: string; owners: string[] }>(
    `select o.name as organization, array(select i.email::text from app_public.organization_user_connections m
       join app_public.users u on u.id = m.user_id and u.status = 'ACTIVE' and u.deleted_at is null
       join app_hidden.user_identities i on i.user_id = u.id
       where m.organization_id = o.id and m.role = 'OWNER') as owners
     from app_public.organizations o where o.id = $1 and o.deleted_at is null`,
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
