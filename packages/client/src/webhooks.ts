/** Verification of webhooks by https://www.standardwebhooks.com with Web Crypto, which every runtime has. */

/** An event in a webhook. */
export interface WebhookEvent {
  readonly id: string;
  /** Name of the event, such as `lead.created`. */
  readonly type: string;
  /** RFC 3339, in UTC. */
  readonly timestamp: string;
  /** Sequence number in the order of commits in the organization, without gaps. Compare with BigInt. */
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
  /** Present if the event is too large to be sent completely: read the record. */
  readonly truncated?: true;
}

/** A request that is not from the service, or is too old. */
export class WebhookSignatureError extends Error {
  override readonly name = "WebhookSignatureError";
}

type HeadersLike =
  { get(name: string): string | null } | Readonly<Record<string, string | readonly string[] | undefined>>;

interface VerifyOptions {
  /** Maximum difference of the timestamp in seconds, in the past or future. Default: 300. */
  readonly toleranceSeconds?: number;
  /** Current time in milliseconds since 1970. Default: that of the runtime. */
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
 * Verifies the signature of a webhook's request, and returns its event.
 * @param body the raw body: parsing and serializing it again changes the text
 * @param secret of the webhook; several during a rotation
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
