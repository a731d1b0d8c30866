/**
 * Aggregates and groups of portfolio connections: their values for each kind of viewer, and that they reveal nothing
 * that fields do not.
 */
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { readFileSync } from "node:fs";
import { buildSchema } from "graphql";
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

test("leads by source and month count only visible leads", async () => {
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
        aggregates { sum { price originalListPrice soldPrice } max { price } min { originalListPrice soldPrice } }
        groupedAggregates(groupBy: [STATUS]) { keys sum { price } distinctCount { id } } } }`,
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

  test("the team can aggregate all prices", async () => {
    for (const person of [world.owen, world.max]) {
      const { aggregates, groups } = await byStatus(person, world.park.id);
      expect(groups).toEqual([
        ["AVAILABLE", "2: 300.75"],
        ["SOLD", "1: 4000.00"],
        ["UNRELEASED", "1: 1000.00"],
      ]);
      expect(aggregates.max.price).toBe("4000.00");
      expect(Number(aggregates.sum.originalListPrice)).toBeGreaterThan(4000);
    }
  });

  test("non-members see the prices of units for sale, and no unreleased units", async () => {
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
        min: { originalListPrice: null, soldPrice: null },
      });
    }
  });

  test("a buyer sees the purchased home", async () => {
    const { groups } = await byStatus(people.bea!, world.quiet.id);
    expect(groups).toHaveLength(1);
    expect((await byStatus(people.olga!, world.quiet.id)).groups).toEqual([]);
  });
});

test("aggregates of hidden fields do not exist", async () => {
  const query = `{ buyersConnection { totalCount aggregates { sum { price } } } }`;
  const seen = async (person: Person) => {
    const { totalCount, aggregates } = (await person.get(query)).buyersConnection;
    return [totalCount, Number(aggregates.sum.price)];
  };
  for (const person of [world.owen, world.max]) expect(await seen(person)).toEqual([2, 10899.99]);
  for (const name of ["sam", "bob", "olga"]) expect(await seen(people[name]!)).toEqual([0, 0]);
  // The different values of a date of birth cannot be counted, even with permission to read it.
  const { message } = await world.owen.refused(
    `{ buyersConnection { aggregates { distinctCount { dob } } } }`,
  );
  expect(message).toContain('Cannot query field "dob"');
});

test("masked fields cannot be grouped by", () => {
  const schema = buildSchema(readFileSync("schema.graphql", "utf8"), { assumeValid: true });
  const types = ["Unit", "Buyer", "Reservation", "Appointment", "Project"];
  for (const name of types) {
    const groups = (schema.getType(`${name}GroupBy`) as any).getValues().map((value: any) => value.name);
    expect(groups.filter((group: string) => /PRICE|METADATA|DELIVERY|DOB|NOTE|REASON$/.test(group))).toEqual(
      [],
    );
  }
});

test("groups take one statement for any number of rows", async () => {
  const ask = (person: Person) =>
    world.statements(() =>
      person.get(
        `{ leadsConnection(first: 1) { groupedAggregates(groupBy: [STATUS, SOURCE_ID]) { keys distinctCount { id } } } }`,
      ),
    );
  expect((await ask(world.owen)).count).toBe((await ask(world.olga)).count);
});
