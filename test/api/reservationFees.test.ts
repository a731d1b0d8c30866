/** Reservation fees, and the payment schedule from the reservation to the purchase, paid by card. */
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import type { Person } from "../harness/api.ts";
import { passTime } from "../harness/clock.ts";
import { invite } from "../harness/deals.ts";
import { startPayments, representative, type Payments } from "../harness/payments.ts";
import { createLead, createProject } from "../harness/portfolio.ts";
import { createIn, mutationOf, type Create } from "../harness/records.ts";
import { affiliate, programOf } from "../harness/world.ts";

let world: Payments;
let owen: Person;
let create: Create;
let project: { id: string };
/** Due with the reservation: 5 % of the price. */
let milestone: string;
let serial = 0;

beforeAll(async () => {
  world = await startPayments();
  owen = world.owen;
  create = createIn(owen);
  project = await createProject(owen, {
    organizationId: world.harbour.id,
    title: "Fee Fields",
    reservationFee: 500,
    reservationExpiration: 72,
  });
  await affiliate(world, project, world.sisters, "SELLER");
  const ask = (input: Record<string, unknown>) =>
    create("createDepositScheduleMilestone", { projectId: project.id, ...input });
  milestone = await ask({
    title: "With the reservation",
    percent: "5",
    dueRule: "ON_RESERVATION",
    sequence: 1,
  });
  await ask({ title: "At signing", amount: 10_000, dueRule: "ON_SIGNING", sequence: 2 });
  await run(owen, "createOrganizationPaymentsRepresentative", {
    ...representative,
    organizationId: world.harbour.id,
  });
});
afterAll(() => world.stop());

const run = async (person: Person, field: string, input: Record<string, unknown>, members = "{ id }") =>
  (await person.get(mutationOf(field, members), { input }))[field];
const unit = (input: Record<string, unknown> = {}) =>
  create("createUnit", {
    projectId: project.id,
    title: `Home ${++serial}`,
    status: "AVAILABLE",
    price: 400_000,
    ...input,
  });
const lead = async (person = owen) =>
  (await createLead(person, { projectId: project.id, name: `Lena ${++serial}` })).id;

const members = `id title status isReservationFee amount amountDue amountPaid amountRefunded sequence dueAt isOverdue heldBy
  reference method lead { id } buyer { id } reservation { id } milestone { id }`;
interface Deposit extends Record<string, any> {
  id: string;
}
interface Reservation {
  id: string;
  fee: string;
  deposits: Deposit[];
  feeDeposit: Deposit;
}
const reserve = (input: Record<string, unknown> = {}, person = owen): Promise<Reservation> =>
  run(
    person,
    "createReservation",
    { acceptedTerms: true, ...input },
    `{ id fee deposits { ${members} } feeDeposit { ${members} } }`,
  );
const change = (id: string, input: Record<string, unknown>, person = owen) =>
  run(person, "updateReservation", { id, ...input }, "{ id status }");
const read = async (id: string, person = owen): Promise<Reservation> =>
  (
    await person.get(
      `query ($id: ID!) { reservation(id: $id) { id fee deposits { ${members} } feeDeposit { ${members} } } }`,
      { id },
    )
  ).reservation;
const statuses = ({ deposits }: Reservation) => deposits.map(({ status }) => status);
const cardOf = async (person: Person, token = "tok_visa") =>
  (await run(person, "createProcessorCard", { token })).id;
const pay = async (person: Person, input: Record<string, unknown>) =>
  run(
    person,
    "createPaymentIntent",
    { cardId: await cardOf(person), ...input },
    "{ status charge { id status deposit { id } reservation { id } } }",
  );

describe("amounts due", () => {
  test("begin with the reservation: the fee, and what the schedule requires with it", async () => {
    const leadId = await lead();
    const reservation = await reserve({ unitId: await unit(), leadId, transactionId: "wire 17" });
    const today = new Date().toISOString().slice(0, 10);
    expect(reservation.fee).toBe("500.00");
    expect(reservation.deposits).toEqual([
      expect.objectContaining({
        title: "Reservation fee",
        status: "SCHEDULED",
        isReservationFee: true,
        amountDue: "500.00",
        dueAt: today,
        isOverdue: false,
        heldBy: "DEVELOPER",
        reference: "wire 17",
        lead: { id: leadId },
        buyer: null,
        milestone: null,
      }),
      expect.objectContaining({
        title: "With the reservation",
        status: "SCHEDULED",
        isReservationFee: false,
        amountDue: "20000.00",
        dueAt: today,
        lead: { id: leadId },
        milestone: { id: milestone },
      }),
    ]);
    expect(reservation.feeDeposit.id).toBe(reservation.deposits[0]!.id);
    await change(reservation.id, { transactionId: "wire 18" });
    expect((await read(reservation.id)).feeDeposit.reference).toBe("wire 18");
    expect(
      (
        await owen.refused(mutationOf("createDeposit"), {
          input: { reservationId: reservation.id, buyerId: world.purchase, title: "Twice", amount: 1 },
        })
      ).code,
    ).toBe("BAD_USER_INPUT");
  });

  test("are not due twice when the reservation becomes a purchase, and count towards its price", async () => {
    const leadId = await lead();
    const { id, deposits } = await reserve({ unitId: await unit(), leadId });
    await run(owen, "updateDeposit", { id: deposits[0]!.id, amountPaid: 500 });
    const buyer = await run(owen, "convertLead", { leadId, reservationId: id }, `{ id }`);
    const { buyer: purchase } = await owen.get(
      `query ($id: ID!) { buyer(id: $id) { netPurchasePriceBalance deposits { ${members} } } }`,
      { id: buyer.id },
    );
    expect(purchase.deposits.map(({ title, status }: Deposit) => [title, status])).toEqual([
      ["Reservation fee", "PAID"],
      ["With the reservation", "SCHEDULED"],
      ["At signing", "SCHEDULED"],
    ]);
    expect(purchase.netPurchasePriceBalance).toBe("399500.00");
    // Another home of the same lead has a separate fee, which is not part of the first purchase.
    const second = await reserve({ unitId: await unit(), leadId });
    await run(owen, "updateDeposit", { id: second.feeDeposit.id, amountPaid: 500 });
    expect(
      (
        await owen.get("query ($id: ID!) { buyer(id: $id) { netPurchasePriceBalance deposits { id } } }", {
          id: buyer.id,
        })
      ).buyer,
    ).toEqual({
      netPurchasePriceBalance: "399500.00",
      deposits: [expect.anything(), expect.anything(), expect.anything()],
    });
    const next = await run(
      owen,
      "convertLead",
      { leadId, reservationId: second.id },
      "{ netPurchasePriceBalance }",
    );
    expect(next.netPurchasePriceBalance).toBe("399500.00");
    // After a cancellation nothing is due; what was paid remains.
    const { falloutReasons } = (
      await owen.get("query ($id: ID!) { project(id: $id) { falloutReasons(first: 1) { id } } }", project)
    ).project;
    await run(owen, "updateBuyer", {
      id: buyer.id,
      status: "CANCELLED",
      falloutReasonId: falloutReasons[0].id,
    });
    expect(statuses(await read(id))).toEqual(["PAID", "CANCELLED"]);
  });

  test.each([
    ["CANCELLED", (id: string) => change(id, { status: "CANCELLED", cancellationReason: "Moved away" })],
    ["REFUNDED", (id: string) => change(id, { status: "REFUNDED" })],
    [
      "EXPIRED",
      async () => {
        await passTime(world.owner, "73 hours");
        await owen.get("{ reservations { status } }");
      },
    ],
  ])(
    "are no longer due once the reservation is %s; what was paid remains until it is refunded",
    async (_status, end) => {
      const [paid, unpaid] = [
        await reserve({ unitId: await unit(), leadId: await lead() }),
        await reserve({ unitId: await unit(), leadId: await lead() }),
      ];
      const { charge } = await pay(owen, { depositId: paid.feeDeposit.id, amount: "500.00" });
      await end(paid.id);
      await end(unpaid.id);
      expect(statuses(await read(paid.id))).toEqual(["PAID", "CANCELLED"]);
      expect(statuses(await read(unpaid.id))).toEqual(["CANCELLED", "CANCELLED"]);
      const card = await cardOf(owen);
      expect(
        await owen.refused(mutationOf("createPaymentIntent"), {
          input: { depositId: unpaid.feeDeposit.id, amount: "500.00", cardId: card },
        }),
      ).toMatchObject({ code: "CONFLICT", field: "depositId" });
      await run(owen, "refundProcessorCharge", { chargeId: charge.id });
      expect((await read(paid.id)).feeDeposit).toMatchObject({
        status: "REFUNDED",
        amountRefunded: "500.00",
      });
    },
  );

  test("belong to a reservation without a lead, and to its purchase once there is one", async () => {
    const reservation = await reserve({ unitId: await unit() });
    expect(reservation.deposits).toMatchObject([
      { lead: null, buyer: null, reservation: { id: reservation.id }, amountDue: "500.00" },
      { lead: null, buyer: null, amountDue: "20000.00" },
    ]);
    const extra = await run(
      owen,
      "createDeposit",
      { reservationId: reservation.id, title: "Key deposit", amount: 50 },
      `{ ${members} }`,
    );
    expect(extra).toMatchObject({ lead: null, buyer: null, reservation: { id: reservation.id } });
    await pay(owen, { reservationId: reservation.id, amount: "500.00" });
    const purchase = await create("createBuyer", {
      projectId: project.id,
      reservationId: reservation.id,
      legalName: "Pat Purchaser",
      price: 400_000,
    });
    const { buyer } = await owen.get(
      "query ($id: ID!) { buyer(id: $id) { netPurchasePriceBalance deposits { title buyer { id } } } }",
      { id: purchase },
    );
    expect(buyer.netPurchasePriceBalance).toBe("399500.00");
    expect(buyer.deposits.map(({ title }: Deposit) => title)).toEqual([
      "Reservation fee",
      "With the reservation",
      "Key deposit",
      "At signing",
    ]);
    expect((await read(reservation.id)).feeDeposit).toMatchObject({
      status: "PAID",
      buyer: { id: purchase },
    });
  });

  test("are none if neither project nor schedule requires any", async () => {
    const free = await createProject(owen, { organizationId: world.harbour.id, title: "Free Fields" });
    const reservation = await reserve({ unitId: await unit({ projectId: free.id }) });
    expect(reservation).toMatchObject({ fee: null, deposits: [], feeDeposit: null });
  });
});

describe("by card", () => {
  test("the buyer who reserved can pay; other buyers and people without the permission cannot", async () => {
    // Bea has a purchase in this project, and reserves another home.
    const purchase = await create("createBuyer", { projectId: project.id, legalName: "Bea", price: 1 });
    await invite(world, purchase, world.bea);
    const reservation = await reserve({ unitId: await unit() }, world.bea);
    expect(reservation.deposits).toMatchObject([
      { title: "Reservation fee", amountDue: "500.00" },
      { title: "With the reservation", amountDue: "20000.00" },
    ]);
    const { id: depositId } = reservation.feeDeposit;
    const amount = "500.00";
    const reader = await programOf(world, owen, { scopes: ["sale.read", "project.read"] });
    for (const [person, code] of [
      [world.max, "FORBIDDEN"],
      [reader, "FORBIDDEN"],
      [world.sam, "NOT_FOUND"],
      [world.ben, "NOT_FOUND"],
      [world.olga, "NOT_FOUND"],
      [world.anonymous, "UNAUTHENTICATED"],
    ] as const)
      expect([
        code,
        (await person.refused(mutationOf("createPaymentIntent"), { input: { depositId, amount } })).code,
      ]).toEqual([code, code]);
    for (const person of [world.sam, world.ben, world.olga])
      expect(
        (await person.get("query ($id: ID!) { deposit(id: $id) { id } }", { id: depositId })).deposit,
      ).toBeNull();
    expect(
      await world.bea.refused(mutationOf("createPaymentIntent"), { input: { depositId, amount: "500.01" } }),
    ).toMatchObject({ code: "BAD_USER_INPUT", field: "amount" });
    expect(await pay(world.bea, { depositId, amount })).toMatchObject({
      status: "SUCCEEDED",
      charge: { status: "SUCCEEDED", deposit: { id: depositId }, reservation: { id: reservation.id } },
    });
    const paid = await read(reservation.id, world.bea);
    expect(paid.feeDeposit).toMatchObject({ status: "PAID", amountPaid: amount, method: "CARD" });
    // A buyer cannot record payments.
    expect(
      (await world.bea.refused(mutationOf("updateDeposit"), { input: { id: depositId, amountPaid: 1 } }))
        .code,
    ).toBe("FORBIDDEN");
  });

  test("a payment of the reservation pays its fee", async () => {
    const reservation = await reserve({ unitId: await unit(), leadId: await lead() });
    await pay(owen, { reservationId: reservation.id, amount: "200.00" });
    expect((await read(reservation.id)).feeDeposit).toMatchObject({
      status: "PARTIALLY_PAID",
      amountPaid: "200.00",
    });
    await pay(owen, { reservationId: reservation.id, amount: "300.00" });
    expect((await read(reservation.id)).feeDeposit).toMatchObject({ status: "PAID", amountPaid: "500.00" });
  });

  test("a payment that arrives after the reservation has ended is refunded", async () => {
    const reservation = await reserve({ unitId: await unit(), leadId: await lead() });
    const { clientSecret } = await run(
      owen,
      "createPaymentIntent",
      { depositId: reservation.feeDeposit.id, amount: "500.00" },
      "{ clientSecret }",
    );
    await change(reservation.id, { status: "CANCELLED", cancellationReason: "Too slow" });
    const answer = await fetch(
      `${world.sandbox.api}/v1/payment_intents/${clientSecret.split("_secret_")[0]}/confirm`,
      {
        method: "POST",
        headers: { authorization: "Bearer pk_test_client" },
        body: new URLSearchParams({ client_secret: clientSecret, payment_method: "pm_card_visa" }),
      },
    );
    expect(answer.status).toBe(200);
    await world.settle();
    await world.settle();
    expect((await read(reservation.id)).feeDeposit).toMatchObject({
      status: "CANCELLED",
      amountPaid: "0.00",
    });
    const { rows } = await world.owner.query(
      "select status, amount_refunded::text from app_public.processor_charges where reservation_id = $1",
      [reservation.id],
    );
    expect(rows).toEqual([{ status: "REFUNDED", amount_refunded: "500.00" }]);
  });
});

test("a seller of another organization sees and writes the amounts of own reservations only", async () => {
  const theirs = await reserve({ unitId: await unit(), leadId: await lead(world.sam) }, world.sam);
  expect(theirs.deposits).toHaveLength(2);
  const alone = await reserve({ unitId: await unit() }, world.sam);
  expect(alone.feeDeposit).toMatchObject({ lead: null, amountDue: "500.00" });
  expect(
    await run(
      world.sam,
      "createDeposit",
      { reservationId: alone.id, title: "Parking", amount: 20 },
      "{ title }",
    ),
  ).toEqual({ title: "Parking" });
  const others = await reserve({ unitId: await unit() });
  expect(
    (await world.sam.get("query ($id: ID!) { deposit(id: $id) { id } }", { id: others.feeDeposit.id }))
      .deposit,
  ).toBeNull();
  expect(
    (
      await world.sam.refused(mutationOf("createDeposit"), {
        input: { reservationId: others.id, title: "Not mine", amount: 20 },
      })
    ).code,
  ).toBe("NOT_FOUND");
  // Recording payments requires finance.write.
  expect(
    (
      await world.sam.refused(mutationOf("updateDeposit"), {
        input: { id: alone.feeDeposit.id, amountPaid: 500 },
      })
    ).code,
  ).toBe("FORBIDDEN");
});

test("a report of deposits has the fees, also of reservations without a lead", async () => {
  const tower = await createProject(owen, {
    organizationId: world.harbour.id,
    title: "Report Row",
    reservationFee: 100,
  });
  const homes = [await unit({ projectId: tower.id }), await unit({ projectId: tower.id })];
  const known = await createLead(owen, { projectId: tower.id, name: "Lea" });
  const paid = await reserve({ unitId: homes[0], leadId: known.id });
  await reserve({ unitId: homes[1] });
  await pay(owen, { depositId: paid.feeDeposit.id, amount: "100.00" });
  const { createCustomReport: report } = await owen.get(mutationOf("createCustomReport"), {
    input: {
      organizationId: world.harbour.id,
      projectId: tower.id,
      name: "Fees",
      subject: "DEPOSITS",
      visibility: "ORGANIZATION",
      columns: ["title", "reservation", "lead", "amountPaid"],
      filter: { isReservationFee: true },
    },
  });
  const { customReport } = await owen.get("query ($id: ID!) { customReport(id: $id) { rows } }", report);
  expect(customReport.rows.rows).toEqual(
    expect.arrayContaining([
      { title: "Reservation fee", reservation: "R-000001", lead: "Lea", amountPaid: "100.00" },
      { title: "Reservation fee", reservation: "R-000002", lead: null, amountPaid: "0.00" },
    ]),
  );
  expect(customReport.rows.rows).toHaveLength(2);
});
