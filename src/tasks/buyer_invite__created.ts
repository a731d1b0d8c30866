import type { Task } from "graphile-worker";
import { invitationOf, mailInvite, type IssuedInvitation } from "../jobs/invite.ts";
import { buyerInvite } from "../providers/mail/mailTemplates.ts";

/** Mails a buyer's invitation {id} for the {send_count}th time. */
const task: Task = (payload, helpers) =>
  mailInvite<IssuedInvitation & { project_title: string }>(payload, helpers, {
    name: "buyer invite",
    issue: "app_private.issue_buyer_invite_token($1, $2)",
    mark: "app_private.mark_buyer_invite_sent($1)",
    letter: (invite) =>
      buyerInvite({
        ...invitationOf(invite),
        project: invite.project_title,
        link: `${helpers.webUrl}/#purchase=${invite.token}`,
      }),
  });

export default task;
