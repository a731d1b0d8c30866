import type { Task } from "graphile-worker";
import { deliver, isSettled } from "../jobs/deliver.ts";
import { idOf, numberOf } from "../jobs/payload.ts";
import { organizationInvite } from "../providers/mail/templates.ts";

interface Issued {
  token: string;
  email: string;
  role: string;
  message: string | null;
  expires_at: Date;
  organization_name: string;
  invited_by: string | null;
}

/**
 * Mails the invitation {id} for the {send_count}th time. The token is made here, so that it stands in no payload;
 * in the link it follows a #, which browsers keep to themselves.
 * Run twice: once the mail was taken nothing happens; before that, a new token replaces the one that was not sent.
 * When the process dies right between, a second mail goes out, and its link is the one that works.
 */
const task: Task = async (payload, helpers) => {
  const id = idOf(payload);
  const sendCount = numberOf(payload, "send_count");
  const key = `organization invite ${id} ${sendCount}`;
  if (await isSettled(helpers, key)) return;
  const { rows } = await helpers.query<Issued>("select * from app_private.issue_invite_token($1, $2)", [
    id,
    sendCount,
  ]);
  const invite = rows[0];
  if (!invite) return;
  const sent = await deliver(helpers, {
    key,
    to: invite.email,
    ...organizationInvite({
      organization: invite.organization_name,
      invitedBy: invite.invited_by,
      role: invite.role,
      message: invite.message,
      token: invite.token,
      link: `${helpers.webUrl}/#invite=${invite.token}`,
      expiresAt: invite.expires_at,
    }),
  });
  if (sent) await helpers.query("select app_private.mark_invite_sent($1)", [id]);
};

export default task;
