import type { PaymentProcessor } from "./processor.ts";
import { stripeAccounts } from "./stripeAccounts.ts";
import { stripeClient, type StripeOptions } from "./stripeClient.ts";
import { stripeEvents } from "./stripeEvents.ts";
import { stripePayments } from "./stripePayments.ts";

export interface StripeProcessorOptions extends StripeOptions {
  /** The signing secret of its deliveries; without one, they are refused, and its list of events is read instead. */
  webhookSecret?: string | undefined;
  /** The return URL of payers after authentication at their bank. */
  returnUrl: string;
  /** The URL of the service, for organizations without a website. */
  serviceUrl: string;
}

/** Stripe, or another server with its API at the URL `api`, such as the sandbox. */
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
