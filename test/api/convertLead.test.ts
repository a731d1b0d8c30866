/** Converting a lead into a buyer, once, with its reservation or a free home; cancelling the purchase reverts it. */
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import type { Person } from "../harness/api.ts";
import { passTime } from "../harness/clock.ts";
import { createProject } from "../harness/portfolio.ts";
import { createIn, type Create } from "../harness/records.ts";
import { expectUnchanged } from "../harness/expectUnchanged.ts";
import { startWorld, type World } from "../harness/world.ts";

let world: World;
let owen: Person;
let create: Create;
let project: string;
let serial = 0;

beforeAll(async () => {
  world = await startWorld();
  owen = world.owen;
  create = createIn(owen);
  project = world.project.id;
});
afterAll(() => world.stop());

const unit = (input: Record<string, unknown> = {}) =>
  create("createUnit", {
    projectId: project,
    title: `Home ${++serial}`,
    status: "AVAILABLE",
    price: 400_000,
    ...input,
  });
const lot = (input: Record<string, unknown> = {}) =>
  create("createLot", {
    projectId: project,
    number: `L${++serial}`,
    status: "AVAILABLE",
    price: 90_000,
    ...input,
  });
const lead = (input: Record<string, unknown> = {}) =>
  create("createLead", {
    projectId: project,
    name: "Bea van Buyer",
    email: `bea.${++serial}@example.com`,
    ...input,
  });
const reserve = (input: Record<string, unknown>) =>
  create("createReservation", { acceptedTerms: true, ...input });

const FIELDS = `id status fullName firstName lastName legalName email phone company source leadSource { name } agent { name }
  assignee { id } price purchaseDate rescissionEndsAt purchaseFirmDate estimatedClosingDate financingType occupancyType
  address { locality } unit { id status } lot { id status } reservation { id status purchase { id } }
  lead { id status convertedAt buyer { id } }`;
const CONVERT = `mutation ($input: ConvertLeadInput!) { convertLead(input: $input) { ${FIELDS} } }`;
const convert = async (input: Record<string, unknown>, person = owen) =>
  (await person.get(CONVERT, { input })).convertLead;
const refused = (input: Record<string, unknown>, person = owen) =>
  expectUnchanged(world, () => person.refused(CONVERT, { input }));
const update = (type: string, input: Record<string, unknown>) =>
  owen.get(`mutation ($input: Update${type}Input!) { update${type}(input: $input) { id } }`, { input });
const read = async (id: string) =>
  (await owen.get(`query ($id: ID!) { buyer(id: $id) { ${FIELDS} } }`, { id })).buyer;
const statusOf = async (leadId: string) =>
  (await owen.get(`query ($id: ID!) { lead(id: $id) { status } }`, { id: leadId })).lead.status;
const claims = async (unitId: string) =>
  (
    await world.owner.query(
      "select kind, subject_type, subject_id, expires_at from app_hidden.claims where unit_id = $1 and released_at is null",
      [unitId],
    )
  ).rows;

describe("a lead with a reservation", () => {
  test("becomes the buyer of the reserved home", async () => {
    const unitId = await unit();
    const leadId = await lead({
      company: "Buyer BV",
      phone: "+31201234567",
      address: { locality: "Utrecht", country: "NL" },
      source: "WALK_IN",
      assigneeId: world.max.id,
      agent: { name: "Ann Agent" },
    });
    const reservationId = await reserve({
      unitId,
      leadId,
      buyerLegalName: "Beatrix van Buyer",
      financingType: "CASH",
      occupancyType: "INVESTMENT",
    });
    await update("Reservation", { id: reservationId, price: 395_000 });
    const buyer = await convert({ leadId, estimatedClosingDate: "2031-01-01" });
    expect(buyer).toMatchObject({
      status: "FIRM",
      fullName: "Bea van Buyer",
      firstName: "Bea",
      lastName: "van Buyer",
      legalName: "Beatrix van Buyer",
      email: expect.stringContaining("@example.com"),
      phone: "+31201234567",
      company: "Buyer BV",
      source: "WALK_IN",
      leadSource: { name: "Walk-in" },
      agent: { name: "Ann Agent" },
      assignee: { id: world.max.id },
      address: { locality: "Utrecht" },
      price: "395000.00",
      financingType: "CASH",
      occupancyType: "INVESTMENT",
      estimatedClosingDate: "2031-01-01",
      purchaseDate: expect.any(String),
      unit: { id: unitId, status: "SOLD" },
      lot: null,
      reservation: { id: reservationId, status: "CONVERTED", purchase: { id: buyer.id } },
      lead: { id: leadId, status: "CONVERTED", convertedAt: expect.any(String), buyer: { id: buyer.id } },
    });
    expect(await claims(unitId)).toEqual([
      { kind: "PURCHASE", subject_type: "buyer", subject_id: buyer.id, expires_at: null },
    ]);
    // The reservation no longer expires.
    await passTime(world.owner, "400 days");
    expect(await read(buyer.id)).toMatchObject({
      unit: { status: "SOLD" },
      reservation: { status: "CONVERTED" },
    });
    const { rows } = await world.owner.query(
      "select changes -> 'status' as step from app_public.events where subject_id = any ($1) and changes ? 'status' order by id",
      [[leadId, reservationId]],
    );
    expect(rows.map((row) => row.step)).toEqual([
      ["NEW", "RESERVED"],
      ["RESERVED", "CONVERTED"],
      ["PENDING", "CONVERTED"],
    ]);
  });

  test("may have several reservations, of which one is chosen", async () => {
    const leadId = await lead();
    const [first, second] = [await unit(), await unit({ price: 500_000 })];
    await reserve({ unitId: first, leadId });
    const reservationId = await reserve({ unitId: second, leadId });
    expect(await refused({ leadId })).toMatchObject({ code: "BAD_USER_INPUT", field: "reservationId" });
    expect(await refused({ leadId, reservationId, unitId: first })).toMatchObject({
      code: "BAD_USER_INPUT",
      field: "unitId",
    });
    expect(await convert({ leadId, unitId: second })).toMatchObject({
      price: "500000.00",
      reservation: { id: reservationId },
    });
  });

  test("may buy another home", async () => {
    const leadId = await lead();
    await reserve({ unitId: await unit(), leadId });
    const other = await unit();
    expect(await convert({ leadId, unitId: other })).toMatchObject({
      unit: { id: other },
      reservation: null,
    });
  });

  test("refuses reservations of another lead, and ended ones", async () => {
    const leadId = await lead();
    const foreign = await reserve({ unitId: await unit(), leadId: await lead() });
    expect(await refused({ leadId, reservationId: foreign })).toMatchObject({
      code: "BAD_USER_INPUT",
      field: "leadId",
    });
    const over = await reserve({ unitId: await unit(), leadId });
    await update("Reservation", { id: over, status: "CANCELLED", cancellationReason: "Changed their mind" });
    expect(await refused({ leadId, reservationId: over })).toMatchObject({
      code: "CONFLICT",
      field: "reservationId",
    });
    expect(await refused({ leadId })).toMatchObject({ code: "BAD_USER_INPUT", field: "unitId" });
    const late = await reserve({ unitId: await unit(), leadId });
    await passTime(world.owner, "400 days");
    expect(await owen.refused(CONVERT, { input: { leadId, reservationId: late } })).toMatchObject({
      code: "CONFLICT",
      field: "reservationId",
    });
  });
});

describe("a lead without a reservation", () => {
  test("buys a free unit or lot at its list price or another price", async () => {
    const [unitId, lotId] = [await unit(), await lot()];
    expect(await convert({ leadId: await lead(), unitId })).toMatchObject({
      price: "400000.00",
      unit: { id: unitId, status: "SOLD" },
      reservation: null,
    });
    expect(
      await convert({ leadId: await lead(), lotId, price: "85000.5", legalName: " B. Buyer " }),
    ).toMatchObject({
      price: "85000.50",
      legalName: "B. Buyer",
      lot: { id: lotId, status: "SOLD" },
    });
  });

  test.each([
    ["nothing to buy", () => ({}), { code: "BAD_USER_INPUT", field: "unitId" }],
    [
      "both",
      async () => ({ unitId: await unit(), lotId: await lot() }),
      { code: "BAD_USER_INPUT", field: "lotId" },
    ],
    ["a price below zero", async () => ({ unitId: await unit(), price: -1 }), { code: "BAD_USER_INPUT" }],
    [
      "too many digits",
      async () => ({ unitId: await unit(), price: "1.001" }),
      { code: "BAD_USER_INPUT", field: "price" },
    ],
    [
      "a name that is too long",
      async () => ({ unitId: await unit(), legalName: "x".repeat(301) }),
      { code: "BAD_USER_INPUT", field: "legalName" },
    ],
    [
      "a unit that is not for sale",
      async () => ({ unitId: await unit({ status: "OFF_MARKET" }) }),
      { code: "INVENTORY_UNAVAILABLE", field: "unitId" },
    ],
    [
      "a unit reserved by somebody else",
      async () => {
        const unitId = await unit();
        await reserve({ unitId, leadId: await lead() });
        return { unitId };
      },
      { code: "INVENTORY_UNAVAILABLE", field: "unitId", claimedUntil: expect.any(String) },
    ],
    [
      "an unknown unit",
      () => ({ unitId: "00000000-0000-7000-8000-000000000000" }),
      { code: "NOT_FOUND", field: "unitId" },
    ],
    [
      "an unknown lot",
      () => ({ lotId: "00000000-0000-7000-8000-000000000000" }),
      { code: "NOT_FOUND", field: "lotId" },
    ],
    [
      "an unknown reservation",
      () => ({ reservationId: "00000000-0000-7000-8000-000000000000" }),
      { code: "NOT_FOUND", field: "reservationId" },
    ],
  ])("is refused %s", async (_name, input, expected) => {
    const leadId = await lead();
    expect(await refused({ leadId, ...(await input()) })).toMatchObject(expected);
    expect(await statusOf(leadId)).toBe("NEW");
  });

  test("remains in its project", async () => {
    const { id: projectId } = await createProject(owen, {
      organizationId: world.harbour.id,
      title: "Elsewhere",
    });
    const leadId = await lead();
    expect(await refused({ leadId, unitId: await unit({ projectId }) })).toMatchObject({
      code: "NOT_FOUND",
      field: "unitId",
    });
    expect(await refused({ leadId, lotId: await lot({ projectId }) })).toMatchObject({
      code: "NOT_FOUND",
      field: "lotId",
    });
    const reservationId = await reserve({ unitId: await unit({ projectId }) });
    expect(await refused({ leadId, reservationId })).toMatchObject({
      code: "NOT_FOUND",
      field: "reservationId",
    });
  });
});

describe("the purchase of a converted lead", () => {
  test.each([
    [10, false, undefined, "IN_REVIEW"],
    [10, true, undefined, "IN_REVIEW"],
    [10, true, "2020-01-01", "CONDITIONAL"],
    [10, false, "2020-01-01", "FIRM"],
    [0, true, undefined, "CONDITIONAL"],
    [0, false, undefined, "FIRM"],
  ])(
    "with %i rescission days, financing contingency %s and signed %s is %s",
    async (rescissionDays, financingContingency, purchaseDate, status) => {
      const { id: projectId } = await createProject(owen, {
        organizationId: world.harbour.id,
        title: `Place ${++serial}`,
        rescissionDays,
        timeZone: "America/Toronto",
      });
      const leadId = await lead({ projectId });
      await reserve({ unitId: await unit({ projectId }), leadId, financingContingency });
      const buyer = await convert({ leadId, purchaseDate });
      expect(buyer).toMatchObject({ status, ...(purchaseDate && { purchaseDate }) });
      expect(buyer.rescissionEndsAt !== null).toBe(status === "IN_REVIEW");
      expect((await read(buyer.id)).status).toBe(status);
    },
  );

  test.each(["HOT", "CONTACTED"])(
    "can be cancelled: the lead is %s again and can buy again",
    async (status) => {
      const leadId = await lead();
      await update("Lead", { id: leadId, status });
      const unitId = await unit();
      const reservationId = await reserve({ unitId, leadId });
      const { id } = await convert({ leadId });
      expect(
        await owen.refused(`mutation ($id: ID!) { updateLead(input: { id: $id, status: HOT }) { id } }`, {
          id: leadId,
        }),
      ).toMatchObject({ code: "INVALID_TRANSITION", from: "CONVERTED", allowedTransitions: [] });
      const { project: of } = await owen.get(
        `query ($id: ID!) { project(id: $id) { falloutReasons { id } } }`,
        { id: project },
      );
      await update("Buyer", { id, status: "CANCELLED", falloutReasonId: of.falloutReasons[0].id });
      expect(await read(id)).toMatchObject({
        status: "CANCELLED",
        unit: { id: unitId, status: "AVAILABLE" },
        reservation: { id: reservationId, status: "CONVERTED" },
        lead: { status, convertedAt: null, buyer: null },
      });
      const again = await convert({ leadId, unitId });
      expect(again).toMatchObject({
        reservation: null,
        lead: { status: "CONVERTED", buyer: { id: again.id } },
      });
    },
  );

  test("is cancelled when its reservation is refunded", async () => {
    const leadId = await lead();
    const unitId = await unit();
    const reservationId = await reserve({ unitId, leadId });
    await update("Unit", { id: unitId, price: 450_000 });
    const { id } = await convert({ leadId });
    await update("Reservation", { id: reservationId, status: "REFUNDED" });
    expect(await read(id)).toMatchObject({
      status: "CANCELLED",
      unit: { status: "AVAILABLE" },
      reservation: { status: "REFUNDED", purchase: null },
      lead: { status: "NEW", buyer: null },
    });
    const { unit: home } = await owen.get(`query ($id: ID!) { unit(id: $id) { price buyer { id } } }`, {
      id: unitId,
    });
    expect(home).toEqual({ price: "400000.00", buyer: null });
  });
});

describe("related records of the deal", () => {
  const purchaseOf = async (id: string) =>
    (
      await owen.get(
        `query ($id: ID!) { buyer(id: $id) { status netPurchasePrice netPurchasePriceBalance unit { id status }
          reservation { id status purchase { id } } lead { status } deposits { id title status } } }`,
        { id },
      )
    ).buyer;

  test("the reservation of the lead becomes the purchase by createBuyer too, and the lead stays open", async () => {
    for (const named of ["reservationId", "unitId"] as const) {
      const leadId = await lead();
      const unitId = await unit();
      const reservationId = await reserve({ unitId, leadId });
      const id = await create("createBuyer", {
        projectId: project,
        leadId,
        price: 1,
        ...(named === "unitId" ? { unitId } : { reservationId }),
      });
      expect(await purchaseOf(id)).toMatchObject({
        status: "DRAFT",
        unit: { id: unitId, status: "PENDING" },
        reservation: { id: reservationId, status: "CONVERTED", purchase: { id } },
        lead: { status: "NEW" },
      });
      expect(await claims(unitId)).toMatchObject([{ kind: "PURCHASE", subject_id: id, expires_at: null }]);
    }
  });

  test("values of an accepted offer without a reservation are copied from the negotiation", async () => {
    const leadId = await lead();
    const unitId = await unit();
    const other = await create("createNegotiation", { unitId, leadId: await lead() });
    const negotiationId = await create("createNegotiation", { unitId, leadId });
    const offerId = await create("createOffer", { negotiationId, side: "BUYER", price: "391000" });
    await create("createOfferResponse", { offerId, action: "ACCEPT" });
    const { id } = await convert({ leadId, unitId, price: 391_000 });
    expect(await claims(unitId)).toMatchObject([{ kind: "PURCHASE", subject_id: id, expires_at: null }]);
    const { negotiation } = await owen.get(`query ($id: ID!) { negotiation(id: $id) { status } }`, {
      id: other,
    });
    expect(negotiation.status).toBe("CANCELLED");
  });

  test("the deposits of the schedule are created with the purchase, lower its balance when paid, and end with it", async () => {
    const { id: projectId } = await createProject(owen, {
      organizationId: world.harbour.id,
      title: "Deposit Dunes",
    });
    for (const [title, percent] of [
      ["First", 5],
      ["Second", 10],
    ])
      await create("createDepositScheduleMilestone", { projectId, title, percent });
    const leadId = await lead({ projectId });
    const { id } = await convert({ leadId, unitId: await unit({ projectId, price: 200_000 }) });
    const [first, second] = (await purchaseOf(id)).deposits;
    expect([first.title, second.title]).toEqual(["First", "Second"]);
    for (const status of ["INVOICED", "PROCESSING"]) await update("Deposit", { id: first.id, status });
    await update("Deposit", { id: first.id, status: "PAID", amountPaid: 10_000 });
    expect(await purchaseOf(id)).toMatchObject({
      netPurchasePrice: "200000.00",
      netPurchasePriceBalance: "190000.00",
    });
    const { project: of } = await owen.get(
      `query ($id: ID!) { project(id: $id) { falloutReasons { id } } }`,
      {
        id: projectId,
      },
    );
    await update("Buyer", { id, status: "CANCELLED", falloutReasonId: of.falloutReasons[0].id });
    expect((await purchaseOf(id)).deposits.map((d: { status: string }) => d.status)).toEqual([
      "PAID",
      "CANCELLED",
    ]);
  });
});

test("refuses leads that are already buyers, lost or invisible", async () => {
  const leadId = await lead();
  const unitId = await unit();
  const { id } = await convert({ leadId, unitId });
  for (const input of [{ leadId }, { leadId, unitId }])
    expect(await refused(input)).toMatchObject({ code: "CONFLICT", field: "leadId", existingId: id });
  const lost = await lead();
  const reason = await create("createFalloutReason", { projectId: project, name: "Gone" });
  await update("Lead", { id: lost, status: "LOST", falloutReasonId: reason });
  expect(await refused({ leadId: lost, unitId: await unit() })).toMatchObject({
    code: "INVALID_TRANSITION",
    from: "LOST",
    to: "CONVERTED",
  });
  const open = { leadId: await lead(), unitId: await unit() };
  expect(await refused(open, world.olga)).toMatchObject({ code: "NOT_FOUND", field: "leadId" });
  expect(await refused(open, world.anonymous)).toMatchObject({ code: "UNAUTHENTICATED" });
});

test("a lead cannot be converted without a purchase, even in SQL", async () => {
  const leadId = await lead();
  const client = await world.owner.connect();
  try {
    await client.query("begin; set local plat.service = 'on'");
    await client.query("update app_public.leads set status = 'CONVERTED' where id = $1", [leadId]);
    await expect(client.query("commit")).rejects.toThrow("Use convertLead");
  } finally {
    await client.query("rollback");
    client.release();
  }
  expect(await statusOf(leadId)).toBe("NEW");
});

describe("concurrent requests", () => {
  test.each(["with a reservation", "of a free unit"])(
    "one lead %s is converted once by 100 concurrent requests",
    async (how) => {
      const leadId = await lead();
      const unitId = await unit();
      if (how === "with a reservation") await reserve({ unitId, leadId });
      const answers = await Promise.all(
        Array.from({ length: 100 }, () =>
          owen.ask(CONVERT, { input: { leadId, ...(how === "of a free unit" && { unitId }) } }),
        ),
      );
      const won = answers.filter((answer) => !answer.errors);
      expect(won).toHaveLength(1);
      const { id } = won[0]!.data.convertLead;
      for (const { errors } of answers.filter((answer) => answer.errors))
        expect(errors![0]!.extensions).toMatchObject({ code: "CONFLICT", existingId: id });
      const { rows } = await world.owner.query("select id from app_public.buyers where lead_id = $1", [
        leadId,
      ]);
      expect(rows).toEqual([{ id }]);
      expect(await claims(unitId)).toMatchObject([{ kind: "PURCHASE", subject_id: id }]);
    },
  );

  test("of many leads that want one unit, one gets it", async () => {
    const unitId = await unit();
    const leads = await Promise.all(Array.from({ length: 20 }, () => lead()));
    const answers = await Promise.all(
      leads.map((leadId) => owen.ask(CONVERT, { input: { leadId, unitId } })),
    );
    expect(answers.filter((answer) => !answer.errors)).toHaveLength(1);
    expect(new Set(answers.flatMap((a) => a.errors?.map((e) => e.extensions.code) ?? []))).toEqual(
      new Set(["INVENTORY_UNAVAILABLE"]),
    );
    const states = await Promise.all(leads.map(statusOf));
    expect(states.filter((status) => status === "CONVERTED")).toHaveLength(1);
    expect(states.filter((status) => status === "NEW")).toHaveLength(19);
  });

  test("conversion, cancellation and refund of one deal have the result of some serial order", async () => {
    for (let round = 0; round < 10; round += 1) {
      const leadId = await lead();
      const unitId = await unit();
      const reservationId = await reserve({ unitId, leadId });
      const answers = await Promise.all([
        owen.ask(CONVERT, { input: { leadId } }),
        owen.ask(`mutation ($id: ID!) { updateReservation(input: { id: $id, status: REFUNDED }) { id } }`, {
          id: reservationId,
        }),
        world.ada.ask(CONVERT, { input: { leadId } }),
      ]);
      const codes = answers.map((answer) => answer.errors?.[0]?.extensions.code ?? "OK");
      expect(codes).not.toContain("INTERNAL");
      expect(codes[1]).toBe("OK");
      const { unit: home } = await owen.get(`query ($id: ID!) { unit(id: $id) { status buyer { id } } }`, {
        id: unitId,
      });
      expect(home).toEqual({ status: "AVAILABLE", buyer: null });
      expect(await statusOf(leadId)).toBe("NEW");
      expect(await claims(unitId)).toEqual([]);
    }
  });
});
