/** Projects and organizations: defaults, slugs, partial updates, states, archiving, deletion, events. */
import { mutationOf } from "../harness/records.ts";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { createLead, createProject } from "../harness/portfolio.ts";
import { expectUnchanged } from "../harness/expectUnchanged.ts";
import { startWorld, type World } from "../harness/world.ts";

let world: World;
beforeAll(async () => {
  world = await startWorld();
});
afterAll(() => world.stop());

const fields = `id slug title status visibility type overview overviewHeadline design address { thoroughfare locality country }
  city timeZone currency websiteUrl amenities salesStartDate completionDate archivedAt serviceIndex reservationExpiration
  reservationFee cancellationFee rescissionDays soldTrigger allowMultipleOffers leadAssignment metadata version updatedAt
  insertedAt organization { id } allowedTransitions { to allowed }`;

async function create(input: Record<string, unknown>): Promise<any> {
  const data = await world.owen.get(
    `mutation ($input: CreateProjectInput!) { createProject(input: $input) { ${fields} } }`,
    {
      input: { organizationId: world.harbour.id, title: "Lake House", ...input },
    },
  );
  return data.createProject;
}
async function update(input: Record<string, unknown>): Promise<any> {
  const data = await world.owen.get(
    `mutation ($input: UpdateProjectInput!) { updateProject(input: $input) { ${fields} } }`,
    { input },
  );
  return data.updateProject;
}
const refuse = (input: Record<string, unknown>) =>
  world.owen.refused(`mutation ($input: UpdateProjectInput!) { updateProject(input: $input) { id } }`, {
    input,
  });
const read = async (id: string) =>
  (await world.owen.get(`query ($id: ID!) { project(id: $id) { ${fields} } }`, { id })).project;

describe("a new project", () => {
  test("has its defaults, lead sources and fallout reasons", async () => {
    const project = await create({});
    expect(project).toMatchObject({
      slug: "lake-house",
      status: "DRAFT",
      visibility: "PRIVATE",
      type: "CONDOMINIUM",
      timeZone: "UTC",
      currency: "USD",
      address: null,
      city: null,
      amenities: [],
      archivedAt: null,
      reservationExpiration: 48,
      reservationFee: null,
      rescissionDays: 0,
      soldTrigger: "SIGNED",
      allowMultipleOffers: false,
      leadAssignment: "MANUAL",
      metadata: null,
      version: 1,
      organization: { id: world.harbour.id },
    });
    expect(await read(project.id)).toEqual(project);
    const data = await world.owen.get(
      `{ project(id: "${project.id}") { leadSources { code isSystem active leadCount project { id } } falloutReasons { category appliesTo usageCount }
        organizations { role organization { id } } events { name } } }`,
    );
    expect(data.project.leadSources.map((s: any) => s.code).sort()).toEqual([
      "AGENT",
      "OTHER",
      "PHONE",
      "REFERRAL",
      "WALK_IN",
      "WEB_DIRECT",
    ]);
    for (const source of data.project.leadSources)
      expect(source).toMatchObject({
        isSystem: true,
        active: true,
        leadCount: 0,
        project: { id: project.id },
      });
    expect(data.project.falloutReasons.map((r: any) => r.category).sort()).toEqual([
      "COMPETITOR",
      "FINANCING",
      "OTHER",
      "PRICE",
      "UNRESPONSIVE",
    ]);
    expect(data.project.falloutReasons[0].appliesTo).toEqual(["LEAD", "RESERVATION", "NEGOTIATION", "BUYER"]);
    expect(data.project.organizations).toEqual([{ role: "OWNER", organization: { id: world.harbour.id } }]);
    expect(data.project.events.filter((e: any) => e.name === "project.created")).toHaveLength(1);
  });

  test("keeps all given values", async () => {
    const input = {
      title: "Full House",
      slug: "full",
      type: "TOWNHOME",
      status: "PRESALE",
      visibility: "UNLISTED",
      overview: "ü".repeat(1500),
      address: { thoroughfare: "1 Quai", locality: "Montréal", country: "CA" },
      timeZone: "America/Toronto",
      currency: "JPY",
      websiteUrl: "https://full.example/a?b=c#d",
      amenities: ["gym"],
      salesStartDate: "2026-05-01",
      completionDate: "2026-05-01",
      reservationExpiration: 72,
      reservationFee: 5000,
      cancellationFee: "250",
      rescissionDays: 10,
      soldTrigger: "FIRM",
      allowMultipleOffers: true,
      leadAssignment: "ROUND_ROBIN",
      metadata: { nested: { gone: null } },
    };
    expect(await create(input)).toMatchObject({
      ...input,
      reservationFee: "5000",
      cancellationFee: "250",
      city: "Montréal",
    });
  });
});

describe("slugs", () => {
  test("are derived from the title, and unique", async () => {
    const slugs = [];
    for (const title of ["Été à Québec!", "ÉTÉ à québec", "été-à-québec", "東京", "  --  x"])
      slugs.push((await create({ title })).slug);
    expect(slugs).toEqual([
      "ete-a-quebec",
      "ete-a-quebec-2",
      "ete-a-quebec-3",
      expect.stringMatching(/^[a-z0-9]+(-[a-z0-9]+)*$/),
      "x",
    ]);
  });

  test("former ones remain valid: as id, in inputs and in filters", async () => {
    const { id } = await create({ title: "First Name", slug: "first-name" });
    expect((await update({ id: "first-name", slug: "second-name" })).slug).toBe("second-name");
    expect((await update({ id: "FIRST-NAME", slug: "third-name", title: "Third" })).title).toBe("Third");
    for (const slug of ["first-name", "second-name", "THIRD-NAME"]) {
      expect((await read(slug))?.id).toBe(id);
      const lead = await createLead(world.owen, { projectId: slug, name: `Via ${slug.length}${slug}` });
      const data = await world.owen.get(
        `query ($slug: ID!) { leads(filter: { projectIds: [$slug], query: "Via ${slug.length}${slug}" }) { id } eventsConnection(filter: { projectId: $slug, names: ["project.created"] }) { totalCount } }`,
        { slug },
      );
      expect(data.leads).toEqual([lead]);
      expect(data.eventsConnection.totalCount).toBe(1);
    }
    // The project can use it again, but no other project can.
    expect((await update({ id, slug: "first-name" })).slug).toBe("first-name");
    expect(await refuse({ id: world.project.id, slug: "second-name" })).toMatchObject({
      code: "CONFLICT",
      field: "slug",
    });
  });

  test("of organizations too, which keep their own names", async () => {
    const first = world.harbour.slug;
    await world.owen.get(
      `mutation ($id: ID!) { updateOrganization(input: { id: $id, slug: "harbour" }) { slug } }`,
      { id: first },
    );
    for (const id of [first, "harbour", world.harbour.id]) {
      const data = await world.owen.get(
        `query ($id: ID!) { organization(id: $id) { id slug } projects(filter: { organizationId: $id }, first: 1) { organizationId } }`,
        { id },
      );
      expect(data).toMatchObject({
        organization: { id: world.harbour.id, slug: "harbour" },
        projects: [{ organizationId: world.harbour.id }],
      });
    }
    expect((await create({ title: "By Slug", organizationId: "harbour" })).organization.id).toBe(
      world.harbour.id,
    );
    expect((await create({ title: "Harbour" })).slug).toBe("harbour"); // a project may have the name of an organization
  });

  test("of ten concurrent projects are distinct", async () => {
    const made = await Promise.all(Array.from({ length: 10 }, () => create({ title: "Same Title" })));
    expect(new Set(made.map((project) => project.slug)).size).toBe(10);
  });
});

describe("a partial update", () => {
  test("changes given fields, clears null ones, and keeps the others", async () => {
    const project = await create({
      title: "Parts",
      overview: "Old",
      design: "Kept",
      address: { thoroughfare: "1 Main", locality: "Toronto", country: "CA" },
      reservationFee: "10",
    });
    const changed = await update({
      id: project.id,
      overview: null,
      address: { locality: "Hamilton" },
      reservationFee: "1000.5",
    });
    expect(changed).toEqual({
      ...project,
      overview: null,
      address: { thoroughfare: "1 Main", locality: "Hamilton", country: "CA" },
      city: "Hamilton",
      reservationFee: "1000.50",
      // One of eight parts of the listing less: 25 / 8.
      serviceIndex: project.serviceIndex - 3,
      version: 2,
      updatedAt: expect.any(String),
    });
    expect(await update({ id: project.id, address: null, reservationFee: null })).toMatchObject({
      address: null,
      city: null,
      reservationFee: null,
    });
  });

  test("without a difference changes nothing", async () => {
    const project = await create({ title: "Same", address: { locality: "Toronto", country: "CA" } });
    await expectUnchanged(world, async () => {
      expect(await update({ id: project.id })).toEqual(project);
      expect(await update({ id: project.id, title: "Same", slug: "same", expectedVersion: 1 })).toEqual(
        project,
      );
    });
  });

  test("writes one event with what changed", async () => {
    const { id } = await create({ title: "Told" });
    const answer = await world.ada.ask(
      `mutation { updateProject(input: { id: "${id}", title: "Told twice", rescissionDays: 7 }) { id } }`,
    );
    const { project } = await world.owen.get(
      `{ project(id: "${id}") { events(first: 1) { name changes data actor { id } requestId subject { ... on Project { id } } } } }`,
    );
    expect(project.events).toEqual([
      {
        name: "project.updated",
        changes: { title: ["Told", "Told twice"], rescissionDays: [0, 7] },
        data: expect.objectContaining({ title: "Told twice", rescissionDays: 7, slug: "told" }),
        actor: { id: world.ada.id },
        requestId: answer.headers["x-request-id"],
        subject: { id },
      },
    ]);
  });
});

describe("states", () => {
  const all = ["DRAFT", "COMING_SOON", "PRESALE", "SELLING", "PAUSED", "SOLD_OUT", "COMPLETED", "ARCHIVED"];
  const steps: Record<string, string[]> = {
    DRAFT: ["COMING_SOON", "ARCHIVED"],
    COMING_SOON: ["PRESALE", "ARCHIVED"],
    PRESALE: ["SELLING", "ARCHIVED"],
    SELLING: ["PAUSED", "SOLD_OUT", "ARCHIVED"],
    PAUSED: ["SELLING", "SOLD_OUT", "ARCHIVED"],
    SOLD_OUT: ["COMPLETED", "ARCHIVED"],
    COMPLETED: ["ARCHIVED"],
  };

  /** The status after the transition, or the refusal. */
  const step = async (id: string, status: string): Promise<any> => {
    const answer = await world.owen.ask(
      `mutation ($input: UpdateProjectInput!) { updateProject(input: $input) { status } }`,
      { input: { id, status } },
    );
    return answer.errors?.[0]?.extensions ?? answer.data.updateProject;
  };

  test.each(all.slice(0, -1))(
    "from %s: the listed transitions succeed, all others are refused",
    async (from) => {
      for (const to of all) {
        const project = await create({ title: `From ${from}`, status: from });
        const allowed = [...steps[from]!].sort();
        expect(project.allowedTransitions.map((t: any) => t.to).sort()).toEqual(allowed);
        expect(await step(project.id, to)).toMatchObject(
          to === from || allowed.includes(to)
            ? { status: to }
            : { code: "INVALID_TRANSITION", from, to, allowedTransitions: allowed },
        );
      }
    },
  );

  test.each(all.slice(0, -1))(
    "an archived project that was %s can only be restored to that status",
    async (from) => {
      const { id } = await create({ title: `Was ${from}`, status: from });
      const archived = await update({ id, status: "ARCHIVED" });
      expect(archived).toMatchObject({
        status: "ARCHIVED",
        archivedAt: expect.any(String),
        allowedTransitions: [{ to: from, allowed: true }],
      });
      for (const to of all.filter((state) => state !== from && state !== "ARCHIVED"))
        expect(await step(id, to)).toMatchObject({
          code: "INVALID_TRANSITION",
          from: "ARCHIVED",
          allowedTransitions: [from],
        });
      expect(await update({ id, status: from })).toMatchObject({ status: from, archivedAt: null });
    },
  );
});

describe("an archived project", () => {
  test("is not public, and is public again after it is restored", async () => {
    const { id, slug } = await create({ title: "Shown", visibility: "PUBLIC", status: "SELLING" });
    const query = `{ project(id: "${slug}") { id } publicProject(id: "${slug}") { id } publicProjects { id } organization(id: "${world.harbour.id}") { name } }`;
    const shown = {
      project: { id },
      publicProject: { id },
      publicProjects: [{ id }],
      organization: { name: "Harbour Homes" },
    };
    const hidden = { project: null, publicProject: null, publicProjects: [], organization: null };
    for (const person of [world.anonymous, world.olga]) expect(await person.get(query)).toEqual(shown);
    await update({ id, status: "ARCHIVED" });
    for (const person of [world.anonymous, world.olga]) expect(await person.get(query)).toEqual(hidden);
    expect(
      (await world.max.get(`{ projects(filter: { archived: true, query: "Shown" }) { id } }`)).projects,
    ).toEqual([{ id }]);
    await update({ id, status: "SELLING" });
    expect(await world.anonymous.get(query)).toEqual(shown);
    await update({ id, visibility: "UNLISTED" });
    // It is found by its slug, but no list contains it or its organization.
    expect(await world.anonymous.get(query)).toEqual({ ...hidden, project: { id }, publicProject: { id } });
    await update({ id, visibility: "PRIVATE" });
    expect(await world.anonymous.get(query)).toEqual(hidden);
  });
});

describe("deleting", () => {
  test("an empty project is only visible to admins who include deleted ones", async () => {
    const { id, slug } = await createProject(world.owen, {
      organizationId: world.harbour.id,
      title: "Short Lived",
      visibility: "PUBLIC",
    });
    const { project } = await world.owen.get(`{ project(id: "${id}") { leadSources { id } } }`);
    const { deleteProject } = await world.owen.get(
      `mutation { deleteProject(input: { id: "${slug}" }) { id deleted organization { id } } }`,
    );
    expect(deleteProject).toEqual({ id, deleted: true, organization: { id: world.harbour.id } });
    const data = await world.owen.get(
      `{ project(id: "${slug}") { id } leadSource(id: "${project.leadSources[0].id}") { id } projects(filter: { query: "Short Lived" }) { id }
        projectsConnection(filter: { query: "Short Lived" }) { totalCount } publicProjects(filter: { query: "Short Lived" }) { id }
        organization(id: "${world.harbour.id}") { projects(filter: { query: "Short Lived" }) { id } } }`,
    );
    expect(data).toEqual({
      project: null,
      leadSource: null,
      projects: [],
      projectsConnection: { totalCount: 0 },
      publicProjects: [],
      organization: { projects: [] },
    });
    const deleted = `{ projects(filter: { query: "Short Lived", includeDeleted: true }) { id deletedAt } projectsConnection(filter: { query: "Short Lived", includeDeleted: true }) { totalCount } }`;
    expect(await world.ada.get(deleted)).toEqual({
      projects: [{ id, deletedAt: expect.any(String) }],
      projectsConnection: { totalCount: 1 },
    });
    expect(await world.max.get(deleted)).toEqual({ projects: [], projectsConnection: { totalCount: 0 } });
    expect(await world.olga.get(deleted)).toEqual({ projects: [], projectsConnection: { totalCount: 0 } });
    expect(await refuse({ id, title: "Back" })).toMatchObject({ code: "NOT_FOUND" });
    // The slug stays reserved, so that old URLs do not refer to another project.
    expect((await create({ title: "Short Lived" })).slug).toBe("short-lived-2");
  });
});

describe("lead sources and fallout reasons", () => {
  test("have codes derived from their names, and can be disabled", async () => {
    const make = async (name: string) =>
      (
        await world.owen.get(
          `mutation ($input: CreateLeadSourceInput!) { createLeadSource(input: $input) { id code category isSystem active } }`,
          {
            input: { projectId: world.project.slug, name },
          },
        )
      ).createLeadSource;
    const fair = await make("Été Fair #1");
    expect(fair).toMatchObject({ code: "ETE_FAIR_1", category: "OTHER", isSystem: false, active: true });
    expect((await make("2nd fair")).code).toBe("SOURCE_2ND_FAIR");
    const off = await world.owen.get(
      `mutation { updateLeadSource(input: { id: "${fair.id}", active: false, name: "Fair" }) { name code active version } }`,
    );
    expect(off.updateLeadSource).toEqual({ name: "Fair", code: "ETE_FAIR_1", active: false, version: 2 });
    const gone = await world.owen.get(
      `mutation { deleteLeadSource(input: { id: "${fair.id}" }) { id deleted reassignedLeads } }`,
    );
    expect(gone.deleteLeadSource).toEqual({ id: fair.id, deleted: true, reassignedLeads: 0 });
    expect((await make("Été fair 1")).code).toBe("ETE_FAIR_1");
  });

  test("a lead's source by code is that of its own project", async () => {
    const { id } = await createLead(world.owen, {
      projectId: world.project.id,
      name: "Coded",
      source: "PHONE",
    });
    const { lead } = await world.owen.get(
      `{ lead(id: "${id}") { source leadSource { code project { id } } } }`,
    );
    expect(lead).toEqual({
      source: "PHONE",
      leadSource: { code: "PHONE", project: { id: world.project.id } },
    });
    const unknown = { projectId: world.project.id, name: "Uncoded", source: "Billboard" };
    expect(await world.owen.refused(mutationOf("createLead", "{ id }"), { input: unknown })).toMatchObject({
      code: "BAD_USER_INPUT",
      field: "source",
      allowed: expect.arrayContaining(["PHONE"]),
    });
  });
});

describe("organizations", () => {
  test("belong to their creator, and support partial updates", async () => {
    const made = await world.olga.get(
      `mutation ($input: CreateOrganizationInput!) { createOrganization(input: $input) { id slug kind timeZone viewerRole email address { country locality } members { role user { id } } version } }`,
      {
        input: { name: "Été Homes", email: "Info@Ete.example", address: { locality: "Lyon", country: "FR" } },
      },
    );
    expect(made.createOrganization).toMatchObject({
      slug: "ete-homes",
      kind: "DEVELOPER",
      timeZone: "UTC",
      viewerRole: "OWNER",
      email: "info@ete.example",
      address: { country: "FR", locality: "Lyon" },
      members: [{ role: "OWNER", user: { id: world.olga.id } }],
      version: 1,
    });
    const { id } = made.createOrganization;
    const change = (input: Record<string, unknown>) =>
      world.olga.get(
        `mutation ($input: UpdateOrganizationInput!) { updateOrganization(input: $input) { email phone description address { country locality postalCode } version } }`,
        { input: { id, ...input } },
      );
    expect(
      (await change({ email: null, phone: "+33 1 23 45 67 89", address: { postalCode: "69001" } }))
        .updateOrganization,
    ).toEqual({
      email: null,
      phone: "+33123456789",
      description: null,
      address: { country: "FR", locality: "Lyon", postalCode: "69001" },
      version: 2,
    });
    expect((await change({ email: "NEW@Ete.example", description: "Homes." })).updateOrganization.email).toBe(
      "new@ete.example",
    );
    const { organization } = await world.olga.get(
      `{ organization(id: "${id}") { events { name changes } } }`,
    );
    expect(organization.events[0]).toEqual({
      name: "organization.updated",
      changes: { email: [null, "new@ete.example"], description: [null, "Homes."] },
    });
    // An address without a country gets the default country.
    expect((await change({ address: null })).updateOrganization.address).toBeNull();
    expect((await change({ address: { locality: "Reno" } })).updateOrganization.address.country).toBe("US");
  });
});
