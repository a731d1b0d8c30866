/** Aggregates and groups of portfolio connections: the figures, for whom, and that they tell nothing that a field would not. */
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { readFileSync } from "node:fs";
import { buildSchema, isInputObjectType } from "graphql";
import type { Person } from "../harness/api.ts";
import { createBuyer, invite } from "../harness/deals.ts";
import { startPortfolio, type Portfolio } from "../harness/portfolio.ts";
import { createIn } from "../harness/records.ts";

let world: Portfolio;
let people: Record<string, Person>;

beforeAll(async () => {
  world = await startPortfolio();
  const { owen, max, mia, sam, bob, olga, project, park, quiet, owner } = world;
  const bea = await world.signUp("Bea Buyer");
  people = { owen, max, mia, sam, bob, olga, bea, anonymous: world.anonymous };
  await owner.query("delete from app_public.leads");
  await owner.query("update app_public.leads set deleted_at = now()");
  const lead = (person: Person, name: string, projectId: string, source: string, registeredAt: string) =>
    createIn(person)("createLead", { projectId, name, source, registeredAt });
  await lead(owen, "A", project.id, "WALK_IN", "2026-01-05T00:00:00Z");
  await lead(owen, "B", project.id, "WALK_IN", "2026-01-31T23:59:59Z");
  await lead(sam, "C", project.id, "WALK_IN", "2026-02-01T00:00:00Z");
  await lead(owen, "D", project.id, "PHONE", "2026-02-02T00:00:00Z");
  await lead(max, "E", quiet.id, "PHONE", "2026-02-03T00:00:00Z");
  await lead(mia, "F", quiet.id, "PHONE", "2026-03-03T00:00:00Z");
  const unit = (projectId: string, title: string, price: string, status = "AVAILABLE") =>
    createIn(owen)("createUnit", { projectId, title, price, status });
  for (const price of ["100.50", "200.25"]) await unit(park.id, `P${price}`, price);
  await unit(park.id, "Held back", "1000", "UNRELEASED");
  const sold = await unit(park.id, "Sold", "4000");
  await createBuyer(owen, park, { unitId: sold, legalName: "Someone", price: "3999.99", status: "FIRM" });
  const bought = await unit(quiet.id, "Bought", "7000");
  const purchase = await createBuyer(owen, quiet, {
    unitId: bought,
    price: "6900",
    dob: undefined,
    assigneeId: max.id,
  });
  await owen.get(`mutation ($id: ID!) { updateBuyer(input: { id: $id, dob: "1980-01-02" }) { id } }`, {
    id: purchase,
  });
  await invite(world, purchase, bea);
});
afterAll(() => world.stop());

/** Groups as rows of keys and figures, in order. */
const rows = (
  groups: { keys: (string | null)[]; [figure: string]: any }[],
  figure: (group: any) => unknown,
) => groups.map((group) => [...group.keys, figure(group)]).sort((a, b) => String(a).localeCompare(String(b)));

test("leads by source and month, of those that the viewer sees", async () => {
  const { rows: sources } = await world.owner.query(
    "select id, code from app_public.lead_sources where code in ('WALK_IN', 'PHONE')",
  );
  const code = new Map(sources.map((source) => [source.id, source.code]));
  const bySource = async (person: Person) => {
    const { leadsConnection } = await person.get(
      `{ leadsConnection { totalCount groupedAggregates(groupBy: [SOURCE_ID, REGISTERED_AT_TRUNCATED_TO_MONTH]) { keys distinctCount { id } } } }`,
    );
    const all = new Map<string, number>();
    for (const { keys, distinctCount } of leadsConnection.groupedAggregates) {
      const name = `${code.get(keys[0])} ${keys[1].slice(0, 7)}`;
      all.set(name, (all.get(name) ?? 0) + Number(distinctCount.id));
    }
    expect([...all.values()].reduce((sum, count) => sum + count, 0)).toBe(leadsConnection.totalCount);
    return Object.fromEntries([...all].sort());
  };
  expect(await bySource(world.owen)).toEqual({
    "PHONE 2026-02": 2,
    "PHONE 2026-03": 1,
    "WALK_IN 2026-01": 2,
    "WALK_IN 2026-02": 1,
  });
  expect(await bySource(world.max)).toEqual({
    "PHONE 2026-02": 2,
    "WALK_IN 2026-01": 2,
    "WALK_IN 2026-02": 1,
  });
  expect(await bySource(world.mia)).toEqual({
    "PHONE 2026-02": 1,
    "PHONE 2026-03": 1,
    "WALK_IN 2026-01": 2,
    "WALK_IN 2026-02": 1,
  });
  expect(await bySource(world.sam)).toEqual({ "WALK_IN 2026-02": 1 });
  for (const name of ["bob", "olga", "bea"]) expect(await bySource(people[name]!)).toEqual({});
});

describe("units by status with the sums of their prices", () => {
  const byStatus = async (person: Person, projectId: string) => {
    const { unitsConnection } = await person.get(
      `query ($id: ID!) { unitsConnection(projectId: $id) {
        aggregates { sum { price originalListPrice soldPrice } max { price } distinctCount { originalListPrice soldPrice metadata } }
        groupedAggregates(groupBy: [STATUS]) { keys sum { price } distinctCount { id } }
        asked: groupedAggregates(groupBy: [STATUS], having: { sum: { level: { greaterThan: 1 } } }) { keys } } }`,
      { id: projectId },
    );
    return {
      ...unitsConnection,
      groups: rows(
        unitsConnection.groupedAggregates,
        (group) => `${group.distinctCount.id}: ${group.sum.price}`,
      ),
    };
  };

  test("the team sees all of them", async () => {
    for (const person of [world.owen, world.max]) {
      const { aggregates, groups, asked } = await byStatus(person, world.park.id);
      expect(groups).toEqual([
        ["AVAILABLE", "2: 300.75"],
        ["SOLD", "1: 4000.00"],
        ["UNRELEASED", "1: 1000.00"],
      ]);
      expect(aggregates.max.price).toBe("4000.00");
      expect(Number(aggregates.sum.originalListPrice)).toBeGreaterThan(4000);
      expect(asked).toEqual([]);
    }
  });

  test("outsiders see the prices of those for sale only, and nothing of those that are not released", async () => {
    for (const name of ["sam", "olga", "bea", "anonymous"]) {
      const { aggregates, groups } = await byStatus(people[name]!, world.park.id);
      expect([name, groups]).toEqual([
        name,
        [
          ["AVAILABLE", "2: 300.75"],
          ["SOLD", "1: 0"],
        ],
      ]);
      expect(aggregates).toEqual({
        sum: { price: "300.75", originalListPrice: "0", soldPrice: "0" },
        max: { price: "200.25" },
        distinctCount: { originalListPrice: "0", soldPrice: "0", metadata: "0" },
      });
    }
  });

  test("a buyer sees the home that they buy", async () => {
    const { groups } = await byStatus(people.bea!, world.quiet.id);
    expect(groups).toHaveLength(1);
    expect((await byStatus(people.olga!, world.quiet.id)).groups).toEqual([]);
  });
});

test("figures of a field that is not shown are none", async () => {
  const query = `{ buyersConnection { totalCount aggregates { distinctCount { dob metadata } sum { price } } } }`;
  const seen = async (person: Person) => {
    const { totalCount, aggregates } = (await person.get(query)).buyersConnection;
    return [totalCount, aggregates.distinctCount.dob, Number(aggregates.sum.price)];
  };
  expect(await seen(world.owen)).toEqual([2, "1", 10899.99]);
  // Who sees the purchase but not the day of birth.
  expect(await seen(world.max)).toEqual([2, "0", 10899.99]);
  expect((await seen(people.bea!))[1]).toBe("0");
  for (const name of ["sam", "bob", "olga"]) expect(await seen(people[name]!)).toEqual([0, "0", 0]);
});

test("nothing that is masked can be grouped by or be a condition on groups", () => {
  const schema = buildSchema(readFileSync("schema.graphql", "utf8"), { assumeValid: true });
  const hidden =
    /^(price|originalListPrice|soldPrice|metadata|estimatedDeliveryDate|dob|cancellationReason|notes|outcomeNote)$/;
  const types = ["Unit", "Buyer", "Reservation", "Appointment", "Project"];
  const conditions: string[] = [];
  for (const type of Object.values(schema.getTypeMap())) {
    if (!types.some((name) => type.name.startsWith(`${name}Having`)) || !isInputObjectType(type)) continue;
    for (const field of Object.keys(type.getFields()))
      if (hidden.test(field)) conditions.push(`${type.name}.${field}`);
  }
  // What a purchase or a reservation costs is seen by whoever sees it; so is the price of a project's reservation.
  expect(conditions.filter((name) => !/^(Buyer|Reservation)Having\w+\.price$/.test(name))).toEqual([]);
  for (const name of types) {
    const groups = (schema.getType(`${name}GroupBy`) as any).getValues().map((value: any) => value.name);
    expect(groups.filter((group: string) => /PRICE|METADATA|DELIVERY|DOB|NOTE|REASON$/.test(group))).toEqual(
      [],
    );
  }
});

test("groups cost one statement, whatever there is", async () => {
  const ask = (person: Person) =>
    world.statements(() =>
      person.get(
        `{ leadsConnection(first: 1) { groupedAggregates(groupBy: [STATUS, SOURCE_ID]) { keys distinctCount { id } } } }`,
      ),
    );
  expect((await ask(world.owen)).count).toBe((await ask(world.olga)).count);
});
