/**
 * /unsubscribe/<token>, the link of notification mails. Mail scanners follow links, so a GET only asks; the POST of the page's
 * button, or of a mail program by RFC 8058, switches that kind of mails off.
 */
import { createHash } from "node:crypto";
import type { RequestHandler } from "express";
import type { Pool } from "pg";
import { CodedError } from "../errors.ts";
import { escapeHtml } from "../providers/mail/letter.ts";
import type { UnsubscribeLinks } from "../notifications/unsubscribeLinks.ts";

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

const style =
  "body{font:16px/1.5 sans-serif;color:#222;max-width:36em;margin:4em auto;padding:0 1em}button{font:inherit;padding:.5em 1em}";
const policy = [
  "default-src 'none'",
  `style-src 'sha256-${createHash("sha256").update(style).digest("base64")}'`,
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
].join("; ");

const page = (title: string, ...body: string[]): string =>
  [
    '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">',
    `<meta name="robots" content="noindex"><title>${escapeHtml(title)}</title><style>${style}</style></head><body>`,
    `<h1>${escapeHtml(title)}</h1>`,
    ...body,
    "</body></html>",
  ].join("\n");

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
    response.setHeader("Content-Security-Policy", policy);
    response.type("html");
    // Who left gets no mails any more, which is what they came for.
    if (organization === null)
      return void response.send(page("You get no such mails", "<p>You are no member there any more.</p>"));
    const what = `about ${kindName} from ${organization}`;
    response.send(
      wanted
        ? page(`Mails ${what}`, '<form method="post"><button>Stop these mails</button></form>')
        : page(
            `No more mails ${what}`,
            "<p>They are switched off. Other mails go on. Switch them on again in the notification settings of your account.</p>",
          ),
    );
  };
}
