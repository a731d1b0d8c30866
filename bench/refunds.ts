/**
 * Concurrent refunds through the API over HTTPS, at the sandbox processor over HTTP: a hundred of one charge, and a
 * hundred of a hundred charges. Each takes two transactions, and calls of the processor between them.
 * Claim: their sum never exceeds the charge, and refunds of one charge take at most twice as long as those of many.
 * Run: npm run bench -- refunds
 */
import { performance } from "node:perf_hooks";
import { representative, startPayments, type Payments } from "../test/harness/payments.ts";
import { createIn } from "../test/harness/records.ts";
import { percentile, withDatabase } from "./data/cluster.ts";
import { sized, unlessSmoke } from "./data/size.ts";

/** Number of concurrent refunds; set by BENCH_SIZE. */
const refunds = sized(100, 3);
const rounds = unlessSmoke(3, 1);
const mutation = `mutation ($input: RefundProcessorChargeInput!) { refundProcessorCharge(input: $input) { amountRefunded } }`;

/** Paid charges of 50.00. */
async function charges(world: Payments, cardId: string, amount: number): Promise<string[]> {
  const create = createIn(world.owen);
  const ids: string[] = [];
  // The rate limit of payments per person is a tenth of what is paid here in a minute.
  await world.owner.query("delete from app_private.limit_uses");
  for (let n = 0; n < amount; n += 1) {
    const depositId = await create("createDeposit", {
      buyerId: world.purchase,
      title: "Deposit",
      amount: "50.00",
    });
    const { createPaymentIntent } = await world.bea.get(
      `mutation ($input: CreatePaymentIntentInput!) { createPaymentIntent(input: $input) { charge { id } } }`,
      { input: { depositId, amount: "50.00", cardId } },
    );
    ids.push(createPaymentIntent.charge.id);
  }
  return ids;
}

/** Requests all refunds concurrently. Returns the total and the individual durations. */
async function refundAll(world: Payments, ids: string[]) {
  await world.owner.query("delete from app_private.limit_uses");
  const took: number[] = [];
  const start = performance.now();
  const answers = await Promise.all(
    Array.from({ length: refunds }, async (_, n) => {
      const begun = performance.now();
      const answer = await world.owen.ask(mutation, {
        input: { chargeId: ids[n % ids.length], amount: "1.00" },
      });
      took.push(performance.now() - begun);
      return answer;
    }),
  );
  return {
    seconds: (performance.now() - start) / 1000,
    took,
    refunded: answers.filter(({ errors }) => !errors).length,
    refused: answers.filter(
      ({ errors }) =>
        errors?.[0]?.extensions.code === "BAD_USER_INPUT" || errors?.[0]?.extensions.code === "CONFLICT",
    ).length,
  };
}

export default (): Promise<void> =>
  withDatabase(async (database) => {
    const world = await startPayments(database);
    try {
      await world.owen.get(
        `mutation ($input: CreateOrganizationPaymentsRepresentativeInput!) { createOrganizationPaymentsRepresentative(input: $input) { id } }`,
        { input: { organizationId: world.harbour.id, ...representative } },
      );
      const { createProcessorCard: card } = await world.bea.get(
        `mutation { createProcessorCard(input: { token: "tok_visa" }) { id } }`,
      );
      // With new charges each round, and alternately, so that other load on the machine affects both.
      for (let round = 0; round < rounds; round += 1)
        for (const [title, amount] of [
          ["one charge of 50.00", 1],
          [`${refunds} charges`, refunds],
        ] as const) {
          const ids = await charges(world, card.id, amount);
          const { seconds, took, refunded, refused } = await refundAll(world, ids);
          const { rows } = await world.owner.query(
            `select bool_or(amount_refunded + amount_refunding > amount) as above, sum(amount_refunded)::text as sum from app_public.processor_charges where id = any ($1)`,
            [ids],
          );
          console.log(
            `${refunds} refunds of 1.00 of ${title.padEnd(20)} ${(refunds / seconds).toFixed(0).padStart(5)} /s, median ${percentile(took, 0.5).toFixed(0)} ms; ` +
              `${refunded} made, ${refused} refused, ${rows[0].sum} given back${rows[0].above ? " — ABOVE THE CHARGE" : ""}`,
          );
        }
    } finally {
      await world.stop();
    }
  });
