/** Cancelling a purchase with its related records: shown in advance, atomic, and refunded once. */
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import type { Person } from "../harness/api.ts";
import { invite } from "../harness/deals.ts";
import { representative, startPayments, type Payments } from "../harness/payments.ts";
import { createLead } from "../harness/portfolio.ts";
import { createIn, mutationOf, type Create } from "../harness/records.ts";
import { until } from "../harness/until.ts";
import { expectUnchanged } from "../harness/expectUnchanged.ts";
import { affiliate, createProject, programOf } from "../harness/world.ts";

let world: Payments;
let owen: Person;
let laura: Person;
let create: Create;
let reason: string;
let card: string;
let serial = 0;

const CANCEL = mutationOf(
  "cancelBuyer",
  `{ dryRun refundTotal returnTotal keptTotal currency buyer { id status version fallenFor: falloutReason { name } cancellationReason }
     effects { kind recordType recordId title statusBefore statusAfter amount reason } }`,
);
const cancel = async (input: Record<string, unknown>, person = owen) =>
  (await person.get(CANCEL, { input: { falloutReasonId: reason, ...input } })).cancelBuyer;
const refused = (input: Record<string, unknown>, person = owen) =>
  expectUnchanged(world, () => person.refused(CANCEL, { input: { falloutReasonId: reason, ...input } }));
const run = (field: string, input: Record<string, unknown>, fields = "{ id }", person = owen) =>
  person.get(mutationOf(field, fields), { input }).then((data) => data[field]);
/** Effects by kind of record: [kind, status before, status after, amount]. */
const byKind = (effects: any[]) =>
  Object.fromEntries(
    effects.map((e) => [
      `${e.recordType} ${e.kind}${e.recordType === "deposit" ? ` ${e.title}` : ""}`,
      [e.statusBefore, e.statusAfter, e.amount],
    ]),
  );
/** The total of refunds by the sandbox, in cents, and their number. */
const givenBack = async () =>
  (
    await world.owner.query(
      `select coalesce(sum((data ->> 'amount')::int), 0)::int as cents, count(*)::int as refunds
       from app_private.sandbox_objects where kind = 'refund' and data ->> 'status' <> 'failed'`,
    )
  ).rows[0];

beforeAll(async () => {
  world = await startPayments();
  owen = world.owen;
  create = createIn(owen);
  laura = await world.signUp("Laura Lens");
  await run("createOrganizationPaymentsRepresentative", {
    organizationId: world.harbour.slug,
    ...representative,
  });
  await world.settle();
  reason = await create("createFalloutReason", {
    projectId: world.project.id,
    name: "Lost their job",
    appliesTo: ["BUYER"],
  });
  card = (await run("createProcessorCard", { token: "tok_visa" }, "{ id }", laura)).id;
});
afterAll(() => world?.stop());

/** A purchase from a reservation, with all related records; 300 paid by card, 500 and 200 by wire. */
async function purchase() {
  const email = `laura.${++serial}@example.com`;
  const unitId = await create("createUnit", {
    projectId: world.project.id,
    title: `Home ${serial}`,
    status: "AVAILABLE",
    price: 400_000,
  });
  const { id: leadId } = await createLead(owen, { projectId: world.project.id, name: "Laura Lens", email });
  const reservationId = await create("createReservation", { acceptedTerms: true, leadId, unitId });
  const { id } = await run("convertLead", { leadId });
  await invite(world, id, laura);
  const deposit = (title: string, amount: number) =>
    create("createDeposit", { buyerId: id, title, amount, method: "WIRE" });
  const [byCard, byWire, unpaid, half] = [
    await deposit("card", 300),
    await deposit("wire", 500),
    await deposit("unpaid", 700),
    await deposit("half", 400),
  ];
  const { charge } = await run(
    "createPaymentIntent",
    { depositId: byCard, amount: "300", cardId: card },
    "{ charge { id status } }",
    laura,
  );
  expect(charge.status).toBe("SUCCEEDED");
  await run("updateDeposit", { id: byWire, amountPaid: 500 });
  await run("updateDeposit", { id: half, amountPaid: 200 });
  const agreement = await create("createAgreement", {
    buyerId: id,
    title: "Contract",
    type: "PURCHASE",
    status: "SENT",
  });
  const executed = await create("createAgreement", {
    buyerId: id,
    title: "NDA",
    type: "OTHER",
    status: "EXECUTED",
  });
  const personalization = await create("createPersonalization", { unitId, buyerId: id, title: "Kitchen" });
  const task = await create("createTask", { buyerId: id, title: "Call the bank" });
  const appointment = await create("createAppointment", {
    buyerId: id,
    type: "PHONE",
    title: "Walk-through",
    startsAt: "2031-01-01T10:00:00Z",
    endsAt: "2031-01-01T11:00:00Z",
  });
  return { id, unitId, leadId, reservationId, charge: charge.id, byCard, byWire, unpaid, half, agreement, executed,
    personalization, task, appointment }; // prettier-ignore
}

test("dryRun reports the effects of cancelling, and cancelling has these; cards are refunded once", async () => {
  const made = await purchase();
  const input = {
    id: made.id,
    cancellationReason: "They called us.",
    refunds: [{ chargeId: made.charge, amount: "250.00" }],
    returns: [{ depositId: made.byWire }],
    forfeitDeposits: true,
  };
  const before = await givenBack();
  await run("updateUser", { id: laura.id, language: "de" }, "{ id }", laura);
  await create("createContact", {
    buyerId: made.id,
    role: "CO_BUYER",
    name: "Cora",
    email: "cora@example.com",
  });
  await create("createContact", {
    buyerId: made.id,
    role: "BUYER_ATTORNEY",
    name: "Lou",
    email: "lou@example.com",
  });
  await world.settle();
  await world.mails();
  const plan = await expectUnchanged(world, () => cancel({ ...input, dryRun: true }));
  expect(plan).toMatchObject({
    dryRun: true,
    refundTotal: "250.00",
    returnTotal: "500.00",
    currency: "CAD",
    buyer: { id: made.id, cancellationReason: null },
  });
  expect(byKind(plan.effects)).toEqual({
    "buyer CHANGED": ["FIRM", "CANCELLED", null],
    "unit CHANGED": ["SOLD", "AVAILABLE", null],
    "lead CHANGED": ["CONVERTED", "CONTACTED", null],
    "reservation CHANGED": ["CONVERTED", "REFUNDED", null],
    "deposit CHANGED unpaid": ["SCHEDULED", "CANCELLED", null],
    "deposit CHANGED half": ["PARTIALLY_PAID", "FORFEITED", null],
    "deposit KEPT half": ["PARTIALLY_PAID", "FORFEITED", "200.00"],
    "deposit RETURN wire": ["PAID", "PAID", "500.00"],
    "charge REFUND": ["SUCCEEDED", "SUCCEEDED", "250.00"],
    "charge KEPT": ["SUCCEEDED", "SUCCEEDED", "50.00"],
    "agreement CHANGED": ["SENT", "VOIDED", null],
    "agreement KEPT": ["EXECUTED", "EXECUTED", null],
    "personalization CHANGED": ["DRAFT", "CANCELLED", null],
    "task CHANGED": ["OPEN", "CANCELLED", null],
    "appointment CHANGED": ["SCHEDULED", "CANCELLED", null],
  });
  expect(plan.keptTotal).toBe("250.00");
  expect(plan.effects.find((e: any) => e.recordId === made.executed).reason).toMatch(/executed/);

  const answers = await Promise.all(
    Array.from({ length: 8 }, () => owen.ask(CANCEL, { input: { falloutReasonId: reason, ...input } })),
  );
  const won = answers.filter((answer) => !answer.errors);
  expect(won).toHaveLength(1);
  for (const { errors } of answers.filter((answer) => answer.errors))
    expect(errors![0]!.extensions).toMatchObject({ code: "INVALID_TRANSITION", from: "CANCELLED" });
  expect(won[0]!.data.cancelBuyer).toEqual({
    ...plan,
    dryRun: false,
    buyer: {
      id: made.id,
      status: "CANCELLED",
      version: expect.any(Number),
      fallenFor: { name: "Lost their job" },
      cancellationReason: "They called us.",
    },
  });
  expect(await givenBack()).toEqual(before); // not within the request
  await world.settle();
  // The buyer is notified once, in their language, of what is refunded and what is not, but not of the
  // reason.
  const mails = (await world.mails()).filter(({ subject }) => /cancelled|storniert/.test(subject!));
  const texts = Object.fromEntries(
    mails.map(({ to, text }) => [to![0]!.address, text!.replace(/[\u00a0\u202f]/g, " ")]),
  );
  expect(mails.map(({ to }) => to![0]!.address).sort()).toEqual(["cora@example.com", laura.email]);
  expect(texts[laura.email!]).toMatch(
    /Ihr Kauf von Home \d+ in Harbour View wurde von Harbour Homes storniert/,
  );
  for (const line of [
    "Auf Ihre Karte erstattet: 250,00 CAD",
    "zurückgezahlt: 500,00 CAD",
    "einbehalten: 250,00 CAD",
  ])
    expect(texts[laura.email!]).toContain(line);
  expect(texts["cora@example.com"]).toMatch(
    /Refunded to your card: CAD 250.00[^]*Kept by the seller: CAD 250.00/,
  );
  expect(JSON.stringify(texts)).not.toMatch(/They called us|Lost their job/);
  await world.reconcile();
  expect(await givenBack()).toEqual({ cents: before.cents + 25_000, refunds: before.refunds + 1 });
  const now = await owen.get(
    `query ($unit: ID!, $lead: ID!, $wire: ID!, $card: ID!, $agreement: ID!) {
      unit(id: $unit) { status buyer { id } } lead(id: $lead) { status }
      wire: deposit(id: $wire) { status amountToReturn returnRequestedAt events { name } }
      card: deposit(id: $card) { status amountRefunded } agreement(id: $agreement) { voidReason } }`,
    { unit: made.unitId, lead: made.leadId, wire: made.byWire, card: made.byCard, agreement: made.agreement },
  );
  expect(now).toEqual({
    unit: { status: "AVAILABLE", buyer: null },
    lead: { status: "CONTACTED" },
    wire: {
      status: "PAID",
      amountToReturn: "500.00",
      returnRequestedAt: expect.any(String),
      events: expect.arrayContaining([{ name: "deposit.return_requested" }]),
    },
    card: { status: "PARTIALLY_PAID", amountRefunded: "250.00" },
    agreement: { voidReason: "They called us." },
  });
  const { rows: rules } = await world.owner.query(
    `select r.line from app_private.notification_rules r join app_public.events e on app_hidden.event_matches(e.name, r.events)
       and e.changes ? r.changed and e.data @> any (r.wanted) where e.subject_id = $1`,
    [made.id],
  );
  expect(rules).toEqual([{ line: expect.stringMatching(/^Purchase.*cancelled$/) }]);
  // Amounts to be refunded outside of the service are listed until the refund is recorded.
  const toReturn = async () =>
    (
      await owen.get(
        `query ($id: ID!) { project(id: $id) { deposits(filter: { returnRequestedAt: { from: "2020-01-01T00:00:00Z" } }) { id amountToReturn } } }`,
        { id: world.project.id },
      )
    ).project.deposits;
  expect(await toReturn()).toEqual([{ id: made.byWire, amountToReturn: "500.00" }]);
  await run("updateDeposit", { id: made.byWire, amountRefunded: 200 });
  expect(await toReturn()).toEqual([{ id: made.byWire, amountToReturn: "300.00" }]);
  expect(
    await run("updateDeposit", { id: made.byWire, amountRefunded: 500 }, "{ status amountToReturn }"),
  ).toEqual({
    status: "REFUNDED",
    amountToReturn: "0.00",
  });
});

test("refunds everything except for the cancellation fee, which may be waived; unselected records are unchanged", async () => {
  await run("updateProject", { id: world.project.id, cancellationFee: 120 });
  const all = { refundCharges: true, returnDeposits: true };
  const made = await purchase();
  expect(await cancel({ id: made.id, ...all, dryRun: true })).toMatchObject({
    refundTotal: "180.00",
    returnTotal: "700.00",
    keptTotal: "120.00",
  });
  expect(await cancel({ id: made.id, returnDeposits: true, dryRun: true })).toMatchObject({
    refundTotal: "0.00",
    returnTotal: "580.00",
  });
  expect(await cancel({ id: made.id, ...all, waiveCancellationFee: true, dryRun: true })).toMatchObject({
    refundTotal: "300.00",
    returnTotal: "700.00",
    keptTotal: "0.00",
  });
  await create("createDeposit", {
    leadId: made.leadId,
    reservationId: made.reservationId,
    title: "reserved",
    amount: 10,
  });
  const bare = await cancel({
    id: made.id,
    voidAgreements: false,
    cancelPersonalizations: false,
    cancelTasks: false,
    cancelAppointments: false,
    refundReservation: false,
  });
  expect(byKind(bare.effects)).toMatchObject({
    "agreement KEPT": expect.anything(),
    "personalization KEPT": ["DRAFT", "DRAFT", null],
    "task KEPT": ["OPEN", "OPEN", null],
    "appointment KEPT": ["SCHEDULED", "SCHEDULED", null],
    "reservation KEPT": ["CONVERTED", "CONVERTED", null],
    // Unpaid deposits of the reservation are cancelled, although the reservation is unchanged.
    "deposit CHANGED reserved": ["SCHEDULED", "CANCELLED", null],
    "deposit KEPT wire": ["PAID", "PAID", "500.00"],
    "charge KEPT": ["SUCCEEDED", "SUCCEEDED", "300.00"],
  });
  expect(bare).toMatchObject({ refundTotal: "0.00", returnTotal: "0.00", keptTotal: "1000.00" });
  await run("updateProject", { id: world.project.id, cancellationFee: null });
});

test("a refund whose job died is executed once, by the next reconciliation", async () => {
  const made = await purchase();
  const before = await givenBack();
  world.failNext("refund", "after");
  await cancel({ id: made.id, refundCharges: true });
  await world.settle();
  await world.owner.query(
    "update app_public.processor_refunds set updated_at = now() - interval '1 hour' where charge_id = $1",
    [made.charge],
  );
  await world.reconcile();
  await until(
    () => owen.get(`query ($id: ID!) { processorCharge(id: $id) { status } }`, { id: made.charge }),
    ({ processorCharge }) => processorCharge.status === "REFUNDED",
  );
  expect(await givenBack()).toEqual({ cents: before.cents + 30_000, refunds: before.refunds + 1 });
});

test("invalid cancellations are refused and change nothing", async () => {
  const made = await purchase();
  const other = await purchase();
  for (const [input, refusal] of [
    [
      { refunds: [{ chargeId: made.charge, amount: 301 }] },
      { code: "BAD_USER_INPUT", field: "refunds.0.amount" },
    ],
    [
      { refunds: [{ chargeId: made.charge, amount: 0 }] },
      { code: "BAD_USER_INPUT", field: "refunds.0.amount" },
    ],
    [
      { refunds: [{ chargeId: made.charge }, { chargeId: made.charge }] },
      { code: "CONFLICT", field: "refunds.1.chargeId" },
    ],
    [{ refunds: [{ chargeId: other.charge }] }, { code: "NOT_FOUND", field: "refunds.0.chargeId" }],
    [
      { returns: [{ depositId: made.byWire, amount: 501 }] },
      { code: "BAD_USER_INPUT", field: "returns.0.amount" },
    ],
    [{ returns: [{ depositId: made.byCard }] }, { code: "BAD_USER_INPUT", field: "returns.0.amount" }],
    [{ returns: [{ depositId: made.unpaid }] }, { code: "CONFLICT", field: "returns.0.depositId" }],
    [{ returns: [{ depositId: other.byWire }] }, { code: "NOT_FOUND", field: "returns.0.depositId" }],
    [
      { refunds: [{ chargeId: made.charge }], returns: [{ depositId: made.byCard, amount: 1 }] },
      { code: "BAD_USER_INPUT", field: "returns.0.amount" },
    ],
    [
      { refundCharges: true, refunds: [{ chargeId: made.charge }] },
      { code: "BAD_USER_INPUT", field: "refunds" },
    ],
    [
      { returnDeposits: true, returns: [{ depositId: made.byWire }] },
      { code: "BAD_USER_INPUT", field: "returns" },
    ],
    [
      { refunds: Array.from({ length: 101 }, () => ({ chargeId: made.charge })) },
      { code: "LIMIT_EXCEEDED", limit: 100 },
    ],
    [{ expectedVersion: 999 }, { code: "VERSION_MISMATCH" }],
    [{ falloutReasonId: made.id }, { code: "NOT_FOUND", field: "falloutReasonId" }],
  ] as const)
    expect(await refused({ id: made.id, ...input })).toMatchObject(refusal);
  expect(await refused({ id: reason })).toMatchObject({ code: "NOT_FOUND", field: "id" });
  await run("updateBuyer", { id: other.id, status: "CLEAR_TO_CLOSE" });
  await run("updateBuyer", { id: other.id, status: "CLOSED" });
  expect(await refused({ id: other.id })).toMatchObject({
    code: "INVALID_TRANSITION",
    from: "CLOSED",
    to: "CANCELLED",
    allowedTransitions: [],
  });
});

test("the team of the deal can cancel; refunds require finance.write", async () => {
  const made = await purchase();
  const { id } = made;
  expect(await refused({ id }, world.anonymous)).toMatchObject({ code: "UNAUTHENTICATED" });
  expect(await refused({ id }, world.olga)).toMatchObject({ code: "NOT_FOUND", field: "id" });
  expect(await refused({ id }, laura)).toMatchObject({ code: "FORBIDDEN", permission: "buyer.write" });
  expect(await refused({ id, refundCharges: true }, world.max)).toMatchObject({
    code: "FORBIDDEN",
    permission: "finance.write",
  });
  const scoped = (scopes: string[]) => programOf(world, owen, { scopes, organizationId: world.harbour.id });
  expect(
    await refused({ id }, await scoped(["buyer.read", "buyer.write", "lead.read", "sale.read"])),
  ).toMatchObject({ code: "FORBIDDEN", permission: "sale.write" });
  expect(await refused({ id }, await programOf(world, owen, { readOnly: true }))).toMatchObject({
    code: "FORBIDDEN",
  });
  // An agency cancels a purchase of its own lead; the effects contain no charges.
  const park = await createProject(owen, { organizationId: world.harbour.id, title: "Park" });
  await affiliate(world, park, world.summit, "AGENCY");
  const parkReason = await create("createFalloutReason", {
    projectId: park.id,
    name: "No",
    appliesTo: ["BUYER"],
  });
  const unitId = await create("createUnit", {
    projectId: park.id,
    title: "P1",
    status: "AVAILABLE",
    price: 9,
  });
  const leadId = await createIn(world.olga)("createLead", {
    projectId: park.id,
    name: "Own",
    email: "own@example.com",
  });
  const { id: own } = await run("convertLead", { leadId, unitId }, "{ id }", world.olga);
  const input = { id: own, falloutReasonId: parkReason };
  expect(await refused({ ...input, returnDeposits: true }, world.olga)).toMatchObject({
    code: "FORBIDDEN",
    permission: "finance.write",
  });
  expect((await cancel({ ...input, dryRun: true }, world.olga)).effects.length).toBeGreaterThan(2);
  await run("updateProject", { id: park.id, status: "ARCHIVED" });
  expect(await refused(input)).toMatchObject({ code: "PROJECT_ARCHIVED" });
  // For a member of the team without finance.write, the effects contain no charges either.
  const answer = await cancel({ id }, world.max);
  expect(answer.buyer.status).toBe("CANCELLED");
  expect(answer.effects.filter((e: any) => e.recordType === "charge")).toEqual([]);
  // The buyer still sees that the purchase was cancelled, but not the reason.
  const { buyer } = await laura.get(`query ($id: ID!) { buyer(id: $id) { status cancellationReason } }`, {
    id,
  });
  expect(buyer).toEqual({ status: "CANCELLED", cancellationReason: null });
});

test("notifies buyers of every cancellation, unless they were never invited", async () => {
  await world.settle();
  await world.mails();
  const purchaseOf = (email: string, input: Record<string, unknown> = {}) =>
    create("createBuyer", { projectId: world.project.id, legalName: "Ann", price: "1", email, ...input });
  const signed = await purchaseOf("signed@example.com", {
    status: "OUT_FOR_SIGNATURE",
    preferredLanguage: "fr",
  });
  const draft = await purchaseOf("draft@example.com");
  const { reservationId, id: refunded } = await purchase();
  for (const id of [signed, draft])
    await run("updateBuyer", { id, status: "CANCELLED", falloutReasonId: reason });
  await run("updateReservation", { id: reservationId, status: "REFUNDED" });
  await world.settle();
  const mails = (await world.mails()).filter(({ subject }) => /annulé|storniert|cancelled/.test(subject!));
  expect(mails.map(({ to, subject }) => [to![0]!.address, subject]).sort()).toEqual([
    [laura.email, expect.stringMatching(/^Ihr Kauf von Home/)],
    ["signed@example.com", "Votre achat à Harbour View a été annulé"],
  ]);
  expect(mails.map(({ text }) => text).join("\n")).toMatch(/Vous n'aviez rien payé/);
  // If the job is executed again, as after a crash, it notifies nobody twice.
  await world.owner.query(
    "select app_private.add_job('buyer__cancelled', jsonb_build_object('id', $1::uuid, 'charge_ids', '[]'::jsonb, 'deposit_ids', '[]'::jsonb))",
    [refunded],
  );
  await world.settle();
  expect(await world.mails()).toEqual([]);
});
