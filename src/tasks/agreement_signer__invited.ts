import type { Task } from "graphile-worker";
import { deliverWithinQuota, isSettled, postpone } from "../jobs/deliver.ts";
import { idOf, numberOf } from "../jobs/payload.ts";
import { signingInvitation } from "../providers/mail/signingLetters.ts";

/**
 * Asks the signer {id} to sign, for the {invitation}th time; the link is created here, so that it is not in a payload.
 * Idempotent: the mail is sent once.
 */
const task: Task = async (payload, helpers) => {
  const id = idOf(payload);
  const invitation = numberOf(payload, "invitation");
  const key = `agreement_signer ${id} ${invitation}`;
  if (await isSettled(helpers, key)) return;
  const { rows } = await helpers.query<{
    token: string;
    email: string;
    name: string;
    title: string;
    organization_id: string;
    organization_name: string;
    project_title: string;
    expires_at: Date | null;
    is_reminder: boolean | null;
  }>("select * from app_private.signer_invitation($1, $2)", [id, invitation]);
  const signer = rows[0];
  if (!signer) return;
  const wait = await deliverWithinQuota(helpers, signer.organization_id, signer.email, {
    key,
    ...signingInvitation({
      name: signer.name,
      title: signer.title,
      organization: signer.organization_name,
      project: signer.project_title,
      expiresAt: signer.expires_at,
      isReminder: signer.is_reminder === true,
      link: `${helpers.serviceUrl}/sign/${signer.token}`,
      token: signer.token,
    }),
  });
  if (wait > 0) await postpone(helpers, payload, wait);
  else await helpers.query("select app_private.note_invited($1)", [id]);
};

export default task;
