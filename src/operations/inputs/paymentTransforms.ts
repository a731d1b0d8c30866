/**
 * Work of mutations at the payment processor before their statement: begin as the viewer, and commit; call the
 * processor; record its response. The statement of the mutation then only returns the record, and stores it for
 * idempotent retries.
 */
import type { Pool } from "pg";
import { CodedError, signInFirst } from "../../base/errors.ts";
import type { ArgumentTransform } from "../inputFields.ts";
import type {
  PaymentFacts,
  PaymentProcessor,
  RefundFacts,
  RepresentativeFacts,
} from "../../providers/payments/index.ts";
import { refuseCardNumbers } from "../../payments/cardNumbers.ts";
import { toCoded } from "../../payments/paymentErrors.ts";
import { paymentActions } from "../../payments/paymentActions.ts";
import type { DatabaseValue } from "../../database/databaseValue.ts";

export type PaymentTransforms = Record<
  "cardToken" | "payment" | "refund" | "representative",
  ArgumentTransform
>;

/** Result of a begin_… function; `answered` if the request is a retry with a stored response. */
type Begun<Facts> = Facts & { answered: boolean };

interface CardHolder {
  userId: string;
  customerId: string | null;
  email: string | null;
  name: string | null;
  key: string | null;
}

const tokenFormat = /^(tok|pm)_\w{3,200}$/;

/** @param pool connections of the API's own role, for recording the processor's responses */
export function paymentTransforms(processor: PaymentProcessor, pool: Pick<Pool, "query">): PaymentTransforms {
  const query = (text: string, values: unknown[]) => pool.query(text, values) as Promise<DatabaseValue>;
  const actions = paymentActions(processor, query);

  async function begin<Facts>(
    context: Grafast.Context,
    text: string,
    values: unknown[],
  ): Promise<Begun<Facts>> {
    const { withPgClient, pgSettings } = context;
    const { rows } = await withPgClient(pgSettings, (client: DatabaseValue) =>
      client.query({
        text,
        values: values.map((value) =>
          value !== null && typeof value === "object" ? JSON.stringify(value) : value,
        ),
      }),
    );
    return rows[0].begun;
  }
  async function carryOut(subject: string, work: () => Promise<unknown>): Promise<void> {
    try {
      await work();
    } catch (error) {
      throw toCoded(error, processor.name, subject);
    }
  }

  return {
    async cardToken(value, { context, input, repeat }) {
      if (context.claims.userId === null) throw signInFirst();
      const token = (value as string).trim();
      refuseCardNumbers(input);
      if (!tokenFormat.test(token))
        throw new CodedError(
          "BAD_USER_INPUT",
          "Not a valid card token; the client library of the payment processor creates one, such as tok_….",
          { field: "token" },
        );
      const holder = await begin<CardHolder>(context, "select app_hidden.begin_card($1) as begun", [
        repeat ?? null,
      ]);
      if (holder.answered) return null;
      const { userId, email, name, key } = holder;
      const holderName = (input["holderName"] as string | null | undefined)?.trim() || null;
      let id: string | undefined;
      await carryOut("token", async () => {
        let { customerId } = holder;
        if (!customerId) {
          const made = await processor.createCustomer({ userId, email, name });
          customerId = (await query("select app_private.note_customer($1, $2) as id", [userId, made])).rows[0]
            .id as string;
        }
        const card = await processor.addCard({ customerId, token, holderName, key });
        const noted = await query("select app_private.note_card($1, $2, $3, $4) as id", [
          userId,
          JSON.stringify(card),
          holderName,
          input["makeDefault"] ?? null,
        ]);
        id = noted.rows[0].id;
      });
      return id;
    },

    async payment(_value, { context, input, operation, repeat }) {
      refuseCardNumbers(input);
      const payment = await begin<PaymentFacts>(
        context,
        "select app_hidden.begin_payment($1, $2, $3) as begun",
        [operation, input, repeat ?? null],
      );
      if (payment.answered) return null;
      await carryOut("cardId", () => actions.pay(payment));
      return payment.id;
    },

    async refund(_value, { context, input, repeat }) {
      refuseCardNumbers(input);
      const refund = await begin<RefundFacts>(context, "select app_hidden.begin_refund($1, $2) as begun", [
        input,
        repeat ?? null,
      ]);
      if (refund.answered) return null;
      await carryOut("chargeId", () => actions.refund(refund));
      return refund.chargeId;
    },

    async representative(_value, { context, input, operation, repeat }) {
      const representative = await begin<RepresentativeFacts>(
        context,
        "select app_hidden.begin_representative($1, $2, $3, $4) as begun",
        [operation, input, repeat ?? null, processor.takesMoney],
      );
      if (representative.answered) return null;
      await carryOut("organizationId", () => actions.submitRepresentative(representative, context.ip));
      return representative.id;
    },
  };
}
