import type { JobHelpers } from "graphile-worker";
import type { Rendered } from "../providers/mail/letter.ts";
import { deliver, isSettled } from "./deliver.ts";
import { idOf, numberOf } from "./payload.ts";

/** Columns that functions that issue a token return for every invitation. */
export interface IssuedInvitation {
  token: string;
  email: string;
  message: string | null;
  expires_at: Date;
  organization_id: string;
  organization_name: string;
  invited_by: string | null;
}

/** Mail texts of an invitation. */
export const invitationOf = (invite: IssuedInvitation) => ({
  organization: invite.organization_name,
  invitedBy: invite.invited_by,
  message: invite.message,
  token: invite.token,
  expiresAt: invite.expires_at,
});

/**
 * Mails the invitation {id} for the {send_count}th time. The token is created here, so that no payload contains it;
 * in the link it follows a #, which browsers do not send to servers. The task is idempotent: once the mail was
 * accepted, it does nothing; before that, a new token replaces the one that was not sent. If the process dies in
 * between, a second mail is sent, whose link is the valid one.
 */
export async function mailInvite<I extends IssuedInvitation>(
  payload: unknown,
  helpers: JobHelpers,
  {
    name,
    issue,
    mark,
    letter,
  }: {
    /** Fields of the mail. */
    name: string;
    /** SQL call that issues the token for an id ($1) and a send count ($2). */
    issue: string;
    /** SQL call that records that the mail for an id ($1) was sent. */
    mark: string;
    letter: (invite: I) => Rendered;
  },
): Promise<void> {
  const id = idOf(payload);
  const sendCount = numberOf(payload, "send_count");
  const key = `${name} ${id} ${sendCount}`;
  if (await isSettled(helpers, key)) return;
  const { rows } = await helpers.query<I>(`select * from ${issue}`, [id, sendCount]);
  const invite = rows[0];
  if (!invite) return;
  const sent = await deliver(helpers, {
    key,
    to: invite.email,
    organizationId: invite.organization_id,
    ...letter(invite),
  });
  if (sent) await helpers.query(`select ${mark}`, [id]);
}
