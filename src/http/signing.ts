/**
 * /sign/<token>, the link in signing invitations. Mail scanners follow links, so GET changes nothing and shows the
 * agreement. The buttons POST: one requests a code, the others sign or decline with it. Everything uses the API's own
 * mutations, as a visitor with the token.
 */
import express, { type RequestHandler, type Response } from "express";
import type { Pool } from "pg";
import { anonymous, pgSettings } from "../database/claims.ts";
import { asViewer } from "../database/asViewer.ts";
import { CodedError, type ErrorCode } from "../base/errors.ts";
import type { AddressClaims, FileAddresses } from "../files/addresses.ts";
import { localize } from "../messages/recognize.ts";
import { escapeHtml } from "../providers/mail/letter.ts";
import { longestCode, proofOf, type TriedCode } from "../operations/inputs/codes.ts";
import { paragraph, readerOf, sendPage, type Reader } from "./htmlPage.ts";
import { userAgentOf } from "./requestFacts.ts";
import { requestState } from "./requestState.ts";
import { toCodedError } from "./toCodedError.ts";
import type { DatabaseValue } from "../database/databaseValue.ts";

export interface SigningPageDeps {
  /** Connections of plat_authenticator. */
  pool: Pool;
  addresses: Pick<FileAddresses, "sign">;
}

/** Result of app_public.signing_request. */
interface Asked {
  title: string;
  status: string;
  organization_name: string;
  project_title: string;
  signer_name: string;
  signer_status: string;
  can_sign: boolean;
  file_id: string | null;
  filename: string | null;
  file_number: number | null;
  checksum: string | null;
  url: AddressClaims | null;
  certificate_url: AddressClaims | null;
  consent_text: string;
  code_sent_to: string | null;
  expires_at: string | null;
  signed_at: string | null;
}

/** Maximum bytes of a form; the reason is the longest field. */
const limit = 16 * 1024;

const form = express.urlencoded({ extended: false, limit, parameterLimit: 10 });

/** Reads the form of a POST. @throws CodedError BAD_USER_INPUT, PAYLOAD_TOO_LARGE */
export const signingForm: RequestHandler<DatabaseValue> = (request, response, next) =>
  form(request, response, (error?: { type?: string }) => {
    if (!error) return next();
    next(
      error.type === "entity.too.large"
        ? new CodedError("PAYLOAD_TOO_LARGE", "The form exceeds 16 KB.", { limit })
        : new CodedError("BAD_USER_INPUT", "The form is malformed."),
    );
  });

/** Errors shown beside the form, so that the signer can correct them. */
const correctable: readonly ErrorCode[] = ["BAD_USER_INPUT", "CONFLICT", "RATE_LIMITED", "PROJECT_ARCHIVED"];

/**
 * GET shows the documents and the form, POST signs or declines. Signers have no account; the token of the URL
 * identifies them.
 */
export function signingPage({ pool, addresses }: SigningPageDeps): RequestHandler<{ token: string }> {
  return async (request, response) => {
    const { token } = request.params;
    const { id, constraintMessages } = requestState(request);
    const userAgent = userAgentOf(request);
    const settings = pgSettings(anonymous, {
      requestId: id,
      channel: "UI",
      ...(request.ip && { ip: request.ip }),
      ...(userAgent && { userAgent }),
    });
    const ask = <T>(text: string, values: unknown[]): Promise<T> =>
      asViewer(pool, settings, async (client) => (await client.query(text, values)).rows[0].result as T);
    response.setHeader("Cache-Control", "no-store");
    response.setHeader("Referrer-Policy", "no-referrer");

    let fault: CodedError | undefined;
    if (request.method === "POST")
      try {
        await act(ask, token, (request.body ?? {}) as Record<string, unknown>);
      } catch (error) {
        fault = toCodedError(error, constraintMessages, { signedIn: false });
        if (!correctable.includes(fault.code)) throw fault;
        response.status(fault.status);
      }
    const signing = await ask<Asked>(
      "select to_jsonb(r) as result from app_public.signing_request(token => $1) r",
      [token],
    );
    show(response, readerOf(request), signing, fault, addresses);
  };
}

type Ask = <T>(text: string, values: unknown[]) => Promise<T>;

/** Action of a button. @throws the errors of the mutations */
async function act(ask: Ask, token: string, sent: Record<string, unknown>): Promise<void> {
  const text = (name: string): string => (typeof sent[name] === "string" ? sent[name].trim() : "");
  // In a transaction of its own, so that a wrong code is counted.
  const prove = async (): Promise<string> =>
    proofOf(
      await ask<TriedCode>("select app_hidden.try_signing_code(null, $1, $2) as result", [
        token,
        text("code").slice(0, longestCode),
      ]),
      "code",
    );
  switch (text("action")) {
    case "code":
      return ask("select app_public.request_signing_code(token => $1, channel => $2) is null as result", [
        token,
        text("channel") === "SMS" ? "SMS" : "EMAIL",
      ]);
    case "sign":
      return ask(
        "select app_public.sign_agreement(code => $2, consent => $3, file_id => app_hidden.record_id('', $4, 'fileId'), token => $1) is null as result",
        [token, await prove(), text("consent") === "yes", text("file")],
      );
    case "decline":
      return ask(
        "select app_public.decline_agreement(code => $2, reason => app_hidden.checked(nullif($3, ''), 'app_public.long_text', 'reason'), token => $1) is null as result",
        [token, await prove(), text("reason")],
      );
    default:
      throw new CodedError("BAD_USER_INPUT", "The form is incomplete.");
  }
}

const ends: Record<string, string> = {
  DECLINED: "It was declined by a signer: you no longer need to sign it.",
  VOIDED: "It was withdrawn: you no longer need to sign it.",
  EXPIRED: "It was not signed in time: you no longer need to sign it.",
};

function show(
  response: Response,
  reader: Reader,
  signing: Asked,
  fault: CodedError | undefined,
  addresses: SigningPageDeps["addresses"],
): void {
  const { text } = reader;
  const link = (claims: AddressClaims | null, label: string) =>
    claims ? `<p><a href="${escapeHtml(addresses.sign(claims))}">${escapeHtml(text(label))}</a></p>` : "";
  const { signer_status: status } = signing;
  const statusText =
    ends[signing.status] ??
    (status === "SIGNED"
      ? ["SIGNED", "EXECUTED"].includes(signing.status) && signing.certificate_url
        ? "You and all other signers have signed it."
        : "You have signed it. You will receive an email when everybody has."
      : signing.can_sign
        ? `Read it first. It can be signed${signing.expires_at ? ` until ${signing.expires_at.slice(0, 10)}` : ""}.`
        : "It cannot be signed at the moment.");
  sendPage(
    response,
    reader,
    signing.title,
    `<p>${escapeHtml(`${signing.organization_name}, ${signing.project_title} · ${signing.signer_name}`)}</p>`,
    ...(fault
      ? [
          `<p role="alert"><strong>${escapeHtml(localize(fault.message, reader.language).message)}</strong></p>`,
        ]
      : []),
    paragraph(reader, statusText),
    link(signing.url, `${signing.filename}, version ${signing.file_number}`),
    ...(signing.checksum ? [`<p>SHA-256: ${signing.checksum}</p>`] : []),
    link(signing.certificate_url, "Certificate: who signed, when and from where"),
    ...(signing.can_sign ? forms(reader, signing) : []),
  );
}

function forms(
  reader: Reader,
  { code_sent_to: sentTo, consent_text: consent, file_id: file }: Asked,
): string[] {
  const text = (english: string) => escapeHtml(reader.text(english));
  const hidden = (name: string, value: string) =>
    `<input type="hidden" name="${name}" value="${escapeHtml(value)}">`;
  const codeField = `<p><label>${text("Code")} <input name="code" inputmode="numeric" autocomplete="one-time-code" required maxlength="20"></label></p>`;
  return [
    `<form method="post">${hidden("action", "code")}<button>${text(sentTo ? "Send another code" : "Send me a code")}</button></form>`,
    ...(sentTo === null
      ? [paragraph(reader, "To sign or decline, you need a code that we send to you.")]
      : [
          paragraph(reader, `A code was sent to ${sentTo}. It is valid for ten minutes.`),
          `<h2>${text("Sign")}</h2><form method="post">${hidden("action", "sign")}${hidden("file", file!)}${codeField}`,
          `<p><label><input type="checkbox" name="consent" value="yes" required> ${escapeHtml(consent)}</label></p><button>${text("Sign")}</button></form>`,
          `<h2>${text("Decline")}</h2><form method="post">${hidden("action", "decline")}${codeField}`,
          `<p><label>${text("Why")} <textarea name="reason" required maxlength="5000"></textarea></label></p><button>${text("Decline")}</button></form>`,
        ]),
  ];
}
