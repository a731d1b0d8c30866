import type { Task } from "graphile-worker";
import { deliver, deliverToEach, isSettled } from "../jobs/deliver.ts";
import { invitationOf, type IssuedInvitation } from "../jobs/invite.ts";
import { idOf, numberOf } from "../jobs/payload.ts";
import { projectInvite } from "../providers/mail/mailTemplates.ts";

type IssuedToProject = Omit<IssuedInvitation, "token" | "email"> & {
  id: string;
  /** Null if an existing organization is invited, whose administrators answer by id. */
  token: string | null;
  email: string | null;
  recipients: string[];
  role: string;
  project_title: string;
  invited_organization: string | null;
};

/**
 * Mails the invitation {id} of an organization to a project for the {send_count}th time: to the invited address, with a token created here,
 * or to the administrators of the invited organization.
 * Idempotent: another run only reaches those who did not receive it; an address that was not reached gets another token.
 */
const task: Task = async (payload, helpers) => {
  const id = idOf(payload);
  const sendCount = numberOf(payload, "send_count");
  const key = `project invite ${id} ${sendCount}`;
  if (await isSettled(helpers, key)) return;
  const { rows } = await helpers.query<IssuedToProject>(
    "select * from app_private.issue_project_invite_token($1, $2)",
    [id, sendCount],
  );
  const invite = rows[0];
  if (!invite) return;
  const { token, email } = invite;
  const letter = projectInvite({
    ...invitationOf({ ...invite, token: token ?? "", email: email ?? "" }),
    id,
    token,
    role: invite.role,
    project: invite.project_title,
    invitedOrganization: invite.invited_organization,
    link: `${helpers.webUrl}/#project-invite=${token ?? id}`,
  });
  if (email === null) await deliverToEach(helpers, invite.recipients, { key, ...letter });
  else if (!(await deliver(helpers, { key, to: email, ...letter }))) return;
  await helpers.query("select app_private.mark_project_invite_sent($1)", [id]);
};

export default task;
