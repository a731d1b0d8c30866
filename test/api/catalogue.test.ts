import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { affiliate, startWorld, type World } from "../harness/world.ts";

// Records of a project other than its homes: specifications, open houses, promotions, testimonials,
// collections, the sales office, lease permits and the deposit schedule. Permissions:
// inventoryMatrix.test.ts.

let world: World;
let project: string;

beforeAll(async () => {
  world = await startWorld();
  project = world.project.id;
});
afterAll(() => world.stop());

const hours = (n: number) => new Date(Date.now() + n * 3_600_000).toISOString();

/** Creates a record as its organization's owner. */
async function create(type: string, input: Record<string, unknown>, fields: string): Promise<any> {
  const name = `create${type}`;
  return (
    await world.owen.get(`mutation ($i: Create${type}Input!) { ${name}(input: $i) { id ${fields} } }`, {
      i: input,
    })
  )[name];
}
async function update(type: string, input: Record<string, unknown>, fields: string): Promise<any> {
  const name = `update${type}`;
  return (
    await world.owen.get(`mutation ($i: Update${type}Input!) { ${name}(input: $i) { ${fields} } }`, {
      i: input,
    })
  )[name];
}
const refused = (verb: string, type: string, input: Record<string, unknown>) =>
  world.owen.refused(
    `mutation ($i: ${verb[0]!.toUpperCase()}${verb.slice(1)}${type}Input!) { ${verb}${type}(input: $i) { id } }`,
    { i: input },
  );
const remove = (type: string, id: string) =>
  world.owen.get(`mutation ($id: ID!) { delete${type}(input: { id: $id }) { id deleted } }`, { id });
const ofProject = async (fields: string, person = world.owen) =>
  (await person.get(`query ($id: ID!) { project(id: $id) { ${fields} } }`, { id: project })).project;

test("specifications: categories, elements and options are ordered", async () => {
  const bath = await create("SpecCategory", { projectId: project, title: "Bath", sequence: 2 }, "sequence");
  const kitchen = await create(
    "SpecCategory",
    { projectId: world.project.slug, title: " Kitchen ", sequence: 1 },
    "title project { id } version",
  );
  expect(kitchen).toMatchObject({ title: "Kitchen", project: { id: project }, version: 1 });
  const counter = await create(
    "SpecElement",
    { categoryId: kitchen.id, title: "Countertop", required: true, lockPhase: "INTERIOR_FINISHES" },
    "selectionMode required lockPhase category { title } standardOption { id } options { id }",
  );
  expect(counter).toMatchObject({
    selectionMode: "SINGLE",
    required: true,
    lockPhase: "INTERIOR_FINISHES",
    category: { title: "Kitchen" },
    standardOption: null,
    options: [],
  });
  const option = "tier kind price cost currency active sequence maxQuantity element { title }";
  const stone = await create(
    "SpecOption",
    {
      elementId: counter.id,
      title: "Stone",
      tier: "UPGRADE",
      price: "4200.5",
      cost: 2800,
      sku: "CT-2",
      sequence: 2,
      maxQuantity: 1,
    },
    option,
  );
  expect(stone).toMatchObject({
    tier: "UPGRADE",
    kind: "DESIGN",
    price: "4200.50",
    cost: "2800.00",
    currency: "CAD",
    active: true,
    maxQuantity: 1,
    element: { title: "Countertop" },
  });
  const laminate = await create("SpecOption", { elementId: counter.id, title: "Laminate" }, option);
  expect(laminate).toMatchObject({ tier: "STANDARD", price: "0.00", cost: null });
  expect(
    await ofProject("specCategories { title elements { title standardOption { title } options { title } } }"),
  ).toEqual({
    specCategories: [
      {
        title: "Kitchen",
        elements: [
          {
            title: "Countertop",
            standardOption: { title: "Laminate" },
            options: [{ title: "Laminate" }, { title: "Stone" }],
          },
        ],
      },
      { title: "Bath", elements: [] },
    ],
  });

  expect(
    await update("SpecOption", { id: stone.id, price: "4100", expectedVersion: 1 }, "price version"),
  ).toEqual({
    price: "4100.00",
    version: 2,
  });
  expect(
    await refused("update", "SpecOption", { id: stone.id, price: "1", expectedVersion: 1 }),
  ).toMatchObject({
    code: "VERSION_MISMATCH",
    currentVersion: 2,
  });
  expect(
    await refused("create", "SpecOption", { elementId: counter.id, title: "A", sku: "CT-2" }),
  ).toMatchObject({
    code: "CONFLICT",
    field: "sku",
  });
  for (const type of [
    ["SpecElement", counter.id, "specOptions"],
    ["SpecCategory", kitchen.id, "specElements"],
  ])
    expect(await refused("delete", type[0]!, { id: type[1] })).toMatchObject({
      code: "CONFLICT",
      dependents: { [type[2]!]: expect.any(Number) },
    });
  for (const [type, id] of [
    ["SpecOption", stone.id],
    ["SpecOption", laminate.id],
    ["SpecElement", counter.id],
    ["SpecCategory", kitchen.id],
    ["SpecCategory", bath.id],
  ])
    expect(await remove(type, id)).toEqual({ [`delete${type}`]: { id, deleted: true } });
  expect(await ofProject("specCategories { id }")).toEqual({ specCategories: [] });
});

test("the status of an open house follows the clock; it can be cancelled", async () => {
  const make = (from: number, to: number, more = {}) =>
    create(
      "OpenHouse",
      { projectId: project, startsAt: hours(from), endsAt: hours(to), ...more },
      "status format timeZone public rsvpRequired host { id } address { locality country } capacity",
    );
  const coming = await make(2, 4, { hostId: world.max.id, capacity: 20, address: { locality: "Oakville" } });
  expect(coming).toMatchObject({
    status: "SCHEDULED",
    format: "IN_PERSON",
    timeZone: "UTC",
    public: true,
    rsvpRequired: false,
    host: { id: world.max.id },
    address: { locality: "Oakville", country: "CA" },
    capacity: 20,
  });
  const now = await make(-1, 1);
  const over = await make(-5, -3);
  expect([now.status, over.status]).toEqual(["ACTIVE", "ENDED"]);
  expect(await ofProject("openHouses { id }")).toEqual({
    openHouses: [{ id: coming.id }, { id: now.id }, { id: over.id }],
  });
  // Moving the times has the effect of moving the clock.
  expect(
    await update("OpenHouse", { id: over.id, startsAt: hours(5), endsAt: hours(6) }, "status"),
  ).toMatchObject({
    status: "SCHEDULED",
  });
  expect(await update("OpenHouse", { id: now.id, status: "ACTIVE", title: "Preview" }, "status")).toEqual({
    status: "ACTIVE",
  });
  for (const [id, status] of [
    [coming.id, "ACTIVE"],
    [now.id, "ENDED"],
  ])
    expect(await refused("update", "OpenHouse", { id, status })).toMatchObject({
      code: "INVALID_TRANSITION",
      to: status,
      allowedTransitions: ["CANCELED"],
    });
  expect(await update("OpenHouse", { id: coming.id, status: "CANCELED" }, "status")).toEqual({
    status: "CANCELED",
  });
  expect(await refused("update", "OpenHouse", { id: coming.id, status: "SCHEDULED" })).toMatchObject({
    code: "INVALID_TRANSITION",
    from: "CANCELED",
    allowedTransitions: [],
  });
  expect(await remove("OpenHouse", coming.id)).toMatchObject({ deleteOpenHouse: { deleted: true } });
});

test.each([
  [{ endsAt: hours(1) }, "endsAt"],
  [{ hostId: "OLGA" }, "hostId"],
  [{ timeZone: "Mars/Olympus" }, "timeZone"],
  [{ capacity: 0 }, "capacity"],
  [{ videoUrl: "javascript:alert(1)" }, "videoUrl"],
])("an invalid open house is refused: %j", async (bad: Record<string, unknown>, field) => {
  const answer = await refused("create", "OpenHouse", {
    projectId: project,
    startsAt: hours(2),
    endsAt: hours(3),
    ...bad,
    ...(bad.hostId ? { hostId: world.olga.id } : {}),
  });
  expect(answer).toMatchObject({ field: expect.stringContaining(field) });
  expect(["BAD_USER_INPUT", "NOT_FOUND"]).toContain(answer.code);
});

const promotion = "status kind amount percent code usageCount appliesTo public stackable";
const promote = (more: Record<string, unknown>) =>
  create(
    "Promotion",
    { projectId: project, title: "Spring", kind: "PRICE_REDUCTION", startsAt: hours(-1), ...more },
    promotion,
  );

test("the status of a promotion follows the team, the clock and its uses", async () => {
  const running = await promote({ amount: "5000", code: "spring-25", endsAt: hours(1), usageLimit: 2 });
  expect(running).toMatchObject({
    status: "ACTIVE",
    amount: "5000.00",
    percent: null,
    code: "SPRING-25",
    usageCount: 0,
    appliesTo: "PROJECT",
    public: true,
    stackable: false,
  });
  expect((await promote({ amount: 1, startsAt: hours(1) })).status).toBe("SCHEDULED");
  expect((await promote({ amount: 1, endsAt: hours(-0.5) })).status).toBe("ENDED");
  const draft = await promote({ amount: 1, status: "DRAFT" });
  expect(draft.status).toBe("DRAFT");
  expect(await update("Promotion", { id: draft.id, status: "ACTIVE" }, "status")).toEqual({
    status: "ACTIVE",
  });
  const step = (status: string) => update("Promotion", { id: running.id, status }, "status");
  expect(await step("PAUSED")).toEqual({ status: "PAUSED" });
  expect(await step("ACTIVE")).toEqual({ status: "ACTIVE" });
  // Uses are counted from the records that use it.
  await world.owner.query("update app_public.promotions set usage_count = 2 where id = $1", [running.id]);
  expect(await update("Promotion", { id: running.id }, "status")).toEqual({ status: "EXHAUSTED" });
  expect(await refused("update", "Promotion", { id: running.id, usageLimit: 1 })).toMatchObject({
    code: "BAD_USER_INPUT",
    field: "usageLimit",
  });
  expect(await update("Promotion", { id: running.id, usageLimit: 3 }, "status")).toEqual({
    status: "ACTIVE",
  });
  expect(await step("ENDED")).toEqual({ status: "ENDED" });
  expect(await refused("update", "Promotion", { id: running.id, status: "ACTIVE" })).toMatchObject({
    code: "INVALID_TRANSITION",
    from: "ENDED",
  });
  expect(
    await refused("create", "Promotion", {
      projectId: project,
      title: "Again",
      kind: "GIFT",
      startsAt: hours(0),
      code: "Spring-25",
    }),
  ).toMatchObject({ code: "CONFLICT", field: "code" });
});

test.each([
  [{ kind: "PRICE_REDUCTION", percent: 5 }, "amount"],
  [{ kind: "PERCENT_DISCOUNT", amount: 5 }, "percent"],
  [{ kind: "AGENT_BONUS", amount: 5, percent: 5 }, "percent"],
  [{ kind: "OPTION_CREDIT" }, "amount"],
  [{ kind: "GIFT", percent: 5 }, "percent"],
  [{ kind: "PERCENT_DISCOUNT", percent: 0 }, "percent"],
  [{ kind: "PERCENT_DISCOUNT", percent: "100.01" }, "percent"],
  [{ kind: "PRICE_REDUCTION", amount: 0 }, "amount"],
  [{ kind: "PRICE_REDUCTION", amount: "1.001" }, "amount"],
  [{ kind: "PRICE_REDUCTION", amount: 5, maxAmount: 5 }, "maxAmount"],
  [{ kind: "GIFT", endsAt: hours(-2) }, "endsAt"],
  [{ kind: "GIFT", code: "a b" }, "code"],
  [{ kind: "GIFT", usageLimit: 0 }, "usageLimit"],
])("an invalid promotion is refused: %j", async (bad, field) => {
  expect(
    await refused("create", "Promotion", { projectId: project, title: "Bad", startsAt: hours(-1), ...bad }),
  ).toMatchObject({ code: "BAD_USER_INPUT", field });
});

test("testimonials are ordered by position", async () => {
  const second = await create(
    "ProjectTestimonial",
    { projectId: project, author: "Bea", text: "Quiet.", sequence: 2 },
    "published rating",
  );
  expect(second).toMatchObject({ published: false, rating: null });
  const first = await create(
    "ProjectTestimonial",
    { projectId: project, author: "Cem", text: "Bright.", rating: 5, publishedOn: "2026-01-02", sequence: 1 },
    "rating publishedOn",
  );
  expect(first).toMatchObject({ rating: 5, publishedOn: "2026-01-02" });
  expect(await ofProject("testimonials { author }")).toEqual({
    testimonials: [{ author: "Cem" }, { author: "Bea" }],
  });
  expect(
    await update("ProjectTestimonial", { id: second.id, published: true, sequence: 0 }, "published"),
  ).toEqual({
    published: true,
  });
  expect(await refused("update", "ProjectTestimonial", { id: second.id, rating: 6 })).toMatchObject({
    code: "BAD_USER_INPUT",
    field: "rating",
  });
});

test("a collection shows projects of its organization in the given order", async () => {
  const { createProject: other } = await world.owen.get(
    `mutation ($o: ID!) { createProject(input: { organizationId: $o, title: "Quay" }) { id slug } }`,
    { o: world.harbour.id },
  );
  const fields = "slug public version projects { id } organization { id }";
  const made = await create(
    "ProjectCollection",
    { organizationId: world.harbour.slug, title: "By the Water", projectIds: [other.slug, project] },
    fields,
  );
  expect(made).toMatchObject({
    slug: "by-the-water",
    public: false,
    projects: [{ id: other.id }, { id: project }],
    organization: { id: world.harbour.id },
  });
  const twin = await create(
    "ProjectCollection",
    { organizationId: world.harbour.id, title: "By the water" },
    fields,
  );
  expect(twin).toMatchObject({ slug: "by-the-water-2", projects: [] });
  const turned = { id: made.id, projectIds: [project, other.id] };
  expect(await update("ProjectCollection", turned, fields)).toMatchObject({
    version: 2,
    projects: [{ id: project }, { id: other.id }],
  });
  expect(await update("ProjectCollection", { id: made.id, projectIds: [project] }, fields)).toMatchObject({
    version: 3,
    projects: [{ id: project }],
  });
  expect(await update("ProjectCollection", { id: made.id, title: "Water" }, fields)).toMatchObject({
    slug: "by-the-water",
    projects: [{ id: project }],
  });
  expect(await ofProject("collections { id }")).toEqual({ collections: [{ id: made.id }] });
  expect(
    await world.owen.get("query ($id: ID!) { organization(id: $id) { collections { id } } }", {
      id: world.harbour.id,
    }),
  ).toEqual({ organization: { collections: [{ id: made.id }, { id: twin.id }] } });
  expect(await refused("update", "ProjectCollection", { id: twin.id, slug: "by-the-water" })).toMatchObject({
    code: "CONFLICT",
    field: "slug",
  });
  const { createProject: foreign } = await world.olga.get(
    `mutation ($o: ID!) { createProject(input: { organizationId: $o, title: "Peak", visibility: PUBLIC }) { id } }`,
    { o: world.summit.id },
  );
  await affiliate(world, world.project, world.summit, "SELLER");
  for (const [projectIds, code] of [
    [[foreign.id], "NOT_FOUND"],
    [["no-such-project"], "NOT_FOUND"],
    [[project, world.project.slug], "BAD_USER_INPUT"],
  ] as const)
    expect(await refused("update", "ProjectCollection", { id: twin.id, projectIds })).toMatchObject({
      code,
      field: "projectIds",
    });
  expect(await remove("ProjectCollection", twin.id)).toMatchObject({
    deleteProjectCollection: { deleted: true },
  });
});

test("each project is created with one sales office", async () => {
  expect(await ofProject("salesOffice { title byAppointmentOnly version }")).toEqual({
    salesOffice: { title: null, byAppointmentOnly: false, version: 1 },
  });
  const fields = "title phone email address { locality country } project { id } version";
  const input = {
    projectId: world.project.slug,
    title: "Pier 4",
    phone: "416 555 0123",
    email: "Sales@Example.com",
    address: { locality: "Toronto" },
  };
  expect(await update("SalesOffice", input, fields)).toEqual({
    title: "Pier 4",
    phone: "+14165550123",
    email: "sales@example.com",
    address: { locality: "Toronto", country: "CA" },
    project: { id: project },
    version: 2,
  });
  expect(
    await refused("update", "SalesOffice", { projectId: project, notes: "x", expectedVersion: 1 }),
  ).toMatchObject({ code: "VERSION_MISMATCH", currentVersion: 2 });
  expect(await refused("update", "SalesOffice", { projectId: "no-such-project", notes: "x" })).toMatchObject({
    code: "NOT_FOUND",
    field: "projectId",
  });
});

test("states of a lease permit", async () => {
  const permit = await create(
    "LeasePermit",
    { projectId: project, title: "Permit 1", number: "LP-1", price: "1500" },
    "status price issuedOn allowedTransitions { to }",
  );
  expect(permit).toMatchObject({
    status: "AVAILABLE",
    price: "1500.00",
    issuedOn: null,
    allowedTransitions: [{ to: "RESERVED" }],
  });
  expect(await refused("update", "LeasePermit", { id: permit.id, status: "ISSUED" })).toMatchObject({
    code: "INVALID_TRANSITION",
    allowedTransitions: ["RESERVED"],
  });
  await update("LeasePermit", { id: permit.id, status: "RESERVED" }, "id");
  expect(await update("LeasePermit", { id: permit.id, status: "ISSUED" }, "status issuedOn")).toEqual({
    status: "ISSUED",
    issuedOn: expect.stringMatching(/^\d{4}-\d\d-\d\d$/),
  });
  expect(await refused("update", "LeasePermit", { id: permit.id, expiresOn: "2001-01-01" })).toMatchObject({
    code: "BAD_USER_INPUT",
    field: "expiresOn",
  });
  expect(
    await refused("create", "LeasePermit", { projectId: project, title: "Twin", number: "LP-1" }),
  ).toMatchObject({ code: "CONFLICT", field: "number" });
  expect(await remove("LeasePermit", permit.id)).toMatchObject({ deleteLeasePermit: { deleted: true } });
});

test("a deposit schedule has either an amount or a percentage, and a due date", async () => {
  const made = await create(
    "DepositScheduleMilestone",
    { projectId: project, title: "On signing", percent: "5", sequence: 1 },
    "percent amount percentBase dueRule",
  );
  expect(made).toMatchObject({
    percent: "5",
    amount: null,
    percentBase: "PURCHASE_PRICE",
    dueRule: "ON_SIGNING",
  });
  for (const [bad, field] of [
    [{}, "percent"],
    [{ percent: 5, amount: 5 }, "percent"],
    [{ percent: 5, dueRule: "DAYS_AFTER_SIGNING" }, "dueOffsetDays"],
    [{ percent: 5, dueRule: "FIXED_DATE" }, "dueDate"],
  ] as const)
    expect(
      await refused("create", "DepositScheduleMilestone", { projectId: project, title: "Bad", ...bad }),
    ).toMatchObject({ code: "BAD_USER_INPUT", field });
  expect(await ofProject("depositSchedule { title }")).toEqual({
    depositSchedule: [{ title: "On signing" }],
  });
});

test("refuses changes to the catalogue of an archived project", async () => {
  const { createProject: old } = await world.owen.get(
    `mutation ($o: ID!) { createProject(input: { organizationId: $o, title: "Old Mill" }) { id } }`,
    { o: world.harbour.id },
  );
  const category = await create("SpecCategory", { projectId: old.id, title: "Kitchen" }, "id");
  await world.owen.get(
    `mutation ($id: ID!) { updateProject(input: { id: $id, status: ARCHIVED }) { id } }`,
    old,
  );
  expect(await refused("create", "SpecElement", { categoryId: category.id, title: "Tap" })).toMatchObject({
    code: "PROJECT_ARCHIVED",
  });
  expect(await refused("update", "SalesOffice", { projectId: old.id, title: "x" })).toMatchObject({
    code: "PROJECT_ARCHIVED",
  });
});

test("every change writes an event of its record", async () => {
  const made = await create("SpecCategory", { projectId: project, title: "Roof" }, "id");
  await update("SpecCategory", { id: made.id, title: "Roofs" }, "id");
  const { specCategory } = await world.owen.get(
    "query ($id: ID!) { specCategory(id: $id) { events { name changes } } }",
    made,
  );
  expect(specCategory.events.map((event: any) => event.name).sort()).toEqual([
    "spec_category.created",
    "spec_category.updated",
  ]);
});

test("a page of fifty takes as many statements as a page of one", async () => {
  const category = await create("SpecCategory", { projectId: project, title: "Page" }, "id");
  const { rows } = await world.owner.query(
    `insert into app_public.spec_elements (project_id, category_id, title)
     select $1, $2, 'E' || n from generate_series(1, 50) n returning id`,
    [project, category.id],
  );
  await world.owner.query(
    `insert into app_public.spec_options (project_id, element_id, title) select $1, unnest($2::uuid[]), 'O'`,
    [project, rows.map((row: any) => row.id)],
  );
  const page = (first: number) =>
    world.statements(() =>
      world.owen.get(
        `query ($id: ID!, $n: Int) { specCategory(id: $id) {
          elements(first: $n) { title standardOption { title } options { title price cost currency } } } }`,
        { id: category.id, n: first },
      ),
    );
  const one = await page(1);
  const fifty = await page(50);
  expect(fifty.result.specCategory.elements).toHaveLength(50);
  expect(fifty.count).toBe(one.count);
});

test("a public collection hides private projects", async () => {
  const read = `query ($id: ID!) { projectCollection(id: $id) { title projects { id } } }`;
  const shore = { organizationId: world.harbour.id, title: "Shore", public: true, projectIds: [project] };
  const variables = { id: (await create("ProjectCollection", shore, "")).id };
  const setVisibility = (visibility: string) => update("Project", { id: project, visibility }, "id");
  const { createProject: open } = await world.owen.get(
    `mutation ($o: ID!) { createProject(input: { organizationId: $o, title: "Open", visibility: PUBLIC }) { id } }`,
    { o: world.harbour.id },
  );
  await setVisibility("PRIVATE");
  expect((await world.anonymous.get(read, variables)).projectCollection?.projects).toEqual([]);
  await setVisibility("UNLISTED");
  expect((await world.anonymous.get(read, variables)).projectCollection.projects).toEqual([]);
  await world.owen.get(
    `mutation ($id: ID!, $p: [ID!]) { updateProjectCollection(input: { id: $id, projectIds: $p }) { id } }`,
    { ...variables, p: [world.project.id, open.id] },
  );
  expect((await world.anonymous.get(read, variables)).projectCollection.projects).toEqual([{ id: open.id }]);
  expect((await world.max.get(read, variables)).projectCollection.projects).toHaveLength(2);
});

test("nothing of a deleted project is visible", async () => {
  const { createProject: doomed } = await world.owen.get(
    `mutation ($o: ID!) { createProject(input: { organizationId: $o, title: "Gone", visibility: PUBLIC }) { id } }`,
    { o: world.harbour.id },
  );
  const house = await create("OpenHouse", { projectId: doomed.id, startsAt: hours(1), endsAt: hours(2) }, "");
  await world.owen.get(`mutation ($id: ID!) { deleteProject(input: { id: $id }) { deleted } }`, doomed);
  for (const person of [world.owen, world.anonymous])
    expect(await person.get(`query ($id: ID!) { openHouse(id: $id) { id } }`, { id: house.id })).toEqual({
      openHouse: null,
    });
});
