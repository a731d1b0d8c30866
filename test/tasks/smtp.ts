import { buffer } from "node:stream/consumers";
import { callbackify } from "node:util";
import { SMTPServer, type SMTPServerOptions } from "smtp-server";
import PostalMime, { type Email } from "postal-mime";

export interface SmtpServer {
  port: number;
  /** Received mails, parsed. */
  mails: { email: Email; raw: string; to: string[]; user: string | undefined; encrypted: boolean }[];
  close(): Promise<void>;
}

/** A real mail server on its own port; `options` determine what it refuses. */
export async function startSmtpServer(options: SMTPServerOptions = {}): Promise<SmtpServer> {
  const mails: SmtpServer["mails"] = [];
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: [...(options.onAuth ? [] : ["AUTH"]), ...(options.cert ? [] : ["STARTTLS"])],
    // Disables DNS look-ups of the client's name.
    disableReverseLookup: true,
    onData(stream, session, done) {
      const receive = async () => {
        const raw = await buffer(stream);
        mails.push({
          email: await PostalMime.parse(raw),
          raw: raw.toString(),
          to: session.envelope.rcptTo.map(({ address }) => address),
          user: session.user as string | undefined,
          encrypted: session.secure,
        });
      };
      callbackify(receive)(done);
    },
    ...options,
  });
  // Closed connections of clients are ignored.
  server.on("error", () => {});
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.server.address();
  if (address === null || typeof address === "string") throw new Error("The server has no port.");
  return {
    port: address.port,
    mails,
    close: () => new Promise((resolve) => server.close(() => resolve())),
  };
}

/** An error with which the mail server refuses. */
export function answer(responseCode: number, message: string): Error {
  return Object.assign(new Error(message), { responseCode });
}
