/** The well-known test cards, by their test tokens. */
import { createHash } from "node:crypto";
import { ApiError, invalid } from "./sandboxErrors.ts";
import type { Store, SandboxRecord } from "./sandboxStore.ts";
import type { DatabaseValue } from "../../../database/databaseValue.ts";

interface TestCard {
  last4?: string;
  brand?: string;
  funding?: string;
  /** The result of a charge. */
  decline?: { code: string; decline_code?: string; message: string };
  /** Declined only when charged, not when attached to a customer. */
  attaches?: boolean;
  authenticate?: boolean;
  dispute?: boolean;
  refund?: "fails" | "pends";
}

const declinedBy = (decline_code: string, message = "Your card was declined.") => ({
  decline: { code: "card_declined", decline_code, message },
});
const refused = (code: string, message: string) => ({ decline: { code, message } });
const generic = declinedBy("generic_decline");
const insufficient = declinedBy("insufficient_funds", "Your card has insufficient funds.");
const later = { authenticate: true, attaches: true };

/** With the last four digits of the documentation; Visa by default. */
const cards: Readonly<Record<string, TestCard>> = {
  visa: {},
  visa_debit: { last4: "5556", funding: "debit" },
  mastercard: { last4: "4444", brand: "mastercard" },
  mastercard_debit: { last4: "8210", brand: "mastercard", funding: "debit" },
  mastercard_prepaid: { last4: "5100", brand: "mastercard", funding: "prepaid" },
  amex: { last4: "8431", brand: "amex" },
  discover: { last4: "9424", brand: "discover" },
  diners: { last4: "3237", brand: "diners" },
  jcb: { last4: "0505", brand: "jcb" },
  unionpay: { last4: "0005", brand: "unionpay" },
  bypassPending: {},
  chargeDeclined: { last4: "0002", ...generic },
  chargeDeclinedInsufficientFunds: { last4: "9995", ...insufficient },
  chargeDeclinedLostCard: { last4: "9987", ...declinedBy("lost_card") },
  chargeDeclinedStolenCard: { last4: "9979", ...declinedBy("stolen_card") },
  chargeDeclinedFraudulent: { last4: "0019", ...declinedBy("fraudulent") },
  chargeDeclinedExpiredCard: { last4: "0069", ...refused("expired_card", "Your card has expired.") },
  chargeDeclinedIncorrectCvc: {
    last4: "0127",
    ...refused("incorrect_cvc", "Your card's security code is incorrect."),
  },
  chargeDeclinedProcessingError: {
    last4: "0119",
    ...refused(
      "processing_error",
      "An error occurred while processing your card. Try again in a little bit.",
    ),
  },
  chargeCustomerFail: { last4: "0341", ...generic, attaches: true },
  threeDSecureOptional: {},
  threeDSecureRequired: { last4: "3063", authenticate: true },
  threeDSecure2Required: { last4: "3220", authenticate: true },
  threeDSecureRequiredChargeDeclined: { last4: "1629", ...generic, ...later },
  authenticationRequired: { last4: "3184", authenticate: true },
  authenticationRequiredOnSetup: { authenticate: true },
  authenticationRequiredChargeDeclinedInsufficientFunds: { ...insufficient, ...later },
  createDispute: { last4: "0259", dispute: true },
  createDisputeProductNotReceived: { last4: "2685", dispute: true },
  refundFail: { last4: "5126", refund: "fails" },
  pendingRefund: { last4: "7726", refund: "pends" },
};

/** Makes a card of a test token (`tok_visa`) or a test payment method (`pm_card_visa`); undefined for others. */
async function makeCard(
  store: Store,
  id: string,
  prefix: "tok_" | "pm_card_",
  holder: string | null = null,
): Promise<SandboxRecord | undefined> {
  if (!id.startsWith(prefix)) return undefined;
  const name = id.slice(prefix.length).replace(/^visa_(?=charge)/, "");
  if (!Object.hasOwn(cards, name)) return undefined;
  const { brand = "visa", last4 = "4242", funding = "credit" } = cards[name]!;
  return store.put(
    store.make("payment_method", "pm", {
      type: "card",
      card: {
        brand,
        last4,
        funding,
        country: "US",
        exp_month: 12,
        exp_year: new Date().getUTCFullYear() + 3,
        fingerprint: createHash("sha256").update(`sandbox card ${name}`).digest("hex").slice(0, 16),
        checks: { cvc_check: "pass" },
      },
      test_card: name,
      customer: null,
      billing_details: { name: holder },
      metadata: {},
    }),
  );
}

/** The behavior of a test card; a normal card has none. */
export const behaviourOf = (method: SandboxRecord): TestCard => cards[method.test_card as string] ?? {};

/** A payment method from a token. */
export async function createPaymentMethod(store: Store, params: DatabaseValue): Promise<SandboxRecord> {
  if (params.type !== "card") throw invalid("Invalid type: the sandbox knows cards only.", "type");
  if (params.card?.number !== undefined)
    throw new ApiError(
      402,
      "card_error",
      "Sending credit card numbers directly to the Stripe API is generally unsafe. Use a token of the client library instead.",
      { code: "incorrect_number", param: "card[number]" },
    );
  const token = String(params.card?.token ?? "");
  const made = await makeCard(store, token, "tok_", params.billing_details?.name);
  if (!made) throw invalid(`No such token: '${token}'`, "card[token]", "resource_missing");
  return made;
}

/** An existing one, or a new one for a test payment method, each time another. */
export async function paymentMethod(store: Store, id: string): Promise<SandboxRecord> {
  return (await makeCard(store, id, "pm_card_")) ?? store.get("payment_method", id, "payment_method");
}

/** Attaches a payment method to a customer. @throws ApiError for a declined card, or one of another customer */
export async function attach(store: Store, id: string, customer: string): Promise<SandboxRecord> {
  await store.get("customer", customer, "customer");
  const method = await paymentMethod(store, id);
  if (method.customer !== null && method.customer !== customer)
    throw invalid("The payment method you provided has already been attached to a customer.");
  const { decline, attaches } = behaviourOf(method);
  if (decline && !attaches) {
    const { message, ...codes } = decline;
    throw new ApiError(402, "card_error", message, codes);
  }
  return store.put({ ...method, customer });
}

/** Detaches a payment method from its customer, permanently. */
export async function detach(store: Store, id: string): Promise<SandboxRecord> {
  const method = await store.get("payment_method", id, "payment_method");
  if (method.customer === null)
    throw invalid(
      "The payment method you provided is not attached to a customer so detachment is impossible.",
    );
  return store.put({ ...method, customer: null, is_detached: true });
}
