/** Sends mail from the connected mail account of a user. */
import type { AddressPolicy } from "../network/publicAddress.ts";
import { compose } from "../providers/mail/composeMail.ts";
import type { MailMessage } from "../providers/mail/index.ts";
import { ConnectionFailed } from "./adapter.ts";
import { openMailAccount, toFailure } from "./apps/mail_account.ts";
import type { DatabaseValue } from "../database/databaseValue.ts";

/** The id under which the server accepted it, or why it never will. */
export type SendResult = { id: string } | { refused: string };

interface Account {
  id: string;
  config: Record<string, DatabaseValue>;
  sealed: string;
}

interface Needs {
  query(text: string, values: unknown[]): Promise<{ rows: DatabaseValue[] }>;
  policy: AddressPolicy;
  openCredentials(integrationId: string, sealed: string): Record<string, DatabaseValue>;
  noteFailure(id: string, failure: ConnectionFailed): Promise<void>;
}

/** @returns undefined if the user has no account, or it did not accept the mail, which is recorded in its integration */
export async function sendAs(
  userId: string,
  message: MailMessage,
  { query, policy, openCredentials, noteFailure }: Needs,
): Promise<SendResult | undefined> {
  const { rows } = await query("select * from app_private.mail_account($1)", [userId]);
  const account = rows[0] as Account | undefined;
  if (!account) return undefined;
  const { from, fromName = "" } = account.config as { from: string; fromName?: string };
  let id: string;
  try {
    const transport = await openMailAccount(
      account.config,
      openCredentials(account.id, account.sealed),
      policy,
    );
    try {
      const mail = { ...compose(message, from), from: { name: fromName, address: from } };
      ({ messageId: id } = await transport.sendMail(mail));
    } finally {
      transport.close();
    }
  } catch (error) {
    const { command, responseCode } = error as { command?: string; responseCode?: number };
    if (responseCode !== undefined && responseCode >= 500 && /^(RCPT TO|DATA)$/.test(command ?? ""))
      return { refused: `The mail server refused this mail for good (${command}, ${responseCode}).` };
    const failure = toFailure(error);
    await noteFailure(
      account.id,
      new ConnectionFailed(`${failure.message} The mail was sent from the address of the service instead.`, {
        retryable: failure.retryable,
      }),
    );
    return undefined;
  }
  // The mail has been sent, even if recording it fails.
  await query("select app_private.note_synced('USER', $1)", [account.id]).catch(() => {});
  return { id };
}
