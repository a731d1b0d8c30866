/** updateUnits: many units at once, by ids or by filter, all or none. */
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { createIn, type Create } from "../harness/records.ts";
import { startWorld, type World } from "../harness/world.ts";

let world: World;
let create: Create;

beforeAll(async () => {
  world = await startWorld();
  create = createIn(world.owen);
});
afterAll(() => world.stop());

let serial = 0;
/** A project with units for sale at these prices; a null price is not for sale. */
async function project(prices: (string | null)[]): Promise<{ projectId: string; ids: string[] }> {
  const projectId = await create("createProject", {
    organizationId: world.harbour.id,
    title: `P${++serial}`,
    currency: "CAD",
  });
  const ids: string[] = [];
  for (const price of prices)
    ids.push(
      await create("createUnit", {
        projectId,
        title: "U",
        price,
        status: price === null ? "UNRELEASED" : "AVAILABLE",
      }),
    );
  return { projectId, ids };
}

const fields = "id price status version";
const document = `mutation ($input: UpdateUnitsInput!) { updateUnits(input: $input) { ${fields} } }`;
const update = async (input: Record<string, unknown>) =>
  (await world.owen.get(document, { input })).updateUnits;
const prices = async (projectId: string) =>
  (
    await world.owen.get(`query ($id: ID!) { project(id: $id) { units { price } } }`, { id: projectId })
  ).project.units.map((u: any) => u.price);
const events = async (projectId: string) =>
  (
    await world.owner.query(
      "select name, subject_id from app_public.events where project_id = $1 and subject_type = 'unit' and changes is not null order by id",
      [projectId],
    )
  ).rows;

test("changes prices by percent, rounded half up to the cent, with one event for each unit", async () => {
  const { projectId, ids } = await project(["100.10", "0.50", "333333.33", null]);
  const changed = await update({ projectId, ids, priceDeltaPercent: 5 });
  // 100.10 × 1.05 = 105.105, 0.50 × 1.05 = 0.525
  expect(changed.map((u: any) => u.price)).toEqual(["105.11", "0.53", "350000.00", null]);
  expect(changed.map((u: any) => u.version)).toEqual([2, 2, 2, 1]);
  expect(await events(projectId)).toEqual(
    ids.slice(0, 3).map((subject_id) => ({ name: "unit.price_changed", subject_id })),
  );
  await update({ projectId, ids, priceDeltaPercent: "-2.5" });
  expect(await prices(projectId)).toEqual(["102.48", "0.52", "341250.00", null]);
});

test("changes what the filter selects", async () => {
  const { projectId, ids } = await project(["100", "200", "300", null]);
  const changed = await update({
    projectId,
    filter: { price: { min: 150, max: 300 }, status: ["AVAILABLE"] },
    price: "250",
    constructionStatus: "FRAMING",
    estimatedDeliveryDate: "2030-01-31",
  });
  expect(changed).toEqual(
    ids.slice(1, 3).map((id) => ({ id, price: "250.00", status: "AVAILABLE", version: 2 })),
  );
  expect(await prices(projectId)).toEqual(["100.00", "250.00", "250.00", null]);
  expect(await update({ projectId, filter: { status: [] }, price: 1 })).toEqual([]);
  expect(await update({ projectId, ids: [], price: 1 })).toEqual([]);
  // Each field of the filter selects the same as in a list.
  for (const filter of [
    { constructionStatus: ["FRAMING"] },
    { deliveryDate: { from: "2030-01-31" } },
    { deliveryDate: { to: "2030-01-30" } },
    { moveInReady: false, isBmr: false },
    { bedrooms: { min: 1 } },
    { baths: { max: 3 } },
    { sqft: { min: 3, max: 2 } },
    { level: null, query: "u" },
    { query: "nobody" },
    { floorPlanIds: [ids[0]] },
    { lotIds: [] },
    { updatedAt: { from: "2020-01-01T00:00:00Z" } },
    { projectId },
  ]) {
    const listed = await world.owen.get(
      `query ($id: ID!, $filter: UnitsFilter) { project(id: $id) { units(filter: $filter) { id } } }`,
      { id: projectId, filter },
    );
    const selected = await update({ projectId, filter, estimatedDeliveryDate: "2030-01-31", dryRun: true });
    expect([filter, selected.map((u: any) => u.id)]).toEqual([
      filter,
      listed.project.units.map((u: any) => u.id),
    ]);
  }
});

test("a dry run returns the results and stores nothing", async () => {
  const { projectId, ids } = await project(["100", null]);
  expect(await update({ projectId, ids: [ids[1]], price: 5, status: "AVAILABLE", dryRun: true })).toEqual([
    { id: ids[1], price: "5.00", status: "AVAILABLE", version: 2 },
  ]);
  expect(await prices(projectId)).toEqual(["100.00", null]);
  expect(await events(projectId)).toEqual([]);
  // A dry run is refused like the operation.
  expect(
    await world.owen.refused(document, { input: { projectId, ids, status: "AVAILABLE", dryRun: true } }),
  ).toMatchObject({ code: "BAD_USER_INPUT", field: "price" });
});

test("changes all of them or none", async () => {
  const { projectId, ids } = await project(["100", "200"]);
  await world.owner.query("select app_private.take_claim($1, null, 'HOLD', 'hold', uuidv7())", [ids[1]]);
  expect(
    await world.owen.refused(document, { input: { projectId, ids, status: "OFF_MARKET", price: 1 } }),
  ).toMatchObject({ code: "INVALID_TRANSITION", from: "HELD" });
  expect(await prices(projectId)).toEqual(["100.00", "200.00"]);
});

test("refuses invalid input", async () => {
  const { projectId, ids } = await project(["100"]);
  const other = await project(["100"]);
  const foreign = await create(
    "createProject",
    { organizationId: world.summit.id, title: "Far" },
    world.olga,
  );
  for (const [input, expected] of [
    [
      { ids, filter: {}, price: 1 },
      { code: "BAD_USER_INPUT", field: "ids" },
    ],
    [{ price: 1 }, { code: "BAD_USER_INPUT", field: "ids" }],
    [{ ids }, { code: "BAD_USER_INPUT" }],
    [
      { ids, price: 1, priceDeltaPercent: 1 },
      { code: "BAD_USER_INPUT", field: "priceDeltaPercent" },
    ],
    [
      { ids, priceDeltaPercent: -100 },
      { code: "BAD_USER_INPUT", field: "priceDeltaPercent" },
    ],
    [{ ids, price: "-1" }, { code: "BAD_USER_INPUT" }],
    [
      { ids, price: "1.001" },
      { code: "BAD_USER_INPUT", field: "price" },
    ],
    [
      { ids: other.ids, price: 1 },
      { code: "NOT_FOUND", field: "ids" },
    ],
    [
      { ids: ["nonsense"], price: 1 },
      { code: "BAD_USER_INPUT", field: "ids" },
    ],
    [
      { filter: { includeDeleted: true }, price: 1 },
      { code: "BAD_USER_INPUT", field: "filter" },
    ],
    [
      { ids, price: 1, projectId: foreign },
      { code: "NOT_FOUND", field: "projectId" },
    ],
  ] as [Record<string, unknown>, Record<string, unknown>][])
    expect([input, await world.owen.refused(document, { input: { projectId, ...input } })]).toMatchObject([
      input,
      expected,
    ]);
  expect(await prices(projectId)).toEqual(["100.00"]);
});

test("under one idempotency key it is executed once", async () => {
  const { projectId, ids } = await project(["100", "200"]);
  const input = { projectId, ids, priceDeltaPercent: 10, idempotencyKey: "raise-once" };
  const first = await update(input);
  expect(await update(input)).toEqual(first);
  expect(await prices(projectId)).toEqual(["110.00", "220.00"]);
});

test("changes 5,000 units, and refuses one more", async () => {
  const { projectId } = await project([]);
  await world.owner.query(
    "insert into app_public.units (project_id, title, status, price) select $1, 'U', 'AVAILABLE', 100 from generate_series(1, 5000)",
    [projectId],
  );
  const changed = await update({ projectId, filter: {}, priceDeltaPercent: 1 });
  expect(changed).toHaveLength(5000);
  expect(await events(projectId)).toHaveLength(5000);
  await create("createUnit", { projectId, title: "One more" });
  expect(await world.owen.refused(document, { input: { projectId, filter: {}, price: 1 } })).toMatchObject({
    code: "LIMIT_EXCEEDED",
    limit: 5000,
  });
});
