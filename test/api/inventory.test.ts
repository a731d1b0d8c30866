/** Floor plans, lots and units: values inherited from the plan, manual status changes, lists, sums, and refusals. */
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { type Create, createIn, mutationOf } from "../harness/records.ts";
import { startWorld, type World } from "../harness/world.ts";

let world: World;
let create: Create;
let plan: string;

beforeAll(async () => {
  world = await startWorld();
  create = createIn(world.owen);
  plan = await create("createFloorPlan", {
    projectId: world.project.slug,
    title: "The Alder",
    code: "A1",
    status: "ACTIVE",
    basePrice: "400000",
    bedrooms: 2,
    baths: 2,
    sqft: 900,
    hoaFee: "350.00",
    orientation: "S",
  });
});
afterAll(() => world.stop());

let numbers = 100;
const unit = (input: Record<string, unknown> = {}) =>
  create("createUnit", {
    projectId: world.project.id,
    title: "A home",
    number: String(++numbers),
    floorPlanId: plan,
    ...input,
  });
const read = async (id: string, fields: string) =>
  (await world.owen.get(`query ($id: ID!) { unit(id: $id) { ${fields} } }`, { id })).unit;
const update = async (input: Record<string, unknown>, fields = "id") =>
  (
    await world.owen.get(`mutation ($input: UpdateUnitInput!) { updateUnit(input: $input) { ${fields} } }`, {
      input,
    })
  ).updateUnit;
const refused = (field: string, input: Record<string, unknown>) =>
  world.owen.refused(mutationOf(field, "{ __typename }"), { input });

test("fields that a unit does not set are inherited from its floor plan, again after they are cleared", async () => {
  const fields = "bedrooms baths sqft hoaFee orientation floorPlanOverrides version";
  const id = await unit({ bedrooms: 3, orientation: "N" });
  expect(await read(id, fields)).toEqual({
    bedrooms: 3,
    baths: 2,
    sqft: 900,
    hoaFee: "350.00",
    orientation: "N",
    floorPlanOverrides: { bedrooms: 3, orientation: "N" },
    version: 1,
  });
  // A value equal to that of the plan still overrides it, and stays when the plan changes.
  await update({ id, bedrooms: null, baths: 2 });
  await world.owen.get(`mutation ($input: UpdateFloorPlanInput!) { updateFloorPlan(input: $input) { id } }`, {
    input: { id: plan, bedrooms: 1, baths: 1 },
  });
  expect(await read(id, fields)).toMatchObject({
    bedrooms: 1,
    baths: 2,
    floorPlanOverrides: { baths: 2, orientation: "N" },
  });
  const found = await world.owen.get(
    `query ($id: ID!, $filter: UnitsFilter) { project(id: $id) { units(filter: $filter) { id } } }`,
    { id: world.project.id, filter: { bedrooms: { max: 1 }, baths: { min: 2 } } },
  );
  expect(found.project.units).toEqual([{ id }]);
  await update({ id, floorPlanId: null });
  expect(await read(id, "bedrooms baths floorPlanOverrides")).toEqual({
    bedrooms: null,
    baths: 2,
    floorPlanOverrides: {},
  });
  await world.owen.get(`mutation ($input: UpdateFloorPlanInput!) { updateFloorPlan(input: $input) { id } }`, {
    input: { id: plan, bedrooms: 2, baths: 2 },
  });
});

test("a unit becomes AVAILABLE with a price, and stores when and at which price it was listed", async () => {
  const id = await unit({ estimatedDeliveryDate: "2028-05-20", sqft: 800 });
  expect(await refused("updateUnit", { id, status: "AVAILABLE" })).toMatchObject({
    code: "BAD_USER_INPUT",
    field: "price",
  });
  expect(await read(id, "status price listingDate daysOnMarket standardStatus")).toEqual({
    status: "UNRELEASED",
    price: null,
    listingDate: null,
    daysOnMarket: null,
    standardStatus: "COMING_SOON",
  });
  await update({ id, status: "AVAILABLE", price: 425000 });
  await update({ id, price: "430000.5" });
  expect(
    await read(
      id,
      "status price originalListPrice currency ppsf listingDate daysOnMarket standardStatus estimatedDeliveryDate moveInReady",
    ),
  ).toEqual({
    status: "AVAILABLE",
    price: "430000.50",
    originalListPrice: "425000.00",
    currency: "CAD",
    ppsf: "537.50",
    listingDate: expect.stringMatching(/^\d{4}-\d\d-\d\d$/),
    daysOnMarket: 0,
    standardStatus: "ACTIVE",
    estimatedDeliveryDate: "2028-05-20",
    moveInReady: false,
  });
  const { priceHistory, events, allowedTransitions } = await read(
    id,
    "priceHistory { from to actor { id } at effectiveAt } events { name } allowedTransitions { to allowed }",
  );
  expect(priceHistory).toMatchObject([
    { from: "425000.00", to: "430000.50", actor: { id: world.owen.id } },
    { from: null, to: "425000.00" },
  ]);
  expect(events.map((e: any) => e.name)).toEqual([
    "unit.price_changed",
    "unit.price_changed",
    "unit.created",
  ]);
  expect(allowedTransitions).toEqual([{ to: "OFF_MARKET", allowed: true }]);
  expect(await refused("updateUnit", { id, price: null })).toMatchObject({
    code: "BAD_USER_INPUT",
    field: "price",
  });
});

test("only the service sets the statuses that come with a claim", async () => {
  const id = await unit({ price: 1, status: "AVAILABLE" });
  for (const status of ["HELD", "RESERVED", "PENDING", "SOLD", "CLOSED", "UNRELEASED"])
    expect(await refused("updateUnit", { id, status })).toMatchObject({
      code: "INVALID_TRANSITION",
      from: "AVAILABLE",
      allowedTransitions: ["OFF_MARKET"],
    });
  expect(
    await refused("createUnit", { projectId: world.project.id, title: "No", status: "SOLD", price: 1 }),
  ).toMatchObject({ code: "INVALID_TRANSITION" });
});

test("refuses used numbers, plans and lots of another project, and invalid values", async () => {
  const other = await create("createProject", {
    organizationId: world.harbour.id,
    title: "Elsewhere",
    currency: "JPY",
  });
  const foreignPlan = await create("createFloorPlan", { projectId: other, title: "Foreign" });
  const foreignLot = await create("createLot", { projectId: other, number: "1" });
  await unit({ number: "1204A" });
  const input = { projectId: world.project.id, title: "Bad" };
  for (const [member, value, code] of [
    ["number", "1204a", "CONFLICT"],
    ["floorPlanId", foreignPlan, "NOT_FOUND"],
    ["lotId", foreignLot, "NOT_FOUND"],
    ["floorPlanId", "nonsense", "BAD_USER_INPUT"],
    ["bedrooms", -1, "BAD_USER_INPUT"],
    ["sqft", 0, "BAD_USER_INPUT"],
    ["price", "-1", "BAD_USER_INPUT"],
    ["price", "1.001", "BAD_USER_INPUT"],
    ["title", " ", "BAD_USER_INPUT"],
  ] as const)
    expect([member, await refused("createUnit", { ...input, [member]: value })]).toMatchObject([
      member,
      { code, field: member },
    ]);
  expect(await refused("createUnit", { projectId: other, title: "Yen", price: "1.5" })).toMatchObject({
    code: "BAD_USER_INPUT",
    field: "price",
  });
  const lot = { projectId: world.project.id, number: "7" };
  await create("createLot", lot);
  expect(await refused("createLot", lot)).toMatchObject({ code: "CONFLICT", field: "number" });
  expect(await refused("createFloorPlan", { ...input, bedrooms: 3, bedroomsMax: 2 })).toMatchObject({
    code: "BAD_USER_INPUT",
  });
});

test("a refused operation stores nothing: no change, no event, no claim", async () => {
  const other = await create("createProject", { organizationId: world.harbour.id, title: "Afar" });
  const foreign = {
    plan: await create("createFloorPlan", { projectId: other, title: "Foreign" }),
    lot: await create("createLot", { projectId: other, number: "1" }),
  };
  const land = await create("createLot", {
    projectId: world.project.id,
    number: "Claimed",
    status: "AVAILABLE",
    price: 5,
  });
  const id = await unit({ status: "AVAILABLE", price: 100, lotId: land });
  const claimed = await unit({ status: "AVAILABLE", price: 100 });
  await world.owner.query("select app_private.take_claim($1, null, 'HOLD', 'reservation', uuidv7())", [
    claimed,
  ]);
  const everything = async () =>
    (
      await world.owner.query(
        `select (select jsonb_agg(u order by u.id) from app_public.units u) as units, (select jsonb_agg(l order by l.id) from app_public.lots l) as lots,
           (select jsonb_agg(f order by f.id) from app_public.floor_plans f) as plans, (select count(*) from app_public.events) as events,
           (select jsonb_agg(c order by c.id) from app_hidden.claims c) as claims`,
      )
    ).rows;
  const before = await everything();
  for (const [field, input, expected] of [
    [
      "updateUnit",
      { id, title: "New", floorPlanId: foreign.plan },
      { code: "NOT_FOUND", field: "floorPlanId" },
    ],
    ["updateUnit", { id, title: "New", lotId: foreign.lot }, { code: "NOT_FOUND", field: "lotId" }],
    ["updateUnit", { id, title: "New", price: null }, { code: "BAD_USER_INPUT", field: "price" }],
    [
      "createUnit",
      { projectId: world.project.id, title: "New", status: "AVAILABLE" },
      { code: "BAD_USER_INPUT", field: "price" },
    ],
    [
      "createLot",
      { projectId: world.project.id, number: "N", status: "AVAILABLE" },
      { code: "BAD_USER_INPUT", field: "price" },
    ],
    ["updateUnit", { id: claimed, price: 7, status: "OFF_MARKET" }, { code: "INVALID_TRANSITION" }],
    ["deleteUnit", { id: claimed }, { code: "CONFLICT", dependents: { claims: 1 } }],
    ["deleteLot", { id: land }, { code: "CONFLICT", dependents: { units: 1 } }],
    ["deleteFloorPlan", { id: plan }, { code: "CONFLICT", dependents: { units: expect.any(Number) } }],
    [
      "updateUnit",
      { id, title: "New", expectedVersion: 99 },
      { code: "VERSION_MISMATCH", currentVersion: 1 },
    ],
  ] as const)
    expect([field, await refused(field, input)]).toMatchObject([field, expected]);
  expect(await everything()).toEqual(before);
});

test("of 20 concurrent updates with the same expectedVersion, one succeeds", async () => {
  const id = await unit();
  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, n) =>
      world.owen.ask(`mutation ($input: UpdateUnitInput!) { updateUnit(input: $input) { title version } }`, {
        input: { id, title: `Try ${n}`, expectedVersion: 1 },
      }),
    ),
  );
  const won = answers.filter((answer) => !answer.errors).map((answer) => answer.data.updateUnit);
  expect(won).toEqual([await read(id, "title version")]);
  for (const { errors } of answers.filter((answer) => answer.errors))
    expect(errors![0]!.extensions).toMatchObject({ code: "VERSION_MISMATCH", currentVersion: 2 });
});

test("a lot has a name from its number, features, and a home on it", async () => {
  const id = await create("createLot", {
    projectId: world.project.id,
    number: "12B",
    status: "AVAILABLE",
    price: 200000,
    premium: 15000,
    areaSqft: 4000,
    phase: "1",
    features: ["CORNER", "FLAT"],
  });
  const home = await unit({ lotId: id });
  const { lot } = await world.owen.get(
    `query ($id: ID!) { lot(id: $id) { title price premium currency features multiUnit units { id } project { id } priceHistory { to } } }`,
    { id },
  );
  expect(lot).toEqual({
    title: "Lot 12B",
    price: "200000.00",
    premium: "15000.00",
    currency: "CAD",
    features: ["CORNER", "FLAT"],
    multiUnit: false,
    units: [{ id: home }],
    project: { id: world.project.id },
    priceHistory: [{ to: "200000.00" }],
  });
  const lots = async (filter: Record<string, unknown>) =>
    (
      await world.owen.get(
        `query ($id: ID!, $filter: LotsFilter) { project(id: $id) { lots(filter: $filter) { number } } }`,
        { id: world.project.id, filter },
      )
    ).project.lots.map((l: any) => l.number);
  for (const filter of [
    { phase: ["1", "2"] },
    { features: ["CORNER"] },
    { price: { min: 200000, max: 200000 } },
    { areaSqft: { min: 3000 } },
    { query: "12b" },
  ])
    expect([filter, await lots(filter)]).toEqual([filter, ["12B"]]);
  expect(await lots({ price: { min: 2, max: 1 } })).toEqual([]);
  expect(await lots({ phase: [] })).toEqual([]);
});

test("filters units by their fields, and floor plans by their ranges", async () => {
  const id = await unit({
    title: "Zebra Suite",
    price: 990000,
    status: "AVAILABLE",
    level: 42,
    isBmr: true,
    constructionStatus: "COMPLETED",
    estimatedDeliveryDate: "2031-02-10",
  });
  const find = async (filter: Record<string, unknown>) =>
    (
      await world.owen.get(
        `query ($project: ID, $filter: UnitsFilter) { unitsConnection(projectId: $project, filter: $filter) { totalCount nodes { id } } }`,
        { project: world.project.slug, filter },
      )
    ).unitsConnection;
  for (const filter of [
    { query: "zebra SUITE" },
    { price: { min: "989999.99", max: 990000 } },
    { level: { min: 42, max: 42 } },
    { isBmr: true, status: ["AVAILABLE"] },
    { moveInReady: true },
    { constructionStatus: ["COMPLETED"] },
    { deliveryDate: { from: "2031-02-10", to: "2031-02-10" } },
    { query: "zebra", floorPlanIds: [plan], projectId: world.project.slug },
  ])
    expect([filter, await find(filter)]).toEqual([filter, { totalCount: 1, nodes: [{ id }] }]);
  // Searches across the portfolio use another query plan.
  const byWords = async (query: string, person = world.owen) =>
    (
      await person.get(
        `query ($filter: UnitsFilter) { units(filter: $filter) { id } unitsConnection(filter: $filter) { totalCount nodes { id } } }`,
        { filter: { query } },
      )
    ).unitsConnection;
  expect(await byWords("süite ZEB")).toEqual({ totalCount: 1, nodes: [{ id }] });
  expect(await byWords("zebra", world.olga)).toEqual({ totalCount: 0, nodes: [] });
  await update({ id, building: "100% Tower_B", price: 980000 });
  for (const words of ["zebra tower", "100%", "r_b"])
    expect([words, (await byWords(words)).nodes]).toEqual([words, [{ id }]]);
  for (const words of ["zebra x", "1%0", "tower-b"])
    expect([words, (await byWords(words)).nodes]).toEqual([words, []]);
  expect((await byWords(" ")).totalCount).toBeGreaterThan(5);
  await update({ id, title: "Okapi", price: 990000 });
  expect((await byWords("zebra")).nodes).toEqual([]);
  await update({ id, title: "Zebra Suite" });
  const range = await create("createFloorPlan", {
    projectId: world.project.id,
    title: "Range",
    bedrooms: 4,
    bedroomsMax: 6,
    basePrice: "0.25",
  });
  const { project } = await world.owen.get(
    `query ($id: ID!) { project(id: $id) {
      five: floorPlans(filter: { bedrooms: { min: 5, max: 5 } }) { id priceMin availableCount }
      cheap: floorPlans(filter: { price: { max: "0.5" } }) { id }
      named: floorPlans(filter: { query: "alder" }) { id }
    } }`,
    { id: world.project.id },
  );
  expect(project).toEqual({
    five: [{ id: range, priceMin: null, availableCount: 0 }],
    cheap: [{ id: range }],
    named: [{ id: plan }],
  });
});

test("deletes only records without dependent records", async () => {
  const lonely = await create("createFloorPlan", { projectId: world.project.id, title: "Lonely" });
  const id = await unit({ floorPlanId: lonely, number: "D1" });
  expect(await refused("deleteFloorPlan", { id: lonely })).toMatchObject({
    code: "CONFLICT",
    dependents: { units: 1 },
  });
  const { deleteUnit } = await world.owen.get(
    `mutation ($id: ID!) { deleteUnit(input: { id: $id }) { id deleted project { id } } }`,
    { id },
  );
  expect(deleteUnit).toEqual({ id, deleted: true, project: { id: world.project.id } });
  expect(await read(id, "id")).toBeNull();
  // Its number can be used again.
  await unit({ number: "D1" });
  await world.owen.get(`mutation ($id: ID!) { deleteFloorPlan(input: { id: $id }) { deleted } }`, {
    id: lonely,
  });
  expect(await refused("deleteFloorPlan", { id: lonely })).toMatchObject({ code: "NOT_FOUND" });
});

test("aggregates a project's inventory, and filters and sorts projects by their units for sale", async () => {
  const projects: string[] = [];
  for (const [title, prices] of [
    ["Dear", [900, 800]],
    ["Cheap", [100, 950]],
    ["Empty", []],
  ] as const) {
    const projectId = await create("createProject", { organizationId: world.summit.id, title }, world.olga);
    projects.push(projectId);
    for (const price of prices)
      await create(
        "createUnit",
        { projectId, title: "U", price, status: "AVAILABLE", bedrooms: price % 7, sqft: price },
        world.olga,
      );
  }
  const { abstract } = (
    await world.olga.get(
      `query ($id: ID!) { project(id: $id) { abstract { unitsTotal unitsAvailable unitsReserved unitsSold unitsMoveInReady priceMin priceMax bedroomsMin bedroomsMax sqftMin sqftMax isSoldOut } } }`,
      { id: projects[0] },
    )
  ).project;
  expect(abstract).toEqual({
    unitsTotal: 2,
    unitsAvailable: 2,
    unitsReserved: 0,
    unitsSold: 0,
    unitsMoveInReady: 0,
    priceMin: "800.00",
    priceMax: "900.00",
    bedroomsMin: 2,
    bedroomsMax: 4,
    sqftMin: 800,
    sqftMax: 900,
    isSoldOut: false,
  });
  const list = async (args: string) =>
    (await world.olga.get(`{ projects(${args}) { title } }`)).projects.map((p: any) => p.title);
  expect(await list("sort: PRICE_ASC")).toEqual(["Cheap", "Dear", "Empty"]);
  expect(await list("sort: PRICE_DESC")).toEqual(["Cheap", "Dear", "Empty"]);
  expect(await list("filter: { price: { max: 150 } }")).toEqual(["Cheap"]);
  expect(await list("filter: { bedrooms: { min: 4, max: 4 } }")).toEqual(["Dear"]);
  expect(await list("filter: { price: { min: 960 } }")).toEqual([]);
});

test("a page of 50 units with plans, lots, pictures and promotions takes as many statements as a page of 1", async () => {
  const projectId = await create("createProject", { organizationId: world.harbour.id, title: "Many" });
  await create("createPromotion", {
    projectId,
    title: "Spring",
    kind: "GIFT",
    startsAt: "2020-01-01T00:00:00Z",
  });
  // Units with plans and lots of their own, each with two pictures.
  await world.owner.query(
    `with plans as (insert into app_public.floor_plans (project_id, title) select $1, 'P' || i from generate_series(1, 50) i returning id),
       lots as (insert into app_public.lots (project_id, number) select $1, i from generate_series(1, 50) i returning id)
     insert into app_public.units (project_id, title, floor_plan_id, lot_id)
       select $1, 'U' || p.n, p.id, l.id from (select id, row_number() over () as n from plans) p
       join (select id, row_number() over () as n from lots) l on l.n = p.n`,
    [projectId],
  );
  for (const [table, column, parents] of [
    ["unit_images", "unit_id", "units"],
    ["floor_plan_images", "floor_plan_id", "floor_plans"],
    ["lot_images", "lot_id", "lots"],
  ])
    await world.owner.query(
      `begin; set local session_replication_role = replica;
       insert into app_public.${table} (organization_id, project_id, ${column}, file, sequence, filename, filemime, filesize, width, height, checksum)
         select p.organization_id, p.project_id, p.id, '{}', n, 'a.png', 'image/png', 1, 1, 1, repeat(md5(p.id::text || n), 2)
         from app_public.${parents} p, generate_series(1, 2) n where p.project_id = '${projectId}';
       commit`,
    );
  const page = (first: number) =>
    world.statements(() =>
      world.owen.get(
        `query ($id: ID!, $first: Int) { project(id: $id) { abstract { unitsTotal } units(first: $first) {
          title price ppsf bedrooms floorPlan { title priceMin images { url } } lot { number price images { url } } daysOnMarket
          images { url thumbnailUrl } promotions { title } leasePermit { id } priceHistory { to } allowedTransitions { to } } } }`,
        { id: projectId, first },
      ),
    );
  // The first query after a change of permissions is sent twice.
  await page(1);
  const [one, fifty] = [await page(1), await page(50)];
  expect(fifty.result.project.units).toHaveLength(50);
  for (const home of fifty.result.project.units)
    expect(
      [home.images, home.floorPlan.images, home.lot.images, home.promotions].map((list) => list.length),
    ).toEqual([2, 2, 2, 1]);
  expect(fifty.count).toBe(one.count);
  expect(fifty.count).toBeLessThanOrEqual(2);
});
