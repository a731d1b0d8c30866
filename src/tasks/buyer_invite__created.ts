import type { Task } from "graphile-worker";
import { deliver, isSettled } from "../jobs/deliver.ts";
import { idOf, numberOf } from "../jobs/payload.ts";
import { buyerInvite } from "../providers/mail/templates.ts";

interface Issued {
  token: string;
  email: string;
  message: string | null;
  expires_at: Date;
  project_title: string;
  organization_name: string;
  invited_by: string | null;
}

/**
 * Mails a buyer's invitation {id} for the {send_count}th time. As with invitations to an organization the token is made
 * here, and in the link it follows a #. Run twice: once the mail was taken nothing happens; before that, a new token
 * replaces the one that was not sent.
 */
const task: Task = async (payload, helpers) => {
  const id = idOf(payload);
  const sendCount = numberOf(payload, "send_count");
  const key = `buyer invite ${id} ${sendCount}`;
  if (await isSettled(helpers, key)) return;
  const { rows } = await helpers.query<Issued>("select * from app_private.issue_buyer_invite_token($1, $2)", [
    id,
    sendCount,
  ]);
  const invite = rows[0];
  if (!invite) return;
  const sent = await deliver(helpers, {
    key,
    to: invite.email,
    ...buyerInvite({
      project: invite.project_title,
      organization: invite.organization_name,
      invitedBy: invite.invited_by,
      message: invite.message,
      token: invite.token,
      link: `${helpers.webUrl}/#purchase=${invite.token}`,
      expiresAt: invite.expires_at,
    }),
  });
  if (sent) await helpers.query("select app_private.mark_buyer_invite_sent($1)", [id]);
};

export default task;
