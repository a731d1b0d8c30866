/**
 * /unsubscribe/<token>, the link in notifications and marketing mails. Mail scanners follow links, so GET only shows
 * a form; POST, from the form or from a mail program by RFC 8058, unsubscribes from that kind of mail.
 */
import type { RequestHandler } from "express";
import type { Pool } from "pg";
import { CodedError } from "../base/errors.ts";
import { marketing, openUnsubscribeLink, type Choice } from "../notifications/unsubscribeLinks.ts";
import { button, paragraph, readerOf, sendPage, type Reader } from "./htmlPage.ts";
import { requestState } from "./requestState.ts";

interface Found {
  organization: string | null;
  kind_name: string;
  wanted: boolean;
}

/** Arguments of `sendPage`: a heading and HTML. */
type Said = [title: string, body: string];
type Database = Pick<Pool, "query">;

const question = (reader: Reader) => button(reader, "Stop these emails");

/** @param pool connections of plat_authenticator */
export function unsubscribePage(pool: Database): RequestHandler<{ token: string }> {
  return async (request, response) => {
    const choice = await openUnsubscribeLink(pool, request.params.token);
    if (!choice) throw new CodedError("FORBIDDEN", "This link is incomplete; copy all of it from the mail.");
    const stops = request.method === "POST";
    const reader = readerOf(request);
    const [title, body] =
      choice.kind === marketing
        ? await ofMarketing(pool, choice, stops, requestState(request).id, reader)
        : await ofNotifications(pool, choice, stops, reader);
    sendPage(response, reader, reader.text(title), body);
  };
}

async function ofNotifications(
  pool: Database,
  { readerId, kind }: Choice,
  stops: boolean,
  reader: Reader,
): Promise<Said> {
  const values = [readerId, kind];
  if (stops) await pool.query("select app_private.unsubscribe($1, $2)", values);
  const { rows } = await pool.query<Found>("select * from app_private.notification_choice($1, $2)", values);
  const {
    organization,
    kind_name: kindName,
    wanted,
  } = rows[0] ?? { organization: null, kind_name: "", wanted: false };
  // A former member no longer gets mails, which is the desired result.
  if (organization === null)
    return ["You do not receive these emails", paragraph(reader, "You are no longer a member there.")];
  const what = `about ${kindName} from ${organization}`;
  return wanted
    ? [`Emails ${what}`, question(reader)]
    : [
        `No more emails ${what}`,
        paragraph(
          reader,
          "They are turned off. You still receive other emails. Turn them on again in the notification settings of your account.",
        ),
      ];
}

/**
 * The same response for everybody to whom the mail was forwarded: it does not reveal the recipient, their choice, or
 * whether they are still known.
 */
async function ofMarketing(
  pool: Database,
  { readerId }: Choice,
  stops: boolean,
  requestId: string,
  reader: Reader,
): Promise<Said> {
  if (stops) await pool.query("select app_private.withdraw_consent($1, $2)", [readerId, requestId]);
  const { rows } = await pool.query<{ sender: string | null }>(
    "select app_private.marketing_sender($1) as sender",
    [readerId],
  );
  const what = `marketing emails from ${rows[0]?.sender ?? "this sender"}`;
  return stops
    ? [
        `No more ${what}`,
        paragraph(
          reader,
          "You are unsubscribed. You still receive emails about your appointments, reservations and purchases.",
        ),
      ]
    : [`Stop ${what}?`, question(reader)];
}
