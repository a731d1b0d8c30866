import { join } from "node:path";
import type { MailProvider } from "./mailMessage.ts";
import { createOutbox } from "./mailOutbox.ts";
import { createSmtp } from "./smtp.ts";

export { MailDeferred, MailRefused, type MailMessage, type MailProvider } from "./mailMessage.ts";

export interface MailOptions {
  /** The mail server; without one, mails are written to the outbox folder. */
  smtpUrl?: string | undefined;
  /** The outbox is the folder `outbox` in it. */
  dataDir: string;
  /** Sender of all mails, with or without a name. */
  from: string;
}

/** Creates the mail provider: SMTP, or the outbox folder. */
export function createMailProvider({ smtpUrl, dataDir, from }: MailOptions): MailProvider {
  return smtpUrl ? createSmtp(smtpUrl, from) : createOutbox(join(dataDir, "outbox"), from);
}
