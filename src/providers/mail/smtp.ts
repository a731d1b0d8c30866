import { isIP } from "node:net";
import { compose } from "./compose.ts";
import { mailPackage } from "./mailPackage.ts";
import { MailDeferred, MailRefused, type MailProvider } from "./message.ts";

/** What the mail library adds to an error. */
interface SmtpError extends Error {
  code?: string;
  command?: string;
  responseCode?: number;
}

/**
 * Sends through a mail server.
 * @param url smtp://user:password@host:port (STARTTLS where the server has it, required when there is a password and
 * the server is not on this machine) or smtps://…; the mail library's options can follow as a query, such as
 * `?tls.rejectUnauthorized=false`.
 */
export function createSmtp(url: string, from: string): MailProvider {
  const { hostname, username, searchParams } = new URL(url);
  const transport = mailPackage().createTransport({
    url,
    pool: true,
    maxConnections: 3,
    // The job runner tries again, and knows when.
    maxRequeues: 0,
    connectionTimeout: 10_000,
    greetingTimeout: 10_000,
    socketTimeout: 30_000,
    dnsTimeout: 10_000,
    ...(username && !isLoopback(hostname) && !searchParams.has("requireTLS") ? { requireTLS: true } : {}),
  });
  // A failed idle connection is only of interest to the next mail, which opens another.
  transport.on("error", () => {});
  return {
    async send(message) {
      try {
        const { messageId } = await transport.sendMail(compose(message, from));
        return { id: messageId };
      } catch (error) {
        throw classify(error as SmtpError);
      }
    },
    async close() {
      transport.close();
    },
  };
}

/**
 * Only a 5xx answer about this recipient or this message is final. One about signing in or the sender is a matter of
 * settings, which the operator can put right while the job waits. What the server said is not repeated: it may quote
 * addresses.
 */
function classify({ code, command, responseCode }: SmtpError): MailRefused | MailDeferred {
  const what = [code, command, responseCode].filter(Boolean).join(", ");
  const final = responseCode !== undefined && responseCode >= 500 && /^(RCPT TO|DATA)$/.test(command ?? "");
  return final
    ? new MailRefused(`The mail server refused this mail for good (${what}).`)
    : new MailDeferred(`The mail server did not take the mail now (${what || "no answer"}).`);
}

function isLoopback(host: string): boolean {
  const address = host.replace(/^\[|\]$/g, "");
  return address === "localhost" || address === "::1" || (isIP(address) === 4 && address.startsWith("127."));
}
