import { randomBytes } from "node:crypto";
import type { Logger } from "../../base/log.ts";
import { ProcessorFailure, type PaymentProcessor } from "./processor.ts";
import { startSandbox, type SandboxOptions } from "./sandbox/index.ts";
import { createStripeProcessor } from "./stripe.ts";

export * from "./processor.ts";

export interface PaymentsOptions {
  /** Undefined for the sandbox. */
  stripe: { secretKey: string; webhookSecret: string | undefined; api: string | undefined } | undefined;
  /** The connection of background work, which stores the state of the sandbox; only opened for it. */
  workerUrl: () => string;
  /** Shared connections of the process; the sandbox opens its own by default. */
  pool?: SandboxOptions["pool"];
  /** URL for events of the sandbox: this process; undefined if it accepts none. */
  endpoint: string | undefined;
  /** The return URL of payers after authentication at their bank. */
  returnUrl: string;
  serviceUrl: string;
  log: Logger;
}

export interface Payments {
  processor: PaymentProcessor;
  close(): Promise<void>;
}

/** Stripe if a key is configured; otherwise the sandbox, which the same client uses. */
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

/** Without a processor, operations that require one fail. */
export const noProcessor: PaymentProcessor = new Proxy(
  { name: "none", takesMoney: false } as PaymentProcessor,
  {
    get: (target, name) =>
      name in target
        ? target[name as keyof PaymentProcessor]
        : name === "readEvent"
          ? () => undefined
          : () => Promise.reject(new ProcessorFailure("There is no payment processor.", false, undefined)),
  },
);
