/**
 * Offers: the sides take turns, answers are final, acceptance updates unit, claim and the other offers together, and
 * pending offers expire.
 */
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { passTime } from "../harness/clock.ts";
import { negotiate, type Table } from "../harness/negotiations.ts";
import { createProject } from "../harness/portfolio.ts";
import { startWorld, type World } from "../harness/world.ts";

let world: World;
let table: Table;
/** Of a project where several buyers may negotiate for one unit at a time. */
let open: Table;

beforeAll(async () => {
  world = await startWorld();
  table = negotiate(world);
  open = negotiate(
    world,
    world.owen,
    await createProject(world.owen, {
      organizationId: world.harbour.id,
      title: "Open Orchard",
      allowMultipleOffers: true,
      reservationExpiration: 24,
    }),
  );
});
afterAll(() => world.stop());

const state = (negotiationId: string) =>
  table.read(
    "negotiation",
    negotiationId,
    "status round turn closedAt currentOffer { id } acceptedOffer { id } offers { id status } unit { status } lead { status }",
  );

describe("a round of offers", () => {
  test("alternates between the sides, each countering the other, and ends with an answer", async () => {
    const negotiation = await table.negotiation();
    expect(await state(negotiation)).toMatchObject({
      status: "OPEN",
      round: 1,
      turn: null,
      currentOffer: null,
      lead: { status: "NEW" },
    });
    const first = await table.offer(negotiation, "BUYER", 380_000, { comments: "Our best." });
    expect(await state(negotiation)).toMatchObject({
      status: "ACTIVE",
      turn: "SELLER",
      currentOffer: { id: first },
      lead: { status: "NEGOTIATING" },
      unit: { status: "AVAILABLE" },
    });
    const second = await table.offer(negotiation, "SELLER", 395_000, { parentId: first });
    const third = await table.offer(negotiation, "BUYER", 390_000.5);
    const fields =
      "round sequence side kind status price currency delta manual parent { id } response { action } createdBy { id } expiresAt";
    expect(await table.read("offer", first, fields)).toEqual({
      round: 1,
      sequence: 1,
      side: "BUYER",
      kind: "OFFER",
      status: "COUNTERED",
      price: "380000.00",
      currency: "CAD",
      delta: null,
      manual: true,
      parent: null,
      response: null,
      createdBy: { id: world.owen.id },
      expiresAt: expect.any(String),
    });
    expect(await table.read("offer", second, fields)).toMatchObject({
      sequence: 2,
      kind: "COUNTER_OFFER",
      status: "COUNTERED",
      delta: "15000.00",
      manual: false,
      parent: { id: first },
    });
    expect(await table.read("offer", third, fields)).toMatchObject({
      sequence: 3,
      status: "PENDING",
      delta: "-4999.50",
      parent: { id: second },
    });
    const response = await table.answer(third, "REJECT");
    expect(
      await table.read(
        "offerResponse",
        response,
        "action side manual respondedBy { id } offer { id status response { id } }",
      ),
    ).toEqual({
      action: "REJECT",
      side: "SELLER",
      manual: false,
      respondedBy: { id: world.owen.id },
      offer: { id: third, status: "REJECTED", response: { id: response } },
    });
    expect(await state(negotiation)).toMatchObject({
      status: "REJECTED",
      turn: null,
      currentOffer: null,
      closedAt: expect.any(String),
      lead: { status: "NEW" },
    });

    // Either side can begin the next round.
    const again = await table.offer(negotiation, "SELLER", 392_000);
    expect(await table.read("offer", again, "round sequence kind delta")).toEqual({
      round: 2,
      sequence: 1,
      kind: "OFFER",
      delta: "1999.50",
    });
    expect(await state(negotiation)).toMatchObject({
      status: "ACTIVE",
      round: 2,
      turn: "BUYER",
      closedAt: null,
    });
  });

  test("an offer is valid for the time of the negotiation, or for a given one", async () => {
    const negotiation = await table.negotiation({ offerExpirationHours: 5 });
    const hours = async (id: string) => {
      const { insertedAt, expiresAt } = await table.read("offer", id, "insertedAt expiresAt");
      return (Date.parse(expiresAt) - Date.parse(insertedAt)) / 3_600_000;
    };
    expect(await hours(await table.offer(negotiation, "BUYER", 1))).toBe(5);
    const expiresAt = new Date(Date.now() + 7_200_000).toISOString();
    const offer = await table.offer(negotiation, "SELLER", 2, { expiresAt });
    expect(await hours(offer)).toBeCloseTo(2, 1);
  });

  test("each step writes an event with its name", async () => {
    const negotiation = await table.negotiation();
    const first = await table.offer(negotiation, "BUYER", 100);
    const second = await table.offer(negotiation, "SELLER", 200);
    await table.answer(second, "ACCEPT");
    const names = async (field: string, id: string) =>
      (await table.read(field, id, "events { name }")).events.map((e: { name: string }) => e.name).reverse();
    expect(await names("offer", first)).toEqual(["offer.created", "offer.countered"]);
    expect(await names("offer", second)).toEqual(["offer.created", "offer.accepted"]);
    expect(await names("negotiation", negotiation)).toEqual([
      "negotiation.created",
      "negotiation.status_changed",
      "negotiation.updated",
      "negotiation.status_changed",
    ]);
  });

  test("a withdrawn offer leaves the negotiation open for the next round", async () => {
    const negotiation = await table.negotiation();
    const offer = await table.offer(negotiation, "BUYER", 100);
    const { withdrawOffer } = await world.owen.get(
      `mutation ($id: ID!) { withdrawOffer(input: { id: $id }) { status withdrawnAt } }`,
      { id: offer },
    );
    expect(withdrawOffer).toEqual({ status: "WITHDRAWN", withdrawnAt: expect.any(String) });
    expect(await state(negotiation)).toMatchObject({
      status: "OPEN",
      turn: null,
      closedAt: null,
      lead: { status: "NEW" },
    });
    const next = await table.offer(negotiation, "BUYER", 110);
    expect(await table.read("offer", next, "round sequence")).toEqual({ round: 2, sequence: 1 });
  });
});

describe("acceptance", () => {
  test("updates unit, claim and negotiation, and rejects other pending offers for the unit", async () => {
    const unitId = await open.unit();
    const [won, lost, idle] = [
      await open.negotiation({ unitId }),
      await open.negotiation({ unitId }),
      await open.negotiation({ unitId }),
    ];
    const offer = await open.offer(won!, "BUYER", 410_000);
    const other = await open.offer(lost!, "BUYER", 405_000);
    await open.answer(offer, "ACCEPT");
    expect(await state(won!)).toMatchObject({
      status: "ACCEPTED",
      turn: null,
      currentOffer: null,
      acceptedOffer: { id: offer },
      closedAt: expect.any(String),
      unit: { status: "PENDING" },
      lead: { status: "NEW" },
    });
    expect(await state(lost!)).toMatchObject({
      status: "REJECTED",
      offers: [{ id: other, status: "REJECTED" }],
      lead: { status: "NEW" },
    });
    expect(await state(idle!)).toMatchObject({ status: "OPEN" });
    expect(await open.read("offer", other, "response { id }")).toEqual({ response: null });
    const { rows } = await world.owner.query(
      `select kind, subject_type, subject_id, expires_at - claimed_at as lasts from app_hidden.claims where unit_id = $1 and released_at is null`,
      [unitId],
    );
    expect(rows).toEqual([
      { kind: "RESERVATION", subject_type: "negotiation", subject_id: won, lasts: { days: 1 } },
    ]);
    // Nobody else can continue for this unit.
    expect(
      await open.refused("createOffer", { negotiationId: idle, side: "BUYER", price: "500000" }),
    ).toMatchObject({
      code: "INVENTORY_UNAVAILABLE",
      field: "negotiationId",
      claimedUntil: expect.any(String),
    });
    expect(await open.refused("createNegotiation", { unitId, leadId: await open.lead() })).toMatchObject({
      code: "INVENTORY_UNAVAILABLE",
      field: "unitId",
    });
  });

  test("without a purchase expires with its claim: the unit is for sale again at its price", async () => {
    const unitId = await open.unit();
    const offer = await open.offer(await open.negotiation({ unitId }), "BUYER", 410_000);
    await open.answer(offer, "ACCEPT");
    await passTime(world.owner, "25 hours");
    expect(await open.read("unit", unitId, "status price")).toEqual({
      status: "AVAILABLE",
      price: "400000.00",
    });
    expect(await open.read("offer", offer, "status")).toEqual({ status: "ACCEPTED" });
    // No longer in force, so another offer can be accepted.
    const next = await open.offer(await open.negotiation({ unitId }), "BUYER", 400_000);
    await open.answer(next, "ACCEPT");
    expect(await open.read("unit", unitId, "status")).toEqual({ status: "PENDING" });
  });

  test("sets the price of the purchase, with or without a reservation", async () => {
    const unitId = await open.unit();
    const leadId = await open.lead();
    const offer = await open.offer(await open.negotiation({ unitId, leadId }), "SELLER", 391_000);
    await open.answer(offer, "ACCEPT");
    const { convertLead } = await world.owen.get(
      `mutation ($input: ConvertLeadInput!) { convertLead(input: $input) { price acceptedOffer { id } unit { id } } }`,
      { input: { leadId, unitId } },
    );
    expect(convertLead).toEqual({
      price: "391000.00",
      acceptedOffer: { id: offer },
      unit: { id: unitId },
    });
  });

  test("a unit cannot have two accepted offers in force, even by SQL", async () => {
    const unitId = await open.unit();
    const [first, second] = [await open.negotiation({ unitId }), await open.negotiation({ unitId })];
    const offer = await open.offer(first!, "BUYER", 1);
    const other = await open.offer(second!, "BUYER", 1);
    await open.answer(offer, "ACCEPT");
    const write = world.owner.query(
      `insert into app_public.offers (organization_id, project_id, negotiation_id, round, sequence, side, kind, status, price, currency, expires_at, unit_id, claim_id)
       select organization_id, project_id, negotiation_id, 9, 1, side, kind, 'ACCEPTED', price, currency, expires_at, unit_id,
         (select claim_id from app_public.offers where id = $2) from app_public.offers where id = $1`,
      [other, offer],
    );
    await expect(write).rejects.toThrow("claimed");
    const forced = (async () => {
      const client = await world.owner.connect();
      try {
        await client.query("begin; set local session_replication_role = replica");
        await client.query(
          "update app_public.offers set status = 'ACCEPTED', claim_id = (select claim_id from app_public.offers where id = $2) where id = $1",
          [other, offer],
        );
      } finally {
        await client.query("rollback");
        client.release();
      }
    })();
    await expect(forced).rejects.toThrow("offers_accepted");
  });
});

describe("reservations", () => {
  const reserve = async (input: Record<string, unknown> = {}) => {
    const unitId = await table.unit();
    const leadId = await table.lead();
    const id = await table.create("createReservation", { unitId, leadId, acceptedTerms: true, ...input });
    return { unitId, leadId, id };
  };
  const read = (id: string) =>
    table.read("reservation", id, "status price listPriceSnapshot expiresAt negotiation { id status }");
  const claimed = async (unitId: string) =>
    (
      await world.owner.query(
        "select kind, subject_type, expires_at from app_hidden.claims where unit_id = $1 and released_at is null",
        [unitId],
      )
    ).rows;

  test("names the negotiating party, pauses while an offer is pending, and resumes when it ends", async () => {
    const { unitId, leadId, id } = await reserve({ expiration: 10 });
    const negotiation = await table.negotiation({ unitId, reservationId: id });
    expect(await table.read("negotiation", negotiation, "lead { id } reservation { id }")).toEqual({
      lead: { id: leadId },
      reservation: { id },
    });
    const offer = await table.offer(negotiation, "BUYER", 390_000, {
      expiresAt: new Date(Date.now() + 20 * 3_600_000).toISOString(),
    });
    expect(await read(id)).toMatchObject({ expiresAt: null, negotiation: { id: negotiation } });
    await passTime(world.owner, "15 hours");
    expect(await read(id)).toMatchObject({ status: "PENDING", expiresAt: null });
    expect(await table.read("lead", leadId, "status")).toEqual({ status: "RESERVED" });
    await table.answer(offer, "REJECT");
    const { expiresAt } = await read(id);
    expect((Date.parse(expiresAt) - Date.now()) / 3_600_000).toBeCloseTo(10, 1);
    expect(await claimed(unitId)).toEqual([
      { kind: "RESERVATION", subject_type: "reservation", expires_at: new Date(expiresAt) },
    ]);
  });

  test("is found if only its lead is given", async () => {
    const { unitId, leadId, id } = await reserve();
    const negotiation = await table.negotiation({ unitId, leadId });
    expect(await table.read("negotiation", negotiation, "reservation { id }")).toEqual({
      reservation: { id },
    });
  });

  test("counts its hours from the expiry of the offer, not from its processing", async () => {
    const { unitId, leadId, id } = await reserve({ expiration: 10 });
    const negotiation = await table.negotiation({ unitId, leadId, offerExpirationHours: 5 });
    await table.offer(negotiation, "BUYER", 390_000);
    await passTime(world.owner, "14 hours");
    const { status, expiresAt } = await read(id);
    expect(status).toBe("PENDING");
    expect((Date.parse(expiresAt) - Date.now()) / 3_600_000).toBeCloseTo(1, 1);
    // The same negotiation and another one, at 15 hours and later.
    await passTime(world.owner, "2 hours");
    expect(await read(id)).toMatchObject({ status: "EXPIRED", negotiation: { status: "EXPIRED" } });
    expect(await table.read("unit", unitId, "status")).toEqual({ status: "AVAILABLE" });
  });

  test("has the accepted price and counts from the acceptance; its list price is unchanged", async () => {
    const { unitId, leadId, id } = await reserve({ expiration: 10 });
    await passTime(world.owner, "8 hours");
    const negotiation = await table.negotiation({ unitId, leadId });
    await table.answer(await table.offer(negotiation, "SELLER", 385_000.25), "ACCEPT");
    const { expiresAt, ...reservation } = await read(id);
    expect(reservation).toEqual({
      status: "PENDING",
      price: "385000.25",
      listPriceSnapshot: "400000.00",
      negotiation: { id: negotiation, status: "ACCEPTED" },
    });
    expect((Date.parse(expiresAt) - Date.now()) / 3_600_000).toBeCloseTo(10, 1);
    expect(await claimed(unitId)).toEqual([
      { kind: "RESERVATION", subject_type: "reservation", expires_at: new Date(expiresAt) },
    ]);
    expect(await table.read("unit", unitId, "status price")).toEqual({
      status: "PENDING",
      price: "400000.00",
    });
    const { convertLead: buyer } = await world.owen.get(
      `mutation ($id: ID!) { convertLead(input: { leadId: $id }) { id price acceptedOffer { price } negotiations { id buyer { id } } } }`,
      { id: leadId },
    );
    expect(buyer).toMatchObject({
      price: "385000.25",
      acceptedOffer: { price: "385000.25" },
      negotiations: [{ id: negotiation, buyer: { id: buyer.id } }],
    });
  });

  test("cancels its negotiation when it is cancelled or refunded, before and after the acceptance", async () => {
    for (const status of ["CANCELLED", "REFUNDED"]) {
      const { unitId, leadId, id } = await reserve();
      const negotiation = await table.negotiation({ unitId, leadId });
      const offer = await table.offer(negotiation, "BUYER", 390_000);
      await table.create("updateReservation", { id, status, cancellationReason: "Changed their mind" });
      expect(await table.read("offer", offer, "status negotiation { status }")).toEqual({
        status: "WITHDRAWN",
        negotiation: { status: "CANCELLED" },
      });
      expect(await table.read("unit", unitId, "status price")).toEqual({
        status: "AVAILABLE",
        price: "400000.00",
      });
      expect(await table.read("lead", leadId, "status")).toEqual({ status: "NEW" });
    }
    const { unitId, leadId, id } = await reserve();
    const accepted = await table.offer(await table.negotiation({ unitId, leadId }), "BUYER", 390_000);
    await table.answer(accepted, "ACCEPT");
    await table.create("updateReservation", { id, status: "REFUNDED" });
    expect(await table.read("unit", unitId, "status")).toEqual({ status: "AVAILABLE" });
    expect(await table.read("offer", accepted, "status")).toEqual({ status: "ACCEPTED" });
    // No longer in force: the same person may begin again.
    const again = await table.offer(await table.negotiation({ unitId, leadId }), "BUYER", 380_000);
    await table.answer(again, "ACCEPT");
    expect(await table.read("unit", unitId, "status")).toEqual({ status: "PENDING" });
  });

  test("of another party blocks the unit for everybody else", async () => {
    const unitId = await open.unit();
    const waiting = await open.negotiation({ unitId });
    const offer = await open.offer(waiting, "BUYER", 500_000);
    await open.create("createReservation", { unitId, leadId: await open.lead(), acceptedTerms: true });
    expect(await open.refused("createOfferResponse", { offerId: offer, action: "ACCEPT" })).toMatchObject({
      code: "INVENTORY_UNAVAILABLE",
      field: "offerId",
      claimedUntil: expect.any(String),
    });
    expect(
      await open.refused("createOffer", { negotiationId: waiting, side: "SELLER", price: "1" }),
    ).toMatchObject({ code: "INVENTORY_UNAVAILABLE" });
    expect(await open.read("offer", offer, "status")).toEqual({ status: "PENDING" });
    await open.answer(offer, "REJECT");
    expect(await open.read("negotiation", waiting, "status")).toEqual({ status: "REJECTED" });
  });

  test("of another unit or party, or an ended one, cannot be negotiated", async () => {
    const { unitId, id } = await reserve();
    const refused = (input: Record<string, unknown>) => table.refused("createNegotiation", input);
    expect(await refused({ unitId: await table.unit(), reservationId: id })).toMatchObject({
      code: "BAD_USER_INPUT",
      field: "reservationId",
    });
    expect(await refused({ unitId, reservationId: id, leadId: await table.lead() })).toMatchObject({
      code: "BAD_USER_INPUT",
      field: "reservationId",
    });
    await table.create("updateReservation", { id, status: "CANCELLED", cancellationReason: "Over" });
    expect(await refused({ unitId, reservationId: id })).toMatchObject({
      code: "CONFLICT",
      field: "reservationId",
    });
  });
});

test("deposits of the buyer belong to the accepted offer, and payments reduce the balance", async () => {
  const unitId = await table.unit();
  const leadId = await table.lead();
  const before = await table.create("createDeposit", { leadId, title: "Earnest money", amount: "5000" });
  const offer = await table.offer(await table.negotiation({ unitId, leadId }), "BUYER", 390_000, {
    amountFinanced: "312000",
    earnestMoney: "5000",
  });
  await table.answer(offer, "ACCEPT");
  const after = await table.create("createDeposit", { leadId, title: "Second", amount: "10000" });
  await table.create("updateDeposit", { id: before, amountPaid: "5000" });
  const fields = `offer { id } deposits { id offer { id } } price totalContractPrice purchasePriceBalance loanToValue
    earnestMoney legalName manual unit { id } lead { id } __typename`;
  const { offers } = await world.owen.get(
    `query ($unit: ID!) { offers(filter: { unitIds: [$unit] }) { ${fields} } }`,
    { unit: unitId },
  );
  expect(offers).toEqual([
    {
      __typename: "BindingOffer",
      offer: { id: offer },
      deposits: [
        { id: before, offer: { id: offer } },
        { id: after, offer: { id: offer } },
      ],
      price: "390000.00",
      totalContractPrice: "390000.00",
      purchasePriceBalance: "385000.00",
      loanToValue: "80.00",
      earnestMoney: "5000.00",
      legalName: expect.stringContaining("Lena Lead"),
      manual: true,
      unit: { id: unitId },
      lead: { id: leadId },
    },
  ]);
  expect(
    await table.refused("createDeposit", {
      leadId: await table.lead(),
      offerId: offer,
      title: "Not theirs",
      amount: "1",
    }),
  ).toMatchObject({ code: "BAD_USER_INPUT", field: "offerId" });
});

test("a list of offers with related records takes as many statements as one offer", async () => {
  const fields = `{ id totalContractPrice purchasePriceBalance unit { title } lead { name } buyer { id } reservation { id }
    negotiation { status } project { title } offer { kind createdBy { fullName } response { action } } deposits { id } }`;
  const count = async (first: number) =>
    (await world.statements(() => world.owen.get(`query { offers(first: ${first}) ${fields} }`))).count;
  expect(await count(1)).toBe(1);
  expect(await count(50)).toBe(1);
});

test("repeating a request under its key creates one offer", async () => {
  const negotiationId = await table.negotiation();
  const input = { negotiationId, side: "BUYER", price: "100", idempotencyKey: "an offer" };
  const make = () =>
    world.owen.get(`mutation ($input: CreateOfferInput!) { createOffer(input: $input) { id } }`, { input });
  const made = await Promise.all(Array.from({ length: 10 }, make));
  expect(new Set(made.map((m) => m.createOffer.id)).size).toBe(1);
  expect(await state(negotiationId)).toMatchObject({ offers: [{ status: "PENDING" }] });
});

test("offers of the portfolio are listed newest first, by side, price, status and origin", async () => {
  const negotiation = await table.negotiation();
  const first = await table.offer(negotiation, "BUYER", 777_001);
  const second = await table.offer(negotiation, "SELLER", 777_003);
  const list = async (filter: Record<string, unknown>) =>
    await world.owen.get(
      `query ($filter: OffersFilter) { offers(filter: $filter) { id }
          offersConnection(filter: $filter, orderBy: [INSERTED_AT_ASC]) { totalCount nodes { id } aggregates { average { price } } } }`,
      { filter: { price: { min: 777_001, max: 777_003 }, ...filter } },
    );
  const ids = async (filter: Record<string, unknown>) =>
    (await list(filter)).offers.map((o: { id: string }) => o.id);
  expect(await ids({})).toEqual([second, first]);
  expect(await ids({ side: "BUYER" })).toEqual([first]);
  expect(await ids({ manual: false })).toEqual([second]);
  expect(await ids({ status: ["COUNTERED", "REJECTED"] })).toEqual([first]);
  expect(await ids({ projectIds: [world.project.slug] })).toEqual([second, first]);
  expect(await ids({ projectIds: [world.project.id], price: { min: 777_002 } })).toEqual([second]);
  expect(await ids({ insertedAt: { to: "2020-01-01T00:00:00Z" } })).toEqual([]);
  expect((await list({})).offersConnection).toEqual({
    totalCount: 2,
    nodes: [{ id: first }, { id: second }],
    aggregates: { average: { price: expect.stringMatching(/^777002/) } },
  });
});

describe("expiry", () => {
  test("an unanswered offer is expired in every read, without a job", async () => {
    const negotiation = await table.negotiation({ offerExpirationHours: 2 });
    const offer = await table.offer(negotiation, "BUYER", 380_000);
    await passTime(world.owner, "1 hour");
    expect(await state(negotiation)).toMatchObject({ status: "ACTIVE", offers: [{ status: "PENDING" }] });
    await passTime(world.owner, "61 minutes");
    expect(await table.refused("createOfferResponse", { offerId: offer, action: "ACCEPT" })).toMatchObject({
      code: "INVALID_TRANSITION",
      from: "EXPIRED",
      to: "ACCEPTED",
      allowedTransitions: [],
    });
    expect(await state(negotiation)).toMatchObject({
      status: "EXPIRED",
      turn: null,
      offers: [{ id: offer, status: "EXPIRED" }],
      lead: { status: "NEW" },
    });
    const next = await table.offer(negotiation, "BUYER", 381_000);
    expect(await table.read("offer", next, "round sequence")).toEqual({ round: 2, sequence: 1 });
  });
});

test("an offer expires in an archived project too", async () => {
  const project = await createProject(world.owen, {
    organizationId: world.harbour.id,
    title: "Archived Acre",
  });
  const there = negotiate(world, world.owen, project);
  const leadId = await there.lead();
  const negotiation = await there.negotiation({ leadId });
  const offer = await there.offer(negotiation, "BUYER", 100);
  await there.create("updateProject", { id: project.id, status: "ARCHIVED" });
  await passTime(world.owner, "3 days");
  expect(await there.read("offer", offer, "status")).toEqual({ status: "EXPIRED" });
  expect(await there.read("lead", leadId, "status")).toEqual({ status: "NEW" });
});

describe("refusals", () => {
  const refusals = async (work: () => Promise<Record<string, any>>) => {
    const count = async () =>
      (
        await world.owner.query(
          "select (select count(*) from app_public.offers) as offers, (select count(*) from app_public.events) as events",
        )
      ).rows[0];
    const before = await count();
    const refusal = await work();
    expect(await count()).toEqual(before);
    return refusal;
  };

  test("an offer out of turn, of a side with a pending one, or countering one that is not pending", async () => {
    const negotiation = await table.negotiation();
    const first = await table.offer(negotiation, "BUYER", 100);
    const refused = (input: Record<string, unknown>) =>
      refusals(() =>
        table.refused("createOffer", { negotiationId: negotiation, side: "SELLER", price: "1", ...input }),
      );
    expect(await refused({ side: "BUYER" })).toMatchObject({
      code: "CONFLICT",
      field: "side",
      existingId: first,
    });
    const second = await table.offer(negotiation, "SELLER", 200);
    expect(await refused({ side: "BUYER", parentId: first })).toMatchObject({
      code: "CONFLICT",
      field: "parentId",
      existingId: second,
    });
    await table.answer(second, "REJECT");
    expect(await refused({ side: "BUYER", parentId: second })).toMatchObject({
      code: "CONFLICT",
      field: "parentId",
    });
  });

  test("an offer that refers to one of another negotiation, like an unknown one", async () => {
    const elsewhere = await table.offer(await table.negotiation(), "SELLER", 100);
    const negotiationId = await table.negotiation();
    const answers = [];
    for (const parentId of [elsewhere, "00000000-0000-7000-8000-000000000000"]) {
      const { requestId: _, ...refusal } = await refusals(() =>
        table.refused("createOffer", { negotiationId, side: "BUYER", price: "1", parentId }),
      );
      answers.push(refusal);
    }
    expect(answers[0]).toMatchObject({ code: "NOT_FOUND", field: "parentId" });
    expect(answers[1]).toEqual(answers[0]);
  });

  test("an offer in a negotiation that was accepted or cancelled", async () => {
    const accepted = await table.negotiation();
    await table.answer(await table.offer(accepted, "BUYER", 100), "ACCEPT");
    const cancelled = await table.negotiation();
    await world.owen.get(
      `mutation ($id: ID!) { updateNegotiation(input: { id: $id, status: CANCELLED, cancellationReason: "No." }) { id } }`,
      { id: cancelled },
    );
    for (const [negotiationId, from] of [
      [accepted, "ACCEPTED"],
      [cancelled, "CANCELLED"],
    ])
      expect(
        await refusals(() => table.refused("createOffer", { negotiationId, side: "BUYER", price: "1" })),
      ).toMatchObject({ code: "INVALID_TRANSITION", from, allowedTransitions: [], field: "negotiationId" });
  });

  test("invalid values", async () => {
    const negotiation = await table.negotiation();
    for (const [input, field] of [
      [{ price: "-1" }, "price"],
      [{ price: "100.001" }, "price"],
      [{ earnestMoney: "-0.01" }, "earnestMoney"],
      [{ amountFinanced: "0.001" }, "amountFinanced"],
      [{ requestedCredits: "-5" }, "requestedCredits"],
      [{ expiresAt: "2020-01-01T00:00:00Z" }, "expiresAt"],
      [{ expiresAt: "2199-01-01T00:00:00Z" }, "expiresAt"],
      [{ parentId: "nothing" }, "parentId"],
    ] as const)
      expect(
        await refusals(() =>
          table.refused("createOffer", { negotiationId: negotiation, side: "BUYER", price: "1", ...input }),
        ),
      ).toMatchObject({ code: "BAD_USER_INPUT", field });
    const nobody = "00000000-0000-7000-8000-000000000000";
    expect(
      await table.refused("createOffer", { negotiationId: nobody, side: "BUYER", price: "1" }),
    ).toMatchObject({ code: "NOT_FOUND", field: "negotiationId" });
    expect(await table.refused("createOfferResponse", { offerId: nobody, action: "ACCEPT" })).toMatchObject({
      code: "NOT_FOUND",
      field: "offerId",
    });
    expect(await table.refused("withdrawOffer", { id: nobody })).toMatchObject({
      code: "NOT_FOUND",
      field: "id",
    });
  });

  test("an answer to an answered offer, a second withdrawal, a reason that does not apply", async () => {
    const negotiation = await table.negotiation();
    const offer = await table.offer(negotiation, "BUYER", 100);
    const { project } = await world.owen.get(
      `query ($id: ID!) { project(id: $id) { falloutReasons { id } } }`,
      {
        id: world.project.id,
      },
    );
    const reason = project.falloutReasons[0].id;
    const forLeads = await table.create("createFalloutReason", {
      projectId: world.project.id,
      name: "Only leads",
      appliesTo: ["LEAD"],
    });
    const answer = (input: Record<string, unknown>) =>
      refusals(() => table.refused("createOfferResponse", { offerId: offer, ...input }));
    expect(await answer({ action: "ACCEPT", falloutReasonId: reason })).toMatchObject({
      code: "BAD_USER_INPUT",
      field: "falloutReasonId",
    });
    expect(await answer({ action: "REJECT", falloutReasonId: forLeads })).toMatchObject({
      code: "BAD_USER_INPUT",
      field: "falloutReasonId",
    });
    const { createOfferResponse } = await world.owen.get(
      `mutation ($input: CreateOfferResponseInput!) { createOfferResponse(input: $input) { comments falloutReason { id } } }`,
      { input: { offerId: offer, action: "REJECT", falloutReasonId: reason, comments: " Too low. " } },
    );
    expect(createOfferResponse).toEqual({ comments: "Too low.", falloutReason: { id: reason } });
    for (const [action, to] of [
      ["ACCEPT", "ACCEPTED"],
      ["REJECT", "REJECTED"],
    ])
      expect(await answer({ action })).toMatchObject({
        code: "INVALID_TRANSITION",
        from: "REJECTED",
        to,
        allowedTransitions: [],
      });
    expect(await refusals(() => table.refused("withdrawOffer", { id: offer }))).toMatchObject({
      code: "INVALID_TRANSITION",
      from: "REJECTED",
      to: "WITHDRAWN",
    });
  });

  test("a second negotiation with a pending offer, if the project allows one at a time", async () => {
    const unitId = await table.unit();
    const [first, second] = [await table.negotiation({ unitId }), await table.negotiation({ unitId })];
    await table.offer(first!, "BUYER", 100);
    expect(
      await refusals(() =>
        table.refused("createOffer", { negotiationId: second, side: "BUYER", price: "1" }),
      ),
    ).toMatchObject({ code: "CONFLICT", field: "negotiationId" });
  });

  test("changes and deletions of offers and answers", async () => {
    const negotiation = await table.negotiation();
    const offer = await table.offer(negotiation, "BUYER", 100);
    await table.answer(offer, "REJECT");
    for (const statement of [
      "update app_public.offers set price = 1",
      "update app_public.offers set expires_at = now()",
      "delete from app_public.offers",
      "truncate app_public.offers cascade",
      "update app_public.offer_responses set action = 'ACCEPT'",
      "delete from app_public.offer_responses",
    ])
      await expect(world.owner.query(statement)).rejects.toThrow("neither changed nor deleted");
  });
});

test("only the service makes the listed transitions of an offer, and all others are refused", async () => {
  const offer = await table.offer(await table.negotiation(), "BUYER", 100);
  const states = ["PENDING", "COUNTERED", "ACCEPTED", "REJECTED", "EXPIRED", "WITHDRAWN"];
  const client = await world.owner.connect();
  try {
    for (const from of states)
      for (const to of states) {
        if (from === to) continue;
        for (const service of ["", "on"]) {
          await client.query("begin");
          await client.query("set local session_replication_role = replica");
          await client.query("update app_public.offers set status = $2 where id = $1", [offer, from]);
          await client.query("set local session_replication_role = origin");
          await client.query("select set_config('plat.service', $1, true)", [service]);
          const step = client
            .query("update app_public.offers set status = $2 where id = $1", [offer, to])
            .then(
              () => "passed",
              (error) => JSON.parse(error.detail),
            );
          const refusal = { code: "INVALID_TRANSITION", field: "status", from, to, allowedTransitions: [] };
          expect(await step).toEqual(from === "PENDING" && service ? "passed" : refusal);
          await client.query("rollback");
        }
      }
  } finally {
    client.release();
  }
});

describe("100 concurrent requests", () => {
  test("that accept and reject one offer: one answer", async () => {
    const negotiation = await table.negotiation();
    const offer = await table.offer(negotiation, "BUYER", 390_000);
    const answers = await Promise.all(
      Array.from({ length: 100 }, (_, i) =>
        world.owen.ask(
          `mutation ($input: CreateOfferResponseInput!) { createOfferResponse(input: $input) { id action } }`,
          { input: { offerId: offer, action: i % 2 ? "ACCEPT" : "REJECT" } },
        ),
      ),
    );
    const given = answers.filter((a) => a.data?.createOfferResponse);
    expect(given).toHaveLength(1);
    expect(new Set(answers.flatMap((a) => a.errors ?? []).map((e) => e.extensions.code))).toEqual(
      new Set(["INVALID_TRANSITION"]),
    );
    const final = given[0]!.data.createOfferResponse.action === "ACCEPT" ? "ACCEPTED" : "REJECTED";
    expect(await state(negotiation)).toMatchObject({ status: final, offers: [{ status: final }] });
  });

  test("that make an offer for one side: one is pending", async () => {
    const negotiation = await table.negotiation();
    const answers = await Promise.all(
      Array.from({ length: 100 }, (_, i) =>
        world.owen.ask(`mutation ($input: CreateOfferInput!) { createOffer(input: $input) { id } }`, {
          input: { negotiationId: negotiation, side: "BUYER", price: String(i) },
        }),
      ),
    );
    expect(answers.filter((a) => a.data?.createOffer)).toHaveLength(1);
    expect(new Set(answers.flatMap((a) => a.errors ?? []).map((e) => e.extensions.code))).toEqual(
      new Set(["CONFLICT"]),
    );
  });

  test("that accept offers of several negotiations for one unit: one is accepted, the others are rejected", async () => {
    const unitId = await open.unit();
    const offers: string[] = [];
    for (let i = 0; i < 20; i++)
      offers.push(await open.offer(await open.negotiation({ unitId }), "BUYER", 400_000 + i));
    const answers = await Promise.all(
      Array.from({ length: 100 }, (_, i) =>
        world.owen.ask(
          `mutation ($input: CreateOfferResponseInput!) { createOfferResponse(input: $input) { id } }`,
          { input: { offerId: offers[i % 20], action: "ACCEPT" } },
        ),
      ),
    );
    expect(answers.filter((a) => a.data?.createOfferResponse)).toHaveLength(1);
    expect(new Set(answers.flatMap((a) => a.errors ?? []).map((e) => e.extensions.code))).toEqual(
      new Set(["INVALID_TRANSITION"]),
    );
    const { rows } = await world.owner.query(
      "select status, count(*)::int from app_public.offers where unit_id = $1 group by 1 order by 1",
      [unitId],
    );
    expect(rows).toEqual([
      { status: "ACCEPTED", count: 1 },
      { status: "REJECTED", count: 19 },
    ]);
  });

  test("concurrent acceptances on several units of the same people do not deadlock", async () => {
    const leads = await Promise.all(Array.from({ length: 5 }, () => open.lead()));
    const units = await Promise.all(Array.from({ length: 10 }, () => open.unit()));
    const offers: string[] = [];
    for (const [i, unitId] of units.entries())
      // In a different order of people on each unit.
      for (const leadId of leads.toSorted(() => (i % 2 ? 1 : -1)))
        offers.push(await open.offer(await open.negotiation({ unitId, leadId }), "BUYER", 400_000));
    const answers = await Promise.all(
      offers.map((offerId) =>
        world.owen.ask(
          `mutation ($input: CreateOfferResponseInput!) { createOfferResponse(input: $input) { id } }`,
          { input: { offerId, action: "ACCEPT" } },
        ),
      ),
    );
    expect(answers.filter((a) => a.data?.createOfferResponse)).toHaveLength(units.length);
    expect(new Set(answers.flatMap((a) => a.errors ?? []).map((e) => e.extensions.code))).toEqual(
      new Set(["INVALID_TRANSITION"]),
    );
    for (const id of leads) expect(await open.read("lead", id, "status")).toEqual({ status: "NEW" });
  });
});
