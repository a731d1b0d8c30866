/** A user's own mail server; src/integrations/mailAccounts.ts sends through it. */
import { Socket } from "node:net";
import type { Transporter } from "nodemailer";
import {
  AddressRefused,
  AddressUnknown,
  resolvePublicHost,
  type AddressPolicy,
} from "../../network/publicAddress.ts";
import { mailPackage } from "../../providers/mail/mailPackage.ts";
import { ConnectionFailed, Misconfigured, type Adapter } from "../adapter.ts";
import type { DatabaseValue } from "../../database/databaseValue.ts";

/** Ports for mail submission. */
const ports = [465, 587, 2525];

/**
 * Milliseconds that a conversation with the server may take. The library only limits inactivity: a server that answers
 * a byte now and then would hold a job for days.
 */
const CONVERSATION_MS = 60_000;
/** Bytes of a reply of the server. */
const MOST_REPLY = 65_536;

/**
 * A connection to the address that was checked, encrypted before the password is sent; for one mail.
 * @param withinMs after which it is closed
 */
export async function openMailAccount(
  config: Record<string, DatabaseValue>,
  credentials: Record<string, DatabaseValue>,
  policy: AddressPolicy,
  withinMs = CONVERSATION_MS,
): Promise<Transporter> {
  const { host, port = 587 } = config as { host: string; port?: number };
  const { addresses, isLoopback } = await resolvePublicHost(host, policy);
  if (!isLoopback && !ports.includes(port))
    throw new AddressRefused(`The port of a mail server must be ${ports.join(", ")}.`);
  const socket = new Socket();
  const late = setTimeout(() => socket.destroy(), withinMs).unref();
  socket.once("close", () => clearTimeout(late));
  return mailPackage().createTransport({
    socket,
    host: addresses[0]!.address,
    port,
    secure: port === 465,
    requireTLS: true,
    // The name is not resolved again, but the certificate must be valid for it.
    tls: { servername: isLoopback ? "localhost" : host, rejectUnauthorized: !isLoopback },
    auth: { user: credentials["username"] as string, pass: credentials["password"] as string },
    connectionTimeout: 10_000,
    greetingTimeout: 10_000,
    socketTimeout: 30_000,
    maxResponseSize: MOST_REPLY,
  });
}

/** The error code of the library. The server's message is not repeated, because it may quote credentials. */
export function toFailure(error: unknown): ConnectionFailed {
  if (error instanceof ConnectionFailed) return error;
  if (error instanceof AddressRefused)
    return new ConnectionFailed(error.message, { retryable: false, cause: error });
  if (error instanceof AddressUnknown)
    return new ConnectionFailed(error.message, { retryable: true, cause: error });
  const { code, responseCode } = error as { code?: string; responseCode?: number };
  if (code === "EAUTH")
    return new ConnectionFailed("The mail server rejected the user name and password.", {
      retryable: false,
      cause: error,
    });
  if (code === "ETLS")
    return new ConnectionFailed(
      "The mail server offers no encrypted connection with a trusted certificate.",
      {
        retryable: false,
        cause: error,
      },
    );
  const what = [code, responseCode].filter(Boolean).join(", ");
  return new ConnectionFailed(`The mail server returned an unexpected response${what && ` (${what})`}.`, {
    retryable: true,
    cause: error,
  });
}

const adapter: Adapter = {
  async check({ host, port = 587 }, { policy }) {
    try {
      const { isLoopback } = await resolvePublicHost(host as string, policy);
      if (!isLoopback && !ports.includes(port as number))
        throw new Misconfigured("config.port", `The port of a mail server must be ${ports.join(", ")}.`);
    } catch (error) {
      if (error instanceof AddressRefused || error instanceof AddressUnknown)
        throw new Misconfigured("config.host", error.message);
      throw error;
    }
  },
  async connect({ config, credentials }, { policy }) {
    if (!credentials)
      throw new ConnectionFailed(
        "The user name and password are missing; update the integration with them.",
        {
          retryable: false,
        },
      );
    let transport: Transporter | undefined;
    try {
      transport = await openMailAccount(config, credentials, policy);
      await transport.verify();
    } catch (error) {
      throw toFailure(error);
    } finally {
      transport?.close();
    }
    return { externalAccount: config["from"] as string };
  },
};

export default adapter;
