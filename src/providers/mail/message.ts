import type { Language } from "../../messages/catalogue.ts";

/** One mail to one person. What users wrote may stand in any member: the providers see to it that it stays text. */
export interface MailMessage {
  /** Names this very mail: sent twice under one key, it carries the same Message-ID both times. */
  key: string;
  /** An email address, nothing else. */
  to: string;
  replyTo?: { name: string; address: string };
  subject: string;
  text: string;
  html: string;
  /** The same in another language; where omitted, the mail is sent as it is. */
  in?(language: Language): { subject: string; text: string; html: string };
  /** The organization in whose name it goes out: its language counts where that of the reader is not known. */
  organizationId?: string | null;
  /** The `X-Request-Id` of each request that has led to it: a mail of notifications may collect several. */
  requestIds?: readonly string[];
  /** Where a POST stops mails of this kind: an address that starts with https:. */
  unsubscribe?: string;
}

export interface MailProvider {
  /**
   * Hands a mail over.
   * @returns the id under which it was taken.
   * @throws MailRefused when it is useless to try again, MailDeferred when it is not.
   */
  send(message: MailMessage): Promise<{ id: string }>;
  close(): Promise<void>;
}

/** The other side will never take this mail: no such mailbox, or the message is unwanted. */
export class MailRefused extends Error {
  override name = "MailRefused";
}

/** The mail could not be handed over now; a later try may succeed. */
export class MailDeferred extends Error {
  override name = "MailDeferred";
}
