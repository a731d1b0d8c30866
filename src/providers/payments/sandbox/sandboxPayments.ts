/** Payment intents, charges, refunds and disputes of the sandbox, with the states and formats of the real API. */
import { randomBytes } from "node:crypto";
import { behaviourOf, paymentMethod } from "./cards.ts";
import { ApiError, invalid, missing } from "./sandboxErrors.ts";
import type { Store, SandboxRecord } from "./sandboxStore.ts";
import type { DatabaseValue } from "../../../database/databaseValue.ts";

/** A response with another HTTP status than 200, such as 402, whose changes are committed. */
export interface Reply {
  status: number;
  body: unknown;
}

const whole = (value: unknown, param: string): number => {
  const number = Number(value);
  if (!/^\d+$/.test(String(value)) || number < 1)
    throw invalid(`Invalid integer: ${String(value)}`, param, "parameter_invalid_integer");
  if (number > 99_999_999)
    throw invalid("Amount must be no more than 999,999.99.", param, "amount_too_large");
  return number;
};

/** Creates a payment intent, and confirms it with `confirm`. Amounts are in minor units. */
export async function createIntent(store: Store, params: DatabaseValue): Promise<SandboxRecord | Reply> {
  const { currency, customer, payment_method, description, metadata, transfer_data, on_behalf_of } = params;
  const amount = whole(params.amount, "amount");
  if (!/^[a-z]{3}$/.test(String(currency)))
    throw invalid("Missing required param: currency.", "currency", "parameter_missing");
  if (customer) await store.get("customer", customer);
  if (transfer_data?.destination) {
    const account = await store.get("account", transfer_data.destination);
    if (!account.charges_enabled)
      throw invalid(
        "Your destination account needs to have at least one of the following capabilities enabled: transfers.",
        "transfer_data[destination]",
        "insufficient_capabilities_for_transfer",
      );
  }
  const method = payment_method ? await paymentMethod(store, payment_method) : undefined;
  if (method && method.customer && method.customer !== customer)
    throw invalid("The provided PaymentMethod does not belong to the customer.", "payment_method");
  const intent = store.make("payment_intent", "pi", {
    amount,
    amount_received: 0,
    currency,
    customer: customer ?? null,
    description: description ?? null,
    metadata: metadata ?? {},
    payment_method: method?.id ?? null,
    payment_method_types: ["card"],
    status: method ? "requires_confirmation" : "requires_payment_method",
    latest_charge: null,
    last_payment_error: null,
    next_action: null,
    transfer_data: transfer_data ?? null,
    on_behalf_of: on_behalf_of ?? null,
    return_url: params.return_url ?? null,
  }) as SandboxRecord;
  intent.client_secret = `${intent.id}_secret_${randomBytes(12).toString("hex")}`;
  await store.put(intent);
  await store.emit("payment_intent.created", intent);
  if (params.confirm === "true") return confirmIntent(store, intent.id, params, "");
  return intent;
}

/** Charges the payment method, or requires authentication first. @param address base URL of the authentication page */
export async function confirmIntent(
  store: Store,
  id: string,
  params: DatabaseValue,
  address: string,
): Promise<SandboxRecord | Reply> {
  let intent = await store.get("payment_intent", id);
  if (!["requires_payment_method", "requires_confirmation", "requires_action"].includes(intent.status))
    throw unexpected(intent, "confirm");
  if (intent.status === "requires_action" && !params.payment_method) return intent;
  if (params.return_url) intent.return_url = params.return_url;
  const given = params.payment_method ?? intent.payment_method;
  if (!given)
    throw invalid(
      "You cannot confirm this PaymentIntent because it's missing a payment method.",
      undefined,
      "payment_intent_unexpected_state",
    );
  const method = await paymentMethod(store, given);
  if (method.is_detached)
    throw invalid(
      "The provided PaymentMethod was detached from a Customer and may not be used again.",
      "payment_method",
    );
  if (method.customer && method.customer !== intent.customer)
    throw invalid("The provided PaymentMethod does not belong to the customer.", "payment_method");
  intent = { ...intent, payment_method: method.id, last_payment_error: null, next_action: null };
  if (behaviourOf(method).authenticate) {
    const url = `${address}/sandbox/authenticate/${intent.client_secret}`;
    intent = {
      ...intent,
      status: "requires_action",
      next_action: {
        type: "redirect_to_url",
        redirect_to_url: { url, return_url: intent.return_url ?? null },
      },
    };
    await store.put(intent);
    await store.emit("payment_intent.requires_action", intent);
    return intent;
  }
  return charge(store, intent, method);
}

/** The bank of the card decides. */
async function charge(
  store: Store,
  intent: SandboxRecord,
  method: SandboxRecord,
): Promise<SandboxRecord | Reply> {
  const { decline, dispute } = behaviourOf(method);
  const { amount, currency } = intent;
  const fee = decline ? 0 : Math.round(amount * 0.029) + (currency === "jpy" || currency === "krw" ? 0 : 30);
  const made = store.make("charge", "ch", {
    amount,
    amount_captured: decline ? 0 : amount,
    amount_refunded: 0,
    currency,
    customer: intent.customer,
    description: intent.description,
    metadata: intent.metadata,
    payment_intent: intent.id,
    payment_method: method.id,
    payment_method_details: { type: "card", card: { brand: method.card.brand, last4: method.card.last4 } },
    calculated_statement_descriptor: "PLAT SANDBOX",
    captured: !decline,
    paid: !decline,
    refunded: false,
    disputed: false,
    status: decline ? "failed" : "succeeded",
    failure_code: decline?.code ?? null,
    failure_message: decline?.message ?? null,
    outcome: {
      network_status: decline ? "declined_by_network" : "approved_by_network",
      reason: decline?.decline_code ?? null,
    },
    receipt_url: null as string | null,
    balance_transaction: null as SandboxRecord | null,
  });
  if (!decline)
    made.balance_transaction = store.make("balance_transaction", "txn", {
      amount,
      currency,
      fee,
      net: amount - fee,
    });
  await store.put(made);
  const error = decline && {
    type: "card_error",
    ...decline,
    charge: made.id,
    payment_method: publicFields(method),
  };
  const after: SandboxRecord = {
    ...intent,
    status: decline ? "requires_payment_method" : "succeeded",
    amount_received: decline ? 0 : amount,
    latest_charge: made.id,
    last_payment_error: error ?? null,
    next_action: null,
    ...(decline && { payment_method: null }),
  };
  await store.put(after);
  await store.emit(decline ? "charge.failed" : "charge.succeeded", made);
  await store.emit(decline ? "payment_intent.payment_failed" : "payment_intent.succeeded", after);
  if (dispute) await openDispute(store, made);
  if (error) return { status: 402, body: { error: { ...error, payment_intent: after } } };
  return after;
}

async function openDispute(store: Store, of: SandboxRecord): Promise<void> {
  const dispute = await store.put(
    store.make("dispute", "dp", {
      amount: of.amount,
      currency: of.currency,
      charge: of.id,
      payment_intent: of.payment_intent,
      reason: "fraudulent",
      status: "needs_response",
    }),
  );
  await store.put({ ...of, disputed: true });
  await store.emit("charge.dispute.created", dispute);
}

/** The evidence winning_evidence or losing_evidence decides, as in the real test mode. */
export async function updateDispute(store: Store, id: string, params: DatabaseValue): Promise<SandboxRecord> {
  const dispute = await store.get("dispute", id);
  const text = params.evidence?.uncategorized_text;
  const status = text === "winning_evidence" ? "won" : text === "losing_evidence" ? "lost" : dispute.status;
  const after = await store.put({ ...dispute, status });
  await store.emit(status === dispute.status ? "charge.dispute.updated" : "charge.dispute.closed", after);
  return after;
}

/** The payer's decision on the page of the bank. */
export async function confirmAuthentication(
  store: Store,
  secret: string,
  agreed: boolean,
): Promise<string | null> {
  const intent = await store.find(/^(pi_\w+)_secret_/.exec(secret)?.[1] ?? "");
  if (intent?.client_secret !== secret) throw missing("payment_intent", "…");
  if (intent.status === "requires_action") {
    const method = await paymentMethod(store, intent.payment_method);
    if (agreed) await charge(store, intent, method);
    else {
      const message =
        "We are unable to authenticate your payment method. Please choose a different payment method and try again.";
      const after = await store.put({
        ...intent,
        status: "requires_payment_method",
        payment_method: null,
        next_action: null,
        last_payment_error: { type: "card_error", code: "payment_intent_authentication_failure", message },
      });
      await store.emit("payment_intent.payment_failed", after);
    }
  }
  return intent.return_url
    ? `${intent.return_url}${String(intent.return_url).includes("?") ? "&" : "?"}payment_intent=${intent.id}`
    : null;
}

/** Cancels a payment intent. @throws ApiError if it has succeeded, is processing, or was canceled */
export async function cancelIntent(store: Store, id: string): Promise<SandboxRecord> {
  const intent = await store.get("payment_intent", id);
  if (["succeeded", "canceled", "processing"].includes(intent.status)) throw unexpected(intent, "cancel");
  const after = await store.put({ ...intent, status: "canceled", next_action: null });
  await store.emit("payment_intent.canceled", after);
  return after;
}

function unexpected(intent: SandboxRecord, what: string): ApiError {
  return invalid(
    `You cannot ${what} this PaymentIntent because it has a status of ${intent.status}.`,
    undefined,
    "payment_intent_unexpected_state",
  );
}

/** Refunds a charge, completely unless `amount` is given. Refunds of some test cards remain pending for a second. */
export async function createRefund(store: Store, params: DatabaseValue): Promise<SandboxRecord> {
  // The charge is locked from here: concurrent refunds wait for each other.
  const of = params.charge
    ? await store.get("charge", params.charge)
    : await store.get("charge", (await store.get("payment_intent", params.payment_intent)).latest_charge);
  if (of.status !== "succeeded") throw invalid(`Charge ${of.id} is not paid and cannot be refunded.`);
  if (of.disputed)
    throw invalid(
      `Charge ${of.id} has been charged back; cannot issue a refund.`,
      undefined,
      "charge_disputed",
    );
  if (of.refunded)
    throw invalid(`Charge ${of.id} has already been refunded.`, undefined, "charge_already_refunded");
  const rest = of.amount - of.amount_refunded;
  const amount = params.amount === undefined ? rest : whole(params.amount, "amount");
  if (amount > rest)
    throw invalid(
      `Refund amount (${amount}) is greater than unrefunded amount on charge (${rest})`,
      "amount",
    );
  const method = await store.find(of.payment_method);
  const how = method && behaviourOf(method).refund;
  const refund = await store.put(
    store.make("refund", "re", {
      amount,
      currency: of.currency,
      charge: of.id,
      payment_intent: of.payment_intent,
      reason: params.reason ?? null,
      metadata: params.metadata ?? {},
      status: how === "pends" ? "pending" : "succeeded",
      ...(how && { due: Date.now() / 1000 + 1 }),
    }),
  );
  const amount_refunded = of.amount_refunded + amount;
  const after = await store.put({ ...of, amount_refunded, refunded: amount_refunded === of.amount });
  await store.emit("refund.created", refund);
  await store.emit("charge.refunded", after);
  return refund;
}

/** The later result of a refund, at the banks that the test cards represent. */
export async function settleRefund(store: Store, id: string): Promise<void> {
  const { due, ...settled } = await store.get("refund", id);
  if (due === undefined) return;
  const refund = settled as SandboxRecord;
  if (refund["status"] === "pending") {
    await store.emit("refund.updated", await store.put({ ...refund, status: "succeeded" }));
    return;
  }
  const of = await store.get("charge", refund["charge"]);
  await store.put({ ...of, amount_refunded: of.amount_refunded - refund["amount"], refunded: false });
  await store.emit(
    "refund.failed",
    await store.put({ ...refund, status: "failed", failure_reason: "expired_or_canceled_card" }),
  );
}

/** Fields that `expand` names, as objects instead of ids. */
export async function expandFields(store: Store, body: DatabaseValue, expand: unknown): Promise<unknown> {
  const paths = Array.isArray(expand) ? expand : [];
  let result = body;
  if (
    paths.some((path) => String(path).startsWith("latest_charge")) &&
    typeof body?.latest_charge === "string"
  )
    result = { ...body, latest_charge: publicFields((await store.find(body.latest_charge))!) };
  return publicFields(result);
}

/** Without internal fields of the sandbox; for a list, each element. */
export function publicFields(thing: DatabaseValue): DatabaseValue {
  if (thing === null || typeof thing !== "object" || Array.isArray(thing)) return thing;
  if (thing.object === "list") return { ...thing, data: thing.data.map(publicFields) };
  const { test_card: _card, due: _due, tries: _tries, is_detached: _detached, ...rest } = thing;
  return rest;
}
