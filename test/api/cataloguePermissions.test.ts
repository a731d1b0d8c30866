import { afterAll, beforeAll, expect, test } from "@jest/globals";
import type { Person } from "../harness/api.ts";
import { affiliate, startWorld, type World } from "../harness/world.ts";

// Who sees and who changes the catalogue of a project: owner, admin, member, the affiliated seller and builder, another
// organization, a visitor. Once while the project is private, once while it is public.

let world: World;
const people: Record<string, Person> = {};
/** Ids of one record of each type, made by the owner, by type. */
const made: Record<string, string> = {};
const hidden: Record<string, string> = {};

const soon = (n: number) => new Date(Date.now() + n * 3_600_000).toISOString();

/** What makes a record of each type, and the change that is tried on it. */
function inputs(project: string, organization: string): Record<string, [object, object]> {
  return {
    SpecCategory: [{ projectId: project, title: "Kitchen" }, { title: "Bath" }],
    SpecElement: [{ categoryId: made.SpecCategory, title: "Tap" }, { title: "Sink" }],
    SpecOption: [
      { elementId: made.SpecElement, title: "Steel", tier: "STANDARD", price: 10, cost: 7 },
      { price: 11, cost: 8 },
    ],
    OpenHouse: [
      { projectId: project, startsAt: soon(1), endsAt: soon(2), hostId: world.max.id },
      { title: "Tour" },
    ],
    Promotion: [{ projectId: project, title: "Spring", kind: "GIFT", startsAt: soon(-1) }, { title: "May" }],
    ProjectTestimonial: [
      { projectId: project, author: "Bea", text: "Good.", published: true },
      { rating: 5 },
    ],
    ProjectCollection: [
      { organizationId: organization, title: "Shore", public: true, projectIds: [world.project.id] },
      { title: "Coast" },
    ],
    Tracker: [{ projectId: project, name: "Mail", kind: "LINK" }, { name: "Post" }],
    LeasePermit: [{ projectId: project, title: "Permit" }, { title: "Right" }],
    DepositScheduleMilestone: [{ projectId: project, title: "First", percent: 5 }, { percent: 6 }],
  };
}
const types = [
  ["SpecCategory", "inventory.manage"],
  ["SpecElement", "inventory.manage"],
  ["SpecOption", "inventory.manage"],
  ["OpenHouse", "marketing.manage"],
  ["Promotion", "marketing.manage"],
  ["ProjectTestimonial", "marketing.manage"],
  ["ProjectCollection", "marketing.manage"],
  ["Tracker", "marketing.manage"],
  ["LeasePermit", "inventory.manage"],
  ["DepositScheduleMilestone", "project.manage"],
] as const;

const write = (verb: "create" | "update" | "delete", type: string) =>
  `mutation ($i: ${verb[0]!.toUpperCase()}${verb.slice(1)}${type}Input!) { ${verb}${type}(input: $i) { id } }`;

beforeAll(async () => {
  world = await startWorld();
  const { project, harbour } = world;
  Object.assign(people, { owen: world.owen, ada: world.ada, max: world.max, seller: world.olga });
  people.builder = await world.signUp("Bob Builder");
  people.stranger = await world.signUp("Rita Rival");
  people.visitor = world.anonymous;
  for (const [name, title] of [
    ["builder", "Build Co"],
    ["stranger", "Rival Homes"],
  ]) {
    const { createOrganization: organization } = await people[name!]!.get(
      `mutation ($n: String!) { createOrganization(input: { name: $n }) { id } }`,
      { n: title },
    );
    if (name === "builder") await affiliate(world, project, organization, "BUILDER");
  }
  await affiliate(world, project, world.summit, "SELLER");
  for (const [type] of types) {
    const [input] = inputs(project.id, harbour.id)[type]!;
    made[type] = (await world.owen.get(write("create", type), { i: input }))[`create${type}`].id;
  }
  // What stays inside even where the project is public.
  for (const [type, more] of [
    ["SpecOption", { active: false, title: "Old" }],
    ["OpenHouse", { public: false }],
    ["Promotion", { status: "DRAFT" }],
    ["ProjectTestimonial", { published: false }],
    ["ProjectCollection", { public: false }],
  ] as const) {
    const [input] = inputs(project.id, harbour.id)[type]!;
    hidden[type] = (await world.owen.get(write("create", type), { i: { ...input, ...more } }))[
      `create${type}`
    ].id;
  }
});
afterAll(() => world.stop());

const setVisibility = (visibility: string) =>
  world.owen.get(
    `mutation ($id: ID!, $v: ProjectVisibility!) { updateProject(input: { id: $id, visibility: $v }) { id } }`,
    { id: world.project.id, v: visibility },
  );

const refusalOf = ({ code, permission }: Record<string, any>) => [code, permission].filter(Boolean).join(" ");

/** How somebody is refused: who cannot see the record is not told that it exists. */
function acceptable(name: string, type: string, permission: string, answer: Record<string, any>): string {
  if (/policy|app_public|permission denied/.test(answer.message)) return "a message for the caller";
  if (name === "visitor") return "UNAUTHENTICATED";
  const sees = name === "max" && type !== "LeasePermit";
  return answer.code === "NOT_FOUND" && !sees ? "NOT_FOUND" : `FORBIDDEN ${permission}`;
}

test.each(types)("%s: owner and admin write, the others do not", async (type, permission) => {
  for (const visibility of ["PRIVATE", "PUBLIC"]) {
    await setVisibility(visibility);
    const [input, change] = inputs(world.project.id, world.harbour.id)[type]!;
    for (const [name, person] of Object.entries(people)) {
      const may = name === "owen" || name === "ada";
      const update = { i: { id: made[type], ...change } };
      if (may) {
        const { [`create${type}`]: extra } = await person.get(write("create", type), { i: input });
        await person.get(write("update", type), { i: { ...change, id: extra.id } });
        await person.get(write("delete", type), { i: { id: extra.id } });
        continue;
      }
      const answers = [
        await person.refused(write("create", type), { i: input }),
        await person.refused(write("update", type), update),
        await person.refused(write("delete", type), { i: { id: made[type] } }),
      ];
      expect([name, visibility, answers.map(refusalOf)]).toEqual([
        name,
        visibility,
        answers.map((answer) => acceptable(name, type, permission, answer)),
      ]);
    }
  }
});

test("the sales office is changed by owner and admin", async () => {
  const change = `mutation ($p: ID!) { updateSalesOffice(input: { projectId: $p, title: "Pier" }) { title } }`;
  for (const visibility of ["PRIVATE", "PUBLIC"]) {
    await setVisibility(visibility);
    const codes: Record<string, string> = {};
    for (const [name, person] of Object.entries(people)) {
      const { data, errors } = await person.ask(change, { p: world.project.id });
      codes[name] = errors?.[0]?.extensions.code ?? data.updateSalesOffice.title;
    }
    expect(codes).toEqual({
      owen: "Pier",
      ada: "Pier",
      max: "FORBIDDEN",
      seller: "FORBIDDEN",
      builder: "FORBIDDEN",
      stranger: visibility === "PUBLIC" ? "FORBIDDEN" : "NOT_FOUND",
      visitor: "UNAUTHENTICATED",
    });
  }
});

/** How many records each person sees of each list of the project, null where the list is not theirs to see. */
async function seen(): Promise<Record<string, unknown>> {
  const result: Record<string, unknown> = {};
  for (const [name, person] of Object.entries(people)) {
    const { project } = await person.get(
      `query ($id: ID!) { project(id: $id) {
        specCategories { elements { options { cost price } standardOption { title } } }
        openHouses { host { id } } promotions { status } testimonials { author } collections { projects { id } }
        depositSchedule { id } salesOffice { id } trackers { id } leasePermits { id } } }`,
      { id: world.project.id },
    );
    result[name] =
      project &&
      [
        project.specCategories.length,
        project.specCategories[0].elements[0].options.length,
        project.specCategories[0].elements[0].options[0].cost,
        project.openHouses.length,
        project.openHouses.at(-1).host?.id === world.max.id,
        project.promotions.length,
        project.testimonials.length,
        project.collections.length,
        project.depositSchedule.length,
        project.salesOffice !== null,
        project.trackers?.length ?? null,
        project.leasePermits?.length ?? null,
      ].join(" ");
  }
  return result;
}

test("insiders see all, cost, trackers and permits by permission; outsiders what is public once the project is", async () => {
  await setVisibility("PRIVATE");
  const inside = {
    owen: "1 2 7.00 2 true 2 2 2 1 true 1 1",
    ada: "1 2 7.00 2 true 2 2 2 1 true 1 1",
    max: "1 2  2 true 2 2 2 1 true 1 ",
  };
  // An organization without a public project keeps its collections to itself.
  const partner = (collections: number) => `1 2  2 false 2 2 ${collections} 1 true  `;
  expect(await seen()).toEqual({
    ...inside,
    seller: partner(0),
    builder: partner(0),
    stranger: null,
    visitor: null,
  });
  await setVisibility("PUBLIC");
  const outside = "1 1  1 false 1 1 1 1 true  ";
  expect(await seen()).toEqual({
    ...inside,
    seller: partner(1),
    builder: partner(1),
    stranger: outside,
    visitor: outside,
  });
});

test("a record by its id is there for those who see it in the list", async () => {
  const finders = (ids: Record<string, string>) =>
    Object.entries(ids)
      .map(([type, id]) => `${type}: ${type[0]!.toLowerCase()}${type.slice(1)}(id: "${id}") { id }`)
      .join("\n");
  const found = async (name: string, ids: Record<string, string>) =>
    Object.entries(await people[name]!.get(`{ ${finders(ids)} }`))
      .filter(([, record]) => record !== null)
      .map(([type]) => type);
  const all = types.map(([type]) => type as string);
  const open = all.filter((type) => type !== "Tracker" && type !== "LeasePermit");
  await setVisibility("PUBLIC");
  expect(await found("ada", made)).toEqual(all);
  expect(await found("max", made)).toEqual(all.filter((type) => type !== "LeasePermit"));
  for (const name of ["seller", "builder", "stranger", "visitor"])
    expect([name, await found(name, made)]).toEqual([name, open]);
  expect(await found("max", hidden)).toEqual(Object.keys(hidden));
  expect(await found("seller", hidden)).toEqual(Object.keys(hidden).filter((t) => t !== "ProjectCollection"));
  for (const name of ["stranger", "visitor"]) expect([name, await found(name, hidden)]).toEqual([name, []]);
  await setVisibility("PRIVATE");
  for (const name of ["stranger", "visitor"]) expect([name, await found(name, hidden)]).toEqual([name, []]);
});

test("a public collection shows nobody a project that is not public", async () => {
  const read = `query ($id: ID!) { projectCollection(id: $id) { title projects { id } } }`;
  const variables = { id: made.ProjectCollection };
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

test("of a deleted project nothing is left to see", async () => {
  const { createProject: doomed } = await world.owen.get(
    `mutation ($o: ID!) { createProject(input: { organizationId: $o, title: "Gone", visibility: PUBLIC }) { id } }`,
    { o: world.harbour.id },
  );
  const { createOpenHouse: house } = await world.owen.get(write("create", "OpenHouse"), {
    i: { projectId: doomed.id, startsAt: soon(1), endsAt: soon(2) },
  });
  await world.owen.get(`mutation ($id: ID!) { deleteProject(input: { id: $id }) { deleted } }`, doomed);
  for (const person of [world.owen, world.anonymous])
    expect(await person.get(`query ($id: ID!) { openHouse(id: $id) { id } }`, house)).toEqual({
      openHouse: null,
    });
});
