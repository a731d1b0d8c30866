/** The `stripe` package, configured for the real processor or a compatible one, and the translation of its errors. */
import { setTimeout as pause } from "node:timers/promises";
import type { Stripe } from "stripe";
import { ProcessorFailure, ProcessorRefusal } from "./processor.ts";
import { stripePackage } from "./stripePackage.ts";

export interface StripeOptions {
  secretKey: string;
  /** Another URL with the same API; that of the package by default. */
  api?: string | undefined;
  /** Milliseconds for one attempt; there are two retries if it is safe. */
  timeoutMs?: number;
}

/** @returns a function that returns the client, created on first use. */
export function stripeClient({ secretKey, api, timeoutMs = 15_000 }: StripeOptions): () => Stripe {
  const url = api === undefined ? undefined : new URL(api);
  const options: Stripe.StripeConfig = {
    timeout: timeoutMs,
    maxNetworkRetries: 2,
    telemetry: false,
    appInfo: { name: "Plat" },
    ...(url && {
      host: url.hostname,
      port: url.port || (url.protocol === "https:" ? 443 : 80),
      protocol: url.protocol === "https:" ? ("https" as const) : ("http" as const),
    }),
  };
  let client: Stripe | undefined;
  return () => (client ??= new (stripePackage())(secretKey, options));
}

/** Retries of requests that collide with an identical one. */
const mostTries = 10;

/** Runs a call and translates its errors. Those of the package may contain request data, so only their message is used. */
export async function callStripe<T>(work: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await work();
    } catch (error) {
      // An identical request is running; its response is ours too.
      const isAsked = (error as { code?: string } | null)?.code === "idempotency_key_in_use";
      if (!isAsked || tries === mostTries) throw translated(error);
      await pause(100 + Math.random() * 200 * tries);
    }
  }
}

function translated(error: unknown): unknown {
  const { errors } = stripePackage();
  if (!(error instanceof errors.StripeError)) return error;
  const { code = error.type, param } = error;
  if (error instanceof errors.StripeCardError) {
    const reason = error.decline_code && error.decline_code !== "generic_decline" ? error.decline_code : code;
    return new ProcessorRefusal(error.message, reason, param, true, undefined);
  }
  if (error instanceof errors.StripeInvalidRequestError)
    return new ProcessorRefusal(error.message, code, param, false, undefined);
  const retryable =
    error instanceof errors.StripeConnectionError ||
    error instanceof errors.StripeRateLimitError ||
    error instanceof errors.StripeAPIError ||
    (error.statusCode ?? 0) >= 500 ||
    error.statusCode === 409;
  return new ProcessorFailure(`${error.type}: ${error.message}`, retryable, undefined);
}

/** All pages of a list. */
export async function allPages<T>(pages: AsyncIterable<T>): Promise<T[]> {
  const items: T[] = [];
  for await (const item of pages) items.push(item);
  return items;
}
