/** The well-known test cards, by the tokens that the client library makes of them. */
import { createHash } from "node:crypto";
import { ApiError, invalid, missing } from "./errors.ts";
import type { Store, Thing } from "./store.ts";

/** What becomes of a charge. */
export interface Behaviour {
  decline?: { code: string; decline_code?: string; message: string };
  /** Refused only when it is charged, not when a customer gets it. */
  attaches?: boolean;
  authenticate?: boolean;
  dispute?: boolean;
  refund?: "fails" | "pends";
}

const declines: Record<string, [code: string, declineCode: string | undefined, message: string]> = {
  "": ["card_declined", "generic_decline", "Your card was declined."],
  InsufficientFunds: ["card_declined", "insufficient_funds", "Your card has insufficient funds."],
  LostCard: ["card_declined", "lost_card", "Your card was declined."],
  StolenCard: ["card_declined", "stolen_card", "Your card was declined."],
  Fraudulent: ["card_declined", "fraudulent", "Your card was declined."],
  ExpiredCard: ["expired_card", undefined, "Your card has expired."],
  IncorrectCvc: ["incorrect_cvc", undefined, "Your card's security code is incorrect."],
  ProcessingError: [
    "processing_error",
    undefined,
    "An error occurred while processing your card. Try again in a little bit.",
  ],
};

function declineOf(kind: string): NonNullable<Behaviour["decline"]> {
  const [code, decline_code, message] = declines[kind]!;
  return { code, ...(decline_code && { decline_code }), message };
}

const behaviours: Record<string, Behaviour> = {
  ...Object.fromEntries(
    Object.keys(declines).map((kind) => [`chargeDeclined${kind}`, { decline: declineOf(kind) }]),
  ),
  chargeCustomerFail: { decline: declineOf(""), attaches: true },
  threeDSecureRequired: { authenticate: true },
  threeDSecure2Required: { authenticate: true },
  authenticationRequired: { authenticate: true },
  authenticationRequiredOnSetup: { authenticate: true },
  threeDSecureRequiredChargeDeclined: { authenticate: true, decline: declineOf(""), attaches: true },
  authenticationRequiredChargeDeclinedInsufficientFunds: {
    authenticate: true,
    decline: declineOf("InsufficientFunds"),
    attaches: true,
  },
  threeDSecureOptional: {},
  createDispute: { dispute: true },
  createDisputeProductNotReceived: { dispute: true },
  refundFail: { refund: "fails" },
  pendingRefund: { refund: "pends" },
  bypassPending: {},
};

const plain: Record<string, { brand: string; last4: string; funding?: string }> = {
  visa: { brand: "visa", last4: "4242" },
  visa_debit: { brand: "visa", last4: "5556", funding: "debit" },
  mastercard: { brand: "mastercard", last4: "4444" },
  mastercard_debit: { brand: "mastercard", last4: "8210", funding: "debit" },
  mastercard_prepaid: { brand: "mastercard", last4: "5100", funding: "prepaid" },
  amex: { brand: "amex", last4: "8431" },
  discover: { brand: "discover", last4: "9424" },
  diners: { brand: "diners", last4: "3237" },
  jcb: { brand: "jcb", last4: "0505" },
  unionpay: { brand: "unionpay", last4: "0005" },
};

/** The last four digits that the documentation gives these cards. */
const lastDigits: Record<string, string> = {
  chargeDeclined: "0002",
  chargeDeclinedInsufficientFunds: "9995",
  chargeDeclinedLostCard: "9987",
  chargeDeclinedStolenCard: "9979",
  chargeDeclinedFraudulent: "0019",
  chargeDeclinedExpiredCard: "0069",
  chargeDeclinedIncorrectCvc: "0127",
  chargeDeclinedProcessingError: "0119",
  chargeCustomerFail: "0341",
  threeDSecureRequired: "3063",
  threeDSecure2Required: "3220",
  authenticationRequired: "3184",
  createDispute: "0259",
  createDisputeProductNotReceived: "2685",
  refundFail: "5126",
  pendingRefund: "7726",
  threeDSecureRequiredChargeDeclined: "1629",
};

const nameOf = (id: string) => /^(?:tok|pm_card)_(.+)$/.exec(id)?.[1];

/** The card of a test token (`tok_visa`) or a test payment method (`pm_card_visa`); undefined for others. */
export function testCard(id: string): { name: string; card: Record<string, unknown> } | undefined {
  const given = nameOf(id);
  if (given === undefined) return undefined;
  const name = given.replace(/^visa_(?=charge)/, "");
  const known =
    plain[name] ?? (behaviours[name] ? { brand: "visa", last4: lastDigits[name] ?? "4242" } : undefined);
  if (!known) return undefined;
  const { brand, last4, funding = "credit" } = known as { brand: string; last4: string; funding?: string };
  return {
    name,
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
  };
}

export const behaviourOf = (method: Thing): Behaviour => behaviours[method.test_card as string] ?? {};

export function declined(behaviour: Behaviour, more: Record<string, unknown> = {}): ApiError {
  const { message, ...codes } = behaviour.decline!;
  return new ApiError(402, "card_error", message, { ...codes, ...more });
}

/** A payment method of a token. */
export async function createPaymentMethod(store: Store, params: any): Promise<Thing> {
  if (params.type !== "card") throw invalid("Invalid type: the sandbox knows cards only.", "type");
  if (params.card?.number !== undefined)
    throw new ApiError(
      402,
      "card_error",
      "Sending credit card numbers directly to the Stripe API is generally unsafe. Use a token of the client library instead.",
      { code: "incorrect_number", param: "card[number]" },
    );
  const token = String(params.card?.token ?? "");
  const known = token.startsWith("tok_") ? testCard(token) : undefined;
  if (!known)
    throw new ApiError(400, "invalid_request_error", `No such token: '${token}'`, {
      code: "resource_missing",
      param: "card[token]",
    });
  return store.put(
    store.make("payment_method", "pm", {
      type: "card",
      card: known.card,
      test_card: known.name,
      customer: null,
      billing_details: { name: params.billing_details?.name ?? null },
      metadata: {},
    }),
  );
}

/** One that is kept, or a new one of a test payment method, each time another. */
export async function paymentMethod(store: Store, id: string): Promise<Thing> {
  const known = id.startsWith("pm_card_") ? testCard(id) : undefined;
  if (known)
    return store.put(
      store.make("payment_method", "pm", {
        type: "card",
        card: known.card,
        test_card: known.name,
        customer: null,
        billing_details: { name: null },
        metadata: {},
      }),
    );
  const method = await store.find(id);
  if (method?.object !== "payment_method") throw missing("PaymentMethod", id, "payment_method");
  return method;
}

export async function attach(store: Store, id: string, customer: string): Promise<Thing> {
  const owner = await store.find(customer);
  if (owner?.object !== "customer") throw missing("customer", customer, "customer");
  const method = await paymentMethod(store, id);
  if (method.customer !== null && method.customer !== customer)
    throw invalid("The payment method you provided has already been attached to a customer.");
  const behaviour = behaviourOf(method);
  if (behaviour.decline && !behaviour.attaches) throw declined(behaviour);
  return store.put({ ...method, customer });
}

export async function detach(store: Store, id: string): Promise<Thing> {
  const method = await store.find(id);
  if (method?.object !== "payment_method") throw missing("PaymentMethod", id, "payment_method");
  if (method.customer === null)
    throw invalid(
      "The payment method you provided is not attached to a customer so detachment is impossible.",
    );
  return store.put({ ...method, customer: null, is_detached: true });
}
