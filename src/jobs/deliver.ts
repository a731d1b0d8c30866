import type { JobHelpers } from "graphile-worker";
import type { Language } from "../messages/catalogue.ts";
import { languageOf } from "../messages/language.ts";
import { workContext } from "../base/workContext.ts";
import { MailRefused, type MailMessage } from "../providers/mail/index.ts";

/**
 * Mails sent by jobs. Jobs run at least once, so each mail has a key, and a mail that was accepted (or finally
 * refused) under that key is not sent again. If the process dies between the server's reply and the record of it, the
 * mail is sent twice, with the same Message-ID.
 */

/** Whether the mail was accepted or finally refused before. */
export async function isSettled({ query }: JobHelpers, key: string): Promise<boolean> {
  const { rows } = await query<{ done: boolean }>("select app_private.mail_is_done($1) as done", [key]);
  return rows[0]!.done;
}

/** Whether a mail may be sent: those about a sandbox organization go to its members only, and invitations to become one. */
async function mayMail(helpers: JobHelpers, { organizationId, to }: MailMessage): Promise<boolean> {
  const { context } = helpers.job.payload as { context?: { organizationId?: string } };
  const organization = organizationId ?? context?.organizationId;
  if (!organization) return true;
  const { rows } = await helpers.query<{ may: boolean }>("select app_private.may_mail($1, $2, $3) as may", [
    organization,
    to,
    helpers.job.task_identifier === "organization_invite__created",
  ]);
  return rows[0]!.may;
}

/**
 * Sends one mail, unless it was accepted or finally refused before. A final refusal is recorded and logged, not
 * thrown, since a retry would be useless.
 * @param senderId user on whose behalf it is sent: from their own mail account, if they have one that accepts it.
 * @returns whether the mail was accepted now
 * @throws MailDeferred if it should be retried; the job runner does so
 */
export async function deliver(
  helpers: JobHelpers,
  message: MailMessage,
  senderId?: string | null,
): Promise<boolean> {
  if (await isSettled(helpers, message.key)) return false;
  if (!(await mayMail(helpers, message))) {
    await note(helpers, message, "REFUSED", "A sandbox organization writes to its members only.");
    return false;
  }
  const { requestId } = workContext.getStore() ?? {};
  message = {
    ...(requestId && { requestIds: [requestId] }),
    ...(await inLanguageOfReader(helpers, message)),
  };
  const own = senderId ? await helpers.integrations.sendAs(senderId, message) : undefined;
  try {
    if (own && "refused" in own) throw new MailRefused(own.refused);
    const { id } = own ?? (await helpers.mail.send(message));
    await note(helpers, message, "SENT", id);
    return true;
  } catch (error) {
    if (!(error instanceof MailRefused)) throw error;
    await note(helpers, message, "REFUSED", error.message);
    helpers.logger.warn(`${error.message} Mail: ${helpers.job.task_identifier}.`, { event: "mail.failed" });
    return false;
  }
}

/** Mail texts in the language of the recipient, if known. */
async function inLanguageOfReader(helpers: JobHelpers, message: MailMessage): Promise<MailMessage> {
  if (!message.in) return message;
  const language = await languageOfReader(helpers, message.to, message.organizationId);
  return { ...message, ...message.in(language) };
}

/** Language of the recipient with this address, for an organization if there is one; English if unknown. */
export async function languageOfReader(
  { query }: Pick<JobHelpers, "query">,
  email: string,
  organizationId?: string | null,
): Promise<Language> {
  const { rows } = await query<{ language: string | null }>(
    "select app_private.mail_language($1, $2) as language",
    [email, organizationId ?? null],
  );
  return languageOf(rows[0]!.language) ?? "en";
}

/**
 * Sends a mail to each recipient, with a key each, so that a retry only reaches those who were missed.
 * @throws the first failure, after all were attempted
 */
export async function deliverToEach(
  helpers: JobHelpers,
  recipients: string[],
  message: Omit<MailMessage, "to">,
  senderId?: string | null,
): Promise<void> {
  const failures: unknown[] = [];
  for (const to of recipients) {
    if (helpers.abortSignal.aborted) throw new Error("The service stops; the rest is sent later.");
    try {
      await deliver(helpers, { ...message, to, key: `${message.key} ${to}` }, senderId);
    } catch (error) {
      failures.push(error);
    }
  }
  if (failures.length > 0) throw failures[0];
}

/**
 * Sends a mail of an organization to each recipient, within its quota and the limits of each address; refused mails
 * do not count.
 * @param recipients if there are several, each gets a key derived from that of the message
 * @returns seconds to wait for recipients that were skipped; 0 if there are none
 * @throws the first failure, after all were attempted
 */
export async function deliverWithinQuota(
  helpers: JobHelpers,
  organizationId: string,
  recipients: string | string[],
  message: Omit<MailMessage, "to">,
  senderId?: string | null,
): Promise<number> {
  const failures: unknown[] = [];
  let longest = 0;
  for (const to of [recipients].flat()) {
    if (helpers.abortSignal.aborted) throw new Error("The service stops; the rest is sent later.");
    const key = recipients === to ? message.key : `${message.key} ${to}`;
    if (await isSettled(helpers, key)) continue;
    // Counted in advance, so that concurrent mails cannot exceed the quota.
    const { rows } = await helpers.query<{ wait: number }>(
      "select app_private.reserve_mail($1, $2) as wait",
      [organizationId, to],
    );
    const { wait } = rows[0]!;
    longest = Math.max(longest, wait);
    if (wait > 0) continue;
    let isTaken = false;
    try {
      isTaken = await deliver(helpers, { ...message, organizationId, to, key }, senderId);
    } catch (error) {
      failures.push(error);
    }
    if (!isTaken) await helpers.query("select app_private.return_mail($1, $2)", [organizationId, to]);
  }
  if (failures.length > 0) throw failures[0];
  return longest;
}

/** Enqueues the job again for the time when the quota allows more. */
export async function postpone(helpers: JobHelpers, payload: unknown, seconds: number): Promise<void> {
  await helpers.query("select app_private.postpone_job($1, $2, $3)", [
    helpers.job.task_identifier,
    JSON.stringify(payload),
    seconds,
  ]);
}

async function note(
  { query }: JobHelpers,
  { key, to }: MailMessage,
  outcome: string,
  detail: string,
): Promise<void> {
  await query("select app_private.note_mail($1, $2, $3, $4)", [key, to, outcome, detail]);
}
