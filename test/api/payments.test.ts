/**
 * Cards, payments and refunds through the API, at a sandbox processor over HTTP. Permissions: outsideMatrix.test.ts.
 */
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { Stripe } from "stripe";
import { hasCardNumber } from "../../src/payments/cardNumbers.ts";
import type { Person } from "../harness/api.ts";
import { passTime } from "../harness/clock.ts";
import { representative, startPayments, type Payments } from "../harness/payments.ts";
import { type Create, createIn, mutationOf } from "../harness/records.ts";
import { startService, temporaryFolder } from "../harness/service.ts";
import { sendRaw } from "../harness/upload.ts";
import { until } from "../harness/until.ts";

let world: Payments;
let create: Create;
let card: string;

const chargeMembers = `id status amount amountRefunded amountRefundable currency processorId paymentIntentId method failureCode failureMessage
  capturedAt fee net cardLast4 user { id } card { id } organization { id } project { id } deposit { id } reservation { id } buyer { id }
  refunds { id amount status reason note processorId createdBy { id } }`;
const members: Record<string, string> = {
  createProcessorCard:
    "id brand last4 expMonth expYear funding holderName country fingerprint isDefault status processorId user { id }",
  updateProcessorCard: "id isDefault holderName status",
  removeProcessorCard: "id isDefault status",
  createPaymentIntent: `id clientSecret status amount currency nextActionUrl charge { ${chargeMembers} }`,
  createProcessorCharge: chargeMembers,
  refundProcessorCharge: chargeMembers,
  updateProcessorCharge: "id metadata status amount version",
  createOrganizationPaymentsRepresentative:
    "id kind status requirements dob processorPersonId verifiedAt version",
  updateOrganizationPaymentsRepresentative: "id status requirements dob version",
  removeOrganizationPaymentsRepresentative: "id",
};
const document = (field: string) => mutationOf(field, `{ ${members[field]} }`);
const run = async (person: Person, field: string, input: Record<string, unknown>) =>
  (await person.get(document(field), { input }))[field];
const refused = (person: Person, field: string, input: Record<string, unknown>) =>
  person.refused(document(field), { input });
const deposit = (amount = "1000.00", more = {}) =>
  create("createDeposit", { buyerId: world.purchase, title: "Deposit", amount, ...more });
const lookAt = async (id: string) =>
  (
    await world.owen.get(
      `query ($id: ID!) { deposit(id: $id) { status amountPaid amountRefunded method paidAt charge { id status } } }`,
      { id },
    )
  ).deposit;
const chargeOf = async (id: string) =>
  (
    await world.owen.get(
      `query ($id: ID!) { processorCharge(id: $id) { ${chargeMembers} disputedAt disputeStatus } }`,
      { id },
    )
  ).processorCharge;
const eventsOf = async (id: string): Promise<string[]> =>
  (
    await world.owner.query("select name from app_public.events where subject_id = $1 order by id", [id])
  ).rows.map(({ name }) => name);
/** Totals that the sandbox has charged and refunded. */
const taken = async (): Promise<{ charged: number; refunded: number; charges: number }> =>
  (
    await world.owner.query(
      `select coalesce(sum((data ->> 'amount')::int) filter (where kind = 'charge' and data ->> 'status' = 'succeeded'), 0)::int as charged,
         coalesce(sum((data ->> 'amount')::int) filter (where kind = 'refund' and data ->> 'status' <> 'failed'), 0)::int as refunded,
         count(*) filter (where kind = 'charge')::int as charges from app_private.sandbox_objects`,
    )
  ).rows[0];

beforeAll(async () => {
  world = await startPayments();
  create = createIn(world.owen);
});
afterAll(() => world?.stop());

describe("representatives", () => {
  const organization = async (person = world.owen) =>
    (
      await person.get(
        `query ($id: ID!) { organization(id: $id) { paymentsStatus paymentsRequirements paymentsRepresentatives { id dob } } }`,
        { id: world.harbour.id },
      )
    ).organization;

  test("an organization cannot accept payments before its representative is verified", async () => {
    expect(await organization()).toEqual({
      paymentsStatus: "NOT_STARTED",
      paymentsRequirements: [],
      paymentsRepresentatives: [],
    });
    expect(
      await refused(world.bea, "createPaymentIntent", { depositId: await deposit(), amount: "10.00" }),
    ).toMatchObject({ code: "CONFLICT", field: "organizationId" });
  });

  test("missing data are requested; a complete representative is verified", async () => {
    const { dob: _dob, ...incomplete } = representative;
    const made = await run(world.owen, "createOrganizationPaymentsRepresentative", {
      organizationId: world.harbour.slug,
      ...incomplete,
    });
    expect(made).toMatchObject({
      status: "REQUIREMENTS_DUE",
      requirements: ["dob.day", "dob.month", "dob.year"],
      dob: null,
      verifiedAt: null,
      processorPersonId: expect.stringMatching(/^person_/),
    });
    expect(await organization()).toMatchObject({ paymentsStatus: "ONBOARDING" });
    expect(
      await refused(world.owen, "createOrganizationPaymentsRepresentative", {
        organizationId: world.harbour.id,
        ...representative,
      }),
    ).toMatchObject({ code: "CONFLICT", existingId: made.id });
    expect(
      await run(world.ada, "updateOrganizationPaymentsRepresentative", {
        id: made.id,
        dob: representative.dob,
      }),
    ).toMatchObject({ status: "VERIFIED", requirements: [], dob: representative.dob });
    expect(await organization()).toMatchObject({
      paymentsStatus: "ENABLED",
      paymentsRequirements: [],
      paymentsRepresentatives: [{ id: made.id, dob: representative.dob }],
    });
    // Events do not contain restricted fields.
    const { rows } = await world.owner.query("select data from app_public.events where subject_id = $1", [
      made.id,
    ]);
    expect(JSON.stringify(rows)).not.toContain("1980");
  });

  test.each([
    ["an owner of less than a quarter", { kind: "BENEFICIAL_OWNER", ownershipPercent: "24" }, undefined],
    ["more than the whole", { kind: "DIRECTOR", ownershipPercent: "101" }, "ownershipPercent"],
    ["a child", { kind: "DIRECTOR", dob: "2020-01-01" }, "dob"],
    ["an invalid phone number", { kind: "DIRECTOR", phone: "12" }, "phone"],
    ["no name", { kind: "DIRECTOR", lastName: " " }, "lastName"],
    ["an invalid country", { kind: "DIRECTOR", address: { country: "XX" } }, "address"],
  ])("refused: %s", async (_title, input, field) => {
    const before = await world.owner.query(
      "select count(*) from app_public.organization_payments_representatives",
    );
    expect(
      await refused(world.owen, "createOrganizationPaymentsRepresentative", {
        organizationId: world.harbour.id,
        ...representative,
        email: "other@harbour.example",
        ...input,
      }),
    ).toMatchObject({ code: "BAD_USER_INPUT", ...(field && { field }) });
    const after = await world.owner.query(
      "select count(*) from app_public.organization_payments_representatives",
    );
    expect(after.rows).toEqual(before.rows);
  });

  test("a payment is reconciled after the process died between the two calls", async () => {
    world.failNext("submitPerson", "before");
    const input = {
      organizationId: world.harbour.id,
      ...representative,
      kind: "EXECUTIVE",
      email: "eve@harbour.example",
    };
    expect((await refused(world.owen, "createOrganizationPaymentsRepresentative", input)).code).toBe(
      "INTERNAL",
    );
    await passTime(world.owner, "10 minutes");
    await world.reconcile();
    const { rows } = await world.owner.query(
      "select id, status::text from app_public.organization_payments_representatives where email = 'eve@harbour.example'",
    );
    expect(rows).toEqual([{ id: expect.any(String), status: "VERIFIED" }]);
    await run(world.owen, "removeOrganizationPaymentsRepresentative", { id: rows[0].id });
    await world.settle();
    expect((await organization()).paymentsRepresentatives).toHaveLength(1);
    const kept = await world.owner.query(
      "select from app_private.sandbox_objects where kind = 'person' and data ->> 'email' = 'eve@harbour.example'",
    );
    expect(kept.rowCount).toBe(0);
  });
});

describe("cards", () => {
  test("are added by a token, the first as the default", async () => {
    const made = await run(world.bea, "createProcessorCard", {
      token: "tok_visa",
      holderName: " Bea Buyer ",
    });
    expect(made).toMatchObject({
      brand: "VISA",
      last4: "4242",
      funding: "CREDIT",
      holderName: "Bea Buyer",
      country: "US",
      isDefault: true,
      status: "ACTIVE",
      user: { id: world.bea.id },
      processorId: expect.stringMatching(/^pm_/),
    });
    card = made.id;
    const second = await run(world.bea, "createProcessorCard", { token: "pm_card_mastercard" });
    expect(second).toMatchObject({ brand: "MASTERCARD", isDefault: false });
    expect(await run(world.bea, "updateProcessorCard", { id: second.id, makeDefault: true })).toMatchObject({
      isDefault: true,
    });
    expect(await run(world.bea, "removeProcessorCard", { id: second.id })).toEqual({
      id: second.id,
      isDefault: false,
      status: "REMOVED",
    });
    await world.settle();
    const { viewer } = await world.bea.get("{ viewer { cards { id isDefault } } }");
    expect(viewer.cards).toEqual([{ id: card, isDefault: true }]);
    await expect(
      refused(world.bea, "createPaymentIntent", {
        depositId: await deposit(),
        amount: "1",
        cardId: second.id,
      }),
    ).resolves.toMatchObject({ code: "CONFLICT", field: "cardId" });
  });

  test("refused by the bank are refused", async () => {
    expect(
      await refused(world.bea, "createProcessorCard", { token: "tok_chargeDeclinedInsufficientFunds" }),
    ).toMatchObject({
      code: "BAD_USER_INPUT",
      field: "token",
      reason: "insufficient_funds",
      message: "Your card has insufficient funds.",
    });
    expect(await refused(world.bea, "createProcessorCard", { token: "tok_unknown" })).toMatchObject({
      code: "BAD_USER_INPUT",
      field: "token",
    });
  });

  test("are never accepted by their number, which is stored nowhere", async () => {
    const number = "4242 4242 4242 4242";
    expect(hasCardNumber("Pay by 4000-0027-6000-3184, please")).toBe(true);
    expect(hasCardNumber("Call 416 555 0123, invoice 20260001")).toBe(false);
    const before = new Map(world.calls);
    for (const input of [
      { token: number },
      { token: number.replaceAll(" ", "") },
      { token: "tok_visa", holderName: number },
    ]) {
      const error = await refused(world.bea, "createProcessorCard", input);
      expect(error).toMatchObject({ code: "BAD_USER_INPUT" });
      expect(JSON.stringify(error)).not.toMatch(/4242/);
    }
    expect(
      await refused(world.bea, "createPaymentIntent", {
        depositId: await deposit(),
        amount: 1,
        description: number,
      }),
    ).toMatchObject({ code: "BAD_USER_INPUT", field: "description" });
    expect(world.calls).toEqual(before);
    const { rows } = await world.owner.query(
      "select 1 from app_private.idempotency_keys where answers::text like '%4242 4242%' union all select 1 from app_public.events where data::text like '%42424242%'",
    );
    expect(rows).toEqual([]);
  });

  test("are only accessible to their user", async () => {
    const { rows } = await world.owner.query("select u.id from app_public.users u where u.id = $1", [
      world.bea.id,
    ]);
    expect(rows).toHaveLength(1);
    for (const person of [world.owen, world.max, world.ben, world.anonymous]) {
      const { processorCard } = await person.sees(`query ($id: ID!) { processorCard(id: $id) { id } }`, {
        id: card,
      });
      expect(processorCard).toBeNull();
    }
    for (const field of ["updateProcessorCard", "removeProcessorCard"])
      expect((await refused(world.ben, field, { id: card })).code).toBe("NOT_FOUND");
    for (const [field, input] of [
      ["createPaymentIntent", { depositId: await deposit(), amount: 1, cardId: card }],
      ["createProcessorCharge", { depositId: await deposit(), amount: 1, cardId: card }],
    ] as const)
      expect(await refused(world.owen, field, input)).toMatchObject({ code: "NOT_FOUND", field: "cardId" });
    // Not even SQL that bypasses the operations can use another user's card.
    await expect(
      world.owner.query(
        `insert into app_public.payment_intents (organization_id, user_id, created_by_id, card_id, amount, currency, status)
         values ($1, $2, $2, $3, 1, 'CAD', 'REQUIRES_CONFIRMATION')`,
        [world.harbour.id, world.ben.id, card],
      ),
    ).rejects.toMatchObject({ code: "23503" });
  });
});

describe("payments", () => {
  test("a deposit is paid by card: in part, then in full, each once", async () => {
    const id = await deposit("1000.00");
    const before = await taken();
    const first = await run(world.bea, "createPaymentIntent", { depositId: id, amount: "400", cardId: card });
    expect(first).toMatchObject({
      status: "SUCCEEDED",
      amount: "400.00",
      currency: "CAD",
      clientSecret: expect.stringMatching(/^pi_\w+_secret_/),
      charge: {
        status: "SUCCEEDED",
        amount: "400.00",
        amountRefunded: "0.00",
        amountRefundable: "400.00",
        method: "CARD",
        cardLast4: "4242",
        processorId: expect.stringMatching(/^ch_/),
        paymentIntentId: expect.stringMatching(/^pi_/),
        user: { id: world.bea.id },
        card: { id: card },
        organization: { id: world.harbour.id },
        buyer: { id: world.purchase },
        deposit: { id },
        // The processor's fees are only visible to the team.
        fee: null,
        net: null,
      },
    });
    expect(await lookAt(id)).toEqual({
      status: "PARTIALLY_PAID",
      amountPaid: "400.00",
      amountRefunded: "0.00",
      method: "CARD",
      paidAt: null,
      charge: { id: first.charge.id, status: "SUCCEEDED" },
    });
    expect(
      await refused(world.bea, "createPaymentIntent", { depositId: id, amount: "600.01", cardId: card }),
    ).toMatchObject({
      code: "BAD_USER_INPUT",
      field: "amount",
    });
    const second = await run(world.bea, "createProcessorCharge", { depositId: id, amount: "600.00" });
    expect(second).toMatchObject({ status: "SUCCEEDED", card: { id: card } });
    expect(await lookAt(id)).toMatchObject({ status: "PAID", amountPaid: "1000.00" });
    expect(await chargeOf(second.id)).toMatchObject({
      fee: "17.70",
      net: "582.30",
      card: null,
      cardLast4: "4242",
    });
    expect(await eventsOf(second.id)).toEqual(["charge.created", "charge.succeeded"]);
    expect(await taken()).toMatchObject({ charged: before.charged + 100_000 });
    // Its webhooks about known results change nothing.
    await world.settle();
    expect(await eventsOf(second.id)).toEqual(["charge.created", "charge.succeeded"]);
    const { buyer } = await world.bea.get(
      `query ($id: ID!) { buyer(id: $id) { charges(first: 2) { id } deposits { charge { id } } } }`,
      {
        id: world.purchase,
      },
    );
    expect(buyer.charges.map((c: any) => c.id)).toEqual([second.id, first.charge.id]);
    const { event } = await world.owen.get(
      `query ($id: ID!) { event(id: $id) { name subject { __typename ... on ProcessorCharge { id } } } }`,
      {
        id: (
          await world.owner.query("select id from app_public.events where subject_id = $1 limit 1", [
            second.id,
          ])
        ).rows[0].id,
      },
    );
    expect(event).toEqual({
      name: "charge.created",
      subject: { __typename: "ProcessorCharge", id: second.id },
    });
  });

  test("a payment that the processor refuses leaves no charge", async () => {
    const id = await deposit("50.00");
    const gone = await run(world.bea, "createProcessorCard", { token: "tok_visa" });
    await world.owner.query(
      "delete from app_private.sandbox_objects where id = (select processor_id from app_public.processor_cards where id = $1)",
      [gone.id],
    );
    expect(
      await refused(world.bea, "createPaymentIntent", { depositId: id, amount: "50", cardId: gone.id }),
    ).toMatchObject({ code: "BAD_USER_INPUT" });
    const { rows } = await world.owner.query(
      "select status::text, failure_code from app_public.processor_charges where deposit_id = $1",
      [id],
    );
    expect(rows).toEqual([{ status: "CANCELLED", failure_code: "resource_missing" }]);
  });

  test("a payment that the bank refuses is a failed charge; the deposit can be paid by another one", async () => {
    const id = await deposit("50.00");
    const poor = await run(world.bea, "createProcessorCard", { token: "tok_chargeCustomerFail" });
    const answer = await run(world.bea, "createPaymentIntent", {
      depositId: id,
      amount: "50",
      cardId: poor.id,
    });
    expect(answer).toMatchObject({
      status: "REQUIRES_PAYMENT_METHOD",
      charge: {
        status: "FAILED",
        failureCode: "card_declined",
        failureMessage: "Your card was declined.",
        capturedAt: null,
      },
    });
    expect(await lookAt(id)).toMatchObject({ status: "INVOICED", amountPaid: "0.00" });
    expect(await eventsOf(answer.charge.id)).toEqual(["charge.created", "charge.failed"]);
    expect(
      await run(world.bea, "createPaymentIntent", { depositId: id, amount: "50", cardId: card }),
    ).toMatchObject({
      status: "SUCCEEDED",
    });
    await run(world.bea, "removeProcessorCard", { id: poor.id });
  });

  test.each([
    ["complete", "SUCCEEDED", "PAID"],
    ["fail", "FAILED", "INVOICED"],
  ])("3-D Secure: the payer confirms at the bank: %s", async (decision, status, depositStatus) => {
    const id = await deposit("70.00");
    const secure = await run(world.bea, "createProcessorCard", { token: "tok_threeDSecureRequired" });
    const answer = await run(world.bea, "createPaymentIntent", {
      depositId: id,
      amount: "70.00",
      cardId: secure.id,
    });
    expect(answer).toMatchObject({ status: "REQUIRES_ACTION", charge: { status: "REQUIRES_ACTION" } });
    expect(await lookAt(id)).toMatchObject({ status: "PROCESSING" });
    // While the payment is pending, the amount cannot be paid again.
    expect(
      (await refused(world.bea, "createPaymentIntent", { depositId: id, amount: "70", cardId: card })).field,
    ).toBe("amount");
    const page = await fetch(answer.nextActionUrl);
    expect(await page.text()).toContain("3-D Secure");
    const back = await fetch(answer.nextActionUrl, {
      method: "POST",
      redirect: "manual",
      body: new URLSearchParams({ decision }),
    });
    expect(back.headers.get("location")).toMatch(/^https:\/\/plat\.example\/paid\?payment_intent=pi_/);
    await world.settle();
    const charge = await chargeOf(answer.charge.id);
    expect(charge).toMatchObject({ status });
    expect(charge.failureCode).toBe(status === "FAILED" ? "payment_intent_authentication_failure" : null);
    expect(await lookAt(id)).toMatchObject({ status: depositStatus });
    await run(world.bea, "removeProcessorCard", { id: secure.id });
  });

  test("without a card, the payer's client completes the payment; a double payment is refunded", async () => {
    const id = await deposit("30.00");
    const intents = await Promise.all([
      run(world.owen, "createPaymentIntent", { depositId: id, amount: "30.00" }),
      run(world.bea, "createPaymentIntent", { depositId: id, amount: "30.00" }),
    ]);
    expect(intents[0]).toMatchObject({
      status: "REQUIRES_PAYMENT_METHOD",
      charge: null,
      nextActionUrl: null,
    });
    expect(await lookAt(id)).toMatchObject({ status: "SCHEDULED" });
    for (const { clientSecret } of intents) {
      const answer = await fetch(
        `${world.sandbox.api}/v1/payment_intents/${clientSecret.split("_secret_")[0]}/confirm`,
        {
          method: "POST",
          headers: { authorization: "Bearer pk_test_client" },
          body: new URLSearchParams({ client_secret: clientSecret, payment_method: "pm_card_visa" }),
        },
      );
      expect(answer.status).toBe(200);
    }
    await world.settle();
    await world.settle();
    expect(await lookAt(id)).toMatchObject({ status: "PAID", amountPaid: "30.00" });
    const { processorCharges } = await world.owen.get(
      `query ($id: ID!) { processorCharges(filter: { depositId: $id }) { status user { id } amountRefunded refunds { reason status } } }`,
      { id },
    );
    expect(processorCharges.map((c: any) => c.status).sort()).toEqual(["REFUNDED", "SUCCEEDED"]);
    // The buyer is the payer, regardless of who created the payment.
    expect(processorCharges.every((c: any) => c.user === null || c.user.id === world.bea.id)).toBe(true);
    expect(processorCharges.flatMap((c: any) => c.refunds)).toEqual([
      { reason: "DUPLICATE", status: "SUCCEEDED" },
    ]);
  });

  test("a reservation is paid, and its refund leaves the charge unchanged", async () => {
    const unitId = await create("createUnit", {
      projectId: world.project.id,
      title: "P9",
      status: "AVAILABLE",
      price: 300_000,
    });
    const reservationId = await create("createReservation", {
      unitId,
      leadId: world.leads.open.id,
      acceptedTerms: true,
    });
    const adas = await run(world.ada, "createProcessorCard", { token: "tok_amex" });
    const { charge } = await run(world.ada, "createPaymentIntent", {
      reservationId,
      amount: "500.00",
      cardId: adas.id,
    });
    expect(charge).toMatchObject({
      status: "SUCCEEDED",
      reservation: { id: reservationId },
      user: { id: world.ada.id },
    });
    const { updateReservation } = await world.owen.get(
      `mutation ($id: ID!) { updateReservation(input: { id: $id, status: REFUNDED }) { status charges { id status amountRefunded } } }`,
      { id: reservationId },
    );
    expect(updateReservation).toEqual({
      status: "REFUNDED",
      charges: [{ id: charge.id, status: "SUCCEEDED", amountRefunded: "0.00" }],
    });
    expect(
      (await refused(world.ada, "createPaymentIntent", { reservationId, amount: "1", cardId: adas.id })).code,
    ).toBe("CONFLICT");
    expect(
      await run(world.owen, "refundProcessorCharge", {
        chargeId: charge.id,
        reason: "RESERVATION_REFUNDED",
        note: "As agreed.",
      }),
    ).toMatchObject({
      status: "REFUNDED",
      amountRefunded: "500.00",
      amountRefundable: "0.00",
      refunds: [
        {
          amount: "500.00",
          status: "SUCCEEDED",
          reason: "RESERVATION_REFUNDED",
          note: "As agreed.",
          createdBy: { id: world.owen.id },
        },
      ],
    });
  });

  test("an organization is paid in the currencies of its projects; yen and dinars have the correct number of decimals", async () => {
    const charge = (input: object) =>
      run(world.bea, "createProcessorCharge", { organizationId: world.harbour.slug, ...input });
    expect(await charge({ amount: "12.34" })).toMatchObject({
      currency: "CAD",
      amount: "12.34",
      project: null,
    });
    for (const [title, currency, amount, minor] of [
      ["Yen", "JPY", "1200", 1200],
      ["Dinar", "KWD", "1.230", 1230],
      ["Forint", "HUF", "1200", 120_000],
    ] as const) {
      await world.owen.get(`mutation ($input: CreateProjectInput!) { createProject(input: $input) { id } }`, {
        input: { organizationId: world.harbour.id, title, currency, status: "SELLING" },
      });
      const made = await charge({ amount, currency });
      expect(made).toMatchObject({ status: "SUCCEEDED", amount, currency });
      const { rows } = await world.owner.query(
        "select data ->> 'amount' as amount from app_private.sandbox_objects where id = $1",
        [made.processorId],
      );
      expect(rows[0].amount).toBe(String(minor));
    }
    expect(
      await refused(world.bea, "createProcessorCharge", { organizationId: world.harbour.id, amount: "1" }),
    ).toMatchObject({
      code: "BAD_USER_INPUT",
      field: "currency",
    });
    expect(
      await refused(world.bea, "createProcessorCharge", {
        organizationId: world.harbour.id,
        amount: "1.001",
        currency: "KWD",
      }),
    ).toMatchObject({ code: "BAD_USER_INPUT", field: "amount" });
  });

  test.each([
    ["nothing that is paid", {}, "BAD_USER_INPUT", "depositId"],
    ["a currency that the project does not have", { currency: "USD" }, "BAD_USER_INPUT", "currency"],
    ["no amount", { amount: "0" }, "BAD_USER_INPUT", "amount"],
    ["an amount below zero", { amount: "-1" }, "BAD_USER_INPUT", "amount"],
    ["half a cent", { amount: "1.005" }, "BAD_USER_INPUT", "amount"],
    ["more than is due", { amount: "1000.01" }, "BAD_USER_INPUT", "amount"],
    ["an invalid id", { depositId: "7" }, "BAD_USER_INPUT", "depositId"],
    [
      "a deposit that is not there",
      { depositId: "00000000-0000-7000-8000-000000000000" },
      "NOT_FOUND",
      "depositId",
    ],
    ["an unknown card", { cardId: "00000000-0000-7000-8000-000000000000" }, "NOT_FOUND", "cardId"],
    ["another organization", { organizationId: "summit-sales" }, "BAD_USER_INPUT", "organizationId"],
    ["a description that is too long", { description: "x".repeat(400) }, "BAD_USER_INPUT", "description"],
  ])("refused: %s", async (title, input, code, field) => {
    const before = await world.owner.query("select count(*) from app_public.payment_intents");
    const calls = new Map(world.calls);
    const depositId = title.startsWith("nothing") ? undefined : await deposit();
    expect(
      await refused(world.bea, "createPaymentIntent", { depositId, amount: "10.00", cardId: card, ...input }),
    ).toMatchObject({ code, field });
    const after = await world.owner.query("select count(*) from app_public.payment_intents");
    expect([after.rows, world.calls]).toEqual([before.rows, calls]);
  });
});

describe("refunds", () => {
  const paid = async (amount = "100.00", token?: string) => {
    const own = token === undefined ? card : (await run(world.bea, "createProcessorCard", { token })).id;
    const id = await deposit(amount);
    const { charge } = await run(world.bea, "createPaymentIntent", { depositId: id, amount, cardId: own });
    if (token !== undefined) await run(world.bea, "removeProcessorCard", { id: own });
    return { id: charge.id as string, deposit: id };
  };

  const balance = async () =>
    Number(
      (
        await world.owen.get(`query ($id: ID!) { buyer(id: $id) { netPurchasePriceBalance } }`, {
          id: world.purchase,
        })
      ).buyer.netPurchasePriceBalance,
    );

  test("can be partial, up to the full amount; deposit and balance follow, REFUNDED with the last part", async () => {
    const unpaid = await balance();
    const { id, deposit: of } = await paid();
    expect(await balance()).toBe(unpaid - 100);
    expect(await run(world.ada, "refundProcessorCharge", { chargeId: id, amount: "30" })).toMatchObject({
      status: "PARTIALLY_REFUNDED",
      amountRefunded: "30.00",
      amountRefundable: "70.00",
    });
    expect(await lookAt(of)).toMatchObject({
      status: "PARTIALLY_PAID",
      amountPaid: "100.00",
      amountRefunded: "30.00",
    });
    expect(await balance()).toBe(unpaid - 70);
    expect(
      await refused(world.owen, "refundProcessorCharge", { chargeId: id, amount: "70.01" }),
    ).toMatchObject({
      code: "BAD_USER_INPUT",
      field: "amount",
      message: "The amount exceeds the refundable amount, 70.00.",
    });
    expect(await run(world.owen, "refundProcessorCharge", { chargeId: id })).toMatchObject({
      status: "REFUNDED",
      amountRefunded: "100.00",
      refunds: [{ amount: "70.00", reason: "REQUESTED_BY_CUSTOMER" }, { amount: "30.00" }],
    });
    expect(await lookAt(of)).toMatchObject({ status: "REFUNDED", amountRefunded: "100.00" });
    expect(await balance()).toBe(unpaid);
    expect((await refused(world.owen, "refundProcessorCharge", { chargeId: id })).code).toBe("CONFLICT");
    // Of a charge, only the metadata can be changed.
    const noted = await run(world.owen, "updateProcessorCharge", { id, metadata: { booking: 17 } });
    expect(noted).toMatchObject({ metadata: { booking: 17 }, status: "REFUNDED", amount: "100.00" });
    expect(
      await refused(world.owen, "updateProcessorCharge", { id, metadata: null, expectedVersion: 1 }),
    ).toMatchObject({ code: "VERSION_MISMATCH", currentVersion: noted.version });
    expect(await run(world.owen, "updateProcessorCharge", { id, metadata: null })).toMatchObject({
      metadata: null,
    });
    expect(await eventsOf(id)).toEqual([
      "charge.created",
      "charge.succeeded",
      "charge.refunded",
      "charge.refunded",
      "charge.updated",
      "charge.updated",
    ]);
    // Refunds and charges cannot be deleted, not even by the owner of the database.
    await expect(
      world.owner.query("delete from app_public.processor_charges where id = $1", [id]),
    ).rejects.toThrow("charges are never deleted");
    await expect(
      world.owner.query("delete from app_public.processor_refunds where charge_id = $1", [id]),
    ).rejects.toThrow("charges are never deleted");
    await expect(
      world.owner.query(
        "insert into app_public.processor_refunds (organization_id, charge_id, amount) values ($1, $2, 0.01)",
        [world.harbour.id, id],
      ),
    ).rejects.toMatchObject({ constraint: "processor_charges_refunds_within" });
  });

  test("a refunded amount can be paid again, up to the amount due", async () => {
    const { id, deposit: of } = await paid();
    await run(world.ada, "refundProcessorCharge", { chargeId: id, amount: "30" });
    const again = { depositId: of, cardId: card };
    expect(await refused(world.bea, "createPaymentIntent", { ...again, amount: "30.01" })).toMatchObject({
      code: "BAD_USER_INPUT",
      field: "amount",
    });
    const { charge } = await run(world.bea, "createPaymentIntent", { ...again, amount: "30" });
    expect(await lookAt(of)).toMatchObject({
      status: "PAID",
      amountPaid: "130.00",
      amountRefunded: "30.00",
    });
    await run(world.ada, "refundProcessorCharge", { chargeId: charge.id });
    expect(await lookAt(of)).toMatchObject({ status: "PARTIALLY_PAID", amountRefunded: "60.00" });
  });

  test("a hundred concurrent refunds never exceed the charge", async () => {
    const { id } = await paid();
    const before = await taken();
    const answers = await Promise.all(
      Array.from({ length: 100 }, (_, n) =>
        (n % 2 ? world.owen : world.ada).ask(document("refundProcessorCharge"), {
          input: { chargeId: id, amount: "9.00" },
        }),
      ),
    );
    const codes = new Map<string, number>();
    for (const { errors } of answers) {
      const code = errors?.[0]?.extensions.code ?? "refunded";
      codes.set(code, (codes.get(code) ?? 0) + 1);
    }
    expect(Object.fromEntries(codes)).toEqual({ refunded: 11, BAD_USER_INPUT: 89 });
    expect(await chargeOf(id)).toMatchObject({
      status: "PARTIALLY_REFUNDED",
      amountRefunded: "99.00",
      amountRefundable: "1.00",
    });
    expect((await taken()).refunded - before.refunded).toBe(9900);
  });

  test("repeated under one key, also 20 times concurrently, are one refund", async () => {
    const { id } = await paid();
    const input = { chargeId: id, amount: "10.00", idempotencyKey: "give-back-once" };
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => world.owen.ask(document("refundProcessorCharge"), { input })),
    );
    expect(new Set(answers.map((a) => a.data?.refundProcessorCharge.amountRefunded))).toEqual(
      new Set(["10.00"]),
    );
    expect((await chargeOf(id)).refunds).toHaveLength(1);
    expect((await refused(world.owen, "refundProcessorCharge", { ...input, amount: "11.00" })).code).toBe(
      "IDEMPOTENCY_MISMATCH",
    );
    expect((await chargeOf(id)).refunds).toHaveLength(1);
  });

  test("a refund that the bank refuses later is deducted again from the refunded amount", async () => {
    const { id, deposit: of } = await paid("20.00", "tok_refundFail");
    expect(await run(world.owen, "refundProcessorCharge", { chargeId: id })).toMatchObject({
      status: "REFUNDED",
    });
    expect(await lookAt(of)).toMatchObject({ status: "REFUNDED", amountRefunded: "20.00" });
    // The bank decides later.
    await world.owner.query(
      `update app_private.sandbox_objects set data = data || '{"due": 0}' where kind = 'refund' and data ? 'due'`,
    );
    await world.settle();
    expect(await chargeOf(id)).toMatchObject({
      status: "SUCCEEDED",
      amountRefundable: "20.00",
      refunds: [{ status: "FAILED" }],
    });
    expect(await lookAt(of)).toMatchObject({ status: "PAID", amountRefunded: "0.00" });
  });

  test("a disputed charge is decided by the bank", async () => {
    const { id } = await paid("40.00", "tok_createDispute");
    await world.settle();
    expect(await chargeOf(id)).toMatchObject({
      status: "DISPUTED",
      disputeStatus: "OPEN",
      disputedAt: expect.any(String),
      amountRefundable: "0.00",
    });
    expect((await refused(world.owen, "refundProcessorCharge", { chargeId: id })).code).toBe("CONFLICT");
    expect(await eventsOf(id)).toContain("charge.disputed");
    const ticketOf = async (charge: string) =>
      (
        await world.owner.query(
          "select id, kind::text, status::text, available_actions::text[] as actions from app_public.escalation_tickets where subject_id = $1",
          [charge],
        )
      ).rows;
    const [ticket] = await ticketOf(id);
    expect(ticket).toMatchObject({ kind: "PAYMENT_DISPUTE", status: "OPEN", actions: ["REFUND", "DISMISS"] });
    const { rows } = await world.owner.query(
      "select id from app_private.sandbox_objects where kind = 'dispute' order by position desc limit 1",
    );
    await fetch(`${world.sandbox.api}/v1/disputes/${rows[0].id}`, {
      method: "POST",
      headers: { authorization: `Bearer ${world.sandbox.secretKey}` },
      body: new URLSearchParams({ "evidence[uncategorized_text]": "winning_evidence" }),
    });
    await world.settle();
    expect(await chargeOf(id)).toMatchObject({ status: "SUCCEEDED", disputeStatus: "WON" });

    // A dispute is accepted by a person with finance.write.
    const { id: other, deposit: lostDeposit } = await paid("41.00", "tok_createDispute");
    await world.settle();
    const [lost] = await ticketOf(other);
    const resolve = `mutation ($id: ID!) { resolveEscalationTicket(input: { id: $id, action: REFUND }) { status } }`;
    expect(await world.max.refused(resolve, { id: lost.id })).toMatchObject({
      code: "FORBIDDEN",
      permission: "finance.write",
    });
    expect((await world.owen.get(resolve, { id: lost.id })).resolveEscalationTicket.status).toBe("RESOLVING");
    await world.settle();
    expect(await chargeOf(other)).toMatchObject({ status: "DISPUTED", disputeStatus: "LOST" });
    expect(await ticketOf(other)).toMatchObject([{ status: "RESOLVED" }]);
    // The deposit with the disputed amount is no longer paid.
    expect(await lookAt(lostDeposit)).toMatchObject({ status: "REFUNDED", amountRefunded: "41.00" });
  });

  test("nothing can be paid or refunded in an archived project", async () => {
    const { id } = await paid("15.00");
    const of = await deposit();
    const set = (status: string) =>
      world.owen.get(`mutation ($id: ID!) { updateProject(input: { id: $id, status: ${status} }) { id } }`, {
        id: world.project.id,
      });
    await set("ARCHIVED");
    const codes = [
      (await refused(world.owen, "refundProcessorCharge", { chargeId: id })).code,
      (await refused(world.bea, "createPaymentIntent", { depositId: of, amount: 1, cardId: card })).code,
      (await refused(world.owen, "updateProcessorCharge", { id, metadata: {} })).code,
    ];
    await set("SELLING");
    expect(codes).toEqual(["PROJECT_ARCHIVED", "PROJECT_ARCHIVED", "PROJECT_ARCHIVED"]);
  });
});

describe("crashes in between", () => {
  const begin = async (key?: string) => {
    const id = await deposit("60.00");
    const input = { depositId: id, amount: "60.00", cardId: card, ...(key && { idempotencyKey: key }) };
    return { id, input };
  };

  test.each([
    ["createPayment", "before", "CANCELLED"],
    ["createPayment", "after", "CANCELLED"],
    ["confirmPayment", "before", "CANCELLED"],
    ["confirmPayment", "after", "SUCCEEDED"],
  ] as const)("a payment: %s, %s", async (method, when, status) => {
    const { id, input } = await begin();
    const before = await taken();
    world.failNext(method, when);
    expect((await refused(world.bea, "createPaymentIntent", input)).code).toBe("INTERNAL");
    expect((await lookAt(id)).status).toBe("PROCESSING");
    await world.settle();
    await passTime(world.owner, "10 minutes");
    await world.reconcile();
    const after = await lookAt(id);
    expect(after.charge.status).toBe(status);
    expect(after).toMatchObject(
      status === "SUCCEEDED"
        ? { status: "PAID", amountPaid: "60.00" }
        : { status: "INVOICED", amountPaid: "0.00" },
    );
    expect((await taken()).charged - before.charged).toBe(status === "SUCCEEDED" ? 6000 : 0);
    await world.reconcile();
    expect((await taken()).charged - before.charged).toBe(status === "SUCCEEDED" ? 6000 : 0);
  });

  test.each(["createPayment", "confirmPayment"] as const)(
    "a repeated request under its key continues, and charges once: %s",
    async (method) => {
      const { id, input } = await begin(`again-${method}`);
      const before = await taken();
      world.failNext(method, "after", "is mute");
      expect(await refused(world.bea, "createPaymentIntent", input)).toMatchObject({
        code: "PROVIDER_ERROR",
        provider: "stripe",
        retryable: true,
      });
      const answers = await Promise.all([1, 2, 3].map(() => run(world.bea, "createPaymentIntent", input)));
      expect(new Set(answers.map((answer) => answer.id)).size).toBe(1);
      expect(answers[0]).toMatchObject({ status: "SUCCEEDED", charge: { status: "SUCCEEDED" } });
      expect(await lookAt(id)).toMatchObject({ status: "PAID" });
      expect((await taken()).charged - before.charged).toBe(6000);
    },
  );

  test.each(["before", "after"] as const)("a refund, %s the processor: it is made once", async (when) => {
    const { input } = await begin();
    const { charge } = await run(world.bea, "createPaymentIntent", input);
    const before = await taken();
    world.failNext("refund", when);
    expect(
      (await refused(world.owen, "refundProcessorCharge", { chargeId: charge.id, amount: "25" })).code,
    ).toBe("INTERNAL");
    // While its outcome is unknown, the refund counts.
    expect(await chargeOf(charge.id)).toMatchObject({ amountRefunded: "0.00", amountRefundable: "35.00" });
    await world.settle();
    await passTime(world.owner, "10 minutes");
    await world.reconcile();
    await world.reconcile();
    expect(await chargeOf(charge.id)).toMatchObject({
      status: "PARTIALLY_REFUNDED",
      amountRefunded: "25.00",
      refunds: [{ status: "SUCCEEDED" }],
    });
    expect((await taken()).refunded - before.refunded).toBe(2500);
  });
});

test("if the service is killed during payments and refunds, each is executed once or not at all, with a known outcome", async () => {
  await using folder = await temporaryFolder();
  const service = await startService({
    env: {
      DATABASE_URL: world.database.ownerUrl,
      DATA_DIR: folder.path,
      JWT_KEYS: "test:a secret of the tests with at least 32 characters",
      DEMO: "0",
    },
  });
  const paid = await Promise.all(
    Array.from({ length: 8 }, async () => {
      const { charge } = await run(world.bea, "createPaymentIntent", {
        depositId: await deposit("20.00"),
        amount: "20.00",
        cardId: card,
      });
      return charge.id as string;
    }),
  );
  const open = await Promise.all(Array.from({ length: 16 }, () => deposit("10.00")));
  const before = await taken();
  const send = (person: Person, field: string, input: object) =>
    sendRaw({ url: `${service.baseUrl}/graphql` }, person, {
      body: Buffer.from(JSON.stringify({ query: document(field), variables: { input } })),
      type: "application/json",
    }).catch(() => undefined);
  const sent = Promise.all([
    ...open.map((depositId) =>
      send(world.bea, "createPaymentIntent", { depositId, amount: "10.00", cardId: card }),
    ),
    ...paid.map((chargeId) => send(world.owen, "refundProcessorCharge", { chargeId, amount: "5.00" })),
  ]);
  await until(taken, (now) => now.charged >= before.charged + 3000 && now.refunded >= before.refunded + 500);
  await service.stop("SIGKILL");
  await sent;
  await passTime(world.owner, "10 minutes");
  await world.settle();
  await passTime(world.owner, "10 minutes");
  await world.reconcile();
  await world.reconcile();

  const { rows } = await world.owner.query<{ status: string; amount: number; deposits: number }>(
    `select status::text, sum(amount * 100)::int as amount, count(distinct deposit_id)::int as deposits
     from app_public.processor_charges where deposit_id = any ($1) group by status order by status`,
    [open],
  );
  const after = await taken();
  expect(rows.map(({ status }) => status)).toEqual(expect.arrayContaining(["SUCCEEDED"]));
  expect(rows.filter(({ status }) => !["SUCCEEDED", "CANCELLED"].includes(status))).toEqual([]);
  const succeeded = rows.find(({ status }) => status === "SUCCEEDED")!;
  expect(after.charged - before.charged).toBe(succeeded.amount);
  expect(succeeded.amount).toBe(succeeded.deposits * 1000);
  const { rows: refunds } = await world.owner.query<{ status: string; amount: number; charges: number }>(
    `select status::text, sum(amount * 100)::int as amount, count(distinct charge_id)::int as charges
     from app_public.processor_refunds where charge_id = any ($1) group by status`,
    [paid],
  );
  // A refund that was begun is executed, one that was not is not.
  expect(refunds).toEqual([
    { status: "SUCCEEDED", amount: refunds[0]!.charges * 500, charges: refunds[0]!.charges },
  ]);
  expect(after.refunded - before.refunded).toBe(refunds[0]!.amount);
});

describe("inbound webhooks", () => {
  const post = async (body: string, signature?: string) => {
    const { request } = await import("node:https");
    return new Promise<{ status: number; text: string }>((resolve, reject) => {
      const outgoing = request(
        new URL("/webhooks/payments", world.url),
        {
          method: "POST",
          rejectUnauthorized: false,
          headers: { ...(signature && { "stripe-signature": signature }) },
        },
        (response) => {
          let text = "";
          response.on("data", (chunk) => (text += chunk));
          response.on("end", () => resolve({ status: response.statusCode!, text }));
        },
      );
      outgoing.on("error", reject);
      outgoing.end(body);
    });
  };
  const sign = (payload: string, options = {}) =>
    new Stripe("sk_test_x").webhooks.generateTestHeaderString({
      payload,
      secret: world.webhookSecret,
      ...options,
    });
  const known = async () =>
    (await world.owner.query("select count(*)::int as n from app_private.processor_events")).rows[0].n;

  test("forged, unsigned, old, changed or too large ones are refused, and change nothing", async () => {
    const body = JSON.stringify({
      id: "evt_forged",
      object: "event",
      type: "charge.refunded",
      created: 1,
      data: { object: { object: "charge", payment_intent: "pi_1" } },
    });
    const before = await known();
    const old = Math.floor(Date.now() / 1000) - 3600;
    for (const signature of [
      undefined,
      "t=1,v1=00",
      sign(body, { secret: "whsec_other" }),
      sign(body, { timestamp: old }),
      sign(`${body} `),
    ])
      expect(await post(body, signature)).toMatchObject({
        status: 400,
        text: expect.stringContaining("BAD_USER_INPUT"),
      });
    const large = JSON.stringify({ padding: "x".repeat(300_000) });
    expect((await post(large, sign(large))).status).toBe(413);
    expect((await post("", sign(""))).status).toBe(400);
    expect(await known()).toBe(before);
  });

  test("repeated and unordered events are processed once, and the current state is used", async () => {
    const id = await deposit("80.00");
    const { charge } = await run(world.bea, "createPaymentIntent", {
      depositId: id,
      amount: "80",
      cardId: card,
    });
    await run(world.owen, "refundProcessorCharge", { chargeId: charge.id, amount: "5" });
    await world.settle();
    const { rows } = await world.owner.query<{ data: any }>(
      `select data from app_private.sandbox_objects where kind = 'event' and data::text like '%' || $1 || '%' order by position desc`,
      [charge.paymentIntentId],
    );
    expect(rows.length).toBeGreaterThan(3);
    const count = await known();
    // In reverse order and twice: those that were processed, and one with an earlier state.
    for (const { data } of [...rows, ...rows]) {
      const body = JSON.stringify(data);
      expect((await post(body, sign(body))).status).toBe(200);
    }
    expect(await known()).toBe(count);
    const stale = JSON.stringify({
      ...rows.at(-1)!.data,
      id: "evt_stale",
      type: "payment_intent.payment_failed",
    });
    expect((await post(stale, sign(stale))).status).toBe(200);
    const foreign = JSON.stringify({
      id: "evt_foreign",
      object: "event",
      type: "charge.succeeded",
      created: 1,
      data: { object: { object: "charge", payment_intent: "pi_of_somebody_else" } },
    });
    expect((await post(foreign, sign(foreign))).status).toBe(200);
    await world.settle();
    expect(await chargeOf(charge.id)).toMatchObject({ status: "PARTIALLY_REFUNDED", amountRefunded: "5.00" });
    expect(await lookAt(id)).toMatchObject({
      status: "PARTIALLY_PAID",
      amountPaid: "80.00",
      amountRefunded: "5.00",
    });
  });

  test("events that did not arrive are read from the processor's list", async () => {
    const id = await deposit("90.00");
    const { clientSecret } = await run(world.bea, "createPaymentIntent", { depositId: id, amount: "90" });
    world.sandbox.deliverTo({ url: "http://127.0.0.1:9/nobody", secret: "whsec_nobody" });
    await fetch(`${world.sandbox.api}/v1/payment_intents/${clientSecret.split("_secret_")[0]}/confirm`, {
      method: "POST",
      headers: { authorization: "Bearer pk_test_client" },
      body: new URLSearchParams({ client_secret: clientSecret, payment_method: "pm_card_visa" }),
    });
    await world.reconcile();
    expect(await lookAt(id)).toMatchObject({ status: "PAID" });
    world.sandbox.deliverTo({
      url: new URL("/webhooks/payments", world.url).href,
      secret: world.webhookSecret,
    });
  });
});
