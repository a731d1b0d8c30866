import { createHash } from "node:crypto";
import type { SendMailOptions } from "nodemailer";
import { bareAddress } from "../../base/mailAddress.ts";
import type { MailMessage } from "./mailMessage.ts";

// Control characters end or fold a header; the others change the direction of the text around them, which fakes senders.
// eslint-disable-next-line no-control-regex
const unfitForHeaders = /[\u0000-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069\ufeff]+/g;

/** A value on one line, without control characters, of at most `length` characters. */
export function oneLine(value: string, length = 200): string {
  const clean = value.replace(unfitForHeaders, " ").replace(/ {2,}/g, " ").trim();
  const characters = [...clean];
  return characters.length > length ? `${characters.slice(0, length - 1).join("")}…` : clean;
}

/**
 * A mail in the format of the mail library. Addresses are objects, so that they are never parsed as lists, and the library may access
 * neither files nor URLs for a message.
 * @param from the sender, with or without a name.
 */
export function compose(message: MailMessage, from: string): SendMailOptions {
  const { key, to, replyTo, subject, text, html, unsubscribe, requestIds = [] } = message;
  const hash = createHash("sha256").update(key).digest("hex").slice(0, 40);
  return {
    messageId: `<${hash}@${bareAddress(from).split("@")[1]}>`,
    from,
    to: { name: "", address: oneLine(to, 254) },
    replyTo: replyTo && { name: oneLine(replyTo.name, 100), address: oneLine(replyTo.address, 254) },
    subject: oneLine(subject),
    text,
    html,
    // Prevents auto-replies such as vacation notices.
    headers: {
      "Auto-Submitted": "auto-generated",
      // One line each.
      ...(requestIds.length > 0 && { "X-Request-Id": requestIds.map((id) => oneLine(id, 128)) }),
      // RFC 8058: one-click unsubscribe by a POST of the mail program.
      ...(unsubscribe && {
        "List-Unsubscribe": `<${oneLine(unsubscribe, 500)}>`,
        "List-Unsubscribe-Post": "List-Unsubscribe=One-Click",
      }),
    },
    disableFileAccess: true,
    disableUrlAccess: true,
  };
}
