import type { PaymentProcessor } from "./processor.ts";
import { stripeAccounts } from "./stripeAccounts.ts";
import { stripeClient, type StripeOptions } from "./stripeClient.ts";
import { stripeEvents } from "./stripeEvents.ts";
import { stripePayments } from "./stripePayments.ts";

export interface StripeProcessorOptions extends StripeOptions {
  /** What its deliveries are signed with; without one they are not taken, and its list of events is read instead. */
  webhookSecret?: string | undefined;
  /** Where payers come back to from their bank. */
  returnUrl: string;
  /** The service's own address, for organizations without a website. */
  serviceUrl: string;
}

/** Stripe, or whatever speaks its API at the address `api`, such as the sandbox. */
export function createStripeProcessor(options: StripeProcessorOptions): PaymentProcessor {
  const stripe = stripeClient(options);
  return {
    name: "stripe",
    takesMoney: !/^(sk|rk)_test_/.test(options.secretKey),
    ...stripePayments(stripe, options.returnUrl),
    ...stripeAccounts(stripe, options.serviceUrl),
    ...stripeEvents(stripe, options.webhookSecret),
  };
}
