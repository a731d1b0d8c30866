import { randomBytes } from "node:crypto";
import type { Logger } from "../../base/log.ts";
import { ProcessorFailure, type PaymentProcessor } from "./processor.ts";
import { startSandbox, type SandboxOptions } from "./sandbox/index.ts";
import { createStripeProcessor } from "./stripe.ts";

export * from "./processor.ts";

export interface PaymentsOptions {
  /** Undefined means the sandbox. */
  stripe: { secretKey: string; webhookSecret: string | undefined; api: string | undefined } | undefined;
  /** The connection of background work, which keeps the state of the sandbox; asked for where there is one. */
  workerUrl: () => string;
  /** Connections of it that the process has anyway; the sandbox has one of its own where omitted. */
  pool?: SandboxOptions["pool"];
  /** Where the sandbox delivers its events: this process; undefined where it takes none. */
  endpoint: string | undefined;
  /** Where payers come back to from their bank. */
  returnUrl: string;
  serviceUrl: string;
  log: Logger;
}

export interface Payments {
  processor: PaymentProcessor;
  close(): Promise<void>;
}

/** Stripe where there is a key; else a sandbox of our own, which the same client talks to in the same way. */
export async function openPayments(options: PaymentsOptions): Promise<Payments> {
  const { stripe, workerUrl, pool, endpoint, log, ...addresses } = options;
  if (stripe) return { processor: createStripeProcessor({ ...stripe, ...addresses }), close: async () => {} };
  const webhookSecret = `whsec_${randomBytes(24).toString("hex")}`;
  const sandbox = await startSandbox({
    connectionString: workerUrl(),
    pool,
    endpoint: endpoint === undefined ? undefined : { url: endpoint, secret: webhookSecret },
    log,
  });
  const { api, secretKey } = sandbox;
  return {
    processor: createStripeProcessor({ secretKey, api, webhookSecret, ...addresses }),
    close: sandbox.stop,
  };
}

/** Where there is no processor: whatever takes one fails. */
export const noProcessor: PaymentProcessor = new Proxy({ name: "none" } as PaymentProcessor, {
  get: (target, name) =>
    name === "name"
      ? target.name
      : name === "readEvent"
        ? () => undefined
        : () => Promise.reject(new ProcessorFailure("There is no payment processor.", false, undefined)),
});
