/** Reservations: effects of creating, confirming, extending, cancelling, refunding and expiring. */
import { get } from "node:https";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import type { Person } from "../harness/api.ts";
import { passTime } from "../harness/clock.ts";
import { createLead, createProject, startPortfolio, type Portfolio } from "../harness/portfolio.ts";
import { createIn, type Create } from "../harness/records.ts";
import { expectUnchanged } from "../harness/expectUnchanged.ts";

let world: Portfolio;
let owen: Person;
let create: Create;
/** A private project with fees, and another of the same organization. */
let project: { id: string };
let other: { id: string };
let serial = 0;

beforeAll(async () => {
  world = await startPortfolio();
  owen = world.owen;
  create = createIn(owen);
  project = await createProject(owen, {
    organizationId: world.harbour.id,
    title: "Reserve Row",
    reservationFee: 500,
    cancellationFee: "250.00",
    reservationExpiration: 72,
  });
  other = await createProject(owen, { organizationId: world.harbour.id, title: "Other Oaks" });
});
afterAll(() => world.stop());

const unit = (input: Record<string, unknown> = {}) =>
  create("createUnit", {
    projectId: project.id,
    title: `Home ${++serial}`,
    status: "AVAILABLE",
    price: 400_000,
    sqft: 1000,
    ...input,
  });
const lot = (input: Record<string, unknown> = {}) =>
  create("createLot", {
    projectId: project.id,
    number: `L${++serial}`,
    status: "AVAILABLE",
    price: 90_000,
    ...input,
  });
const lead = async (input: Record<string, unknown> = {}) =>
  (await createLead(owen, { projectId: project.id, name: `Lena ${++serial}`, ...input })).id;

const reason = () => create("createFalloutReason", { projectId: project.id, name: `Reason ${++serial}` });

const fields = `id number status statusChangedAt price listPriceSnapshot premiumSnapshot currency totalContractPrice ppsf fee
  cancellationFee expiration expiresAt extendedCount acceptedTerms acceptedTermsAt executedAt cancelledAt cancellationReason
  refundedAt notes version unit { id status price } lot { id status price } lead { id status } user { id } assignee { id }
  buyer { id } project { id } falloutReason { id } allowedTransitions { to allowed blockedBy } insertedAt`;
const creation = `mutation ($input: CreateReservationInput!) { createReservation(input: $input) { ${fields} } }`;
const change = `mutation ($input: UpdateReservationInput!) { updateReservation(input: $input) { ${fields} } }`;
const reserve = async (input: Record<string, unknown>, person = owen) =>
  (await person.get(creation, { input: { acceptedTerms: true, ...input } })).createReservation;
const update = async (input: Record<string, unknown>, person = owen) =>
  (await person.get(change, { input })).updateReservation;
const refuseReserve = (input: Record<string, unknown>, person = owen) =>
  expectUnchanged(world, () => person.refused(creation, { input: { acceptedTerms: true, ...input } }));
const refuseUpdate = (input: Record<string, unknown>, person = owen) =>
  expectUnchanged(world, () => person.refused(change, { input }));
const read = async (id: string, person = owen) =>
  (await person.get(`query ($id: ID!) { reservation(id: $id) { ${fields} } }`, { id })).reservation;
const unitNow = async (id: string) =>
  (
    await owen.get(
      `query ($id: ID!) { unit(id: $id) { status price activeReservation { id } reservations { id } } }`,
      { id },
    )
  ).unit;
const leadStatus = async (id: string) =>
  (await owen.get(`query ($id: ID!) { lead(id: $id) { status } }`, { id })).lead.status;
const eventNames = async (id: string) =>
  (
    await world.owner.query<{ name: string }>(
      "select name from app_public.events where subject_id = $1 order by id",
      [id],
    )
  ).rows.map(({ name }) => name);
/** Sets a status that only the service can set. */
const byService = async (id: string, status: string) => {
  const purchased = status === "CONVERTED" ? await purchase(null) : null;
  const client = await world.owner.connect();
  try {
    await client.query("begin; select set_config('plat.service', 'on', true)");
    await client.query(`update app_public.reservations set status = $2, purchase_id = $3 where id = $1`, [
      id,
      status,
      purchased,
    ]);
    await client.query("commit");
  } finally {
    client.release();
  }
};
/** A purchase in the project, optionally of a user. */
const purchase = async (user: string | null, assignee: string | null = null) =>
  (
    await world.owner.query<{ id: string }>(
      `insert into app_public.buyers (project_id, organization_id, user_id, first_name, price, assignee_id)
       values ($1, $2, $3, 'Bea', 1, $4) returning id`,
      [project.id, world.harbour.id, user, assignee],
    )
  ).rows[0]!.id;

const updateBuyer = (input: Record<string, unknown>) =>
  owen.get(`mutation ($input: UpdateBuyerInput!) { updateBuyer(input: $input) { status } }`, { input });

describe("creating a reservation", () => {
  test("claims the unit, stores the list price, copies the project's settings, and charges nobody", async () => {
    const home = await unit({ price: "415000.50", sqft: 830 });
    const lena = await lead({ assigneeId: world.max.id });
    const reservation = await reserve({
      unitId: home,
      leadId: lena,
      buyerLegalName: " Lena L. Long ",
      notes: "likes the view",
      occupancyType: "PRIMARY_RESIDENCE",
      financingType: "CASH",
      transactionId: "tx 1",
    });
    expect(reservation).toMatchObject({
      status: "PENDING",
      price: "415000.50",
      listPriceSnapshot: "415000.50",
      premiumSnapshot: null,
      currency: "CAD",
      totalContractPrice: "415000.50",
      ppsf: "500.00",
      fee: "500.00",
      cancellationFee: "250.00",
      expiration: 72,
      extendedCount: 0,
      acceptedTerms: true,
      executedAt: null,
      notes: "likes the view",
      version: 1,
      unit: { id: home, status: "RESERVED" },
      lot: null,
      lead: { id: lena, status: "RESERVED" },
      user: { id: owen.id },
      assignee: { id: world.max.id },
      buyer: null,
      project: { id: project.id },
      allowedTransitions: [
        { to: "CANCELLED", allowed: false, blockedBy: ["cancellationReason"] },
        { to: "CONFIRMED", allowed: true, blockedBy: [] },
        { to: "REFUNDED", allowed: true, blockedBy: [] },
      ],
    });
    expect(reservation.acceptedTermsAt).toBe(reservation.insertedAt);
    expect(Date.parse(reservation.expiresAt) - Date.parse(reservation.insertedAt)).toBe(72 * 3_600_000);
    expect(await unitNow(home)).toEqual({
      status: "RESERVED",
      price: "415000.50",
      activeReservation: { id: reservation.id },
      reservations: [{ id: reservation.id }],
    });
    expect(await eventNames(reservation.id)).toEqual(["reservation.created"]);
    const { rows } = await world.owner.query(
      "select kind, subject_type, unit_price::text, expires_at = (select expires_at from app_public.reservations where id = $1) as same from app_hidden.claims where subject_id = $1",
      [reservation.id],
    );
    expect(rows).toEqual([
      { kind: "RESERVATION", subject_type: "reservation", unit_price: "415000.50", same: true },
    ]);
  });

  test("accepts a given number of hours, CONFIRMED, the premium of the lot, and a lot alone", async () => {
    const land = await lot({ premium: "12000", areaSqft: 4500 });
    const home = await unit({ lotId: land });
    expect(await reserve({ unitId: home, expiration: 1, status: "CONFIRMED" })).toMatchObject({
      status: "CONFIRMED",
      expiration: 1,
      price: "400000.00",
      premiumSnapshot: "12000.00",
      lead: null,
      assignee: { id: owen.id },
      executedAt: expect.any(String),
    });
    const meadow = await lot({ areaSqft: 4500 });
    expect(await reserve({ lotId: meadow })).toMatchObject({
      lot: { id: meadow, status: "RESERVED" },
      unit: null,
      price: "90000.00",
      ppsf: "20.00",
    });
  });

  test("numbers them per project without a gap, also after failures and concurrently", async () => {
    const place = await createProject(owen, { organizationId: world.harbour.id, title: "Numbered Nook" });
    const homes = await Promise.all(Array.from({ length: 12 }, () => unit({ projectId: place.id })));
    const answers = await Promise.all(
      [...homes, ...homes.slice(0, 6)].map((unitId) =>
        owen.ask(creation, { input: { unitId, acceptedTerms: true } }),
      ),
    );
    const numbers = answers.flatMap(({ data }) =>
      data.createReservation ? [data.createReservation.number] : [],
    );
    expect(numbers.sort()).toEqual(
      Array.from({ length: 12 }, (_, i) => `R-${String(i + 1).padStart(6, "0")}`),
    );
    expect(answers.filter(({ errors }) => errors).map(({ errors }) => errors![0]!.extensions.code)).toEqual(
      Array(6).fill("INVENTORY_UNAVAILABLE"),
    );
    await world.owner.query(
      "update app_private.reservation_counters set last_number = 999999 where project_id = $1",
      [place.id],
    );
    expect((await reserve({ unitId: await unit({ projectId: place.id }) })).number).toBe("R-1000000");
  });

  test("is executed once under an idempotency key", async () => {
    const input = { unitId: await unit(), acceptedTerms: true, idempotencyKey: "once only" };
    const answers = await Promise.all(Array.from({ length: 8 }, () => owen.get(creation, { input })));
    expect(new Set(answers.map((answer) => answer.createReservation.id)).size).toBe(1);
    expect(await eventNames(answers[0].createReservation.id)).toEqual(["reservation.created"]);
  });

  test("of 100 concurrent reservations, one gets the unit", async () => {
    const home = await unit();
    const answers = await Promise.all(
      Array.from({ length: 100 }, () => owen.ask(creation, { input: { unitId: home, acceptedTerms: true } })),
    );
    expect(answers.filter(({ errors }) => !errors)).toHaveLength(1);
    const refusals = answers.flatMap(({ errors }) => errors ?? []);
    expect(new Set(refusals.map(({ extensions }) => extensions.code))).toEqual(
      new Set(["INVENTORY_UNAVAILABLE"]),
    );
    const winner = answers.find(({ errors }) => !errors)!.data.createReservation;
    expect(refusals[0]!.extensions.claimedUntil.slice(0, 19)).toBe(winner.expiresAt.slice(0, 19));
    expect((await unitNow(home)).reservations).toHaveLength(1);
  });

  describe("refusals", () => {
    test.each<[string, () => Promise<Record<string, unknown>>, Record<string, unknown>]>([
      ["without unit and lot", async () => ({}), { code: "BAD_USER_INPUT", field: "unitId" }],
      [
        "with both",
        async () => ({ unitId: await unit(), lotId: await lot() }),
        { code: "BAD_USER_INPUT", field: "unitId" },
      ],
      [
        "without consent",
        async () => ({ unitId: await unit(), acceptedTerms: false }),
        { code: "BAD_USER_INPUT", field: "acceptedTerms" },
      ],
      [
        "for a lead of another project",
        async () => ({
          unitId: await unit(),
          leadId: (await createLead(owen, { projectId: other.id, name: "X" })).id,
        }),
        { code: "NOT_FOUND", field: "leadId" },
      ],
      [
        "for a lead of another organization",
        async () => ({ unitId: await unit(), leadId: world.leads.foreign.id }),
        { code: "NOT_FOUND", field: "leadId" },
      ],
      [
        "for a unit that is not there",
        async () => ({ unitId: "00000000-0000-7000-8000-000000000000" }),
        { code: "NOT_FOUND", field: "unitId" },
      ],
      ["for no id", async () => ({ unitId: "42" }), { code: "BAD_USER_INPUT", field: "unitId" }],
      [
        "for 0 hours",
        async () => ({ unitId: await unit(), expiration: 0 }),
        { code: "BAD_USER_INPUT", field: "expiration" },
      ],
      [
        "for more than a year",
        async () => ({ unitId: await unit(), expiration: 8761 }),
        { code: "BAD_USER_INPUT", field: "expiration" },
      ],
      [
        "of a unit that is not for sale",
        async () => ({ unitId: await unit({ status: "OFF_MARKET" }) }),
        { code: "INVENTORY_UNAVAILABLE", field: "unitId" },
      ],
      [
        "of a claimed unit",
        async () => ({ unitId: (await reserve({ unitId: await unit() })).unit.id }),
        { code: "INVENTORY_UNAVAILABLE", claimedUntil: expect.stringMatching(/Z$/) },
      ],
      [
        "as EXPIRED",
        async () => ({ unitId: await unit(), status: "EXPIRED" }),
        { code: "INVALID_TRANSITION", to: "EXPIRED", allowedTransitions: ["CONFIRMED", "PENDING"] },
      ],
      [
        "for a lead that is lost",
        async () => ({
          unitId: await unit(),
          leadId: await lead().then(async (id) => {
            await owen.get(`mutation ($input: UpdateLeadInput!) { updateLead(input: $input) { id } }`, {
              input: { id, status: "UNQUALIFIED" },
            });
            return id;
          }),
        }),
        { code: "CONFLICT", field: "leadId" },
      ],
    ])("%s", async (_name, input, expected) => {
      const given = await input();
      expect(await refuseReserve(given)).toMatchObject(expected);
    });

    test("in a project that is paused or archived", async () => {
      const place = await createProject(owen, { organizationId: world.harbour.id, title: "Paused Place" });
      const home = await unit({ projectId: place.id });
      const set = (status: string) =>
        owen.get(`mutation ($input: UpdateProjectInput!) { updateProject(input: $input) { id } }`, {
          input: { id: place.id, status },
        });
      const kept = await reserve({ unitId: await unit({ projectId: place.id }) });
      await set("PAUSED");
      expect(await refuseReserve({ unitId: home })).toMatchObject({ code: "CONFLICT" });
      await set("ARCHIVED");
      expect(await refuseReserve({ unitId: home })).toMatchObject({ code: "PROJECT_ARCHIVED" });
      expect(await refuseUpdate({ id: kept.id, status: "CONFIRMED" })).toMatchObject({
        code: "PROJECT_ARCHIVED",
      });
      // Expiry continues there.
      await passTime(world.owner, "73 hours");
      expect(await read(kept.id)).toMatchObject({ status: "EXPIRED", unit: { status: "AVAILABLE" } });
    });
  });
});

describe("transitions", () => {
  const states = ["PENDING", "CONFIRMED", "CONVERTED", "EXPIRED", "CANCELLED", "REFUNDED"] as const;
  const steps: Record<string, string[]> = {
    PENDING: ["CANCELLED", "CONFIRMED", "REFUNDED"],
    CONFIRMED: ["CANCELLED", "REFUNDED"],
    CONVERTED: ["REFUNDED"],
    EXPIRED: ["REFUNDED"],
    CANCELLED: ["REFUNDED"],
    REFUNDED: [],
  };
  /** A reservation in the state, by the operations that lead there. */
  async function inState(state: string): Promise<string> {
    const { id } = await reserve({ unitId: await unit() });
    if (state === "CONFIRMED" || state === "REFUNDED") await update({ id, status: state });
    else if (state === "CANCELLED") await update({ id, status: state, cancellationReason: "why not" });
    else if (state !== "PENDING") await byService(id, state);
    return id;
  }
  const allowed = (id: string) =>
    read(id).then((r) => r.allowedTransitions.map((step: { to: string }) => step.to));
  const pairs = states.flatMap((from) =>
    states.filter((to) => to !== from).map((to) => ({ from, to, listed: steps[from]!.includes(to) })),
  );
  const taken = pairs.filter((pair) => pair.listed);

  test.each(taken)("$from to $to succeeds, with one event", async ({ from, to }) => {
    const id = await inState(from);
    expect(await update({ id, status: to, cancellationReason: "a reason" })).toMatchObject({ status: to });
    expect((await eventNames(id)).filter((name) => name === `reservation.${to.toLowerCase()}`)).toHaveLength(
      1,
    );
    expect(await allowed(id)).toEqual(steps[to]);
  });

  test.each(pairs.filter((pair) => !pair.listed))("$from to $to is refused", async ({ from, to }) => {
    const id = await inState(from);
    expect(await refuseUpdate({ id, status: to, cancellationReason: "a reason" })).toMatchObject({
      code: "INVALID_TRANSITION",
      from,
      to,
      allowedTransitions: steps[from],
    });
    expect(await allowed(id)).toEqual(steps[from]);
  });
});

describe("changing a reservation", () => {
  test("confirms it, and stores when", async () => {
    const { id } = await reserve({ unitId: await unit() });
    const confirmed = await update({ id, status: "CONFIRMED" });
    expect(confirmed).toMatchObject({ status: "CONFIRMED", version: 2, executedAt: expect.any(String) });
    expect(await eventNames(id)).toEqual(["reservation.created", "reservation.confirmed"]);
  });

  test("restarts its hours, any number of times, together with those of its claim", async () => {
    const { id, unit: home } = await reserve({ unitId: await unit() });
    await passTime(world.owner, "71 hours");
    const longer = await update({ id, expiration: 72 });
    expect(longer).toMatchObject({ expiration: 72, extendedCount: 1, version: 2 });
    expect(Date.parse(longer.expiresAt) - Date.now()).toBeGreaterThan(71.9 * 3_600_000);
    await passTime(world.owner, "71 hours");
    expect(await read(id)).toMatchObject({ status: "PENDING" });
    expect(await update({ id, expiration: 2 })).toMatchObject({ expiration: 2, extendedCount: 2 });
    expect(await eventNames(id)).toEqual([
      "reservation.created",
      "reservation.extended",
      "reservation.extended",
    ]);
    expect(await refuseReserve({ unitId: home.id })).toMatchObject({ code: "INVENTORY_UNAVAILABLE" });
    await passTime(world.owner, "2 hours");
    expect(await owen.refused(change, { input: { id, expiration: 10 } })).toMatchObject({
      code: "CONFLICT",
      field: "expiration",
    });
    expect(await read(id)).toMatchObject({ status: "EXPIRED", extendedCount: 2 });
  });

  test("cancels it with a reason in words or of the project: the unit is listed again, and the lead has its former status", async () => {
    const home = await unit();
    const lena = await lead({ status: "WARM" });
    const { id } = await reserve({ unitId: home, leadId: lena });
    await owen.get(`mutation ($input: UpdateUnitInput!) { updateUnit(input: $input) { id } }`, {
      input: { id: home, price: 444_000 },
    });
    expect(await refuseUpdate({ id, status: "CANCELLED" })).toMatchObject({
      code: "BAD_USER_INPUT",
      field: "cancellationReason",
    });
    expect(await refuseUpdate({ id, status: "CANCELLED", cancellationReason: "  " })).toMatchObject({
      code: "BAD_USER_INPUT",
      field: "cancellationReason",
    });
    const falloutReasonId = await reason();
    expect(await update({ id, status: "CANCELLED", falloutReasonId })).toMatchObject({
      status: "CANCELLED",
      falloutReason: { id: falloutReasonId },
      cancelledAt: expect.any(String),
      unit: { status: "AVAILABLE", price: "400000.00" },
      lead: { status: "WARM" },
    });
    expect(await refuseUpdate({ id, falloutReasonId: null })).toMatchObject({ code: "BAD_USER_INPUT" });
    expect(await unitNow(home)).toMatchObject({ activeReservation: null, reservations: [{ id }] });
    const { falloutReason } = await owen.get(`query ($id: ID!) { falloutReason(id: $id) { usageCount } }`, {
      id: falloutReasonId,
    });
    expect(falloutReason.usageCount).toBe(1);
  });

  test.each<[string, (id: string) => Promise<Record<string, unknown>>, Record<string, unknown>]>([
    [
      "a fallout reason of leads only",
      async () => ({
        falloutReasonId: await create("createFalloutReason", {
          projectId: project.id,
          name: `Leads ${++serial}`,
          appliesTo: ["LEAD"],
        }),
      }),
      { code: "BAD_USER_INPUT", field: "falloutReasonId" },
    ],
    [
      "a fallout reason of another project",
      async () => ({
        falloutReasonId: await create("createFalloutReason", {
          projectId: other.id,
          name: `Other ${++serial}`,
        }),
      }),
      { code: "NOT_FOUND", field: "falloutReasonId" },
    ],
    ["a negative price", async () => ({ price: -1 }), { code: "BAD_USER_INPUT", field: "price" }],
    ["a tenth of a cent", async () => ({ price: "1.001" }), { code: "BAD_USER_INPUT", field: "price" }],
    ["0 hours", async () => ({ expiration: 0 }), { code: "BAD_USER_INPUT", field: "expiration" }],
    ["no hours", async () => ({ expiration: null }), { code: "BAD_USER_INPUT", field: "expiration" }],
    ["no status", async () => ({ status: null }), { code: "BAD_USER_INPUT", field: "status" }],
    [
      "a time of cancellation without one",
      async () => ({ cancelledAt: "2020-01-01T00:00:00Z" }),
      { code: "BAD_USER_INPUT", field: "cancelledAt" },
    ],
    [
      "a cancellation in the future",
      async () => ({ status: "CANCELLED", cancellationReason: "x", cancelledAt: "2999-01-01T00:00:00Z" }),
      { code: "BAD_USER_INPUT", field: "cancelledAt" },
    ],
    [
      "another version",
      async () => ({ notes: "x", expectedVersion: 7 }),
      { code: "VERSION_MISMATCH", currentVersion: 1 },
    ],
  ])("refuses %s", async (_name, input, expected) => {
    const { id } = await reserve({ unitId: await unit() });
    const given = { id, ...(await input(id)) };
    expect(await refuseUpdate(given)).toMatchObject(expected);
  });

  test("changes the price while it is open, but not the copied list price", async () => {
    const { id } = await reserve({ unitId: await unit() });
    expect(await update({ id, price: "390000" })).toMatchObject({
      price: "390000.00",
      listPriceSnapshot: "400000.00",
      totalContractPrice: "390000.00",
      ppsf: "390.00",
    });
    await expect(
      world.owner.query("update app_public.reservations set list_price_snapshot = 1 where id = $1", [id]),
    ).rejects.toMatchObject({ code: "PLAT0" });
    await update({ id, status: "CANCELLED", cancellationReason: "over" });
    expect(await refuseUpdate({ id, price: 1 })).toMatchObject({ code: "CONFLICT", field: "price" });
    expect(await update({ id, notes: "still noted" })).toMatchObject({ notes: "still noted" });
  });
});

describe("refunding a reservation", () => {
  test("lists the unit again at its former price, and is executed once", async () => {
    const home = await unit();
    const lena = await lead();
    const { id } = await reserve({ unitId: home, leadId: lena });
    await update({ id, price: 380_000 });
    expect(await update({ id, status: "REFUNDED" })).toMatchObject({
      status: "REFUNDED",
      refundedAt: expect.any(String),
      price: "380000.00",
      unit: { status: "AVAILABLE", price: "400000.00" },
      lead: { status: "NEW" },
      allowedTransitions: [],
    });
    expect(await refuseUpdate({ id, status: "REFUNDED" })).toMatchObject({
      code: "INVALID_TRANSITION",
      from: "REFUNDED",
      to: "REFUNDED",
      allowedTransitions: [],
    });
  });

  test("of 100 concurrent refunds, one succeeds", async () => {
    const home = await unit();
    const { id } = await reserve({ unitId: home, leadId: await lead() });
    const answers = await Promise.all(
      Array.from({ length: 100 }, () => owen.ask(change, { input: { id, status: "REFUNDED" } })),
    );
    expect(answers.filter(({ errors }) => !errors)).toHaveLength(1);
    expect(new Set(answers.flatMap(({ errors }) => errors ?? []).map((e) => e.extensions.code))).toEqual(
      new Set(["INVALID_TRANSITION"]),
    );
    expect((await eventNames(id)).filter((name) => name === "reservation.refunded")).toHaveLength(1);
  });

  const buyerNow = async (id: string) =>
    (
      await owen.get(
        `query ($id: ID!) { buyer(id: $id) { status cancellationReason reservation { id } unit { id status } } }`,
        { id },
      )
    ).buyer;
  /** A reservation that became a purchase. */
  async function converted(price = 385_000) {
    const home = await unit();
    const leadId = await lead({ status: "HOT" });
    const { id } = await reserve({ unitId: home, leadId });
    const { convertLead: buyer } = await owen.get(
      `mutation ($input: ConvertLeadInput!) { convertLead(input: $input) { id } }`,
      { input: { leadId, price } },
    );
    return { id, home, leadId, buyer: buyer.id as string };
  }
  test("takes the purchase from a converted one, cancels that, and lists the home again", async () => {
    const { id, home, leadId, buyer } = await converted();
    const before = `query ($id: ID!) { reservation(id: $id) { status expiresAt purchase { id } allowedTransitions { to } } }`;
    expect((await owen.get(before, { id })).reservation).toEqual({
      status: "CONVERTED",
      expiresAt: null,
      purchase: { id: buyer },
      allowedTransitions: [{ to: "REFUNDED" }],
    });
    expect(await unitNow(home)).toMatchObject({ activeReservation: null });
    expect((await unitNow(home)).status).not.toBe("RESERVED");
    await update({ id, status: "REFUNDED" });
    expect((await owen.get(before, { id })).reservation).toEqual({
      status: "REFUNDED",
      expiresAt: null,
      purchase: null,
      allowedTransitions: [],
    });
    expect(await buyerNow(buyer)).toMatchObject({ status: "CANCELLED", reservation: { id } });
    expect(await unitNow(home)).toMatchObject({ status: "AVAILABLE", price: "400000.00" });
    expect(await leadStatus(leadId)).not.toBe("CONVERTED");
    expect((await eventNames(id)).slice(1)).toEqual(["reservation.converted", "reservation.refunded"]);
    expect((await reserve({ unitId: home })).status).toBe("PENDING");
  });

  test("of a converted one succeeds once, of 100 concurrent ones", async () => {
    const { id, home, buyer } = await converted();
    const answers = await Promise.all(
      Array.from({ length: 100 }, () => owen.ask(change, { input: { id, status: "REFUNDED" } })),
    );
    expect(answers.filter(({ errors }) => !errors)).toHaveLength(1);
    expect(new Set(answers.flatMap(({ errors }) => errors ?? []).map((e) => e.extensions.code))).toEqual(
      new Set(["INVALID_TRANSITION"]),
    );
    expect((await eventNames(buyer)).filter((name) => name === "buyer.status_changed")).toHaveLength(1);
    expect(await unitNow(home)).toMatchObject({ status: "AVAILABLE" });
  });

  test("does not change a home that was bought since", async () => {
    const { id, home, buyer } = await converted();
    await updateBuyer({
      id: buyer,
      status: "CANCELLED",
      cancellationReason: "no loan",
      falloutReasonId: await reason(),
    });
    const next = await reserve({ unitId: home });
    await update({ id, status: "REFUNDED" });
    expect(await read(id)).toMatchObject({ status: "REFUNDED" });
    expect(await buyerNow(buyer)).toMatchObject({ status: "CANCELLED", cancellationReason: "no loan" });
    expect(await unitNow(home)).toMatchObject({ status: "RESERVED", activeReservation: { id: next.id } });
  });

  test("is refused once the purchase is closed", async () => {
    const { id, home, buyer } = await converted();
    for (const status of ["FIRM", "CLEAR_TO_CLOSE", "CLOSED"]) {
      const { buyer: now } = await owen.get(`query ($id: ID!) { buyer(id: $id) { status } }`, { id: buyer });
      if (now.status !== status) await updateBuyer({ id: buyer, status });
    }
    expect(await refuseUpdate({ id, status: "REFUNDED" })).toMatchObject({
      code: "CONFLICT",
      field: "status",
    });
    expect(await unitNow(home)).toMatchObject({ status: "CLOSED" });
  });

  test("does not change a unit that now belongs to another buyer", async () => {
    const home = await unit();
    const first = await reserve({ unitId: home });
    await passTime(world.owner, "72 hours");
    const second = await reserve({ unitId: home });
    await update({ id: first.id, status: "REFUNDED" });
    expect(await unitNow(home)).toMatchObject({ status: "RESERVED", activeReservation: { id: second.id } });
  });
});

describe("expiry", () => {
  test("is visible in every read, without a job", async () => {
    const place = await createProject(owen, { organizationId: world.harbour.id, title: "Timely Terrace" });
    const home = await unit({ projectId: place.id });
    const lena = (await createLead(owen, { projectId: place.id, name: "Lena", status: "HOT" })).id;
    const { id } = await reserve({ unitId: home, leadId: lena, expiration: 24 });
    const reads: [string, string][] = [
      ["reservation", `{ reservation(id: "${id}") { status unit { status } lead { status } } }`],
      ["unit", `{ unit(id: "${home}") { status activeReservation { id } } }`],
      ["lead", `{ lead(id: "${lena}") { status reservations { status } } }`],
      ["reservations", `{ reservations(filter: { status: [EXPIRED], unitIds: ["${home}"] }) { id } }`],
      [
        "connection",
        `{ reservationsConnection(filter: { status: [PENDING], projectIds: ["${place.id}"] }) { totalCount } }`,
      ],
      ["abstract", `{ project(id: "${place.id}") { abstract { unitsAvailable unitsReserved } } }`],
    ];
    const answers: Record<string, any> = {};
    for (const [name, query] of reads) {
      await passTime(world.owner, "23 hours 59 minutes");
      expect(await leadStatus(lena)).toBe("RESERVED");
      await passTime(world.owner, "1 minute");
      answers[name] = await owen.get(query);
      // Repeated for each way of reading it.
      if (name !== "abstract") await reserve({ unitId: home, leadId: lena, expiration: 24 });
    }
    expect(answers.reservation.reservation).toEqual({
      status: "EXPIRED",
      unit: { status: "AVAILABLE" },
      lead: { status: "HOT" },
    });
    expect(answers.unit.unit).toEqual({ status: "AVAILABLE", activeReservation: null });
    expect(answers.lead.lead.status).toBe("HOT");
    expect(answers.lead.lead.reservations[0]).toEqual({ status: "EXPIRED" });
    expect(answers.reservations.reservations).toHaveLength(4);
    expect(answers.connection.reservationsConnection.totalCount).toBe(0);
    expect(answers.abstract.project.abstract).toEqual({ unitsAvailable: 1, unitsReserved: 0 });
    expect(await eventNames(id)).toEqual(["reservation.created", "reservation.expired"]);
  });

  test("of extending and reserving at that moment, one succeeds", async () => {
    for (let round = 0; round < 3; round++) {
      const home = await unit();
      const { id } = await reserve({ unitId: home, expiration: 1 });
      // It expires during these requests.
      await passTime(world.owner, "59 minutes 59.95 seconds");
      const answers = await Promise.all(
        Array.from({ length: 100 }, (_, i) =>
          i % 2
            ? owen.ask(creation, { input: { unitId: home, acceptedTerms: true } })
            : owen.ask(change, { input: { id, expiration: 5 } }),
        ),
      );
      const codes = answers.flatMap(({ errors }) => errors ?? []).map((e) => e.extensions.code);
      expect(new Set([...codes, "CONFLICT", "INVENTORY_UNAVAILABLE"])).toEqual(
        new Set(["CONFLICT", "INVENTORY_UNAVAILABLE"]),
      );
      const { rows } = await world.owner.query(
        "select r.id from app_public.reservations r join app_hidden.claims c on c.subject_id = r.id and c.released_at is null where r.unit_id = $1 and r.status in ('PENDING', 'CONFIRMED')",
        [home],
      );
      expect(rows).toHaveLength(1);
      const reserved = answers.some(({ data }) => data?.createReservation);
      expect(rows[0].id === id).toBe(!reserved);
    }
  });

  test("cancelling it cancels its negotiation", async () => {
    const home = await unit();
    const leadId = await lead();
    const { id } = await reserve({ unitId: home, leadId });
    const negotiationId = await create("createNegotiation", { unitId: home, leadId, reservationId: id });
    const offerId = await create("createOffer", { negotiationId, side: "BUYER", price: "390000" });
    expect(await read(id)).toMatchObject({ expiresAt: null });
    await update({ id, status: "CANCELLED", cancellationReason: "moved away" });
    const { negotiation, offer } = await owen.get(
      `query ($negotiation: ID!, $offer: ID!) { negotiation(id: $negotiation) { status } offer(id: $offer) { status } }`,
      { negotiation: negotiationId, offer: offerId },
    );
    expect([negotiation, offer]).toEqual([{ status: "CANCELLED" }, { status: "WITHDRAWN" }]);
    expect(await unitNow(home)).toMatchObject({ status: "AVAILABLE" });
    expect(await leadStatus(leadId)).toBe("NEW");
  });

  test("does not happen while a negotiation is active, which restarts the hours", async () => {
    const { id, unit: home } = await reserve({ unitId: await unit(), expiration: 24 });
    const call = (name: string, ...more: unknown[]) =>
      world.owner.query(`select app_private.${name}($1${more.map((_, i) => `, $${i + 2}`).join("")})`, [
        id,
        ...more,
      ]);
    await call("pause_reservation");
    await passTime(world.owner, "30 days");
    expect(await read(id)).toMatchObject({ status: "PENDING", expiresAt: null });
    expect(await update({ id, expiration: 48 })).toMatchObject({ expiresAt: null, expiration: 48 });
    await call("resume_reservation", 395_000);
    const resumed = await read(id);
    expect(resumed).toMatchObject({ price: "395000.00", listPriceSnapshot: "400000.00" });
    expect(Date.parse(resumed.expiresAt) - Date.now()).toBeGreaterThan(47.9 * 3_600_000);
    await passTime(world.owner, "48 hours");
    expect(await unitNow(home.id)).toMatchObject({ status: "AVAILABLE", price: "400000.00" });
    expect(await read(id)).toMatchObject({ status: "EXPIRED" });
  });
});

describe("constraints of related records", () => {
  test("a lead with an open one cannot be lost, unqualified or deleted", async () => {
    const lena = await lead();
    const { id } = await reserve({ unitId: await unit(), leadId: lena });
    const set = `mutation ($input: UpdateLeadInput!) { updateLead(input: $input) { status } }`;
    const lost = { id: lena, status: "LOST", falloutReasonId: await reason() };
    expect(await owen.refused(set, { input: lost })).toMatchObject({
      code: "CONFLICT",
      dependents: { reservations: 1 },
    });
    expect(await owen.refused(set, { input: { id: lena, status: "UNQUALIFIED" } })).toMatchObject({
      code: "CONFLICT",
    });
    const blocked = async () =>
      (
        await owen.get(`query ($id: ID!) { lead(id: $id) { allowedTransitions { to allowed blockedBy } } }`, {
          id: lena,
        })
      ).lead.allowedTransitions.filter((step: { blockedBy: string[] }) =>
        step.blockedBy.includes("reservations"),
      );
    expect(await blocked()).toEqual([
      { to: "LOST", allowed: false, blockedBy: ["falloutReasonId", "reservations"] },
      { to: "UNQUALIFIED", allowed: false, blockedBy: ["reservations"] },
    ]);
    await update({ id, status: "CANCELLED", cancellationReason: "x" });
    expect(await blocked()).toEqual([]);
    expect((await owen.get(set, { input: lost })).updateLead.status).toBe("LOST");
    expect(
      await owen.refused(`mutation ($id: ID!) { deleteLead(input: { id: $id }) { id } }`, { id: lena }),
    ).toMatchObject({ code: "CONFLICT", dependents: { reservations: 1 } });
  });

  test("units, lots and reservations cannot be deleted", async () => {
    const home = await unit();
    const land = await lot();
    for (const [field, id, input] of [
      ["deleteUnit", home, { unitId: home }],
      ["deleteLot", land, { lotId: land }],
    ] as const) {
      const reservation = await reserve(input);
      const deletion = `mutation ($id: ID!) { ${field}(input: { id: $id }) { id } }`;
      expect(await owen.refused(deletion, { id })).toMatchObject({ code: "CONFLICT" });
      await update({ id: reservation.id, status: "CANCELLED", cancellationReason: "x" });
      expect(await owen.refused(deletion, { id })).toMatchObject({
        code: "CONFLICT",
        dependents: { reservations: 1 },
      });
    }
    const { rows } = await world.owner.query(
      "select has_table_privilege('plat_user', 'app_public.reservations', 'delete') as deletes",
    );
    expect(rows[0].deletes).toBe(false);
  });

  test("has the assignee of its lead", async () => {
    const lena = await lead({ assigneeId: world.max.id });
    const { id } = await reserve({ unitId: await unit(), leadId: lena });
    await owen.get(`mutation ($input: UpdateLeadInput!) { updateLead(input: $input) { id } }`, {
      input: { id: lena, assigneeId: world.mia.id },
    });
    expect(await read(id)).toMatchObject({ assignee: { id: world.mia.id } });
  });
});

test("reassigning a lead while it reserves and cancels does not deadlock", async () => {
  const leadId = await lead({ assigneeId: world.max.id });
  const homes = await Promise.all(Array.from({ length: 6 }, () => unit()));
  const outcomes = new Set<string>();
  const note = async (what: string, answer: ReturnType<Person["ask"]>) => {
    outcomes.add(`${what} ${(await answer).errors?.[0]?.extensions.code ?? "OK"}`);
  };
  const assign = `mutation ($input: UpdateLeadInput!) { updateLead(input: $input) { id } }`;
  await Promise.all(
    Array.from({ length: 18 }, async (_, player) => {
      for (let turn = 0; turn < 6; turn++) {
        const what = (player + turn) % 3;
        if (what === 0)
          await note(
            "reserve",
            owen.ask(creation, {
              input: { unitId: homes[(player * 5 + turn) % 6], leadId, acceptedTerms: true },
            }),
          );
        else if (what === 1)
          await note(
            "assign",
            owen.ask(assign, {
              input: { id: leadId, assigneeId: (player + turn) % 2 ? world.mia.id : owen.id },
            }),
          );
        else {
          const { rows } = await world.owner.query<{ id: string }>(
            "select id from app_public.reservations where lead_id = $1 and status = 'PENDING' order by random() limit 1",
            [leadId],
          );
          for (const { id } of rows)
            await note("refund", owen.ask(change, { input: { id, status: "REFUNDED" } }));
        }
      }
    }),
  );
  // A deadlock that remains after the retries would be reported as a conflict.
  expect(
    [...outcomes].filter((outcome) => outcome.endsWith("CONFLICT") || outcome.endsWith("INTERNAL")),
  ).toEqual([]);
  expect(outcomes).toContain("refund OK");
  const { rows } = await world.owner.query(
    "select r.id from app_public.reservations r join app_public.leads l on l.id = r.lead_id where l.assignee_id is distinct from r.assignee_id",
  );
  expect(rows).toEqual([]);
});

describe("a buyer with a purchase in the project", () => {
  let bea: Person;
  beforeAll(async () => {
    bea = await world.signUp("Bea Buyer");
    await purchase(bea.id, world.max.id);
  });

  test("reserves for themselves, and sees and cancels only that", async () => {
    const home = await unit();
    const reservation = await reserve({ unitId: home, buyerLegalName: "Bea B." }, bea);
    expect(reservation).toMatchObject({
      status: "PENDING",
      buyer: { id: bea.id },
      user: { id: bea.id },
      allowedTransitions: [{ to: "CANCELLED", allowed: false, blockedBy: ["cancellationReason"] }],
    });
    const { id } = reservation;
    expect((await read(id)).assignee).toEqual({ id: world.max.id });
    await update({ id, notes: "haggles", metadata: { score: 3 } });
    expect(
      await bea.get(
        `query ($id: ID!) { reservation(id: $id) { notes metadata events { id } } reservations { id }
          reservationsConnection { totalCount nodes { id } } viewer { reservations { id } } }`,
        { id },
      ),
    ).toEqual({
      reservation: { notes: null, metadata: null, events: [] },
      reservations: [{ id }],
      reservationsConnection: { totalCount: 1, nodes: [{ id }] },
      viewer: { reservations: [{ id }] },
    });
    for (const input of [
      { status: "CONFIRMED" },
      { status: "REFUNDED" },
      { price: 1 },
      { expiration: 100 },
      { notes: "x" },
      { status: "CANCELLED", cancellationReason: "x", price: 1 },
    ])
      expect(await refuseUpdate({ id, ...input }, bea)).toMatchObject({
        code: "FORBIDDEN",
        permission: "sale.write",
      });
    expect(
      await update({ id, status: "CANCELLED", cancellationReason: "changed my mind" }, bea),
    ).toMatchObject({ status: "CANCELLED" });
    // They see a reason that they gave, but not one of the team.
    const reasonTo = async (person: Person, of = id) =>
      (await person.get(`query ($id: ID!) { reservation(id: $id) { cancellationReason } }`, { id: of }))
        .reservation.cancellationReason;
    expect(await reasonTo(bea)).toBe("changed my mind");
    await update({ id, cancellationReason: "no loan, they say" });
    expect([await reasonTo(bea), await reasonTo(owen)]).toEqual([null, "no loan, they say"]);
    const { id: second } = await reserve({ unitId: await unit() }, bea);
    await update({ id: second, status: "CANCELLED", cancellationReason: "not serious" });
    expect([await reasonTo(bea, second), await reasonTo(world.max, second)]).toEqual([null, "not serious"]);
    const { rows } = await world.owner.query(
      "select name, actor_type, actor_id from app_public.events where subject_id = $1 and name <> 'reservation.updated' order by id",
      [id],
    );
    expect(rows).toEqual([
      { name: "reservation.created", actor_type: "BUYER", actor_id: bea.id },
      { name: "reservation.cancelled", actor_type: "BUYER", actor_id: bea.id },
    ]);
    expect(await unitNow(home)).toMatchObject({ status: "AVAILABLE" });
  });

  test("has the assignee of their purchase, if any", async () => {
    const ann = await world.signUp("Ann Alone");
    await purchase(ann.id);
    const { id } = await reserve({ unitId: await unit() }, ann);
    expect(await read(id)).toMatchObject({ assignee: null, buyer: { id: ann.id } });
    await world.owner.query("select app_private.end_reservation($1, 'CANCELLED', 'tidy')", [id]);
    const home = await unit();
    const made = await reserve({ unitId: home });
    const { createBuyer } = await owen.get(
      `mutation ($input: CreateBuyerInput!) { createBuyer(input: $input) { id } }`,
      {
        input: { projectId: project.id, legalName: "Ann A.", unitId: home, reservationId: made.id, price: 1 },
      },
    );
    await updateBuyer({ id: createBuyer.id, assigneeId: world.mia.id });
    expect(await read(made.id)).toMatchObject({ status: "CONVERTED", assignee: { id: world.mia.id } });
  });

  test("does not have the options of the sales team, and cannot reserve in other projects", async () => {
    const unitId = await unit();
    for (const input of [
      { status: "CONFIRMED" },
      { expiration: 9 },
      { notes: "x" },
      { leadId: world.leads.open.id },
    ])
      expect(await refuseReserve({ unitId, ...input }, bea)).toMatchObject({ code: "FORBIDDEN" });
    const elsewhere = await unit({ projectId: other.id });
    expect(await refuseReserve({ unitId: elsewhere }, bea)).toMatchObject({ code: "NOT_FOUND" });
    const unreleased = await unit({ status: "UNRELEASED" });
    expect(await refuseReserve({ unitId: unreleased }, bea)).toMatchObject({ code: "NOT_FOUND" });
    const stranger = await world.signUp("Bob Bought");
    const called = await purchase(stranger.id);
    await world.owner.query("select app_private.cancel_purchase($1, 'called off')", [called]);
    expect(await refuseReserve({ unitId }, stranger)).toMatchObject({ code: "NOT_FOUND" });
  });
});

test("a document of a reservation can be downloaded by the team and, if shared, by the buyer", async () => {
  const bea = await world.signUp("Bea Reader");
  await purchase(bea.id);
  const { id: reservationId } = await reserve({ unitId: await unit() }, bea);
  const file = `data:;base64,${Buffer.from("%PDF-1.7\n1 0 obj <<>> endobj\ntrailer <<>>\n%%EOF\n").toString("base64")}`;
  const upload = async (input: Record<string, unknown>) =>
    (
      await owen.get(
        `mutation ($input: UploadReservationDocumentInput!) { uploadReservationDocument(input: $input) {
          id category visibleToBuyer public filemime filesize reservation { id } uploadedBy { id } } }`,
        { input: { reservationId, file, ...input } },
      )
    ).uploadReservationDocument;
  const internal = await upload({ title: "Check", category: "IDENTITY" });
  const shown = await upload({ title: "Terms", category: "CONTRACT", visibleToBuyer: true });
  expect(internal).toMatchObject({
    category: "IDENTITY",
    visibleToBuyer: false,
    public: false,
    filemime: "application/pdf",
    reservation: { id: reservationId },
    uploadedBy: { id: owen.id },
  });
  const urls = async (person: Person) =>
    (
      await person.get(`query ($id: ID!) { reservation(id: $id) { documents { id url } } }`, {
        id: reservationId,
      })
    ).reservation.documents as { id: string; url: string }[];
  expect((await urls(owen)).map((document) => document.id).sort()).toEqual([internal.id, shown.id].sort());
  const [mine, ...rest] = await urls(bea);
  expect([mine!.id, rest]).toEqual([shown.id, []]);
  const served = await new Promise<number>((resolve, reject) => {
    const { pathname, search } = new URL(mine!.url);
    get(new URL(pathname + search, world.url), { rejectUnauthorized: false }, (answer) => {
      answer.resume();
      resolve(answer.statusCode!);
    }).on("error", reject);
  });
  expect(served).toBe(200);
  await owen.get(
    `mutation ($input: UpdateReservationDocumentInput!) { updateReservationDocument(input: $input) { id } }`,
    { input: { id: shown.id, visibleToBuyer: false } },
  );
  expect(await urls(bea)).toEqual([]);
  const unknown = "00000000-0000-7000-8000-000000000000";
  expect(
    await owen.refused(
      `mutation ($input: UploadReservationDocumentInput!) { uploadReservationDocument(input: $input) { id } }`,
      { input: { reservationId: unknown, file } },
    ),
  ).toMatchObject({ code: "NOT_FOUND", field: "reservationId" });
});

test("constraints of the table apply to every role", async () => {
  const { id } = await reserve({ unitId: await unit() });
  const bought = await purchase(null);
  /** The error of PostgreSQL without any trigger. */
  const bare = async (statement: string) => {
    const client = await world.owner.connect();
    try {
      await client.query("begin; set local session_replication_role = replica");
      return await client.query(statement, [id]).then(
        () => "taken",
        (error) => error.constraint as string,
      );
    } finally {
      await client.query("rollback");
      client.release();
    }
  };
  const broken = (what: string) => bare(`update app_public.reservations set ${what} where id = $1`);
  expect(await broken("lot_id = uuidv7()")).toBe("reservations_one_thing");
  expect(await broken("unit_id = null")).toBe("reservations_one_thing");
  expect(await broken(`status = 'REFUNDED', purchase_id = '${bought}'`)).toBe("reservations_refunded");
  expect(await broken("status = 'CANCELLED'")).toBe("reservations_cancelled_for_a_reason");
  expect(await broken("accepted_terms = false")).toBe("reservations_accepted_terms");
  expect(await broken("expiration = 0")).toBe("reservations_expiration_range");
  const again = (number: string) =>
    bare(`insert into app_public.reservations (organization_id, project_id, unit_id, number, price, list_price_snapshot, currency, accepted_terms, expiration)
      select organization_id, project_id, unit_id, ${number}, 1, 1, 'CAD', true, 1 from app_public.reservations where id = $1`);
  expect(await again("'X'")).toBe("reservations_unit_open");
  expect(await again("number")).toBe("reservations_number");
});

test("lists are newest first and filtered, with 1000 records by default", async () => {
  const place = await createProject(owen, { organizationId: world.harbour.id, title: "Listed Lane" });
  const ids: string[] = [];
  for (let i = 0; i < 4; i++)
    ids.unshift((await reserve({ unitId: await unit({ projectId: place.id }), expiration: 10 + i })).id);
  const list = async (filter: string) =>
    (
      await owen.get(`{ reservations(filter: { projectIds: ["${place.id}"] ${filter} }) { id } }`)
    ).reservations.map((r: { id: string }) => r.id);
  expect(await list("")).toEqual(ids);
  await update({ id: ids[1]!, status: "CONFIRMED" });
  expect(await list("status: [CONFIRMED]")).toEqual([ids[1]]);
  expect(await list("status: []")).toEqual([]);
  const { expiresAt, unit: home } = await read(ids[2]!);
  expect(await list(`expiresAt: { from: "${expiresAt}" }`)).toEqual(ids.slice(0, 3));
  expect(await list(`unitIds: ["${home.id}"]`)).toEqual([ids[2]]);
  const sent = await owen.get(`query ($id: ID!) { project(id: $id) { reservations(first: 2) { id } } }`, {
    id: place.id,
  });
  expect(sent.project.reservations.map((r: { id: string }) => r.id)).toEqual(ids.slice(0, 2));
  const count = (first: number) =>
    world.statements(() =>
      owen.get(`{ reservations(first: ${first}) { id notes totalContractPrice allowedTransitions { to } unit { title lot { id } }
        lead { name } assignee { fullName } purchase { id } negotiation { id } falloutReason { id } documents { id } events(first: 3) { name } } }`),
    );
  expect((await count(4)).count).toBe((await count(1)).count);

  const client = await world.owner.connect();
  try {
    await client.query("begin; set local session_replication_role = replica");
    await client.query(
      `insert into app_public.reservations (organization_id, project_id, unit_id, number, price, list_price_snapshot, currency, status, accepted_terms, expiration)
       select organization_id, project_id, unit_id, 'X' || i, 1, 1, 'CAD', 'EXPIRED', true, 1 from app_public.reservations, generate_series(1, 1001) i where id = $1`,
      [ids[0]],
    );
    await client.query("commit");
  } finally {
    client.release();
  }
  expect((await owen.get(`{ reservations { id } }`)).reservations).toHaveLength(1000);
  expect((await owen.get(`{ reservations(first: 7, offset: 3) { id } }`)).reservations).toHaveLength(7);
  expect(await owen.refused(`{ reservations(first: 1001) { id } }`)).toMatchObject({
    code: "LIMIT_EXCEEDED",
  });
});
