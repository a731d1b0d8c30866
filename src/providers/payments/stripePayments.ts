/** Cards, payments and refunds at Stripe. */
import type { Stripe } from "stripe";
import { fromMinor, toMinor } from "./minorUnits.ts";
import {
  ProcessorRefusal,
  type Card,
  type ChargeState,
  type PaymentProcessor,
  type PaymentState,
  type RefundState,
} from "./processor.ts";
import { allPages, callStripe } from "./stripeClient.ts";

const brands: Record<string, string> = {
  visa: "VISA",
  mastercard: "MASTERCARD",
  amex: "AMEX",
  discover: "DISCOVER",
  diners: "DINERS",
  jcb: "JCB",
  unionpay: "UNIONPAY",
};
const fundings: Record<string, string> = { credit: "CREDIT", debit: "DEBIT", prepaid: "PREPAID" };

function cardOf({ id, card, billing_details }: Stripe.PaymentMethod): Card {
  if (!card) throw new ProcessorRefusal("Not a valid card.", "not_a_card", "token", true, undefined);
  return {
    id,
    brand: brands[card.brand] ?? "UNKNOWN",
    last4: card.last4,
    expMonth: card.exp_month,
    expYear: card.exp_year,
    funding: fundings[card.funding] ?? "UNKNOWN",
    holderName: billing_details?.name ?? null,
    country: card.country ?? null,
    fingerprint: card.fingerprint ?? id,
  };
}

const refundStatuses: Record<string, string> = {
  pending: "PENDING",
  requires_action: "REQUIRES_ACTION",
  succeeded: "SUCCEEDED",
  failed: "FAILED",
  canceled: "CANCELLED",
};

function refundState(refund: Stripe.Refund): RefundState {
  const { reason, metadata } = refund;
  const known = reason && ["duplicate", "fraudulent", "requested_by_customer"].includes(reason);
  return {
    id: refund.id,
    amount: fromMinor(refund.amount, refund.currency),
    status: refundStatuses[refund.status ?? "pending"] ?? "PENDING",
    reason: known ? reason.toUpperCase() : "OTHER",
    failureMessage: refund.failure_reason ?? null,
    ours: metadata?.["plat_refund"] ?? null,
  };
}

const at = (seconds: number) => new Date(seconds * 1000).toISOString();

function disputeState(status: string): "OPEN" | "WON" | "LOST" {
  if (["won", "warning_closed", "prevented"].includes(status)) return "WON";
  return status === "lost" ? "LOST" : "OPEN";
}

const expand = ["latest_charge.balance_transaction"];

/** @param returnUrl where the payer returns after authentication at the bank */
export function stripePayments(
  stripe: () => Stripe,
  returnUrl: string,
): Pick<
  PaymentProcessor,
  | "createCustomer"
  | "addCard"
  | "removeCard"
  | "createPayment"
  | "confirmPayment"
  | "readPayment"
  | "cancelPayment"
  | "refund"
  | "acceptDispute"
> {
  return { ...cardOperations(stripe), ...paymentOperations(stripe, returnUrl), ...refundOperations(stripe) };
}

/** Customers, and their cards. */
function cardOperations(
  stripe: () => Stripe,
): Pick<PaymentProcessor, "createCustomer" | "addCard" | "removeCard"> {
  return {
    createCustomer: ({ userId, email, name }) =>
      callStripe(async () => {
        const customer = await stripe().customers.create(
          { ...(email && { email }), ...(name && { name }), metadata: { plat_user: userId } },
          { idempotencyKey: `plat_customer_${userId}` },
        );
        return customer.id;
      }),
    addCard: ({ customerId, token, holderName, key }) =>
      callStripe(async () => {
        const repeatable = (step: string) => (key ? { idempotencyKey: `plat_${step}_${key}` } : {});
        const card = token.startsWith("pm_")
          ? { id: token }
          : await stripe().paymentMethods.create(
              {
                type: "card",
                card: { token },
                ...(holderName && { billing_details: { name: holderName } }),
              },
              repeatable("card"),
            );
        return cardOf(
          await stripe().paymentMethods.attach(card.id, { customer: customerId }, repeatable("attach")),
        );
      }),
    removeCard: (id) =>
      callStripe(async () => {
        try {
          await stripe().paymentMethods.detach(id);
        } catch (error) {
          // Already detached, which is not possible twice.
          if (
            (error as { statusCode?: number }).statusCode !== 400 &&
            (error as { statusCode?: number }).statusCode !== 404
          )
            throw error;
        }
      }),
  };
}

/** Payments, from their creation to their final state. */
function paymentOperations(
  stripe: () => Stripe,
  returnUrl: string,
): Pick<PaymentProcessor, "createPayment" | "confirmPayment" | "readPayment" | "cancelPayment"> {
  const read = async (id: string) =>
    paymentState(stripe(), await stripe().paymentIntents.retrieve(id, { expand }));

  return {
    createPayment: (payment) =>
      callStripe(async () => {
        const { amount, currency, description, customerId, cardId, accountId, metadata } = payment;
        const intent = await stripe().paymentIntents.create(
          {
            amount: toMinor(amount, currency),
            currency: currency.toLowerCase(),
            allowed_payment_method_types: ["card"],
            metadata,
            ...(description && { description }),
            ...(customerId && { customer: customerId }),
            ...(cardId && { payment_method: cardId }),
            ...(accountId && { transfer_data: { destination: accountId }, on_behalf_of: accountId }),
            expand,
          },
          { idempotencyKey: `plat_payment_${payment.id}` },
        );
        return paymentState(stripe(), intent);
      }),
    confirmPayment: ({ id, processorId }) =>
      callStripe(async () => {
        try {
          const intent = await stripe().paymentIntents.confirm(
            processorId,
            { return_url: returnUrl, expand },
            { idempotencyKey: `plat_confirm_${id}` },
          );
          return await paymentState(stripe(), intent);
        } catch (error) {
          const { type, code } = error as { type?: string; code?: string };
          // Declined by the bank, or already confirmed: the current state is the result.
          if (type === "StripeCardError" || code === "payment_intent_unexpected_state")
            return read(processorId);
          throw error;
        }
      }),
    readPayment: (id) => callStripe(() => read(id)),
    cancelPayment: (id) =>
      callStripe(async () => {
        try {
          return await paymentState(stripe(), await stripe().paymentIntents.cancel(id, { expand }));
        } catch (error) {
          if ((error as { code?: string }).code === "payment_intent_unexpected_state") return read(id);
          throw error;
        }
      }),
  };
}

/** Refunds, and accepted disputes. */
function refundOperations(stripe: () => Stripe): Pick<PaymentProcessor, "refund" | "acceptDispute"> {
  return {
    refund: (refund) =>
      callStripe(async () => {
        if (refund.processorId) return refundState(await stripe().refunds.retrieve(refund.processorId));
        const { id, processorChargeId: charge, amount, currency, reason } = refund;
        if (!refund.isNew)
          for await (const made of stripe().refunds.list({ charge, limit: 100 }))
            if (made.metadata?.["plat_refund"] === id) return refundState(made);
        const known = reason === "DUPLICATE" || reason === "FRAUDULENT" || reason === "REQUESTED_BY_CUSTOMER";
        return refundState(
          await stripe().refunds.create(
            {
              charge,
              amount: toMinor(amount, currency),
              metadata: { plat_refund: id },
              ...(known && { reason: reason.toLowerCase() as Stripe.RefundCreateParams.Reason }),
              ...(refund.toAccount && { reverse_transfer: true }),
            },
            { idempotencyKey: `plat_refund_${id}` },
          ),
        );
      }),
    acceptDispute: (charge) =>
      callStripe(async () => {
        const [dispute] = (await stripe().disputes.list({ charge, limit: 1 })).data;
        if (dispute && dispute.status !== "lost") await stripe().disputes.close(dispute.id);
      }),
  };
}

async function chargeState(stripe: Stripe, charge: Stripe.Charge): Promise<ChargeState> {
  const { currency, payment_method_details: details } = charge;
  const balance = charge.balance_transaction as Stripe.BalanceTransaction | null;
  const isPaid = charge.status === "succeeded";
  const refunds = isPaid ? await allPages(stripe.refunds.list({ charge: charge.id, limit: 100 })) : [];
  const [dispute] = charge.disputed ? (await stripe.disputes.list({ charge: charge.id, limit: 1 })).data : [];
  return {
    id: charge.id,
    status: isPaid ? "SUCCEEDED" : charge.status === "failed" ? "FAILED" : "PENDING",
    // In another currency if the account settles in one: irrelevant for the charge.
    fee: balance && balance.currency === currency ? fromMinor(balance.fee, currency) : null,
    net: balance && balance.currency === currency ? fromMinor(balance.net, currency) : null,
    method:
      details?.type === "card" || !details ? "CARD" : details.type === "us_bank_account" ? "ACH" : "OTHER",
    brand: details?.card?.brand ? (brands[details.card.brand] ?? "UNKNOWN") : null,
    last4: details?.card?.last4 ?? null,
    statementDescriptor: charge.calculated_statement_descriptor,
    receiptUrl: charge.receipt_url,
    failureCode: declined(charge.outcome?.reason, charge.failure_code),
    failureMessage: charge.failure_message,
    capturedAt: isPaid ? at(charge.created) : null,
    disputeStatus: dispute ? disputeState(dispute.status) : null,
    disputedAt: dispute ? at(dispute.created) : null,
    refunds: refunds.map(refundState),
  };
}

async function paymentState(stripe: Stripe, intent: Stripe.PaymentIntent): Promise<PaymentState> {
  const failure = intent.last_payment_error;
  const charge = intent.latest_charge as Stripe.Charge | null;
  const action = intent.next_action;
  return {
    id: intent.id,
    status: intent.status.toUpperCase(),
    clientSecret: intent.client_secret,
    nextActionUrl: action?.redirect_to_url?.url ?? null,
    failure: failure && {
      code: declined(failure.decline_code, failure.code) ?? failure.type,
      message: failure.message ?? "The card was refused.",
    },
    charge: charge && (await chargeState(stripe, charge)),
  };
}

/** The bank's own reason is more specific than "declined". */
function declined(reason: string | null | undefined, code: string | null | undefined): string | null {
  return code === "card_declined" && reason && reason !== "generic_decline" ? reason : (code ?? null);
}
