/**
 * /confirm/<token>, the link in consent requests. Mail scanners follow links, so GET only shows a form, and POST
 * confirms.
 */
import type { RequestHandler } from "express";
import type { Pool } from "pg";
import { CodedError } from "../base/errors.ts";
import { button, paragraph, readerOf, sendPage } from "./htmlPage.ts";
import { requestState } from "./requestState.ts";

interface Question {
  purpose: keyof typeof wordings | null;
  organization: string;
  is_confirmed: boolean;
}

/** Question, and the result after confirmation. */
const wordings = {
  NEWS: {
    ask: (organization: string) => `News from ${organization}?`,
    explain: "They will then send you news. Each email has an unsubscribe link.",
    done: (organization: string) => `You will receive news from ${organization}`,
  },
  MAILBOX: {
    ask: (organization: string) => `Receive enquiries to ${organization}?`,
    explain: "Messages from visitors will be forwarded to your address.",
    done: (organization: string) => `You will receive enquiries to ${organization}`,
  },
  RECIPIENT: {
    ask: (organization: string) => `Receive emails from ${organization}?`,
    explain: "They can then send emails to your address. Each email has an unsubscribe link.",
    done: (organization: string) => `${organization} may write to you`,
  },
};

/** @param pool connections of plat_authenticator */
export function confirmPage(pool: Pick<Pool, "query">): RequestHandler<{ token: string }> {
  return async (request, response) => {
    const { token } = request.params;
    response.setHeader("Cache-Control", "no-store");
    response.setHeader("Referrer-Policy", "no-referrer");
    if (request.method === "POST")
      await pool.query("select app_private.confirm_consent($1, $2)", [token, requestState(request).id]);
    const { rows } = await pool.query<Question>("select * from app_private.consent_question($1)", [token]);
    const { purpose, organization, is_confirmed: isConfirmed } = rows[0]!;
    if (purpose === null)
      throw new CodedError("FORBIDDEN", "This link is incomplete or older than a week; request a new one.");
    const { ask, explain, done } = wordings[purpose];
    const reader = readerOf(request);
    if (isConfirmed)
      sendPage(
        response,
        reader,
        reader.text(done(organization)),
        paragraph(reader, "Thank you. You can close this page."),
      );
    else
      sendPage(
        response,
        reader,
        reader.text(ask(organization)),
        paragraph(reader, explain),
        paragraph(reader, "If you did not request this, close this page; nothing will happen."),
        button(reader, "Yes, confirm"),
      );
  };
}
