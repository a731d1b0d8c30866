import type { Task } from "graphile-worker";
import { deliverWithinQuota, isSettled } from "../jobs/deliver.ts";
import { idOf } from "../jobs/payload.ts";
import { consentRequest } from "../providers/mail/mailTemplates.ts";

/**
 * Mails the request {id} for consent to the owner of an address. The token is created here, so that it is not in a payload.
 * Idempotent: does nothing once the mail has been accepted.
 */
const task: Task = async (payload, helpers) => {
  const id = idOf(payload);
  const key = `consent ${id} ${helpers.job.id} ${helpers.job.revision}`;
  if (await isSettled(helpers, key)) return;
  const { rows } = await helpers.query<{
    token: string;
    email: string;
    organization_id: string;
    purpose: "NEWS" | "MAILBOX" | "RECIPIENT";
    organization: string;
    project: string | null;
    expires_at: Date;
  }>("select * from app_private.issue_consent_token($1)", [id]);
  const request = rows[0];
  if (!request) return;
  const { email, token, organization_id: organizationId, expires_at: expiresAt, ...what } = request;
  const link = `${helpers.serviceUrl}/confirm/${token}`;
  await deliverWithinQuota(helpers, organizationId, email, {
    key,
    ...consentRequest({ ...what, link, expiresAt }),
  });
};

export default task;
