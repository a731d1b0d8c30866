import type { RequestHandler } from "express";
import type { Pool } from "pg";
import { CodedError } from "../base/errors.ts";
import type { PaymentProcessor } from "../providers/payments/index.ts";

/**
 * POST /webhooks/payments: events of the payment processor. The signature is verified over the raw body; unsigned
 * requests are refused without effect. Each event is stored once and processed by a job, which requests the current
 * state.
 */
export function paymentsWebhook(processor: PaymentProcessor, pool: Pick<Pool, "query">): RequestHandler {
  return async (request, response) => {
    const event = processor.readEvent(request.body, request.get("stripe-signature"));
    if (!event)
      throw new CodedError(
        "BAD_USER_INPUT",
        "The signature is missing, too old, or is not the signature of the payment processor.",
      );
    const isOurs = event.objectId !== null || event.accountId !== null;
    if (isOurs) await pool.query("select app_private.take_processor_event($1)", [JSON.stringify(event)]);
    response.status(200).json({ received: true });
  };
}
