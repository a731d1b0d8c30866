import type { Task } from "graphile-worker";
import { invitationOf, mailInvite, type Issued } from "../jobs/invite.ts";
import { organizationInvite } from "../providers/mail/templates.ts";

/** Mails the invitation {id} to an organization for the {send_count}th time. */
const task: Task = (payload, helpers) =>
  mailInvite<Issued & { role: string }>(payload, helpers, {
    name: "organization invite",
    issue: "issue_invite_token",
    mark: "mark_invite_sent",
    letter: (invite) =>
      organizationInvite({
        ...invitationOf(invite),
        role: invite.role,
        link: `${helpers.webUrl}/#invite=${invite.token}`,
      }),
  });

export default task;
