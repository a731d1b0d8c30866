import type { Client } from "pg";
import { DatabaseClient } from "../database/client.ts";
import { makePool } from "../database/pool.ts";
import { inTransaction } from "../database/transaction.ts";
import { paymentTransforms } from "../operations/inputs/paymentTransforms.ts";
import type { PaymentProcessor } from "../providers/payments/index.ts";

/**
 * Payments of the demo at the sandbox processor: the developer's representative is verified, and the buyer pays a
 * deposit with her card. Runs after everything else is committed, because money is not moved within a transaction.
 * Only for the sandbox.
 * @param database the owner's connection, and that of the API
 */
export async function demoPayments(
  { ownerUrl, authenticatorUrl }: { ownerUrl: string; authenticatorUrl: string },
  processor: PaymentProcessor,
): Promise<void> {
  const owner: Client = new DatabaseClient({ connectionString: ownerUrl });
  const pool = makePool({ connectionString: authenticatorUrl, max: 2 });
  const asUser = (userId: string, text: string, values: unknown[]) =>
    inTransaction(pool, async (client) => {
      await client.query(
        "select set_config('role', 'plat_user', true), set_config('plat.user_id', $1, true)",
        [userId],
      );
      return client.query(text, values);
    });
  try {
    const transforms = paymentTransforms(processor, pool);
    await owner.connect();
    const person = async (email: string) =>
      (await owner.query<{ id: string }>("select app_private.account_named($1) as id", [email])).rows[0]!.id;
    const carryOut = (
      user: string,
      transform: keyof typeof transforms,
      operation: string,
      input: Record<string, unknown>,
    ) =>
      transforms[transform](input["token"], {
        member: "",
        uploadTarget: "",
        operation,
        input,
        repeat: undefined,
        context: {
          claims: { userId: user, readOnly: false },
          pgSettings: {},
          withPgClient: (_settings: unknown, work: (client: object) => unknown) =>
            work({
              query: ({ text, values }: { text: string; values: unknown[] }) => asUser(user, text, values),
            }),
        } as unknown as Grafast.Context,
      }) as Promise<string>;

    const [dana, laura] = [await person("demo@plat.example"), await person("laura@plat.example")];
    const { rows } = await asUser(
      dana,
      `select b.id, o.id as organization from app_public.buyers b join app_public.organizations o on o.id = b.organization_id where b.user_id = $1`,
      [laura],
    );
    const { id: buyer, organization } = rows[0] as { id: string; organization: string };
    await carryOut(dana, "representative", "createOrganizationPaymentsRepresentative", {
      organizationId: organization,
      kind: "AUTHORIZED_REPRESENTATIVE",
      firstName: "Dana",
      lastName: "Reyes",
      email: "demo@plat.example",
      dob: "1979-03-14",
      title: "Director of sales",
      address: {
        thoroughfare: "40 Lark Lane",
        locality: "Toronto",
        administrativeArea: "ON",
        postalCode: "M5V 1A1",
        country: "CA",
      },
    });
    const cardId = await carryOut(laura, "cardToken", "createProcessorCard", {
      token: "tok_visa",
      holderName: "Laura Bianchi",
    });
    const deposit = await asUser(
      dana,
      `select d.id from app_hidden.create_record(null::app_public.deposits, jsonb_build_object('buyer_id', $1::uuid, 'title', 'Design studio deposit', 'amount', 500)) d`,
      [buyer],
    );
    const depositId = (deposit.rows[0] as { id: string }).id;
    await carryOut(laura, "payment", "createPaymentIntent", { depositId, amount: "500.00", cardId });
  } finally {
    await owner.end();
    await pool.end();
  }
}
