import type { JobHelpers } from "graphile-worker";
import type { Language } from "../messages/catalogue.ts";
import { languageOf } from "../messages/language.ts";
import { workContext } from "../base/workContext.ts";
import { MailRefused, type MailMessage } from "../providers/mail/index.ts";

/**
 * Mails of jobs. A job runs at least once, so each mail has a key, and what the mail server took (or refused for
 * good) under that key is not sent again. What remains: when the process dies between the server's yes and the note
 * of it, the mail goes out a second time, with the same Message-ID.
 */

/** Whether the mail was taken or refused for good before. */
export async function isSettled({ query }: JobHelpers, key: string): Promise<boolean> {
  const { rows } = await query<{ done: boolean }>("select app_private.mail_is_done($1) as done", [key]);
  return rows[0]!.done;
}

/**
 * Sends one mail, unless it was taken or refused for good before. A final refusal is noted and logged, not thrown: to try again is useless.
 * @param senderId the user in whose name it goes out: from their own mail account, where they have one that takes it.
 * @returns whether the mail was taken now.
 * @throws MailDeferred when it is worth another try; the job runner makes it.
 */
export async function deliver(
  helpers: JobHelpers,
  message: MailMessage,
  senderId?: string | null,
): Promise<boolean> {
  if (await isSettled(helpers, message.key)) return false;
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

/** The mail in the language of whoever reads it, as far as that is known. */
async function inLanguageOfReader(helpers: JobHelpers, message: MailMessage): Promise<MailMessage> {
  if (!message.in) return message;
  const language = await languageOfReader(helpers, message.to, message.organizationId);
  return { ...message, ...message.in(language) };
}

/** The language of what is written to somebody with an address, for an organization where there is one; English where nothing is known. */
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
 * Sends a mail to each recipient, with one key each, so that a later try reaches those only who were not reached.
 * @throws the first failure, after all were tried.
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
 * Sends a mail of an organization to each recipient, as far as its quota and the limits of the address allow; what the server does not take
 * counts for nothing.
 * @param recipients several have one key each, made of that of the message.
 * @returns how many seconds those have to wait who were not written to; 0 where there are none.
 * @throws the first failure, after all were tried.
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
    // Counted before: of those that are sent at once, none slips through.
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

/** Enqueues the job once more, for when there is room again. */
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
