/** Webhook secrets and signatures as specified by https://www.standardwebhooks.com. */
import { createHmac, randomBytes } from "node:crypto";

const prefix = "whsec_";

/** A secret of 256 bits. */
export function freshSecret(): string {
  return `${prefix}${randomBytes(32).toString("base64")}`;
}

/**
 * The three signature headers of a message.
 * @param secrets one, or two during rotation
 */
export function signedHeaders(
  id: string,
  body: string,
  secrets: readonly string[],
  now = new Date(),
): Record<string, string> {
  const timestamp = String(Math.floor(now.getTime() / 1000));
  const signatures = secrets.map((secret) => {
    const key = Buffer.from(secret.slice(prefix.length), "base64");
    return `v1,${createHmac("sha256", key).update(`${id}.${timestamp}.${body}`).digest("base64")}`;
  });
  return { "webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": signatures.join(" ") };
}
