import type { RequestHandler } from "express";
import type { Pool } from "pg";
import { CodedError } from "../base/errors.ts";
import type { SmsProvider } from "../providers/sms/index.ts";
import { requestState } from "./requestState.ts";

/**
 * POST /webhooks/messages: delivery reports and replies from the text message provider. The signature is verified
 * first; unsigned requests are refused without effect. The database processes each event once.
 */
export function messagesWebhook(
  readNotice: NonNullable<SmsProvider["readNotice"]>,
  pool: Pick<Pool, "query">,
): RequestHandler {
  return async (request, response) => {
    const notice = readNotice({
      path: request.originalUrl,
      body: (request.body as Buffer).toString(),
      signature: request.get("x-twilio-signature"),
    });
    if (notice === undefined)
      throw new CodedError(
        "BAD_USER_INPUT",
        "The signature is missing, or is not the signature of the provider.",
      );
    if (notice)
      await pool.query("select app_private.take_message_notice($1, $2)", [
        JSON.stringify(notice),
        requestState(request).id,
      ]);
    // There are no automatic replies.
    response.type("text/xml").send("<Response/>");
  };
}
