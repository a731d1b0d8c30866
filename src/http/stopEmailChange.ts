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
        paragraph(
          reader,
          "The email address of your account remains unchanged, and all its sessions have ended.",
        ),
        paragraph(
          reader,
          "The person who requested the change knows your password: reset it before you sign in again.",
        ),
      );
    else
      sendPage(
        response,
        reader,
        reader.text("Stop the change?"),
        paragraph(reader, `The email address of your account will be changed to ${found}.`, String(found)),
        paragraph(
          reader,
          "If you did not request this, stop it. That also ends all sessions of the account.",
        ),
        button(reader, "Stop the change"),
      );
  };
}
