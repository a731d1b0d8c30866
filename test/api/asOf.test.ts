/** Units, reservations and price lists as they were at a time. */
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import type { Person } from "../harness/api.ts";
import { signUpBuyer } from "../harness/deals.ts";
import { startPortfolio, type Portfolio } from "../harness/portfolio.ts";
import { randomFrom } from "../harness/random.ts";
import { createIn, mutationOf } from "../harness/records.ts";
import { programOf } from "../harness/world.ts";

let world: Portfolio;
beforeAll(async () => {
  world = await startPortfolio();
});
afterAll(() => world.stop());

const unitFields = `projectId floorPlanId title number level status statusChangedAt price originalListPrice currency bedrooms baths sqft
  hoaFee orientation address { thoroughfare country } model constructionStatus listingDate estimatedDeliveryDate moveInReady soldAt
  soldPrice metadata`;
const reservationFields =
  "projectId unitId leadId status price listPriceSnapshot buyerLegalName expiresAt extendedCount cancelledAt cancellationReason notes metadata";
const UNIT_AS_OF = `query ($id: ID!, $at: DateTime!) { unitAsOf(id: $id, at: $at) { unitId ${unitFields} } }`;
const RESERVATION_AS_OF = `query ($id: ID!, $at: DateTime!) { reservationAsOf(id: $id, at: $at) { reservationId ${reservationFields} } }`;
const UNITS_AS_OF = `query ($projectId: ID!, $at: DateTime!) { unitsAsOf(projectId: $projectId, at: $at) { unitId price status } }`;

const now = async (): Promise<string> =>
  (await world.owner.query("select to_json(clock_timestamp()) #>> '{}' as at")).rows[0].at;
const change = (field: string, input: object, person = world.owen) =>
  person.get(mutationOf(field), { input });
const unitAsOf = async (id: string, at: string, person = world.owen) =>
  (await person.get(UNIT_AS_OF, { id, at })).unitAsOf;
const reservationAsOf = async (id: string, at: string, person = world.owen) =>
  (await person.get(RESERVATION_AS_OF, { id, at })).reservationAsOf;
const pricesAsOf = async (at: string, person = world.owen) =>
  (await person.get(UNITS_AS_OF, { projectId: world.project.id, at })).unitsAsOf;

const home = (input: object = {}) =>
  createIn(world.owen)("createUnit", {
    projectId: world.project.id,
    title: "Home",
    status: "AVAILABLE",
    price: "400000.00",
    ...input,
  });

test("every former state of a unit is rebuilt, with the floor plans as they were", async () => {
  const create = createIn(world.owen);
  const random = randomFrom(19);
  const plans: string[] = [];
  for (const bedrooms of [1, 2])
    plans.push(
      await create("createFloorPlan", {
        projectId: world.project.id,
        title: `Plan ${bedrooms}`,
        status: "ACTIVE",
        bedrooms,
        baths: 1,
        sqft: 500,
        hoaFee: "100.00",
      }),
    );
  const before = await now();
  const id = await home({ floorPlanId: plans[0], number: "7" });
  const read = async () =>
    (await world.owen.get(`query ($id: ID!) { unit(id: $id) { ${unitFields} } }`, { id })).unit;
  const states: { at: string; state: object }[] = [];
  const oneOf = <T>(...values: T[]): T => values[random(values.length)]!;
  const steps: (() => Promise<unknown>)[] = [
    () => change("updateUnit", { id, price: `${300 + random(200)}000.00` }),
    () => change("updateUnit", { id, title: `Home ${random(9)}`, level: random(30) }),
    () => change("updateUnit", { id, bedrooms: oneOf(null, 3), orientation: oneOf(null, "N", "S") }),
    () => change("updateUnit", { id, floorPlanId: oneOf(...plans, null) }),
    () => change("updateUnit", { id, status: oneOf("AVAILABLE", "OFF_MARKET") }),
    () => change("updateUnit", { id, metadata: oneOf(null, { note: random(9) }) }),
    () => change("updateUnit", { id, address: oneOf(null, { thoroughfare: `${random(9)} High Street` }) }),
    () => change("updateUnit", { id, constructionStatus: oneOf("NOT_STARTED", "COMPLETED") }),
    () => change("updateUnit", { id, estimatedDeliveryDate: oneOf(null, "2030-02-17") }),
    () =>
      change("updateFloorPlan", { id: oneOf(...plans), bedrooms: 1 + random(5), hoaFee: `${random(99)}.00` }),
  ];
  for (let step = 0; step < 40; step++) {
    states.push({ state: await read(), at: await now() });
    await steps[random(steps.length)]!();
  }
  states.push({ state: await read(), at: await now() });
  for (const { at, state } of states) expect(await unitAsOf(id, at)).toEqual({ unitId: id, ...state });
  expect(new Set(states.map(({ state }) => JSON.stringify(state))).size).toBeGreaterThan(20);
  expect(await unitAsOf(id, before)).toBeNull();
});

test("a price list is that of the time, from as many statements for many units as for one", async () => {
  const first = await home({ price: "100000.00" });
  const one = await now();
  const second = await home({ price: "200000.00" });
  const two = await now();
  await change("updateUnit", { id: first, price: "110000.00" });
  await change("updateUnit", { id: second, status: "OFF_MARKET" });
  const priced = async (at: string) =>
    (await pricesAsOf(at)).filter(({ unitId }: { unitId: string }) => [first, second].includes(unitId));
  expect(await priced(one)).toEqual([{ unitId: first, price: "100000.00", status: "AVAILABLE" }]);
  expect(await priced(two)).toEqual([
    { unitId: first, price: "100000.00", status: "AVAILABLE" },
    { unitId: second, price: "200000.00", status: "AVAILABLE" },
  ]);
  expect(await priced(await now())).toEqual([
    { unitId: first, price: "110000.00", status: "AVAILABLE" },
    { unitId: second, price: "200000.00", status: "OFF_MARKET" },
  ]);
  const list = (amount: number) =>
    world.statements(() =>
      world.owen.get(
        "query ($projectId: ID!, $at: DateTime!, $first: Int) { unitsAsOf(projectId: $projectId, at: $at, first: $first) { unitId price } }",
        { projectId: world.project.id, at: two, first: amount },
      ),
    );
  await list(1);
  expect((await list(100)).count).toBe((await list(1)).count);
  await change("deleteUnit", { id: second });
  expect(await priced(two)).toEqual([{ unitId: first, price: "100000.00", status: "AVAILABLE" }]);
  expect(await unitAsOf(second, two)).toBeNull();
});

test("only who sees a unit with its prices now sees its past", async () => {
  const { owen, ada, max, sam, bob, olga, anonymous } = world;
  const { person: bea } = await signUpBuyer(world);
  const id = await home();
  const at = await now();
  await change("updateUnit", { id, price: "450000.00" });
  for (const person of [owen, ada, max, sam]) {
    expect(await unitAsOf(id, at, person)).toMatchObject({ price: "400000.00" });
    expect(await pricesAsOf(at, person)).toContainEqual({
      unitId: id,
      price: "400000.00",
      status: "AVAILABLE",
    });
  }
  const restricted = await programOf(world, owen, { scopes: ["lead.read"] });
  const auditor = await programOf(world, owen, { scopes: ["audit.read"] });
  for (const person of [bob, bea, olga, restricted, auditor]) {
    expect(await unitAsOf(id, at, person)).toBeNull();
    expect(await pricesAsOf(at, person)).toEqual([]);
  }
  const reader = await programOf(world, owen, { scopes: ["inventory.read", "project.read"] });
  expect(await unitAsOf(id, at, reader)).toMatchObject({ price: "400000.00" });
  expect((await anonymous.refused(UNIT_AS_OF, { id, at })).code).toBe("UNAUTHENTICATED");
  expect((await anonymous.refused(UNITS_AS_OF, { projectId: world.project.id, at })).code).toBe(
    "UNAUTHENTICATED",
  );
});

test("a unit that is for sale to everybody shows its former prices to nobody else", async () => {
  const create = createIn(world.owen);
  const projectId = world.park.id;
  const id = await create("createUnit", {
    projectId,
    title: "Home",
    status: "AVAILABLE",
    price: "400000.00",
  });
  const at = await now();
  await change("updateUnit", { id, price: "450000.00" });
  expect((await world.olga.get("query ($id: ID!) { unit(id: $id) { price } }", { id })).unit).toEqual({
    price: "450000.00",
  });
  expect(await unitAsOf(id, at, world.olga)).toBeNull();
  expect((await world.olga.get(UNITS_AS_OF, { projectId, at })).unitsAsOf).toEqual([]);
  expect(await unitAsOf(id, at)).toMatchObject({ price: "400000.00" });
});

test("what was sold for is masked in a former state for who may not read it", async () => {
  const id = await home();
  await world.owner.query(
    "update app_public.units set sold_price = 410000.00, metadata = '{\"margin\": 12}' where id = $1",
    [id],
  );
  const at = await now();
  await change("updateUnit", { id, title: "A home" });
  await world.owner.query("update app_public.units set sold_price = null, metadata = null where id = $1", [
    id,
  ]);
  const reader = await programOf(world, world.owen, { scopes: ["inventory.read", "project.read"] });
  expect(await unitAsOf(id, at)).toMatchObject({
    title: "Home",
    soldPrice: "410000.00",
    metadata: { margin: 12 },
  });
  expect(await unitAsOf(id, at, reader)).toMatchObject({
    title: "Home",
    soldPrice: null,
    metadata: { margin: 12 },
  });
});

test("every former state of a reservation is rebuilt, for those who see it now, without what was erased", async () => {
  const { owen, sam, max, olga, bob, anonymous, leads } = world;
  const create = createIn(owen);
  const read = async () =>
    (await owen.get(`query ($id: ID!) { reservation(id: $id) { ${reservationFields} } }`, { id }))
      .reservation;
  const unitId = await home();
  const id = await create("createReservation", { unitId, leadId: leads.sams.id, acceptedTerms: true });
  const states: { at: string; state: object }[] = [];
  const steps = [
    { price: "390000.00", notes: "haggles" },
    { status: "CONFIRMED", buyerLegalName: "Sally Sams" },
    { metadata: { a: 1 }, notes: null },
    { expiration: 100 },
    { status: "CANCELLED", cancellationReason: "moved" },
  ];
  for (const input of steps) {
    states.push({ state: await read(), at: await now() });
    await change("updateReservation", { id, ...input });
  }
  states.push({ state: await read(), at: await now() });
  for (const { at, state } of states) {
    expect(await reservationAsOf(id, at)).toEqual({ reservationId: id, ...state });
    expect(await reservationAsOf(id, at, sam)).toEqual({ reservationId: id, ...state });
  }
  const { at } = states[1]!;
  expect(await reservationAsOf(id, at, max)).toMatchObject({ notes: "haggles" });
  const restricted = await programOf(world, owen, { scopes: ["inventory.read"] });
  const { person: bea } = await signUpBuyer(world, "Bea Other");
  for (const person of [olga, bob, bea, restricted] as Person[])
    expect(await reservationAsOf(id, at, person)).toBeNull();
  expect((await anonymous.refused(RESERVATION_AS_OF, { id, at })).code).toBe("UNAUTHENTICATED");
  // Now of another lead's seller: who had it before sees nothing of it.
  await change("updateLead", { id: leads.sams.id, assigneeId: owen.id });
  expect(await reservationAsOf(id, at, sam)).toBeNull();
  expect(await reservationAsOf(id, at)).toMatchObject({ notes: "haggles" });

  // What is masked depends on who works on it now.
  const meanwhile = await now();
  await change("updateLead", { id: leads.sams.id, assigneeId: sam.id });
  expect(await reservationAsOf(id, meanwhile, sam)).toMatchObject({
    status: "CANCELLED",
    cancellationReason: "moved",
  });

  await change("erasePerson", { leadId: leads.sams.id, reason: "asked" });
  expect(await reservationAsOf(id, at)).toMatchObject({ status: "PENDING", price: "390000.00", notes: null });
});

test("a buyer who reserved sees the reservation, and not its past", async () => {
  const { person: bea } = await signUpBuyer(world, "Bea Reserver");
  const id = await createIn(bea)("createReservation", { unitId: await home(), acceptedTerms: true });
  const at = await now();
  expect((await bea.get("query ($id: ID!) { reservation(id: $id) { id } }", { id })).reservation).toEqual({
    id,
  });
  expect(await reservationAsOf(id, at, bea)).toBeNull();
  expect(await reservationAsOf(id, at)).toMatchObject({ status: "PENDING" });
});

test("a time in the future is refused, and one since which changes are no longer kept", async () => {
  const id = await home();
  const at = await now();
  const ahead = { code: "BAD_USER_INPUT", field: "at" };
  const future = "2999-01-01T00:00:00Z";
  expect(await world.owen.refused(UNIT_AS_OF, { id, at: future })).toMatchObject(ahead);
  expect(await world.owen.refused(UNITS_AS_OF, { projectId: world.project.id, at: future })).toMatchObject(
    ahead,
  );
  await change("updateUnit", { id, title: "A home" });
  const later = await now();
  await change("updateUnit", { id, title: "The home" });
  // As the daily task empties old events.
  await world.owner.query(`do $$ begin
    perform app_private.set_erasing(true);
    update app_public.events set data = '{}', changes = null, erased_at = now()
      where subject_id = '${id}' and occurred_at < '${later}';
  end $$`);
  expect(await world.owen.refused(UNIT_AS_OF, { id, at })).toMatchObject(ahead);
  expect(await unitAsOf(id, later)).toMatchObject({ title: "A home" });
  expect(await unitAsOf(id, at, world.olga)).toBeNull();
});

test("a history that is too long to be undone at once is refused, one of another record does not count", async () => {
  const [id, other] = [await home(), await home()];
  const at = await now();
  await change("updateUnit", { id, title: "Short" });
  const { rows } = await world.owner.query<{ id: string }>(
    `insert into app_public.events (stream_id, organization_id, project_id, sequence, name, subject_type, subject_id, actor_type, channel, changes, data)
     select e.stream_id, e.organization_id, e.project_id, 1000000 + n, e.name, e.subject_type, $2, e.actor_type, e.channel, e.changes, e.data
     from (select * from app_public.events where subject_id = $1 and name = 'unit.updated' limit 1) e, generate_series(1, 20001) n
     returning id`,
    [id, other],
  );
  expect(rows.length).toBe(20_001);
  const tooLong = { code: "LIMIT_EXCEEDED", field: "at", limit: 20_000 };
  expect(await world.owen.refused(UNIT_AS_OF, { id: other, at })).toMatchObject(tooLong);
  expect(await world.owen.refused(UNITS_AS_OF, { projectId: world.project.id, at })).toMatchObject(tooLong);
  expect(await unitAsOf(other, at, world.olga)).toBeNull();
  expect(await unitAsOf(id, at)).toMatchObject({ unitId: id });
  // What was changed before is not read.
  expect(await unitAsOf(other, await now())).toMatchObject({ unitId: other });
  expect(await unitAsOf(id, "0001-01-01T00:00:00Z")).toBeNull();
});

test("a former record has all columns of a record that are not left out on purpose", async () => {
  const { rows } = await world.owner.query(
    `select t.relname as "table", array_agg(c.attname::text order by c.attname) as columns
     from (values ('units', 'unit_as_of'), ('reservations', 'reservation_as_of')) t (relname, of_type)
     join pg_attribute c on c.attrelid = format('app_public.%I', t.relname)::regclass and c.attnum > 0 and not c.attisdropped
       and c.attname not like 'effective\\_%'
     where not exists (select from pg_attribute a where a.attrelid = format('app_public.%I', t.of_type)::regclass
       and a.attname = c.attname)
     group by t.relname order by t.relname`,
  );
  const always = ["deleted_at", "id", "inserted_at", "organization_id", "updated_at", "version"];
  expect(rows).toEqual([
    { table: "reservations", columns: [...always, "buyer_id", "user_id"].sort() },
    { table: "units", columns: [...always, "market_before", "market_since"].sort() },
  ]);
});
