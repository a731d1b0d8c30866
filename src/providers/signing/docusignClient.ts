/**
 * The eSignature REST API of DocuSign, version 2.1: https://developers.docusign.com/docs/esign-rest-api/reference/ . The organization's
 * integration docusign defines the account. The service authenticates with a JSON Web Token signed with the key of the organization's app,
 * for an hour at a time. A document with its signers is an envelope.
 */
import { createHash, createHmac, randomUUID } from "node:crypto";
import { buffer } from "node:stream/consumers";
import jwt from "jsonwebtoken";
import { AddressRefused, AddressUnknown, type AddressPolicy } from "../../network/publicAddress.ts";
import { requestPublicly } from "../../network/publicRequest.ts";
import { isSameText } from "../../secrets/isSameText.ts";
import { SigningFailed, type Envelope, type EnvelopeState, type SigningProvider } from "./signingProvider.ts";

/** Config and credentials of the integration docusign. */
export interface DocusignAccount {
  config: { server?: string; accountId: string };
  credentials: { integrationKey: string; userId: string; privateKey: string; webhookKey: string };
}

export interface DocusignOptions extends DocusignAccount {
  policy: AddressPolicy;
  /** The URL for its notifications of agreements; undefined if it cannot reach the service. */
  noticeUrl: (agreementId: string) => string | undefined;
  /** Timeout for a complete response. */
  timeoutMs?: number;
}

export interface Docusign extends SigningProvider {
  /** Authenticates. @returns the name of the account @throws SigningFailed */
  connect(): Promise<string>;
}

export const docusignServer = "https://account.docusign.com";

const tokenSeconds = 3600;
/** Bytes; a signed PDF has the size of the document, plus some pages. */
const largestFile = 80_000_000;
const largestAnswer = 2_000_000;
/** Bytes; the maximum of DocuSign. */
const largestDocument = 25_000_000;

/** Error codes after which a retry may succeed. */
const passing = new Set(["HOURLY_APIINVOCATION_LIMIT_EXCEEDED", "BURST_APIINVOCATION_LIMIT_EXCEEDED"]);
/** Error codes of envelopes that have already ended. */
const over = new Set([
  "ENVELOPE_CANNOT_VOID_INVALID_STATE",
  "ENVELOPE_IN_INVALID_STATE",
  "ENVELOPE_NOT_IN_CORRECT_STATE",
]);

interface Session {
  token: string;
  /** Base URL of the account. */
  base: string;
  name: string;
  until: number;
}

/** By account and key: a token is valid for an hour, and token requests are limited. */
const sessions = new Map<string, Session>();
const mostSessions = 1000;

const statuses: Record<string, EnvelopeState["signers"][number]["status"]> = {
  created: "WAITING",
  sent: "INVITED",
  autoresponded: "INVITED",
  delivered: "VIEWED",
  signed: "SIGNED",
  completed: "SIGNED",
  declined: "DECLINED",
};

const envelopePath = (id: string, more = "") => `/envelopes/${encodeURIComponent(id)}${more}`;

/** Creates a client, which signs in on first use. Its methods throw SigningFailed. */
export function createDocusign(options: DocusignOptions): Docusign {
  const api = new DocusignApi(options);
  const { noticeUrl } = options;
  return {
    writesItself: false,
    async connect() {
      api.forgetSession();
      return (await api.session()).name;
    },

    async send(envelope) {
      if (envelope.document.size > largestDocument)
        throw new SigningFailed("REFUSED", "DocuSign takes documents of 25 MB at most.");
      // An attempt whose response was lost may have created it.
      const found = jsonOf(
        await api.ask(
          "GET",
          `/envelopes?${new URLSearchParams({ transaction_ids: envelope.transactionId })}`,
        ),
      );
      const [taken] = (Array.isArray(found["envelopes"]) ? found["envelopes"] : []) as {
        envelopeId?: unknown;
      }[];
      const { envelopeId } =
        taken ??
        jsonOf(
          await api.ask("POST", "/envelopes", await multipart(envelope, noticeUrl(envelope.agreementId))),
        );
      if (typeof envelopeId !== "string") throw unreadable();
      return envelopeId;
    },

    async state(id) {
      return stateOf(jsonOf(await api.ask("GET", envelopePath(id, "?include=recipients"))));
    },

    async proof(id) {
      const file = (name: string) =>
        api.ask("GET", envelopePath(id!, `/documents/${name}`), { answerLimit: largestFile });
      return [
        { kind: "SIGNED", filename: "Signed.pdf", content: await file("combined?certificate=false") },
        { kind: "CERTIFICATE", filename: "Certificate.pdf", content: await file("certificate") },
      ];
    },

    async end(id, reason) {
      await api
        .ask("PUT", envelopePath(id), {
          body: JSON.stringify({ status: "voided", voidedReason: reason.slice(0, 200) }),
        })
        .catch((error: SigningFailed & { code?: string }) => {
          if (!over.has(error.code ?? "")) throw error;
        });
    },

    async remind(id) {
      await api.ask("PUT", envelopePath(id, "?resend_envelope=true"), { body: "{}" });
    },
  };
}

/** The API for one account: authenticates, and caches its session. */
class DocusignApi {
  readonly #options: DocusignOptions;
  readonly #server: string;
  /** Cache key of the session. It includes the key, so that without it nobody gets the session. */
  readonly #known: string;

  constructor(options: DocusignOptions) {
    this.#options = options;
    const { accountId, server = docusignServer } = options.config;
    const { integrationKey, userId, privateKey } = options.credentials;
    this.#server = server;
    this.#known = createHash("sha256")
      .update(JSON.stringify([server, accountId, integrationKey, userId, privateKey]))
      .digest("base64");
  }

  forgetSession(): void {
    sessions.delete(this.#known);
  }

  /** The current session, or a new one. @throws SigningFailed */
  async session(): Promise<Session> {
    const { accountId } = this.#options.config;
    const open = sessions.get(this.#known);
    if (open && open.until > Date.now()) return open;
    const answer = await this.#send("POST", `${this.#server}/oauth/token`, {
      headers: { "content-type": "application/x-www-form-urlencoded" },
      body: new URLSearchParams({
        grant_type: "urn:ietf:params:oauth:grant-type:jwt-bearer",
        assertion: this.#assertion(),
      }).toString(),
    });
    const { access_token: token, expires_in: seconds } = jsonOf(answer);
    if (typeof token !== "string") throw unreadable();
    const who = jsonOf(
      await this.#send("GET", `${this.#server}/oauth/userinfo`, {
        headers: { authorization: `Bearer ${token}` },
      }),
    );
    const account = (Array.isArray(who["accounts"]) ? who["accounts"] : []).find(
      (found: { account_id?: unknown }) => found.account_id === accountId,
    ) as { base_uri?: unknown; account_name?: unknown } | undefined;
    if (!account || typeof account.base_uri !== "string")
      throw new SigningFailed("SETTINGS", "The user of DocuSign has no account with this accountId.");
    const fresh: Session = {
      token,
      base: `${account.base_uri.replace(/\/+$/, "")}/restapi/v2.1/accounts/${encodeURIComponent(accountId)}`,
      name: String(account.account_name ?? accountId).slice(0, 200),
      // Well before it expires.
      until: Date.now() + (Math.min(Number(seconds) || 0, tokenSeconds) - 120) * 1000,
    };
    if (sessions.size >= mostSessions) sessions.clear();
    sessions.set(this.#known, fresh);
    return fresh;
  }

  /** Sends a request of the account. @throws SigningFailed */
  async ask(
    method: "GET" | "POST" | "PUT",
    path: string,
    {
      type = "application/json",
      body,
      answerLimit,
    }: { type?: string; body?: string | Buffer; answerLimit?: number } = {},
  ): Promise<Buffer> {
    const { base, token } = await this.session();
    try {
      return await this.#send(method, `${base}${path}`, {
        headers: {
          authorization: `Bearer ${token}`,
          ...(body !== undefined && { "content-type": type }),
        },
        ...(body !== undefined && { body }),
        ...(answerLimit !== undefined && { answerLimit }),
      });
    } catch (error) {
      // A revoked token is not used again.
      if (error instanceof SigningFailed && error.kind === "SETTINGS") this.forgetSession();
      throw error;
    }
  }

  async #send(
    method: "GET" | "POST" | "PUT",
    url: string,
    {
      headers = {},
      body,
      answerLimit = largestAnswer,
    }: { headers?: Record<string, string>; body?: string | Buffer; answerLimit?: number },
  ): Promise<Buffer> {
    const { policy, timeoutMs = 20_000 } = this.#options;
    const signal = AbortSignal.timeout(timeoutMs);
    const received = await requestPublicly(url, {
      ...policy,
      method,
      headers: { accept: "application/json", "user-agent": "Plat", ...headers },
      ...(body !== undefined && { body }),
      signal,
      answerLimit,
    }).catch((error: unknown) => {
      if (error instanceof AddressRefused)
        throw new SigningFailed("SETTINGS", `DocuSign's address is refused: ${error.message}`, {
          cause: error,
        });
      throw new SigningFailed(
        "LATER",
        signal.aborted
          ? `DocuSign did not answer within ${timeoutMs / 1000} seconds.`
          : error instanceof AddressUnknown
            ? "DocuSign's address could not be found."
            : "DocuSign cannot be reached.",
        { cause: error },
      );
    });
    const { status, body: answer, isCut } = received;
    if (status >= 200 && status < 300) {
      if (isCut) throw new SigningFailed("LATER", "DocuSign's answer is larger than it can be.");
      return answer;
    }
    throw refusalOf(received);
  }

  /** Requests an access token. @throws SigningFailed */
  #assertion(): string {
    const { integrationKey, userId, privateKey } = this.#options.credentials;
    try {
      return jwt.sign({ scope: "signature impersonation" }, privateKey, {
        algorithm: "RS256",
        issuer: integrationKey,
        subject: userId,
        audience: new URL(this.#server).host,
        expiresIn: tokenSeconds,
      });
    } catch (error) {
      throw new SigningFailed("SETTINGS", "The private key is no RSA key in PEM; give it again.", {
        cause: error,
      });
    }
  }
}

/** Classifies a refusal by what may help. */
function refusalOf({
  status,
  body: answer,
  retryAfter,
}: Pick<Awaited<ReturnType<typeof requestPublicly>>, "status" | "body" | "retryAfter">): SigningFailed {
  // Only codes: the rest may quote request data.
  const { errorCode, error } = (readJson(answer) ?? {}) as { errorCode?: unknown; error?: unknown };
  const code = String(errorCode ?? error ?? "")
    .slice(0, 80)
    .replace(/[^\w.-]/g, "");
  const because = code ? ` (${status}, ${code})` : ` (${status})`;
  if (status === 429 || status >= 500 || passing.has(code))
    return new SigningFailed("LATER", `DocuSign takes nothing for now${because}.`, {
      retryAfterSeconds: retryAfter,
    });
  if (status === 401 || status === 403 || code === "consent_required" || code === "invalid_grant")
    return new SigningFailed(
      "SETTINGS",
      code === "consent_required"
        ? "The user of DocuSign has not consented to the app yet; give consent there, then refresh the integration."
        : `DocuSign does not let the integration in${because}; look at its credentials.`,
    );
  return Object.assign(new SigningFailed("REFUSED", `DocuSign refuses this${because}.`), { code });
}

function stateOf(answer: Record<string, unknown>): EnvelopeState {
  const { signers = [] } = (answer["recipients"] ?? {}) as { signers?: Record<string, unknown>[] };
  const status = String(answer["status"]);
  return {
    status:
      status === "completed"
        ? "COMPLETED"
        : status === "declined"
          ? "DECLINED"
          : status === "voided"
            ? "VOIDED"
            : "OPEN",
    reason: typeof answer["voidedReason"] === "string" ? answer["voidedReason"] : null,
    signers: signers.map((signer) => {
      const is = statuses[String(signer["status"])] ?? "WAITING";
      const time = {
        SIGNED: "signedDateTime",
        VIEWED: "deliveredDateTime",
        DECLINED: "declinedDateTime",
      }[is as string];
      const at = time === undefined ? NaN : Date.parse(String(signer[time]));
      return {
        id: String((signer["customFields"] as unknown[] | undefined)?.[0] ?? ""),
        status: is,
        at: Number.isNaN(at) ? null : new Date(at),
        reason: typeof signer["declinedReason"] === "string" ? signer["declinedReason"].slice(0, 2000) : null,
      };
    }),
  };
}

/** The request that creates an envelope: its definition, and the document unchanged. */
async function multipart(
  envelope: Envelope,
  url: string | undefined,
): Promise<{ type: string; body: Buffer }> {
  const { document } = envelope;
  const boundary = `plat-${randomUUID()}`;
  const name = document.filename.replace(/[^\x20-\x7e]|["\\]/g, "_");
  const body = Buffer.concat([
    Buffer.from(
      `--${boundary}\r\ncontent-type: application/json\r\ncontent-disposition: form-data\r\n\r\n${JSON.stringify(definition(envelope, url))}\r\n` +
        `--${boundary}\r\ncontent-type: application/pdf\r\ncontent-disposition: file; filename="${name}"; documentid=1\r\n\r\n`,
    ),
    await buffer(await document.content()),
    Buffer.from(`\r\n--${boundary}--\r\n`),
  ]);
  return { type: `multipart/form-data; boundary=${boundary}`, body };
}

function definition(envelope: Envelope, url: string | undefined): object {
  const { document, signers, expiresAt, reminderDays } = envelope;
  const days = expiresAt && Math.max(1, Math.ceil((expiresAt.getTime() - Date.now()) / 86_400_000));
  return {
    transactionId: envelope.transactionId,
    status: "sent",
    // As much as fits.
    emailSubject: `Please sign: ${envelope.title}`.slice(0, 100),
    emailBlurb: `${envelope.organization} asks you to sign.`,
    documents: [{ documentId: "1", name: document.filename, fileExtension: "pdf" }],
    recipients: {
      signers: signers.map(({ id, name, email, sequence }, i) => ({
        recipientId: String(i + 1),
        name: name.slice(0, 100),
        email,
        routingOrder: String(sequence),
        customFields: [id],
      })),
    },
    customFields: {
      textCustomFields: [{ name: "platAgreementId", value: envelope.agreementId, show: "false" }],
    },
    notification: {
      useAccountDefaults: "false",
      reminders: {
        reminderEnabled: String(reminderDays !== undefined),
        ...(reminderDays !== undefined && {
          reminderDelay: String(reminderDays),
          reminderFrequency: String(reminderDays),
        }),
      },
      ...(days && { expirations: { expireEnabled: "true", expireAfter: String(days), expireWarn: "1" } }),
    },
    ...(url && {
      eventNotification: {
        url,
        requireAcknowledgment: "true",
        loggingEnabled: "true",
        includeHMAC: "true",
        eventData: { version: "restv2.1" },
        events: [
          "envelope-completed",
          "envelope-declined",
          "envelope-voided",
          "recipient-delivered",
          "recipient-completed",
          "recipient-declined",
        ],
      },
    }),
  };
}

/** Whether one of the signatures of a notification is valid: HMAC-SHA256 over the raw body, in Base64. */
export function isSignedByDocusign(body: Buffer, signatures: readonly string[], webhookKey: string): boolean {
  const wanted = createHmac("sha256", webhookKey).update(body).digest("base64");
  return signatures.some((given) => isSameText(given, wanted));
}

const unreadable = () => new SigningFailed("LATER", "DocuSign gave an answer that cannot be read.");

function readJson(body: Buffer): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(body.toString());
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

function jsonOf(body: Buffer): Record<string, unknown> {
  const value = readJson(body);
  if (!value) throw unreadable();
  return value;
}
