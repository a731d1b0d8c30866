import type { Task } from "graphile-worker";
import { invitationOf, mailInvite, type IssuedInvitation } from "../jobs/invite.ts";
import { organizationInvite } from "../providers/mail/mailTemplates.ts";

/** Mails the invitation {id} to an organization for the {send_count}th time. */
const task: Task = (payload, helpers) =>
  mailInvite<IssuedInvitation & { role: string }>(payload, helpers, {
    name: "organization invite",
    issue: "app_private.issue_invite_token($1, $2)",
    mark: "app_private.mark_invite_sent($1)",
    letter: (invite) =>
      organizationInvite({
        ...invitationOf(invite),
        role: invite.role,
        link: `${helpers.webUrl}/#invite=${invite.token}`,
      }),
  });

export default task;
