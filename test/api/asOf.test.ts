/** Units, reservations and price lists at an earlier time. */
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import type { PoolClient } from "pg";
import type { Person } from "../harness/api.ts";
import { signUpBuyer } from "../harness/deals.ts";
import { startPortfolio, type Portfolio } from "../harness/portfolio.ts";
import { randomFrom } from "../harness/random.ts";
import { createIn, mutationOf } from "../harness/records.ts";
import { createProject, programOf } from "../harness/world.ts";

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
const UNITS_AS_OF = `query ($projectId: ID!, $at: DateTime!, $first: Int, $offset: Int) {
  unitsAsOf(projectId: $projectId, at: $at, first: $first, offset: $offset) { unitId price status }
}`;

const now = async (): Promise<string> =>
  (await world.owner.query("select to_json(clock_timestamp()) #>> '{}' as at")).rows[0].at;
const change = (field: string, input: object, person = world.owen) =>
  person.get(mutationOf(field), { input });
const unitAsOf = async (id: string, at: string, person = world.owen) =>
  (await person.get(UNIT_AS_OF, { id, at })).unitAsOf;
const reservationAsOf = async (id: string, at: string, person = world.owen) =>
  (await person.get(RESERVATION_AS_OF, { id, at })).reservationAsOf;
const pricesAsOf = async (at: string, person = world.owen, projectId = world.project.id) =>
  (await person.get(UNITS_AS_OF, { projectId, at })).unitsAsOf;

const home = (input: object = {}) =>
  createIn(world.owen)("createUnit", {
    projectId: world.project.id,
    title: "Home",
    status: "AVAILABLE",
    price: "400000.00",
    ...input,
  });

test("every former state of a unit is reconstructed, with the floor plans of that time", async () => {
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

test("a price list shows the state of that time, with a constant number of statements", async () => {
  const first = await home({ price: "100000.00" });
  const one = await now();
  const second = await home({ price: "200000.00" });
  const two = await now();
  await change("updateUnit", { id: first, price: "110000.00" });
  await change("updateUnit", { id: second, status: "OFF_MARKET" });
  const priced = async (at: string) =>
    (await pricesAsOf(at)).filter(({ unitId }: { unitId: string }) => [first, second].includes(unitId));
  expect(await priced(one)).toEqual([{ unitId: first, price: "100000.00", status: "AVAILABLE" }]);
  expect(await pricesAsOf(one, world.owen, world.project.slug)).toEqual(await pricesAsOf(one));
  expect(await priced(two)).toEqual([
    { unitId: first, price: "100000.00", status: "AVAILABLE" },
    { unitId: second, price: "200000.00", status: "AVAILABLE" },
  ]);
  expect(await priced(await now())).toEqual([
    { unitId: first, price: "110000.00", status: "AVAILABLE" },
    { unitId: second, price: "200000.00", status: "OFF_MARKET" },
  ]);
  const list = (size: number) =>
    world.statements(() =>
      world.owen.get(UNITS_AS_OF, { projectId: world.project.id, at: two, first: size }),
    );
  await list(1);
  expect((await list(100)).count).toBe((await list(1)).count);
  await change("deleteUnit", { id: second });
  expect(await priced(two)).toEqual([{ unitId: first, price: "100000.00", status: "AVAILABLE" }]);
  expect(await unitAsOf(second, two)).toBeNull();
});

test("former states are visible to viewers who see the unit with its prices now", async () => {
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

test("former prices of a unit for sale are not public", async () => {
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

test("the sale price is masked in former states for viewers who may not read it", async () => {
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

test("every former state of a reservation is reconstructed for its present viewers, without erased data", async () => {
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
  // The lead is now assigned to somebody else, so the former seller sees nothing of the reservation.
  await change("updateLead", { id: leads.sams.id, assigneeId: owen.id });
  expect(await reservationAsOf(id, at, sam)).toBeNull();
  expect(await reservationAsOf(id, at)).toMatchObject({ notes: "haggles" });

  // Masking depends on the present assignee.
  const meanwhile = await now();
  await change("updateLead", { id: leads.sams.id, assigneeId: sam.id });
  expect(await reservationAsOf(id, meanwhile, sam)).toMatchObject({
    status: "CANCELLED",
    cancellationReason: "moved",
  });

  await change("erasePerson", { leadId: leads.sams.id, reason: "asked" });
  expect(await reservationAsOf(id, at)).toMatchObject({ status: "PENDING", price: "390000.00", notes: null });
});

test("a buyer sees the reservation but not its former states", async () => {
  const { person: bea } = await signUpBuyer(world, "Bea Reserver");
  const id = await createIn(bea)("createReservation", { unitId: await home(), acceptedTerms: true });
  const at = await now();
  expect((await bea.get("query ($id: ID!) { reservation(id: $id) { id } }", { id })).reservation).toEqual({
    id,
  });
  expect(await reservationAsOf(id, at, bea)).toBeNull();
  expect(await reservationAsOf(id, at)).toMatchObject({ status: "PENDING" });
});

test("a time in the future is refused, and one before the retention of events", async () => {
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

test("a history that is too long to be undone is refused; histories of other records do not count", async () => {
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
  // Only changes of the units on the page count.
  const page = (input: object) => world.owen.get(UNITS_AS_OF, { projectId: world.project.id, at, ...input });
  const { units } = await world.owen
    .get(`query ($id: ID!) { project(id: $id) { units(orderBy: [ID_ASC], first: 1000) { id } } }`, {
      id: world.project.id,
    })
    .then(({ project }) => project);
  const place = units.findIndex((unit: { id: string }) => unit.id === other);
  const { unitsAsOf: earlier } = await page({ first: place });
  expect(earlier.map(({ unitId }: any) => unitId)).toEqual(units.slice(0, place).map((unit: any) => unit.id));
  expect(earlier.map(({ unitId }: any) => unitId)).toContain(id);
  expect(
    await world.owen.refused(UNITS_AS_OF, { projectId: world.project.id, at, first: place + 1 }),
  ).toMatchObject(tooLong);
  // Changes before the time are not read.
  expect(await unitAsOf(other, await now())).toMatchObject({ unitId: other });
  expect(await unitAsOf(id, "0001-01-01T00:00:00Z")).toBeNull();
});

test("pages of a price list are contiguous, and their sizes are validated", async () => {
  const { id: projectId } = await createProject(world.owen, {
    organizationId: world.harbour.id,
    title: "Pages",
    visibility: "PRIVATE",
  });
  const ids: string[] = [];
  for (let number = 1; number <= 5; number++)
    ids.push(await home({ projectId, number: `${number}`, price: `${number}00000.00` }));
  const at = await now();
  for (const id of ids) await change("updateUnit", { id, price: "1.00" });
  const prices = async (input: object) =>
    (await world.owen.get(UNITS_AS_OF, { projectId, at, ...input })).unitsAsOf.map(({ price }: any) => price);
  expect(await prices({})).toEqual(["100000.00", "200000.00", "300000.00", "400000.00", "500000.00"]);
  expect(await prices({ first: 2 })).toEqual(["100000.00", "200000.00"]);
  expect(await prices({ first: 2, offset: 2 })).toEqual(["300000.00", "400000.00"]);
  expect(await prices({ first: 2, offset: 4 })).toEqual(["500000.00"]);
  expect(await prices({ first: 2, offset: 5 })).toEqual([]);
  expect(await prices({ first: 0 })).toEqual([]);
  expect(await prices({ first: null, offset: null })).toHaveLength(5);
  for (const [input, refusal] of [
    [{ first: -1 }, { code: "BAD_USER_INPUT", field: "first" }],
    [{ first: 1001 }, { code: "LIMIT_EXCEEDED", field: "first" }],
    [{ offset: -1 }, { code: "BAD_USER_INPUT", field: "offset" }],
  ])
    expect(await world.owen.refused(UNITS_AS_OF, { projectId, at, ...input })).toMatchObject(refusal!);
  expect((await world.olga.get(UNITS_AS_OF, { projectId, at, first: 2 })).unitsAsOf).toEqual([]);
});

/** Rows that a transaction reads of the tables, their partitions and indexes, from PostgreSQL's statistics. */
async function rowsRead(client: PoolClient, tables: string[], work: () => Promise<void>): Promise<number[]> {
  const counts = async () =>
    (
      await client.query<{ read: string }>(
        `select (with parts as (select t as relid union select relid from pg_partition_tree(t))
           select sum(pg_stat_get_xact_tuples_returned(r.oid) + pg_stat_get_xact_tuples_fetched(r.oid))
           from (select relid as oid from parts union all
             select indexrelid from pg_index where indrelid in (select relid from parts)) r) as read
         from unnest($1::regclass[]) with ordinality as t (t, place)
         order by place`,
        [tables],
      )
    ).rows.map(({ read }) => Number(read));
  const before = await counts();
  await work();
  return (await counts()).map((count, index) => count - before[index]!);
}

test("a page of a price list reads only its own units, floor plans and events", async () => {
  const { id: projectId } = await createProject(world.owen, {
    organizationId: world.harbour.id,
    title: "Large",
    visibility: "PRIVATE",
  });
  const client = await world.owner.connect();
  try {
    await client.query("begin; set local session_replication_role = replica");
    await client.query(
      `with plans as (
         insert into app_public.floor_plans (organization_id, project_id, title, bedrooms)
           select $1, $2, 'Plan ' || n, 2 from generate_series(1, 1000) n returning id),
       numbered as (select id, row_number() over (order by id) as n from plans),
       made as (
         insert into app_public.units (organization_id, project_id, floor_plan_id, currency, title, number, inserted_at)
           select $1, $2, p.id, 'CAD', 'Unit', 'N' || s.n, now() - interval '1 day'
           from generate_series(1, 10000) s (n) join numbered p on p.n = 1 + s.n / 10 % 1000 returning id)
       insert into app_public.events (stream_id, organization_id, project_id, sequence, name, subject_type, subject_id,
           actor_type, channel, changes, data)
         select $1, $1, $2, 2000000 + row_number() over (), kind || '.updated', kind, id, 'SYSTEM', 'SYSTEM',
           '{"title": ["Former", "Unit"]}', '{"title": "Unit"}'
         from (select 'unit' as kind, id from made cross join generate_series(1, 3)
           union all select 'floor_plan', id from plans cross join generate_series(1, 3))`,
      [world.harbour.id, projectId],
    );
    await client.query(
      "set local session_replication_role = origin; analyze app_public.units, app_public.floor_plans, app_public.events",
    );
    await client.query(
      "select set_config('role', 'plat_user', true), set_config('plat.user_id', $1, true), set_config('plat.channel', 'API', true)",
      [world.owen.id],
    );
    const tables = ["app_public.units", "app_public.floor_plans", "app_public.events"];
    for (const size of [10, 100]) {
      const read = await rowsRead(client, tables, async () => {
        const { rows } = await client.query(
          "select title, number from app_public.units_as_of($1, now() - interval '1 hour', $2, 5)",
          [projectId, size],
        );
        expect(rows).toHaveLength(size);
        expect(rows[0]).toMatchObject({ title: "Former" });
      });
      expect(read.map((count, index) => count < [10, 1, 30][index]! * size)).toEqual([true, true, true]);
    }
  } finally {
    await client.query("rollback");
    client.release();
  }
});

test("a former record has all columns except those that are excluded deliberately", async () => {
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
