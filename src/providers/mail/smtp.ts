import { isIP } from "node:net";
import { compose } from "./composeMail.ts";
import { mailPackage } from "./mailPackage.ts";
import { MailDeferred, MailRefused, type MailProvider } from "./mailMessage.ts";

/** The error code of the mail library. */
interface SmtpError extends Error {
  code?: string;
  command?: string;
  responseCode?: number;
}

/**
 * Sends through a mail server.
 * @param url smtp://user:password@host:port (STARTTLS if the server supports it, required if there is a password and the server is not on
 * this machine) or smtps://…; options of the mail library can follow as a query, such as `?tls.rejectUnauthorized=false`.
 */
export function createSmtp(url: string, from: string): MailProvider {
  const { hostname, username, searchParams } = new URL(url);
  const transport = mailPackage().createTransport({
    url,
    pool: true,
    maxConnections: 3,
    // The job runner retries with its own schedule.
    maxRequeues: 0,
    connectionTimeout: 10_000,
    greetingTimeout: 10_000,
    socketTimeout: 30_000,
    dnsTimeout: 10_000,
    ...(username && !isLoopback(hostname) && !searchParams.has("requireTLS") ? { requireTLS: true } : {}),
  });
  // A failed idle connection only concerns the next mail, which opens another one.
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
 * Only a 5xx response about this recipient or this message is permanent. One about authentication or the sender is a matter of settings,
 * which the operator can correct while the job waits. The server's message is not repeated, because it may quote addresses.
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
