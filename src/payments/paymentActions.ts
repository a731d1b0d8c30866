/**
 * Calls the payment processor and stores the results: money is moved between two transactions, never within one. All actions are
 * idempotent: the processor is called with the same key, and the database keeps the latest state.
 */
import {
  ProcessorRefusal,
  type PaymentFacts,
  type PaymentProcessor,
  type PaymentState,
  type RefundFacts,
  type RepresentativeFacts,
} from "../providers/payments/index.ts";

/** A statement outside of any transaction of the caller. */
export type Query = <Row>(text: string, values: unknown[]) => Promise<{ rows: Row[] }>;

export interface PaymentActions {
  /** Creates a payment, and confirms it if it has a card. */
  pay(payment: PaymentFacts): Promise<void>;
  /** Updates the state of a payment. */
  refreshPayment(payment: Pick<PaymentFacts, "id"> & { processorId: string }): Promise<void>;
  /** Cancels an unconfirmed payment; a confirmed one remains as it is. */
  abandon(payment: PaymentFacts): Promise<void>;
  /** Creates a refund, or updates its state. */
  refund(refund: RefundFacts): Promise<void>;
  /** Submits a representative to the processor, and opens the account for the first one. */
  submitRepresentative(representative: RepresentativeFacts, ip?: string): Promise<void>;
  /** Updates the state of an organization's account. */
  refreshAccount(account: {
    organizationId: string;
    accountId: string;
    people: Record<string, string>;
  }): Promise<void>;
}

/**
 * The actions with a processor.
 * @param query must run outside of any transaction: results are stored even if the caller fails
 */
export function paymentActions(processor: PaymentProcessor, query: Query): PaymentActions {
  async function note(id: string, state: PaymentState): Promise<PaymentFacts> {
    const { rows } = await query<{ facts: PaymentFacts }>(
      "select app_private.note_payment($1, $2) as facts",
      [id, JSON.stringify(state)],
    );
    return rows[0]!.facts;
  }
  const noteRefund = (id: string, state: object) =>
    query("select app_private.note_refund($1, $2)", [id, JSON.stringify(state)]);

  async function make(payment: PaymentFacts): Promise<PaymentFacts> {
    try {
      return await note(payment.id, await processor.createPayment(payment));
    } catch (error) {
      if (error instanceof ProcessorRefusal)
        await query("select app_private.give_up_payment($1, $2, $3)", [
          payment.id,
          error.code,
          error.message,
        ]);
      throw error;
    }
  }

  async function confirm(payment: PaymentFacts & { processorId: string }): Promise<void> {
    try {
      await note(payment.id, await processor.confirmPayment(payment));
    } catch (error) {
      if (error instanceof ProcessorRefusal)
        await note(payment.id, await processor.cancelPayment(payment.processorId));
      throw error;
    }
  }

  return {
    async pay(payment) {
      if (!payment.open) return;
      // The id is stored before the confirmation, so that every charge is known.
      const { processorId, ...made } = payment.processorId ? payment : await make(payment);
      if (processorId && made.open && made.confirm && made.status === "REQUIRES_CONFIRMATION")
        await confirm({ ...made, processorId });
    },

    async refreshPayment({ id, processorId }) {
      await note(id, await processor.readPayment(processorId));
    },

    async abandon({ id, processorId }) {
      if (processorId) await note(id, await processor.cancelPayment(processorId));
      else
        await query("select app_private.give_up_payment($1, $2, $3)", [
          id,
          "not_confirmed",
          "The payment was not completed in time.",
        ]);
    },

    async refund(refund) {
      if (!refund.open) return;
      try {
        await noteRefund(refund.id, await processor.refund(refund));
      } catch (error) {
        // A permanently refused refund is refundable again.
        if (error instanceof ProcessorRefusal && !refund.processorId)
          await noteRefund(refund.id, { failureMessage: error.message });
        throw error;
      }
    },

    async submitRepresentative(representative, ip) {
      const { id, organizationId } = representative;
      let { accountId } = representative;
      if (!accountId) {
        const { rows } = await query<{ id: string }>("select app_private.note_account($1, $2) as id", [
          organizationId,
          JSON.stringify(await processor.createAccount(representative, ip)),
        ]);
        accountId = rows[0]!.id;
      }
      const person = await processor.submitPerson(accountId, representative);
      await query("select app_private.note_representative($1, $2)", [id, JSON.stringify(person)]);
      const account = await processor.readAccount(accountId);
      await query("select app_private.note_account($1, $2)", [organizationId, JSON.stringify(account)]);
    },

    async refreshAccount({ organizationId, accountId, people }) {
      const account = await processor.readAccount(accountId);
      await query("select app_private.note_account($1, $2)", [organizationId, JSON.stringify(account)]);
      for (const person of account.people) {
        const id = people[person.id];
        if (id) await query("select app_private.note_representative($1, $2)", [id, JSON.stringify(person)]);
      }
    },
  };
}
