/** Targets of promotions, promotions that apply to a unit, and lease permits. */
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import type { Person } from "../harness/api.ts";
import { createProject, startPortfolio, type Portfolio } from "../harness/portfolio.ts";
import { type Create, createIn, mutationOf } from "../harness/records.ts";

let world: Portfolio;
let create: Create;
let project: string;
/** A unit with a plan and lot, one without, an unreleased one, and one of another project. */
const units: Record<"planned" | "single" | "unreleased" | "foreign", string> = {} as any;
let plan: string;
let draft: string;
let lot: string;

const hours = (n: number) => new Date(Date.now() + n * 3_600_000).toISOString();
const released = { status: "AVAILABLE", price: 100 };
const promote = (input: Record<string, unknown>) =>
  create("createPromotion", {
    projectId: project,
    title: "Spring",
    kind: "GIFT",
    startsAt: hours(-1),
    ...input,
  });
const refused = (field: string, input: Record<string, unknown>) =>
  world.owen.refused(mutationOf(field), { input });
const change = async (type: string, input: Record<string, unknown>, fields: string) =>
  (
    await world.owen.get(
      `mutation ($input: Update${type}Input!) { update${type}(input: $input) { ${fields} } }`,
      { input },
    )
  )[`update${type}`];
const targets = async (id: string, person: Person = world.owen) => {
  const { promotion } = await person.get(
    `query ($id: ID!) { promotion(id: $id) { units { id } lots { id } floorPlans { id } } }`,
    { id },
  );
  return Object.fromEntries(
    Object.entries(promotion).map(([name, list]: [string, any]) => [name, list.map((one: any) => one.id)]),
  );
};
const promotionsOf = async (unit: string, person: Person = world.owen): Promise<string[]> => {
  const data = await person.get(`query ($id: ID!) { unit(id: $id) { promotions { id } } }`, { id: unit });
  return data.unit.promotions.map((promotion: { id: string }) => promotion.id);
};

beforeAll(async () => {
  world = await startPortfolio();
  create = createIn(world.owen);
  project = world.park.id;
  plan = await create("createFloorPlan", { projectId: project, title: "Alder", status: "ACTIVE" });
  draft = await create("createFloorPlan", { projectId: project, title: "Birch" });
  lot = await create("createLot", { projectId: project, number: "1", ...released });
  const unit = (input: Record<string, unknown>) => create("createUnit", { projectId: project, ...input });
  units.planned = await unit({ title: "Planned", floorPlanId: plan, lotId: lot, ...released });
  units.single = await unit({ title: "Single", ...released });
  units.unreleased = await unit({ title: "Later" });
  units.foreign = await unit({ projectId: world.quiet.id, title: "Elsewhere", ...released });
});
afterAll(() => world.stop());

test("a promotion has targets of its own project, and changing them changes the promotion", async () => {
  const id = await promote({ appliesTo: "UNITS", unitIds: [units.single, units.planned, units.single] });
  expect(await targets(id)).toEqual({ units: [units.planned, units.single], lots: [], floorPlans: [] });
  expect(await change("Promotion", { id, title: "May" }, "version units { id }")).toEqual({
    version: 2,
    units: [{ id: units.planned }, { id: units.single }],
  });
  expect(
    await change("Promotion", { id, unitIds: [units.single], expectedVersion: 2 }, "version units { id }"),
  ).toEqual({ version: 3, units: [{ id: units.single }] });
  const { events } = await world.owen.get(
    `query ($id: ID) { events(filter: { subjectId: $id }) { name changes } }`,
    { id },
  );
  const changes = events.map((event: any) => event.changes?.unitIds).filter(Boolean);
  expect(changes).toEqual([[[units.planned, units.single].sort(), [units.single]]]);
  expect(await targets(await promote({ appliesTo: "LOTS", lotIds: [lot] }))).toMatchObject({ lots: [lot] });
  expect(await targets(await promote({ appliesTo: "FLOOR_PLANS", floorPlanIds: [plan, draft] }))).toEqual({
    units: [],
    lots: [],
    floorPlans: [plan, draft],
  });
});

test.each([
  [{ appliesTo: "UNITS" }, "BAD_USER_INPUT", "unitIds"],
  [{ appliesTo: "UNITS", unitIds: [] }, "BAD_USER_INPUT", "unitIds"],
  [{ appliesTo: "LOTS", lotIds: [] }, "BAD_USER_INPUT", "lotIds"],
  [{ appliesTo: "FLOOR_PLANS", floorPlanIds: null }, "BAD_USER_INPUT", "floorPlanIds"],
  [{ unitIds: ["single"] }, "BAD_USER_INPUT", "unitIds"],
  [{ appliesTo: "LOTS", lotIds: ["lot"], unitIds: ["single"] }, "BAD_USER_INPUT", "unitIds"],
  [{ appliesTo: "UNITS", unitIds: ["foreign"] }, "NOT_FOUND", "unitIds"],
  [{ appliesTo: "UNITS", unitIds: ["single", "lot"] }, "NOT_FOUND", "unitIds"],
  [{ appliesTo: "UNITS", unitIds: ["no id"] }, "BAD_USER_INPUT", "unitIds"],
  [{ appliesTo: "FLOOR_PLANS", floorPlanIds: ["lot"] }, "NOT_FOUND", "floorPlanIds"],
])("an invalid promotion is refused: %j", async (bad: Record<string, unknown>, code, field) => {
  const ids: Record<string, string> = { ...units, lot, plan };
  const input = Object.fromEntries(
    Object.entries(bad).map(([name, value]) => [
      name,
      Array.isArray(value) ? value.map((id) => ids[id] ?? id) : value,
    ]),
  );
  const promotion = { projectId: project, title: "Bad", kind: "GIFT", startsAt: hours(-1) };
  expect(await refused("createPromotion", { ...promotion, ...input })).toMatchObject({ code, field });
});

test("the target of a promotion cannot be removed or moved to another project", async () => {
  const id = await promote({ appliesTo: "UNITS", unitIds: [units.single] });
  for (const [input, code] of [
    [{ unitIds: [] }, "BAD_USER_INPUT"],
    [{ unitIds: null }, "BAD_USER_INPUT"],
    [{ unitIds: [units.foreign] }, "NOT_FOUND"],
    [{ unitIds: [units.foreign, units.single] }, "NOT_FOUND"],
  ] as const)
    expect(await refused("updatePromotion", { id, ...input })).toMatchObject({ code, field: "unitIds" });
  expect(await targets(id)).toMatchObject({ units: [units.single] });
  await expect(
    world.owner.query(
      "insert into app_hidden.promotion_targets (promotion_id, project_id, unit_id) select p.id, p.project_id, $2 from app_public.promotions p where p.id = $1",
      [id, units.foreign],
    ),
  ).rejects.toThrow("promotion_targets_unit_id_fkey");
});

test("promotions of a unit are the running ones for the unit, its lot, its plan or the project", async () => {
  await world.owner.query("delete from app_public.promotions where project_id = $1", [project]);
  const all = await promote({ title: "All" });
  const single = await promote({ appliesTo: "UNITS", unitIds: [units.single] });
  const ofPlan = await promote({ appliesTo: "FLOOR_PLANS", floorPlanIds: [plan] });
  const ofLot = await promote({ appliesTo: "LOTS", lotIds: [lot] });
  const inside = await promote({ public: false });
  await promote({ startsAt: hours(1) });
  await promote({ endsAt: hours(-0.5) });
  await promote({ status: "DRAFT" });
  const used = await promote({ usageLimit: 1 });
  await world.owner.query("update app_public.promotions set usage_count = 1 where id = $1", [used]);
  const paused = await promote({});
  await change("Promotion", { id: paused, status: "PAUSED" }, "id");
  expect((await promotionsOf(units.planned)).sort()).toEqual([all, ofPlan, ofLot, inside].sort());
  expect((await promotionsOf(units.single)).sort()).toEqual([all, single, inside].sort());
  expect((await promotionsOf(units.unreleased)).sort()).toEqual([all, inside].sort());
  for (const person of [world.anonymous, world.olga]) {
    expect((await promotionsOf(units.planned, person)).sort()).toEqual([all, ofPlan, ofLot].sort());
    expect((await promotionsOf(units.single, person)).sort()).toEqual([all, single].sort());
  }
  await change("Promotion", { id: paused, status: "ACTIVE" }, "id");
  expect(await promotionsOf(units.unreleased)).toContain(paused);
});

test("a promotion reveals no unreleased units to non-members", async () => {
  const ofUnits = await promote({ appliesTo: "UNITS", unitIds: [units.unreleased, units.single] });
  const ofPlans = await promote({ appliesTo: "FLOOR_PLANS", floorPlanIds: [draft, plan] });
  for (const person of [world.anonymous, world.olga]) {
    expect((await targets(ofUnits, person)).units).toEqual([units.single]);
    expect((await targets(ofPlans, person)).floorPlans).toEqual([plan]);
  }
  expect((await targets(ofUnits, world.max)).units).toHaveLength(2);
});

test("the promotions of 50 units take as many statements as those of one", async () => {
  const lots = await createProject(world.owen, { organizationId: world.harbour.id, title: "Many" });
  await world.owner.query(
    "insert into app_public.units (project_id, title) select $1, 'U' || i from generate_series(1, 50) i",
    [lots.id],
  );
  await promote({ projectId: lots.id });
  const query = `query ($id: ID!, $first: Int) { project(id: $id) { units(first: $first) { promotions { id } leasePermit { id } } } }`;
  const count = async (first: number) => {
    const { result, count: sent } = await world.statements(() =>
      world.owen.get(query, { id: lots.id, first }),
    );
    expect(result.project.units.filter((unit: any) => unit.promotions.length === 1)).toHaveLength(first);
    return sent;
  };
  await count(1);
  expect(await count(50)).toBe(await count(1));
});

test("a unit has at most one valid lease permit, visible to those who manage inventory", async () => {
  const permit = (input: Record<string, unknown>) => ({ projectId: project, title: "Permit", ...input });
  const id = await create("createLeasePermit", permit({ unitId: units.single, status: "ISSUED" }));
  const read = async (person: Person) =>
    (
      await person.get(`query ($id: ID!) { unit(id: $id) { leasePermit { id unit { id } } } }`, {
        id: units.single,
      })
    ).unit.leasePermit;
  expect(await read(world.owen)).toEqual({ id, unit: { id: units.single } });
  for (const person of [world.max, world.sam, world.bob, world.olga, world.anonymous])
    expect(await read(person)).toBeNull();
  expect(await refused("createLeasePermit", permit({ unitId: units.single }))).toMatchObject({
    code: "CONFLICT",
    field: "unitId",
  });
  expect(await refused("createLeasePermit", permit({ unitId: units.foreign }))).toMatchObject({
    code: "NOT_FOUND",
    field: "unitId",
  });
  expect(await refused("deleteUnit", { id: units.single })).toMatchObject({
    code: "CONFLICT",
    dependents: { leasePermits: 1 },
  });
  const spare = await create("createLeasePermit", permit({}));
  expect(await refused("updateLeasePermit", { id: spare, unitId: units.single })).toMatchObject({
    code: "CONFLICT",
  });
  await change("LeasePermit", { id, status: "REVOKED" }, "id");
  expect(await change("LeasePermit", { id: spare, unitId: units.single }, "unit { title }")).toEqual({
    unit: { title: "Single" },
  });
  expect((await read(world.owen)).id).toBe(spare);
  expect(await change("LeasePermit", { id: spare, unitId: null }, "unit { title }")).toEqual({ unit: null });
  expect(await read(world.owen)).toBeNull();
});
