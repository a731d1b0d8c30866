import type { RequestHandler } from "express";
import type { Pool } from "pg";
import { CodedError } from "../base/errors.ts";
import type { PaymentProcessor } from "../providers/payments/index.ts";

/**
 * POST /webhooks/payments: the payment processor tells what changed. Its signature is checked over the body as it was sent; what is
 * not signed is refused, and nothing happens. An event is taken once; what follows from it is a job, which asks for the present state.
 */
export function paymentsWebhook(processor: PaymentProcessor, pool: Pick<Pool, "query">): RequestHandler {
  return async (request, response) => {
    const event = processor.readEvent(request.body, request.get("stripe-signature"));
    if (!event)
      throw new CodedError("BAD_USER_INPUT", "The signature is missing, too old, or not the processor's.");
    const isOurs = event.objectId !== null || event.accountId !== null;
    if (isOurs) await pool.query("select app_private.take_processor_event($1)", [JSON.stringify(event)]);
    response.status(200).json({ received: true });
  };
}
