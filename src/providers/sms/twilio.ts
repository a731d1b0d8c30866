/** The REST API of Twilio, which other providers implement too: https://www.twilio.com/docs/messaging/api/message-resource */
import { createHmac } from "node:crypto";
import { secondsOf } from "../../network/publicRequest.ts";
import {
  SmsDeferred,
  SmsRefused,
  type SmsProvider,
  type SmsStatus,
  type UncertainMessage,
  type AcceptedMessage,
} from "./textMessage.ts";
import { isSameText } from "../../secrets/isSameText.ts";
import type { TwilioAccount } from "../../base/providerOptions.ts";

export interface TwilioOptions extends TwilioAccount {
  /** The URL of the service, without a trailing slash: the provider signs the URLs that it calls. */
  baseUrl: string;
  /** Whether the provider sends delivery reports to `baseUrl`; it refuses a URL that it cannot reach. */
  notices: boolean;
  timeoutMs?: number;
}

/** The fields of a resource that are read; all are optional. */
interface Resource {
  sid?: unknown;
  status?: unknown;
  body?: unknown;
  direction?: unknown;
  date_created?: unknown;
  messages?: unknown;
  next_page_uri?: unknown;
  code?: unknown;
}

const statuses: Record<string, SmsStatus> = {
  accepted: "ACCEPTED",
  scheduled: "ACCEPTED",
  queued: "ACCEPTED",
  sending: "ACCEPTED",
  sent: "SENT",
  delivered: "DELIVERED",
  read: "DELIVERED",
  undelivered: "UNDELIVERED",
  failed: "FAILED",
  canceled: "FAILED",
};

/** Error codes about the number or its permissions; messages may quote request data. */
const reasons: Record<string, string> = {
  21211: "it is no phone number",
  21217: "it is no phone number",
  21265: "it is no number of a phone",
  21408: "messages to its country are not enabled in the provider's account",
  21610: "its owner answered STOP",
  21612: "it cannot be reached from the service's sender",
  21614: "it is no mobile phone",
  21635: "it is a landline",
  30003: "the phone is off or out of reach",
  30004: "its network blocks the message",
  30005: "nobody has this number",
  30006: "it is a landline, or cannot be reached",
  30007: "a filter of the networks took the message for spam",
};
/** Errors in the settings of the account or the sender, which the operator can correct while the job waits. */
const settingCodes = new Set([
  20001, 20003, 20005, 20404, 21408, 21601, 21603, 21606, 21608, 21609, 21611, 21618, 21620, 21659, 21660,
  21661, 21701, 21702, 21703, 21704, 21705,
]);

const mostBytes = 1_000_000;
const pageSize = 50;
const mostPages = 5;
/** Clocks differ, and the provider's dates have no fractions of seconds. */
const skewMs = 60_000;

const because = (code: unknown) =>
  [code ? ` (${String(code)})` : "", reasons[String(code)] ? `: ${reasons[String(code)]}` : ""].join("");

/**
 * Creates a provider. `send` throws SmsRefused for permanent failures, SmsDeferred for temporary ones. Default
 * timeout: 10 s.
 */
export function createTwilio(options: TwilioOptions): SmsProvider {
  const { accountSid, authToken, sender, baseUrl, notices, timeoutMs = 10_000 } = options;
  const { api = "https://api.twilio.com" } = options;
  const path = `/2010-04-01/Accounts/${accountSid}/Messages.json`;
  const authorization = `Basic ${Buffer.from(`${accountSid}:${authToken}`).toString("base64")}`;

  return {
    async send({ id, to, body }) {
      const form = new URLSearchParams({
        To: to,
        Body: body,
        [sender.startsWith("+") ? "From" : "MessagingServiceSid"]: sender,
        ...(notices && { StatusCallback: `${baseUrl}/webhooks/messages?message=${id}` }),
      });
      const taken = takenOf(
        await ask(`${api}${path}`, { authorization, signal: AbortSignal.timeout(timeoutMs), form }),
      );
      if (taken) return taken;
      throw new SmsDeferred("The provider of text messages gave an answer that cannot be read.", {
        mayBeTaken: true,
      });
    },

    async find(sought) {
      const signal = AbortSignal.timeout(timeoutMs);
      // Not by DateSent, which a message only has once it has been sent. The latest come first.
      let next: string | undefined =
        `${path}?${new URLSearchParams({ To: sought.to, PageSize: `${pageSize}` })}`;
      for (let page = 0; next && page < mostPages; page += 1) {
        const answer: Resource = await ask(`${api}${next}`, { authorization, signal }).catch(asDeferred);
        const { messages, next_page_uri: following } = answer;
        if (!Array.isArray(messages))
          throw new SmsDeferred("The provider of text messages gave an answer that cannot be read.");
        const listed = messages as Resource[];
        const found = listed.find((message) => isSought(message, sought));
        if (found) return takenOf(found);
        const last = listed.at(-1);
        const isOver = last && Date.parse(String(last.date_created)) < sought.since.getTime() - skewMs;
        next = !isOver && typeof following === "string" && following.startsWith("/") ? following : undefined;
      }
      return undefined;
    },

    readNotice({ path: called, body, signature }) {
      const params = new URLSearchParams(body);
      if (!isSigned(authToken, `${baseUrl}${called}`, params, signature)) return undefined;
      const get = (name: string) => params.get(name) ?? "";
      const providerId = get("MessageSid") || get("SmsSid");
      const id = new URL(called, baseUrl).searchParams.get("message");
      const status = statuses[get("MessageStatus") || get("SmsStatus")];
      if (!providerId) return null;
      if (id !== null)
        return status && /^[0-9a-f-]{36}$/.test(id)
          ? { id, providerId, status, error: failureOf(status, get("ErrorCode")) }
          : null;
      const from = get("From");
      if (!/^\+[1-9]\d{6,14}$/.test(from) || !params.has("Body")) return null;
      const attachments = Number(get("NumMedia")) || 0;
      const text = [get("Body"), attachments > 0 && `[attachments: ${attachments}]`]
        .filter(Boolean)
        .join("\n");
      const meaning = (["STOP", "START", "HELP"] as const).find((word) => word === get("OptOutType")) ?? null;
      // Text that PostgreSQL accepts.
      return { providerId, from, text: text.replaceAll("\0", "\uFFFD"), meaning };
    },
  };
}

/** @throws SmsRefused, SmsDeferred */
async function ask(
  url: string,
  { authorization, signal, form }: { authorization: string; signal: AbortSignal; form?: URLSearchParams },
): Promise<Resource> {
  let status: number;
  let headers: Headers;
  let text: string;
  try {
    const response = await fetch(url, {
      method: form ? "POST" : "GET",
      headers: { authorization, accept: "application/json" },
      // A redirect would leak the token.
      redirect: "error",
      signal,
      ...(form && { body: form }),
    });
    ({ status, headers } = response);
    text = await readText(response);
  } catch (error) {
    const { code } = ((error as Error).cause ?? {}) as { code?: string };
    // Without a connection, nothing was sent.
    const reached = !["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "UND_ERR_CONNECT_TIMEOUT"].includes(
      code ?? "",
    );
    throw new SmsDeferred(
      signal.aborted
        ? "The provider of text messages did not answer in time."
        : "The provider of text messages cannot be reached.",
      { mayBeTaken: reached },
    );
  }
  return resourceOf(status, headers, readJson(text));
}

/** The response. @throws SmsRefused, SmsDeferred for an error, by what may help */
function resourceOf(status: number, headers: Headers, answer: Resource | undefined): Resource {
  if (status >= 200 && status < 300) {
    if (answer) return answer;
    throw new SmsDeferred("The provider of text messages gave an answer that cannot be read.", {
      mayBeTaken: true,
    });
  }
  const code = Number(answer?.code);
  if (status === 429)
    throw new SmsDeferred("The provider of text messages takes no more for now.", {
      retryAfterSeconds: Math.min(
        Math.max(secondsOf(headers.get("retry-after") ?? undefined) ?? 30, 1),
        3600,
      ),
    });
  if (status === 400 && !settingCodes.has(code))
    throw new SmsRefused(`The provider refuses this message for good${because(code)}.`, code === 21610);
  throw new SmsDeferred(
    status >= 500 || status === 408
      ? `The provider of text messages is out of order for now (${status}).`
      : `The provider of text messages does not accept the service's settings (${status})${because(code)}; tell its operator.`,
    { mayBeTaken: status >= 500 || status === 408 },
  );
}

/** An error of the list request does not mean anything for the message. */
function asDeferred(error: unknown): never {
  throw error instanceof SmsRefused ? new SmsDeferred(error.message) : error;
}

function failureOf(status: SmsStatus, code: string): string | null {
  if (status !== "UNDELIVERED" && status !== "FAILED") return null;
  return `The message was not delivered${because(code)}.`;
}

async function readText(response: Response): Promise<string> {
  const parts: Uint8Array[] = [];
  let size = 0;
  for await (const part of response.body ?? []) {
    size += part.byteLength;
    if (size > mostBytes) throw new Error("The answer is too large.");
    parts.push(part);
  }
  return Buffer.concat(parts).toString();
}

function readJson(text: string): Resource | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}

function takenOf({ sid, status }: Resource): AcceptedMessage | undefined {
  return typeof sid === "string" && sid
    ? { id: sid, status: statuses[String(status)] ?? "ACCEPTED" }
    : undefined;
}

const isSought = (message: Resource, { body, since, known }: UncertainMessage): boolean =>
  message.body === body &&
  String(message.direction).startsWith("outbound") &&
  Date.parse(String(message.date_created)) >= since.getTime() - skewMs &&
  !known.includes(String(message.sid));

/** HMAC-SHA1 of the called URL, followed by the names and values of the form, sorted by name. */
export function signatureOf(authToken: string, url: string, params: URLSearchParams): string {
  const sorted = new URLSearchParams(params);
  sorted.sort();
  const pairs = [...sorted].map(([name, value]) => name + value);
  return createHmac("sha1", authToken)
    .update(url + pairs.join(""))
    .digest("base64");
}

function isSigned(authToken: string, url: string, params: URLSearchParams, signature = ""): boolean {
  return isSameText(signature, signatureOf(authToken, url, params));
}
