/** The providers and computations that a process needs in every role. */
import { loadSeal } from "../auth/authKeys.ts";
import { createCompute, type Compute } from "../compute/computePool.ts";
import { demoPayments } from "../demo/demoPayments.ts";
import { ownAddress } from "../http/address.ts";
import { createDraftProvider, type DraftProvider } from "../providers/drafts/index.ts";
import { openPayments, type PaymentProcessor } from "../providers/payments/index.ts";
import { createSmsProvider, type SmsProvider } from "../providers/sms/index.ts";
import type { Seal } from "../secrets/seal.ts";
import type { Background } from "./background.ts";
import type { Data } from "./data.ts";
import type { Start } from "./start.ts";

export interface Providers {
  payments: PaymentProcessor;
  drafts: DraftProvider;
  sms: SmsProvider;
  compute: Compute;
  seal: Seal;
}

/** Opens the providers; if the demo data has just been loaded, pays its deposit. */
export async function openProviders(
  { config, log, shutdown }: Start,
  { database, demo }: Data,
  background: Background | undefined,
): Promise<Providers> {
  const payments = await openPayments({
    stripe: config.stripe,
    workerUrl: () => database.workerUrl,
    pool: background?.engines,
    endpoint: config.mode === "worker" ? undefined : `${ownAddress(config)}/webhooks/payments`,
    returnUrl: config.webUrl ?? config.baseUrl,
    serviceUrl: config.baseUrl,
    log,
  });
  shutdown.add("payments", payments.close);
  if (demo === "loaded" && !config.stripe) await demoPayments(database, payments.processor);
  return {
    payments: payments.processor,
    drafts: createDraftProvider(config.ai),
    sms: createSmsProvider(config),
    compute: createCompute({ log }),
    seal: await loadSeal(config, database.authenticatorUrl, log),
  };
}
