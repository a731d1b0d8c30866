import type { JobHelpers } from "graphile-worker";
import type { Rendered } from "../providers/mail/letter.ts";
import { deliver, isSettled } from "./deliver.ts";
import { idOf, numberOf } from "./payload.ts";

/** What the functions that issue a token give of every invitation. */
export interface Issued {
  token: string;
  email: string;
  message: string | null;
  expires_at: Date;
  organization_id: string;
  organization_name: string;
  invited_by: string | null;
}

/** What is mailed of every invitation. */
export const invitationOf = (invite: Issued) => ({
  organization: invite.organization_name,
  invitedBy: invite.invited_by,
  message: invite.message,
  token: invite.token,
  expiresAt: invite.expires_at,
});

/**
 * Mails the invitation {id} for the {send_count}th time. The token is made here, so that it stands in no payload;
 * in the link it follows a #, which browsers keep to themselves.
 * Run twice: once the mail was taken nothing happens; before that, a new token replaces the one that was not sent.
 * When the process dies right between, a second mail goes out, and its link is the one that works.
 */
export async function mailInvite<I extends Issued>(
  payload: unknown,
  helpers: JobHelpers,
  {
    name,
    issue,
    mark,
    letter,
  }: {
    /** Of the mail. */
    name: string;
    /** The call that issues the token of an id ($1) and a send count ($2). */
    issue: string;
    /** The call that notes that the mail of an id ($1) went out. */
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
