/**
 * /stop-email-change/<token>, the link in the mail to the current address of an account whose address is about to
 * change. Mail scanners follow links, so GET only shows a form, and POST stops the change.
 */
import type { RequestHandler } from "express";
import type { Pool } from "pg";
import { CodedError } from "../base/errors.ts";
import { button, paragraph, readerOf, sendPage } from "./htmlPage.ts";

/** @param pool connections of plat_authenticator */
export function stopEmailChangePage(pool: Pick<Pool, "query">): RequestHandler<{ token: string }> {
  return async (request, response) => {
    const { token } = request.params;
    response.setHeader("Cache-Control", "no-store");
    response.setHeader("Referrer-Policy", "no-referrer");
    const isStopping = request.method === "POST";
    const { rows } = isStopping
      ? await pool.query<{ found: boolean }>("select app_private.stop_email_change($1) as found", [token])
      : await pool.query<{ found: string | null }>("select app_private.email_change_to_stop($1) as found", [
          token,
        ]);
    const { found } = rows[0]!;
    if (!found)
      throw new CodedError(
        "FORBIDDEN",
        "This link is incomplete or older than a day, or the change has already been stopped or made.",
      );
    const reader = readerOf(request);
    if (isStopping)
      sendPage(
        response,
        reader,
        reader.text("The change was stopped"),
        paragraph(reader, "Your account keeps its email address, and all its sign-ins have ended."),
        paragraph(
          reader,
          "Whoever asked for the change knows your password: reset it before you sign in again.",
        ),
      );
    else
      sendPage(
        response,
        reader,
        reader.text("Stop the change?"),
        paragraph(reader, `Your account is to get the email address ${found}.`, String(found)),
        paragraph(
          reader,
          "Stop it if it was not you who asked for it. That ends all sign-ins of the account, too.",
        ),
        button(reader, "Stop the change"),
      );
  };
}
