/** Holds of units and lots: exclusivity, duration, maximum number, and conversion into reservations. */
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import type { Person } from "../harness/api.ts";
import { passTime } from "../harness/clock.ts";
import { signUpBuyer } from "../harness/deals.ts";
import { createLead, createProject, startPortfolio, type Portfolio } from "../harness/portfolio.ts";
import { createIn, mutationOf, type Create } from "../harness/records.ts";
import { digest } from "../harness/expectUnchanged.ts";
import { affiliate, programOf } from "../harness/world.ts";

let world: Portfolio;
let owen: Person;
let max: Person;
/** Of an affiliated agency, with access to own leads only. */
let sam: Person;
let create: Create;
let project: { id: string };
let serial = 0;

beforeAll(async () => {
  world = await startPortfolio();
  ({ owen, max, sam } = world);
  create = createIn(owen);
  project = await createProject(owen, {
    organizationId: world.harbour.id,
    title: "Holding Heights",
    holdsPerPerson: 100,
    holdsPerOrganization: 100,
  });
  await affiliate(world, project, world.sisters, "AGENCY");
  await affiliate(world, project, world.brick, "BUILDER");
});
afterAll(() => world.stop());

const unit = (input: Record<string, unknown> = {}) =>
  create("createUnit", {
    projectId: project.id,
    title: `Home ${++serial}`,
    status: "AVAILABLE",
    price: 400_000,
    ...input,
  });
const lead = async (input: Record<string, unknown> = {}) =>
  (await createLead(owen, { projectId: project.id, name: `Lena ${++serial}`, ...input })).id;

const fields = `id status statusChangedAt expiration heldSince expiresAt extendedCount notes version unit { id status }
  lot { id status } lead { id } user { id } assignee { id } project { id }`;
const creation = mutationOf("createUnitHold", `{ ${fields} }`);
const change = mutationOf("updateUnitHold", `{ ${fields} }`);
const deletion = mutationOf("deleteUnitHold", "{ id deleted unit { id status } lot { id status } }");
const reservation = mutationOf("createReservation", "{ id price lead { id } unit { status } expiresAt }");
const hold = async (input: Record<string, unknown>, person = owen) =>
  (await person.get(creation, { input })).createUnitHold;
const update = async (input: Record<string, unknown>, person = owen) =>
  (await person.get(change, { input })).updateUnitHold;
const release = async (id: string, person = owen) =>
  (await person.get(deletion, { input: { id } })).deleteUnitHold;
const reserve = async (input: Record<string, unknown>, person = owen) =>
  (await person.get(reservation, { input: { acceptedTerms: true, ...input } })).createReservation;
/** Executes an operation that must be refused, and asserts that it changed nothing. */
const refuse = async (person: Person, document: string, input: Record<string, unknown>) => {
  const tables = ["unit_holds", "units", "lots", "reservations", "buyers", "events"].map(
    (name) => `app_public.${name}`,
  );
  const before = await digest(world, tables);
  const refusal = await person.refused(document, { input });
  expect(await digest(world, tables)).toEqual(before);
  return refusal;
};
const refuseHold = (input: Record<string, unknown>, person = owen) => refuse(person, creation, input);
const refuseReserve = (input: Record<string, unknown>, person = owen) =>
  refuse(person, reservation, { acceptedTerms: true, ...input });
const read = async (id: string, person = owen) =>
  (await person.get(`query ($id: ID!) { unitHold(id: $id) { ${fields} } }`, { id })).unitHold;
const unitNow = async (id: string, person = owen) =>
  (
    await person.get(
      `query ($id: ID!) { unit(id: $id) { status price standardStatus activeHold { id } holds { id } } }`,
      { id },
    )
  ).unit;
const eventNames = async (id: string) =>
  (
    await world.owner.query<{ name: string }>(
      "select name from app_public.events where subject_id = $1 order by id",
      [id],
    )
  ).rows.map(({ name }) => name);
const hoursFromNow = (time: string) => Math.round((Date.parse(time) - Date.now()) / 3_600_000) + 0;

describe("a hold", () => {
  test("holds a unit for the hours of the project, and can be released", async () => {
    const home = await unit();
    const held = await hold({ unitId: home, notes: "Calls back tomorrow" });
    expect(held).toMatchObject({
      status: "ACTIVE",
      expiration: 24,
      extendedCount: 0,
      notes: "Calls back tomorrow",
      unit: { id: home, status: "HELD" },
      lot: null,
      lead: null,
      user: { id: owen.id },
      assignee: { id: owen.id },
      project: { id: project.id },
    });
    expect(hoursFromNow(held.expiresAt)).toBe(24);
    expect(await unitNow(home)).toMatchObject({
      status: "HELD",
      standardStatus: "HOLD",
      activeHold: { id: held.id },
      holds: [{ id: held.id }],
    });
    expect(await release(held.id)).toEqual({
      id: held.id,
      deleted: true,
      unit: { id: home, status: "AVAILABLE" },
      lot: null,
    });
    expect(await unitNow(home)).toMatchObject({ status: "AVAILABLE", activeHold: null, holds: [] });
    expect(await read(held.id)).toBeNull();
    expect(await refuse(owen, deletion, { id: held.id })).toMatchObject({ code: "NOT_FOUND", field: "id" });
    expect(await eventNames(held.id)).toEqual([
      "unit_hold.created",
      "unit_hold.released",
      "unit_hold.deleted",
    ]);
    expect(await eventNames(home)).toEqual(["unit.created", "unit.status_changed", "unit.status_changed"]);
  });

  test("claims a lot, and for a unit also its lot", async () => {
    const lots = await Promise.all(
      [1, 2].map((number) =>
        create("createLot", {
          projectId: project.id,
          number: `H${number}`,
          status: "AVAILABLE",
          price: 90_000,
        }),
      ),
    );
    const held = await hold({ lotId: lots[0], expiration: 2 });
    expect(held).toMatchObject({ expiration: 2, unit: null, lot: { id: lots[0], status: "HELD" } });
    expect(await refuseReserve({ lotId: lots[0] }, max)).toMatchObject({
      code: "INVENTORY_UNAVAILABLE",
      field: "lotId",
    });
    const home = await unit({ lotId: lots[1] });
    await hold({ unitId: home });
    expect(await refuseHold({ lotId: lots[1] })).toMatchObject({
      code: "INVENTORY_UNAVAILABLE",
      field: "lotId",
    });
    const { lot } = await owen.get(
      "query ($id: ID!) { lot(id: $id) { status activeHold { id } holds { id } } }",
      { id: lots[0] },
    );
    expect(lot).toEqual({ status: "HELD", activeHold: { id: held.id }, holds: [{ id: held.id }] });
  });

  test("expires at its end, and is never returned as active afterwards", async () => {
    const home = await unit();
    const held = await hold({ unitId: home, expiration: 3 });
    await passTime(world.owner, "4 hours");
    expect(await unitNow(home)).toMatchObject({ status: "AVAILABLE", activeHold: null });
    expect(await read(held.id)).toMatchObject({ status: "EXPIRED" });
    expect(await refuse(owen, deletion, { id: held.id })).toMatchObject({
      code: "CONFLICT",
      message: "This hold has ended: it is EXPIRED.",
    });
    expect(await refuse(owen, change, { id: held.id, expiration: 3 })).toMatchObject({ code: "CONFLICT" });
    expect(await eventNames(held.id)).toEqual(["unit_hold.created", "unit_hold.expired"]);
  });

  test("excludes all other uses of the home, whose status cannot be set manually", async () => {
    const home = await unit();
    const held = await hold({ unitId: home });
    const lena = await lead();
    const taken = { code: "INVENTORY_UNAVAILABLE", claimedUntil: held.expiresAt };
    expect(await refuseReserve({ unitId: home, leadId: lena }, max)).toMatchObject(taken);
    expect(await refuseReserve({ unitId: home }, max)).toMatchObject(taken);
    expect(await refuseHold({ unitId: home }, max)).toMatchObject({ ...taken, field: "unitId" });
    expect(await refuse(max, mutationOf("convertLead"), { leadId: lena, unitId: home })).toMatchObject(taken);
    expect(await refuse(owen, mutationOf("updateUnit"), { id: home, status: "OFF_MARKET" })).toMatchObject({
      code: "INVALID_TRANSITION",
      field: "status",
    });
    expect(await refuse(owen, mutationOf("deleteUnit", "{ id }"), { id: home })).toMatchObject({
      code: "CONFLICT",
      dependents: { claims: 1 },
    });
  });

  test("invalid values are refused with their field", async () => {
    const home = await unit();
    const lots = await create("createLot", { projectId: project.id, number: `X${++serial}` });
    for (const input of [{}, { unitId: home, lotId: lots }])
      expect(await refuseHold(input)).toMatchObject({ code: "BAD_USER_INPUT", field: "unitId" });
    expect(await refuseHold({ unitId: home, expiration: 0 })).toMatchObject({ code: "BAD_USER_INPUT" });
    expect(await refuseHold({ unitId: home, expiration: 73 })).toMatchObject({
      code: "BAD_USER_INPUT",
      field: "expiration",
      message: "The project allows at most 72 hours (holdExpirationLimit).",
    });
    expect(await refuseHold({ unitId: await unit({ status: "UNRELEASED" }) })).toMatchObject({
      code: "INVENTORY_UNAVAILABLE",
    });
    expect(await refuseHold({ unitId: home, leadId: world.leads.open.id })).toMatchObject({
      code: "NOT_FOUND",
      field: "leadId",
    });
    const lost = await lead();
    const { falloutReasons } = (
      await owen.get(`query ($id: ID!) { project(id: $id) { falloutReasons(first: 1) { id } } }`, project)
    ).project;
    await owen.get(mutationOf("updateLead"), {
      input: { id: lost, status: "LOST", falloutReasonId: falloutReasons[0].id },
    });
    expect(await refuseHold({ unitId: home, leadId: lost })).toMatchObject({
      code: "CONFLICT",
      field: "leadId",
    });
    await owen.get(mutationOf("updateProject"), { input: { id: project.id, status: "PAUSED" } });
    expect(await refuseHold({ unitId: home })).toMatchObject({ code: "CONFLICT" });
    await owen.get(mutationOf("updateProject"), { input: { id: project.id, status: "SELLING" } });
  });
});

describe("duration and maximum number", () => {
  test("is extended from now, up to the maximum of the project in total", async () => {
    const home = await unit();
    const { id } = await hold({ unitId: home, expiration: 48 });
    await passTime(world.owner, "40 hours");
    const extended = await update({ id, expiration: 24 });
    expect(extended).toMatchObject({ extendedCount: 1, expiration: 24, status: "ACTIVE" });
    expect(hoursFromNow(extended.expiresAt)).toBe(24);
    expect(await refuse(owen, change, { id, expiration: 33 })).toMatchObject({
      code: "BAD_USER_INPUT",
      field: "expiration",
    });
    await passTime(world.owner, "20 hours");
    expect(await unitNow(home)).toMatchObject({ status: "HELD" });
    expect(await update({ id, notes: "Still thinking" })).toMatchObject({ extendedCount: 1 });
    expect(await eventNames(id)).toEqual(["unit_hold.created", "unit_hold.extended", "unit_hold.updated"]);
    // A hold after a release continues the duration; for other people, or after as many hours, it starts
    // again.
    await release(id);
    const again = await hold({ unitId: home, expiration: 1 });
    expect(hoursFromNow(again.heldSince)).toBe(-60);
    expect(await refuse(owen, change, { id: again.id, expiration: 24 })).toMatchObject({
      code: "BAD_USER_INPUT",
    });
    await passTime(world.owner, "13 hours");
    expect(await read(again.id)).toMatchObject({ status: "EXPIRED" });
    expect(await refuseHold({ unitId: home })).toMatchObject({ code: "CONFLICT", field: "expiration" });
    const other = await hold({ unitId: home }, max);
    expect(hoursFromNow(other.heldSince)).toBe(0);
    await release(other.id, max);
    await passTime(world.owner, "72 hours");
    expect(hoursFromNow((await hold({ unitId: home })).heldSince)).toBe(0);
  });

  test("respects the limits per person and organization", async () => {
    const tower = await createProject(owen, {
      organizationId: world.harbour.id,
      title: "Small Tower",
      holdsPerPerson: 2,
      holdsPerOrganization: 3,
      holdExpiration: 5,
      holdExpirationLimit: 5,
    });
    await affiliate(world, tower, world.sisters, "BROKER");
    const homes = await Promise.all(Array.from({ length: 8 }, () => unit({ projectId: tower.id })));
    const mine = [await hold({ unitId: homes[0] }), await hold({ unitId: homes[1] })];
    expect(mine[0]).toMatchObject({ expiration: 5 });
    expect(await refuseHold({ unitId: homes[2] })).toMatchObject({ code: "LIMIT_EXCEEDED", limit: 2 });
    await hold({ unitId: homes[2] }, max);
    expect(await refuseHold({ unitId: homes[3] }, max)).toMatchObject({ code: "LIMIT_EXCEEDED", limit: 3 });
    // The limit of another organization is separate.
    await hold({ unitId: homes[3] }, sam);
    // Reserved and ended holds do not count.
    await reserve({ unitId: homes[0] });
    await hold({ unitId: homes[4] });
    await passTime(world.owner, "6 hours");
    // Concurrent holds do not exceed the limit.
    const answers = await Promise.all(
      homes.slice(4).map((unitId) => max.ask(creation, { input: { unitId } })),
    );
    expect(answers.filter(({ errors }) => !errors)).toHaveLength(2);
    for (const { errors } of answers.filter(({ errors: refusal }) => refusal))
      expect(errors![0]!.extensions).toMatchObject({ code: "LIMIT_EXCEEDED", limit: 2 });
    await owen.get(mutationOf("updateProject"), { input: { id: tower.id, holdsPerPerson: 0 } });
    const further = await unit({ projectId: tower.id });
    expect(await refuseHold({ unitId: further })).toMatchObject({ code: "LIMIT_EXCEEDED", limit: 0 });
    expect(
      await owen.refused(mutationOf("updateProject"), { input: { id: tower.id, holdExpiration: 6 } }),
    ).toMatchObject({
      code: "BAD_USER_INPUT",
      message: "A hold cannot last longer than holdExpirationLimit.",
    });
  });

  test("of twenty concurrent holds of a home, one succeeds", async () => {
    const home = await unit();
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, i) =>
        [owen, max, sam][i % 3]!.ask(creation, { input: { unitId: home } }),
      ),
    );
    const refusals = answers.flatMap(({ errors }) => errors ?? []);
    expect(refusals).toHaveLength(19);
    for (const { extensions } of refusals)
      expect(extensions).toMatchObject({ code: "INVENTORY_UNAVAILABLE", claimedUntil: expect.any(String) });
    const { rows } = await world.owner.query(
      "select count(*)::int from app_hidden.claims where unit_id = $1 and released_at is null",
      [home],
    );
    expect(rows).toEqual([{ count: 1 }]);
  });
});

describe("conversion", () => {
  test("becomes a reservation of the holder or the lead, at the list price of that time", async () => {
    const home = await unit();
    const lena = await lead();
    const held = await hold({ unitId: home, leadId: lena });
    await owen.get(mutationOf("updateUnit"), { input: { id: home, price: 450_000 } });
    const other = await lead();
    expect(await refuseReserve({ unitId: home, leadId: other })).toMatchObject({
      code: "INVENTORY_UNAVAILABLE",
    });
    expect(await reserve({ unitId: home })).toMatchObject({
      price: "400000.00",
      lead: { id: lena },
      unit: { status: "RESERVED" },
    });
    expect(await read(held.id)).toMatchObject({ status: "CONVERTED" });
    expect(await eventNames(held.id)).toEqual(["unit_hold.created", "unit_hold.converted"]);
    expect(await refuse(owen, deletion, { id: held.id })).toMatchObject({ code: "CONFLICT" });
    // The hours of the reservation apply now.
    await passTime(world.owner, "25 hours");
    expect(await unitNow(home)).toMatchObject({ status: "RESERVED", activeHold: null });
  });

  test("becomes a reservation by a colleague for its lead", async () => {
    const home = await unit();
    const lena = await lead();
    const held = await hold({ unitId: home });
    await update({ id: held.id, leadId: lena });
    expect(await reserve({ unitId: home, leadId: lena }, max)).toMatchObject({ lead: { id: lena } });
    const { lead: shown } = await owen.get("query ($id: ID!) { lead(id: $id) { status holds { status } } }", {
      id: lena,
    });
    expect(shown).toEqual({ status: "RESERVED", holds: [{ status: "CONVERTED" }] });
  });

  test("becomes a purchase, or an accepted offer", async () => {
    const [sold, offered] = [await unit(), await unit()];
    const [buys, offers] = [await lead(), await lead()];
    const first = await hold({ unitId: sold, leadId: buys });
    await owen.get(mutationOf("convertLead"), { input: { leadId: buys, unitId: sold } });
    expect(await read(first.id)).toMatchObject({ status: "CONVERTED", unit: { status: "SOLD" } });

    const second = await hold({ unitId: offered, leadId: offers });
    const negotiationId = await create("createNegotiation", { unitId: offered, leadId: offers });
    const offer = await create("createOffer", { negotiationId, side: "BUYER", price: 390_000 });
    await owen.get(mutationOf("createOfferResponse"), { input: { offerId: offer, action: "ACCEPT" } });
    expect(await read(second.id)).toMatchObject({ status: "CONVERTED", unit: { status: "PENDING" } });
    await passTime(world.owner, "30 hours");
    expect(await unitNow(offered)).toMatchObject({ status: "PENDING" });
  });
});

test("moves to the kept lead in a merge, also after its end", async () => {
  const phone = "+14165550909";
  const kept = await lead({ phone });
  const gone = await lead({ phone });
  const over = await hold({ unitId: await unit(), leadId: gone, expiration: 1 });
  await passTime(world.owner, "2 hours");
  const active = await hold({ unitId: await unit(), leadId: gone });
  const { rows } = await world.owner.query(
    "select id from app_public.escalation_tickets where kind = 'DUPLICATE_LEAD' and subject_id = $1",
    [gone],
  );
  await owen.get(
    `mutation ($id: ID!) { resolveEscalationTicket(input: { id: $id, action: MERGE }) { status } }`,
    {
      id: rows[0].id,
    },
  );
  for (const { id } of [over, active]) expect((await read(id)).lead).toEqual({ id: kept });
  expect(await refuse(owen, change, { id: over.id, leadId: await lead() })).toMatchObject({
    code: "CONFLICT",
    field: "leadId",
  });
});

describe("visibility", () => {
  test("is visible to sellers, with own leads or holds only in another organization, and to nobody else", async () => {
    const home = await unit();
    const samsLead = (await createLead(sam, { projectId: project.id, name: "Sasha" })).id;
    const nobodys = await lead();
    const buyer = await signUpBuyer(world);
    const reader = await programOf(world, owen, { scopes: ["inventory.read", "project.read", "sale.read"] });

    expect(await refuseHold({ unitId: home, leadId: nobodys }, sam)).toMatchObject({
      code: "NOT_FOUND",
      field: "leadId",
    });
    for (const [person, code] of [
      [world.bob, "FORBIDDEN"],
      [reader, "FORBIDDEN"],
      [world.olga, "NOT_FOUND"],
      [buyer.person, "NOT_FOUND"],
      [world.anonymous, "UNAUTHENTICATED"],
    ] as const)
      expect([code, (await refuseHold({ unitId: home }, person)).code]).toEqual([code, code]);

    const held = await hold({ unitId: home, leadId: samsLead }, sam);
    expect(held).toMatchObject({ user: { id: sam.id }, assignee: { id: sam.id } });
    const own = await hold({ unitId: await unit() });
    for (const [person, ids] of [
      [sam, [held.id]],
      [reader, [held.id, own.id]],
      [max, [held.id, own.id]],
      [world.bob, []],
      [world.olga, []],
      [buyer.person, []],
    ] as const) {
      const { unitHolds, unitHoldsConnection } = await person.get(
        `query ($filter: UnitHoldsFilter) { unitHolds(filter: $filter) { id }
           unitHoldsConnection(filter: $filter) { totalCount } }`,
        { filter: { projectIds: [project.id], status: ["ACTIVE"] } },
      );
      const seen = unitHolds.map(({ id }: { id: string }) => id);
      for (const id of [held.id, own.id])
        expect([person.email, seen.includes(id)]).toEqual([
          person.email,
          (ids as readonly string[]).includes(id),
        ]);
      expect(unitHoldsConnection.totalCount).toBe(unitHolds.length);
    }
    expect((await world.anonymous.refused("{ unitHolds { id } }")).code).toBe("UNAUTHENTICATED");
    for (const person of [sam, world.bob, world.olga, buyer.person]) {
      expect(await read(own.id, person)).toBeNull();
      expect((await refuse(person, deletion, { id: own.id })).code).toBe("NOT_FOUND");
      expect((await refuse(person, change, { id: own.id, expiration: 1 })).code).toBe("NOT_FOUND");
    }
    for (const document of [deletion, change])
      expect((await refuse(reader, document, { id: own.id })).code).toBe("FORBIDDEN");
    expect((await world.anonymous.refused(deletion, { input: { id: own.id } })).code).toBe("UNAUTHENTICATED");
    // A visitor of a public page sees that it is held, but not by whom or until when.
    const shown = await create("createUnit", {
      projectId: world.park.id,
      title: "Shown",
      status: "AVAILABLE",
      price: 1,
    });
    await hold({ unitId: shown });
    expect(
      (
        await world.anonymous.get(
          `query ($id: ID!) { unit(id: $id) { status price activeHold { id } holds { id } } }`,
          { id: shown },
        )
      ).unit,
    ).toEqual({ status: "HELD", price: null, activeHold: null, holds: null });
    expect(await refuseHold({ unitId: shown }, world.olga)).toMatchObject({ code: "FORBIDDEN" });

    // The lead's next assignee can use the hold too; the team can release holds of others.
    await owen.get(mutationOf("updateLead"), { input: { id: samsLead, assigneeId: max.id } });
    expect(await read(held.id, sam)).toBeNull();
    expect(await read(held.id, max)).toMatchObject({ assignee: { id: max.id } });
    await release(held.id, max);
  });

  test("a request that is repeated under its key returns the same hold", async () => {
    const home = await unit();
    const input = { unitId: home, idempotencyKey: "hold once" };
    expect((await hold(input)).id).toBe((await hold(input)).id);
  });
});
