/**
 * /unsubscribe/<token>, the link of notification mails. Mail scanners follow links, so a GET only asks; the POST of the page's
 * button, or of a mail program by RFC 8058, switches that kind of mails off.
 */
import type { RequestHandler } from "express";
import type { Pool } from "pg";
import { CodedError } from "../errors.ts";
import type { UnsubscribeLinks } from "../notifications/unsubscribeLinks.ts";
import { button, sendPage } from "./page.ts";

export interface UnsubscribeDeps {
  links: UnsubscribeLinks;
  /** Connections of plat_authenticator. */
  pool: Pick<Pool, "query">;
}

interface Found {
  organization: string | null;
  kind_name: string;
  wanted: boolean;
}

export function unsubscribePage({ links, pool }: UnsubscribeDeps): RequestHandler<{ token: string }> {
  return async (request, response) => {
    const choice = links.open(request.params.token);
    if (!choice) throw new CodedError("FORBIDDEN", "This link is incomplete; copy all of it from the mail.");
    const values = [choice.memberId, choice.kind];
    if (request.method === "POST") await pool.query("select app_private.unsubscribe($1, $2)", values);
    const { rows } = await pool.query<Found>("select * from app_private.notification_choice($1, $2)", values);
    const {
      organization,
      kind_name: kindName,
      wanted,
    } = rows[0] ?? { organization: null, kind_name: "", wanted: false };
    // Who left gets no mails any more, which is what they came for.
    if (organization === null)
      return sendPage(response, "You get no such mails", "<p>You are no member there any more.</p>");
    const what = `about ${kindName} from ${organization}`;
    if (wanted) return sendPage(response, `Mails ${what}`, button("Stop these mails"));
    sendPage(
      response,
      `No more mails ${what}`,
      "<p>They are switched off. Other mails go on. Switch them on again in the notification settings of your account.</p>",
    );
  };
}
