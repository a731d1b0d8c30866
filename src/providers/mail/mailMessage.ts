import type { Language } from "../../messages/catalogue.ts";

/** One mail to one person. Any field may contain user-written text: providers must keep it as text. */
export interface MailMessage {
  /** Idempotency key: sent twice under one key, the mail has the same Message-ID. */
  key: string;
  /** An email address, nothing else. */
  to: string;
  replyTo?: { name: string; address: string };
  subject: string;
  text: string;
  html: string;
  /** The same in another language; by default, the mail is sent as it is. */
  in?(language: Language): { subject: string; text: string; html: string };
  /** The organization on whose behalf it is sent: its language applies if that of the reader is unknown. */
  organizationId?: string | null;
  /** The `X-Request-Id` of each request that caused it: a notification mail may have several. */
  requestIds?: readonly string[];
  /** A URL at which a POST stops mails of this kind; it starts with https:. */
  unsubscribe?: string;
}

export interface MailProvider {
  /**
   * Submits a mail.
   * @returns the id under which it was accepted.
   * @throws MailRefused if a retry is useless, MailDeferred otherwise.
   */
  send(message: MailMessage): Promise<{ id: string }>;
  close(): Promise<void>;
}

/** The server will never accept this mail: the mailbox does not exist, or the message is unwanted. */
export class MailRefused extends Error {
  override name = "MailRefused";
}

/** The mail could not be submitted now; a retry may succeed. */
export class MailDeferred extends Error {
  override name = "MailDeferred";
}
