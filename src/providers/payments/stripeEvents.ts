/** Events of Stripe, and the verification of their origin. */
import type { Stripe } from "stripe";
import type { PaymentProcessor, ProcessorEvent } from "./processor.ts";
import { allPages, callStripe } from "./stripeClient.ts";
import { stripePackage } from "./stripePackage.ts";

/** Events that may affect our records; a list can be filtered by twenty. */
const wanted: Stripe.EventListParams["types"] = [
  "payment_intent.succeeded",
  "payment_intent.payment_failed",
  "payment_intent.requires_action",
  "payment_intent.processing",
  "payment_intent.canceled",
  "charge.succeeded",
  "charge.failed",
  "charge.updated",
  "charge.refunded",
  "charge.dispute.created",
  "charge.dispute.updated",
  "charge.dispute.closed",
  "refund.created",
  "refund.updated",
  "refund.failed",
  "account.updated",
  "person.created",
  "person.updated",
  "person.deleted",
];

interface EventObject {
  id?: string;
  object?: string;
  payment_intent?: string | { id: string } | null;
  account?: string | null;
}

function summary(event: Stripe.Event): ProcessorEvent {
  const about = event.data.object as EventObject;
  const payment = about.object === "payment_intent" ? about.id : about.payment_intent;
  const account =
    about.object === "account" ? about.id : about.object === "person" ? about.account : event.account;
  return {
    id: event.id,
    type: event.type,
    created: event.created,
    objectId: (typeof payment === "object" ? payment?.id : payment) ?? null,
    accountId: account ?? null,
  };
}

/** The retention of the processor's list of events. */
const thirtyDays = 30 * 24 * 60 * 60;

/** @param webhookSecret verifies signatures; without one, all webhook requests are refused */
export function stripeEvents(
  stripe: () => Stripe,
  webhookSecret: string | undefined,
): Pick<PaymentProcessor, "readEvent" | "eventsSince"> {
  return {
    readEvent(body, signature) {
      if (!webhookSecret || !signature) return undefined;
      try {
        return summary(stripe().webhooks.constructEvent(body, signature, webhookSecret));
      } catch (error) {
        if (
          error instanceof stripePackage().errors.StripeSignatureVerificationError ||
          error instanceof SyntaxError
        )
          return undefined;
        throw error;
      }
    },
    eventsSince: (seconds) =>
      callStripe(async () => {
        const since = Math.max(Math.floor(seconds), Math.floor(Date.now() / 1000) - thirtyDays);
        const events = await allPages(
          stripe().events.list({ created: { gte: since }, types: wanted!, limit: 100 }),
        );
        return events.reverse().map(summary);
      }),
  };
}
