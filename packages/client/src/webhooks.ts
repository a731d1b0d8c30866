/** Verification of webhooks by https://www.standardwebhooks.com, with what every runtime has: Web Crypto. */

/** An event as a webhook brings it. */
export interface WebhookEvent {
  readonly id: string;
  /** Such as `lead.created`. */
  readonly type: string;
  /** RFC 3339, in UTC. */
  readonly timestamp: string;
  /** The order of commits in the organization, without gaps; compare by BigInt. */
  readonly sequence: string;
  readonly organizationId: string;
  readonly projectId: string | null;
  readonly subjectType: string;
  readonly subjectId: string;
  readonly actorId: string | null;
  readonly actorType: string;
  readonly channel: string;
  readonly requestId: string | null;
  /** Field → former and new value. */
  readonly changes?: Readonly<Record<string, readonly [unknown, unknown]>> | null;
  readonly data?: Readonly<Record<string, unknown>> | null;
  /** The event is too large to be sent whole: read the record. */
  readonly truncated?: true;
}

/** A request that is not a message of the service, or is too old. */
export class WebhookSignatureError extends Error {
  override readonly name = "WebhookSignatureError";
}

type HeadersLike =
  { get(name: string): string | null } | Readonly<Record<string, string | readonly string[] | undefined>>;

interface VerifyOptions {
  /** Seconds that a message may be old, or early; 300 where omitted. */
  readonly toleranceSeconds?: number;
  /** Milliseconds since 1970; the present where omitted. */
  readonly now?: number;
}

function bytesOfBase64(text: string): Uint8Array<ArrayBuffer> | undefined {
  try {
    return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  } catch {
    return undefined;
  }
}

/**
 * The event of a webhook's request, once its signature is verified.
 * @param body as it arrived: what was parsed and written again is another text
 * @param secret of the webhook; several while it is replaced
 * @throws WebhookSignatureError
 */
export async function verifyWebhook(
  body: string | Uint8Array,
  headers: HeadersLike,
  secret: string | readonly string[],
  { toleranceSeconds = 300, now = Date.now() }: VerifyOptions = {},
): Promise<WebhookEvent> {
  const header = (name: string): string => {
    const value =
      typeof headers.get === "function" ? headers.get(name) : (headers as Record<string, unknown>)[name];
    if (typeof value !== "string" || value === "")
      throw new WebhookSignatureError(`The header ${name} is missing.`);
    return value;
  };
  const id = header("webhook-id");
  const timestamp = header("webhook-timestamp");
  const given = header("webhook-signature");
  const age = Math.abs(now / 1_000 - Number(timestamp));
  if (!/^\d{1,12}$/.test(timestamp) || age > toleranceSeconds)
    throw new WebhookSignatureError("The message is too old, or the clock is wrong.");
  const text = typeof body === "string" ? body : new TextDecoder().decode(body);
  const signed = new TextEncoder().encode(`${id}.${timestamp}.${text}`);
  const signatures = given
    .split(" ")
    .filter((one) => one.startsWith("v1,"))
    .map((one) => bytesOfBase64(one.slice(3)));
  for (const one of typeof secret === "string" ? [secret] : secret) {
    const bytes = bytesOfBase64(one.replace(/^whsec_/, ""));
    if (!bytes || bytes.length === 0) throw new TypeError("A secret of a webhook is whsec_ and Base64.");
    const key = await crypto.subtle.importKey("raw", bytes, { name: "HMAC", hash: "SHA-256" }, false, [
      "verify",
    ]);
    for (const signature of signatures)
      if (signature && (await crypto.subtle.verify("HMAC", key, signature, signed)))
        return JSON.parse(text) as WebhookEvent;
  }
  throw new WebhookSignatureError("The signature is not one of this webhook.");
}
