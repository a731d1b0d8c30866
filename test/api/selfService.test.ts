/** Reservations by visitors: projects that allow them, their confirmation, and the maximum number of homes. */
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import type { Person } from "../harness/api.ts";
import { passTime } from "../harness/clock.ts";
import { representative, startPayments, type Payments } from "../harness/payments.ts";
import { createLead, createProject } from "../harness/portfolio.ts";
import { createIn, mutationOf, type Create } from "../harness/records.ts";
import { setConfirmed } from "../harness/signUp.ts";
import { digest } from "../harness/expectUnchanged.ts";
import { programOf } from "../harness/world.ts";

let world: Payments;
let owen: Person;
let create: Create;
/** A public project in which visitors can reserve, for a fee. */
let tower: { id: string };
/** A public project in which visitors can reserve without a fee. */
let villas: { id: string };
let serial = 0;

beforeAll(async () => {
  world = await startPayments();
  owen = world.owen;
  create = createIn(owen);
  const open = (input: Record<string, unknown>) =>
    createProject(owen, {
      organizationId: world.harbour.id,
      visibility: "PUBLIC",
      publicReservations: true,
      publicHoldExpiration: 2,
      reservationExpiration: 72,
      ...input,
    });
  tower = await open({ title: "Open Tower", reservationFee: 500 });
  villas = await open({ title: "Open Villas", reservationFee: 500, publicReservationFeeRequired: false });
  await allowNetwork(1000);
  await run(owen, "createOrganizationPaymentsRepresentative", {
    ...representative,
    organizationId: world.harbour.id,
  });
});
afterAll(() => world.stop());

/** Sets the maximum number of homes that visitors of one network may hold at a time. */
const allowNetwork = (most: number) =>
  world.owner.query(
    `insert into app_private.limit_changes (name, most, reason) values ('visitor_hold.network', $1, 'A test.')
     on conflict (name) do update set most = excluded.most`,
    [most],
  );

const run = async (person: Person, field: string, input: Record<string, unknown>, members = "{ id }") =>
  (await person.get(mutationOf(field, members), { input }))[field];
const unit = (input: Record<string, unknown> = {}) =>
  create("createUnit", {
    projectId: tower.id,
    title: `Home ${++serial}`,
    status: "AVAILABLE",
    price: 400_000,
    ...input,
  });
const holding = `{ id status expiration expiresAt isSelfService heldPrice notes lead { id } user { id } assignee { id } }`;
const reserving = `{ id number status isSelfService expiresAt expiration price lead { id } buyer { id } notes
  unit { id status } feeDeposit { id status amountDue } deposits { id } allowedTransitions { to } }`;
const hold = (person: Person, unitId: string) => run(person, "createUnitHold", { unitId }, holding);
const reserve = (person: Person, unitId: string, input: Record<string, unknown> = {}) =>
  run(person, "createReservation", { unitId, acceptedTerms: true, ...input }, reserving);
const read = async (person: Person, id: string) =>
  (await person.get(`query ($id: ID!) { reservation(id: $id) ${reserving} }`, { id })).reservation;
const pay = async (person: Person, depositId: string, amount = "500.00", token = "tok_visa") => {
  const { id: cardId } = await run(person, "createProcessorCard", { token });
  return run(person, "createPaymentIntent", { depositId, amount, cardId }, "{ status nextActionUrl }");
};
const refuse = async (person: Person, field: string, input: Record<string, unknown>) => {
  const tables = ["unit_holds", "units", "reservations", "leads", "deposits", "events"].map(
    (name) => `app_public.${name}`,
  );
  const before = await digest(world, tables);
  const refusal = await person.refused(mutationOf(field), {
    input: field === "createReservation" ? { acceptedTerms: true, ...input } : input,
  });
  expect(await digest(world, tables)).toEqual(before);
  return refusal;
};
const hoursFromNow = (time: string) => Math.round((Date.parse(time) - Date.now()) / 3_600_000) + 0;
const unitNow = async (id: string, person: Person = world.anonymous) =>
  (await person.get("query ($id: ID!) { unit(id: $id) { status price activeHold { id } } }", { id })).unit;
const actors = async (id: string) =>
  (
    await world.owner.query<{ name: string; actor_type: string }>(
      "select name, actor_type from app_public.events where subject_id = $1 order by id",
      [id],
    )
  ).rows.map(({ name, actor_type }) => `${name} ${actor_type}`);

describe("a visitor", () => {
  test("holds a home, reserves it and pays the fee; the team sees a lead with a reservation", async () => {
    const vera = await world.signUp("Vera Visitor");
    const home = await unit();
    expect(
      (
        await world.anonymous.get(
          "query ($id: ID!) { project(id: $id) { publicReservations publicReservationFeeRequired publicHoldExpiration reservationFee } }",
          tower,
        )
      ).project,
    ).toEqual({
      publicReservations: true,
      publicReservationFeeRequired: true,
      publicHoldExpiration: 2,
      reservationFee: "500.00",
    });
    const held = await hold(vera, home);
    expect(held).toMatchObject({
      status: "ACTIVE",
      expiration: 2,
      isSelfService: true,
      heldPrice: "400000.00",
      user: { id: vera.id },
      assignee: null,
    });
    expect(hoursFromNow(held.expiresAt)).toBe(2);
    expect(await unitNow(home)).toEqual({ status: "HELD", price: null, activeHold: null });
    expect(await unitNow(home, vera)).toMatchObject({ status: "HELD", activeHold: { id: held.id } });
    const seen = await owen.get(
      `query ($id: ID!) { unitHold(id: $id) { lead { id name firstName lastName email origin source status } } }`,
      { id: held.id },
    );
    expect(seen.unitHold.lead).toMatchObject({
      name: "Vera Visitor",
      firstName: "Vera",
      lastName: "Visitor",
      email: vera.email,
      origin: "RESERVATION",
      source: "WEB_DIRECT",
      status: "NEW",
    });
    // She sees the hold, but not the lead.
    expect(held.lead).toBeNull();

    const reservation = await reserve(vera, home, { buyerLegalName: "Vera Visitor" });
    expect(reservation).toMatchObject({
      status: "PENDING",
      isSelfService: true,
      price: "400000.00",
      expiresAt: held.expiresAt,
      buyer: { id: vera.id },
      unit: { status: "RESERVED" },
      feeDeposit: { status: "SCHEDULED", amountDue: "500.00" },
    });
    expect((await read(owen, reservation.id)).lead.id).toBe(seen.unitHold.lead.id);
    const { status } = await pay(vera, reservation.feeDeposit.id);
    expect(status).toBe("SUCCEEDED");
    const confirmed = await read(vera, reservation.id);
    expect(confirmed).toMatchObject({ status: "CONFIRMED", feeDeposit: { status: "PAID" } });
    expect(hoursFromNow(confirmed.expiresAt)).toBe(72);
    const { lead, reservations } = await owen.get(
      `query ($id: ID!, $project: ID!) { lead(id: $id) { status reservations { id } }
         reservations(filter: { projectIds: [$project] }) { id isSelfService } }`,
      { id: seen.unitHold.lead.id, project: tower.id },
    );
    expect(lead).toEqual({ status: "RESERVED", reservations: [{ id: reservation.id }] });
    expect(reservations).toEqual([{ id: reservation.id, isSelfService: true }]);
    expect(await actors(held.id)).toEqual(["unit_hold.created BUYER", "unit_hold.converted BUYER"]);
    expect((await actors(reservation.id)).slice(0, 2)).toEqual([
      "reservation.created BUYER",
      expect.stringMatching(/^reservation\.confirmed /),
    ]);
    // The reservation outlasts the hold.
    await passTime(world.owner, "3 hours");
    expect(await read(vera, reservation.id)).toMatchObject({
      status: "CONFIRMED",
      unit: { status: "RESERVED" },
    });
    // She can cancel it.
    expect(
      await run(
        vera,
        "updateReservation",
        { id: reservation.id, status: "CANCELLED", cancellationReason: "Changed my mind" },
        "{ status }",
      ),
    ).toEqual({ status: "CANCELLED" });
    expect(await read(owen, reservation.id)).toMatchObject({ feeDeposit: { status: "PAID" } });
  });

  test("loses it without a payment in time, and cannot hold the home again for a day", async () => {
    const vic = await world.signUp("Vic Visitor");
    const home = await unit();
    const { id, feeDeposit } = await reserve(vic, home);
    await passTime(world.owner, "3 hours");
    expect(await unitNow(home)).toMatchObject({ status: "AVAILABLE" });
    expect(await read(vic, id)).toMatchObject({ status: "EXPIRED", feeDeposit: { status: "CANCELLED" } });
    const { id: cardId } = await run(vic, "createProcessorCard", { token: "tok_visa" });
    expect(
      (
        await vic.refused(mutationOf("createPaymentIntent"), {
          input: { depositId: feeDeposit.id, amount: "500.00", cardId },
        })
      ).code,
    ).toBe("CONFLICT");
    for (const field of ["createUnitHold", "createReservation"])
      expect(await refuse(vic, field, { unitId: home })).toMatchObject({ code: "CONFLICT", field: "unitId" });
    await passTime(world.owner, "24 hours");
    await hold(vic, home);
  });

  test("can release a hold", async () => {
    const vivi = await world.signUp("Vivi Visitor");
    const other = await world.signUp("Otto Other");
    const home = await unit();
    const { id } = await hold(vivi, home);
    expect((await refuse(other, "createUnitHold", { unitId: home })).code).toBe("INVENTORY_UNAVAILABLE");
    expect((await refuse(other, "createReservation", { unitId: home })).code).toBe("INVENTORY_UNAVAILABLE");
    expect((await refuse(other, "deleteUnitHold", { id })).code).toBe("NOT_FOUND");
    expect((await refuse(vivi, "updateUnitHold", { id, expiration: 70 })).code).toBe("FORBIDDEN");
    expect((await vivi.get("{ unitHolds { id } }")).unitHolds).toEqual([{ id }]);
    expect((await other.get("{ unitHolds { id } }")).unitHolds).toEqual([]);
    await run(vivi, "deleteUnitHold", { id });
    expect(await unitNow(home)).toMatchObject({ status: "AVAILABLE" });
    await hold(other, home);
  });

  test("without a fee, reserves for the hours of the project until the team confirms it", async () => {
    const vito = await world.signUp("Vito Visitor");
    const { id, expiresAt, feeDeposit } = await reserve(vito, await unit({ projectId: villas.id }));
    expect(hoursFromNow(expiresAt)).toBe(72);
    expect(feeDeposit).toMatchObject({ status: "SCHEDULED" });
    await passTime(world.owner, "70 hours");
    expect(await run(owen, "updateReservation", { id, status: "CONFIRMED" }, "{ status }")).toEqual({
      status: "CONFIRMED",
    });
    expect(hoursFromNow((await read(vito, id)).expiresAt)).toBe(72);
  });

  test("is the existing lead with their address, unless that is closed", async () => {
    const vita = await world.signUp("Vita Visitor");
    const known = await createLead(owen, { projectId: tower.id, name: "V. V.", email: vita.email });
    const { id } = await hold(vita, await unit());
    const leadOf = async (holdId: string) =>
      (await owen.get("query ($id: ID!) { unitHold(id: $id) { lead { id } } }", { id: holdId })).unitHold.lead
        .id;
    expect(await leadOf(id)).toBe(known.id);
    const { falloutReasons } = (
      await owen.get("query ($id: ID!) { project(id: $id) { falloutReasons(first: 1) { id } } }", tower)
    ).project;
    await run(vita, "deleteUnitHold", { id });
    await run(owen, "updateLead", { id: known.id, status: "LOST", falloutReasonId: falloutReasons[0].id });
    const again = await hold(vita, await unit());
    expect(await leadOf(again.id)).not.toBe(known.id);
  });

  test("can try another card after a refusal, and is confirmed when the whole fee is paid, also in parts", async () => {
    const vala = await world.signUp("Vala Visitor");
    const { id, feeDeposit } = await reserve(vala, await unit());
    expect((await pay(vala, feeDeposit.id, "500.00", "tok_chargeCustomerFail")).status).toBe(
      "REQUIRES_PAYMENT_METHOD",
    );
    expect(await read(vala, id)).toMatchObject({ status: "PENDING", feeDeposit: { status: "INVOICED" } });
    await pay(vala, feeDeposit.id, "200.00");
    expect(await read(vala, id)).toMatchObject({
      status: "PENDING",
      feeDeposit: { status: "PARTIALLY_PAID" },
    });
    await pay(vala, feeDeposit.id, "300.00");
    expect(await read(vala, id)).toMatchObject({ status: "CONFIRMED" });
  });
});

describe("refusals", () => {
  test("if the project does not allow it; invisible projects are reported as unknown", async () => {
    const viktor = await world.signUp("Viktor Visitor");
    const off = await createProject(owen, {
      organizationId: world.harbour.id,
      title: "By Appointment",
      visibility: "PUBLIC",
    });
    const inOff = await unit({ projectId: off.id });
    const hidden = await unit({ projectId: world.project.id });
    const unreleased = await unit({ status: "UNRELEASED" });
    const nowhere = "01900000-0000-7000-8000-000000000000";
    for (const field of ["createUnitHold", "createReservation"]) {
      expect(await refuse(viktor, field, { unitId: inOff })).toMatchObject({
        code: "FORBIDDEN",
        permission: "sale.write",
      });
      const unknown = await refuse(viktor, field, { unitId: nowhere });
      expect(unknown).toMatchObject({ code: "NOT_FOUND", field: "unitId" });
      // Equal except for the request id.
      for (const unitId of [hidden, unreleased])
        expect(await refuse(viktor, field, { unitId })).toEqual({ ...unknown, requestId: expect.anything() });
      expect((await refuse(world.anonymous, field, { unitId: inOff })).code).toBe("UNAUTHENTICATED");
    }
    // No longer possible after the unit is taken off the market, or the project is paused or private.
    const home = await unit();
    await run(owen, "updateProject", { id: tower.id, status: "PAUSED" });
    expect((await refuse(viktor, "createUnitHold", { unitId: home })).code).toBe("FORBIDDEN");
    await run(owen, "updateProject", { id: tower.id, status: "SELLING" });
    await run(owen, "updateProject", { id: tower.id, visibility: "PRIVATE" });
    expect((await refuse(viktor, "createUnitHold", { unitId: home })).code).toBe("NOT_FOUND");
    await run(owen, "updateProject", { id: tower.id, visibility: "PUBLIC" });
    await hold(viktor, home);
  });

  test("of visitors with an unconfirmed address, and of tokens without the scope for own deals", async () => {
    const una = await world.signUp("Una Unconfirmed");
    const home = await unit();
    await setConfirmed(world.owner, una.id!, false);
    for (const field of ["createUnitHold", "createReservation"])
      expect(await refuse(una, field, { unitId: home })).toMatchObject({
        code: "FORBIDDEN",
        reason: "EMAIL_NOT_CONFIRMED",
      });
    await setConfirmed(world.owner, una.id!, true);
    const reader = await programOf(world, una, { scopes: ["project.read"] });
    expect((await refuse(reader, "createUnitHold", { unitId: home })).code).toBe("FORBIDDEN");
    const own = await programOf(world, una, { scopes: ["purchase.own"] });
    const { id } = await hold(own, home);
    expect((await reader.get("query ($id: ID!) { unitHold(id: $id) { id } }", { id })).unitHold).toBeNull();
  });

  test("decisions of the sales team", async () => {
    const vigo = await world.signUp("Vigo Visitor");
    const unitId = await unit();
    for (const input of [
      { notes: "VIP" },
      { expiration: 700 },
      { metadata: { a: 1 } },
      { status: "CONFIRMED" },
    ])
      expect((await refuse(vigo, "createReservation", { unitId, ...input })).code).toBe("FORBIDDEN");
    for (const input of [{ notes: "VIP" }, { expiration: 72 }])
      expect((await refuse(vigo, "createUnitHold", { unitId, ...input })).code).toBe("FORBIDDEN");
    const { id, feeDeposit, allowedTransitions } = await reserve(vigo, unitId);
    expect(allowedTransitions).toEqual([{ to: "CANCELLED" }]);
    for (const input of [{ status: "CONFIRMED" }, { expiration: 72 }, { price: 1 }])
      expect((await refuse(vigo, "updateReservation", { id, ...input })).code).toBe("FORBIDDEN");
    expect((await refuse(vigo, "updateDeposit", { id: feeDeposit.id, amountPaid: 500 })).code).toBe(
      "FORBIDDEN",
    );
  });

  test("of a third home at a time, and of too many from one network", async () => {
    const homes = await Promise.all(Array.from({ length: 6 }, () => unit()));
    const vlad = await world.signUp("Vlad Visitor");
    const answers = await Promise.all(
      homes.slice(0, 4).map((unitId) => vlad.ask(mutationOf("createUnitHold"), { input: { unitId } })),
    );
    expect(answers.filter(({ errors }) => !errors)).toHaveLength(2);
    expect(answers.flatMap(({ errors }) => errors ?? [])[0]!.extensions).toMatchObject({
      code: "RATE_LIMITED",
      retryAfterSeconds: expect.any(Number),
    });
    // Releasing them does not restore the limit, so that nobody can hold all homes one after the other.
    for (const { data } of answers)
      if (data.createUnitHold) await run(vlad, "deleteUnitHold", { id: data.createUnitHold.id });
    expect((await refuse(vlad, "createUnitHold", { unitId: homes[4] })).code).toBe("RATE_LIMITED");
    await allowNetwork(1);
    const next = await world.signUp("Nora Next");
    expect((await refuse(next, "createUnitHold", { unitId: homes[5] })).code).toBe("RATE_LIMITED");
    await allowNetwork(1000);
  });

  test("of twenty concurrent visitors, one gets the home", async () => {
    const people = await Promise.all(Array.from({ length: 20 }, (_, i) => world.signUp(`Racer ${i}`)));
    const unitId = await unit();
    const answers = await Promise.all(
      people.map((person, i) =>
        person.ask(mutationOf(i % 2 ? "createUnitHold" : "createReservation"), {
          input: i % 2 ? { unitId } : { unitId, acceptedTerms: true },
        }),
      ),
    );
    const codes = answers.flatMap(({ errors }) => errors ?? []).map(({ extensions }) => extensions.code);
    expect(codes).toEqual(Array(19).fill("INVENTORY_UNAVAILABLE"));
    // The others created no lead.
    const { rows } = await world.owner.query(
      "select count(*)::int from app_public.leads where project_id = $1 and name like 'Racer %'",
      [tower.id],
    );
    expect(rows).toEqual([{ count: 1 }]);
  });
});
