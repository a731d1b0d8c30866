/**
 * Permissions for organizations, projects, leads and what belongs to them. The table is the specification:
 *
 *   yes            the operation succeeds, or the record is visible
 *   3              number of listed records; a connection has the same count everywhere
 *   null · none    null without an error · an empty list
 *   hidden         the record itself is not visible
 *   a code         refused with that code: FORBID is FORBIDDEN, UNAUTH is UNAUTHENTICATED
 *
 * owner, admin and member are of Harbour Homes, whose project Harbour View is open and whose Quiet Quay is in the lead
 * mode PRIVATE; the seller and the builder are members of organizations affiliated with Harbour View; the outsider owns
 * Summit Sales.
 */
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import type { Person } from "../harness/api.ts";
import { servedFields, uncoveredOperations } from "../harness/coverage.ts";
import { type Operation, outcomes, readMatrix, shortCodes } from "../harness/matrix.ts";
import { cast, startPortfolio, type Portfolio } from "../harness/portfolio.ts";
import { createIn } from "../harness/records.ts";
import { programOf } from "../harness/world.ts";
import { operations, type Records } from "./permissionOperations.ts";

const matrix = `
                                          | owner  | admin  | member | seller    | builder   | outsider  | anonymous
organization                              | null   | null   | null   | null      | null      | yes       | null
organization, by slug                     | yes    | yes    | yes    | yes       | yes       | yes       | yes
organization.members                      | 4      | 4      | 4      | null      | null      | null      | null
organization.invites                      | none   | none   | null   | null      | null      | null      | null
organization.events                       | 1      | 1      | null   | null      | null      | null      | null
organizationUserConnection                | yes    | yes    | yes    | null      | null      | null      | UNAUTH
createOrganization                        | yes    | yes    | yes    | yes       | yes       | yes       | UNAUTH
updateOrganization                        | yes    | yes    | FORBID | FORBID    | FORBID    | FORBID    | UNAUTH
project                                   | yes    | yes    | yes    | yes       | yes       | null      | null
project, by slug                          | yes    | yes    | yes    | yes       | yes       | null      | null
project, a public one                     | yes    | yes    | yes    | yes       | yes       | yes       | yes
project, foreign                          | null   | null   | null   | null      | null      | yes       | null
publicProject                             | yes    | yes    | yes    | yes       | yes       | yes       | yes
projects                                  | 3      | 3      | 3      | 1         | 1         | 1         | UNAUTH
publicProjects                            | 1      | 1      | 1      | 1         | 1         | 1         | 1
projectsConnection                        | 3      | 3      | 3      | 1         | 1         | 1         | UNAUTH
project.organizations                     | 3      | 3      | 3      | 2         | 2         | hidden    | hidden
project.leads                             | 2      | 2      | 2      | 1         | null      | hidden    | hidden
project.leadSources                       | 7      | 7      | 7      | 7         | null      | hidden    | hidden
project.falloutReasons                    | 6      | 6      | 6      | 6         | null      | hidden    | hidden
project.events                            | 1      | 1      | null   | null      | null      | hidden    | hidden
createProject                             | yes    | yes    | FORBID | FORBID    | FORBID    | FORBID    | UNAUTH
updateProject                             | yes    | yes    | FORBID | FORBID    | FORBID    | NOT_FOUND | UNAUTH
deleteProject                             | yes    | yes    | FORBID | NOT_FOUND | NOT_FOUND | NOT_FOUND | UNAUTH
lead, unassigned                          | yes    | yes    | yes    | null      | null      | null      | UNAUTH
lead of the seller                        | yes    | yes    | yes    | yes       | null      | null      | UNAUTH
lead of the member, private               | yes    | yes    | yes    | null      | null      | null      | UNAUTH
lead of another member, private           | yes    | yes    | null   | null      | null      | null      | UNAUTH
leads                                     | 4      | 4      | 3      | 1         | none      | 1         | UNAUTH
leads, query                              | 4      | 4      | 3      | 1         | none      | 1         | UNAUTH
leadsConnection                           | 4      | 4      | 3      | 1         | none      | 1         | UNAUTH
createLead, open project                  | yes    | yes    | yes    | yes       | FORBID    | NOT_FOUND | UNAUTH
createLead, private project               | yes    | yes    | yes    | NOT_FOUND | NOT_FOUND | NOT_FOUND | UNAUTH
createLead, public project                | yes    | yes    | yes    | FORBID    | FORBID    | FORBID    | UNAUTH
updateLead, unassigned                    | yes    | yes    | yes    | NOT_FOUND | NOT_FOUND | NOT_FOUND | UNAUTH
updateLead of the seller                  | yes    | yes    | yes    | yes       | NOT_FOUND | NOT_FOUND | UNAUTH
updateLead of the member, private         | yes    | yes    | yes    | NOT_FOUND | NOT_FOUND | NOT_FOUND | UNAUTH
updateLead of another member, private     | yes    | yes    | NOT_FOUND | NOT_FOUND | NOT_FOUND | NOT_FOUND | UNAUTH
deleteLead, unassigned                    | yes    | yes    | yes    | NOT_FOUND | NOT_FOUND | NOT_FOUND | UNAUTH
deleteLead, one's own                     | yes    | yes    | yes    | yes       | NOT_FOUND | NOT_FOUND | UNAUTH
lead.notes                                | 3      | 3      | 3      | 3         | hidden    | hidden    | UNAUTH
leadNote                                  | yes    | yes    | yes    | yes       | null      | null      | UNAUTH
createLeadNote, unassigned                | yes    | yes    | yes    | NOT_FOUND | NOT_FOUND | NOT_FOUND | UNAUTH
createLeadNote of the seller              | yes    | yes    | yes    | yes       | NOT_FOUND | NOT_FOUND | UNAUTH
createLeadNote of another member, private | yes    | yes    | NOT_FOUND | NOT_FOUND | NOT_FOUND | NOT_FOUND | UNAUTH
updateLeadNote, the owner's               | yes    | yes    | FORBID | FORBID    | NOT_FOUND | NOT_FOUND | UNAUTH
updateLeadNote, the member's              | yes    | yes    | yes    | FORBID    | NOT_FOUND | NOT_FOUND | UNAUTH
updateLeadNote, the seller's              | yes    | yes    | FORBID | yes       | NOT_FOUND | NOT_FOUND | UNAUTH
deleteLeadNote, the owner's               | yes    | yes    | FORBID | FORBID    | NOT_FOUND | NOT_FOUND | UNAUTH
leadSource                                | yes    | yes    | yes    | yes       | null      | null      | UNAUTH
createLeadSource                          | yes    | yes    | FORBID | FORBID    | FORBID    | NOT_FOUND | UNAUTH
updateLeadSource                          | yes    | yes    | FORBID | FORBID    | NOT_FOUND | NOT_FOUND | UNAUTH
deleteLeadSource                          | yes    | yes    | FORBID | FORBID    | NOT_FOUND | NOT_FOUND | UNAUTH
falloutReason                             | yes    | yes    | yes    | yes       | null      | null      | UNAUTH
createFalloutReason                       | yes    | yes    | FORBID | FORBID    | FORBID    | NOT_FOUND | UNAUTH
updateFalloutReason                       | yes    | yes    | FORBID | FORBID    | NOT_FOUND | NOT_FOUND | UNAUTH
deleteFalloutReason                       | yes    | yes    | FORBID | FORBID    | NOT_FOUND | NOT_FOUND | UNAUTH
agent                                     | yes    | yes    | yes    | yes       | null      | null      | UNAUTH
lead.agent                                | yes    | yes    | yes    | yes       | hidden    | hidden    | UNAUTH
event of an unassigned lead               | yes    | yes    | yes    | null      | null      | null      | UNAUTH
lead.events                               | 1      | 1      | 1      | 1         | hidden    | hidden    | UNAUTH
events, of leads                          | 1      | 1      | none   | none      | none      | none      | UNAUTH
eventsConnection, of a lead               | 1      | 1      | none   | none      | none      | none      | UNAUTH
`;

const { rows: table } = readMatrix(matrix);

let world: Portfolio;
let people: Record<string, Person>;
let tried: Record<string, Operation>;

async function setUp(portfolio: Portfolio): Promise<Records> {
  const { owen, max, sam, project, leads } = portfolio;
  const create = createIn(owen);
  const note = (person: Person) =>
    createIn(person)("createLeadNote", { leadId: leads.sams.id, text: "Hello." });
  const withAgent = await sam.get(
    `mutation ($id: ID!) { updateLead(input: { id: $id, agent: { name: "Agatha", email: "agatha@example.com" } }) { agentId } }`,
    { id: leads.sams.id },
  );
  const { rows } = await portfolio.owner.query(
    `select (select id from app_public.events where subject_id = $1 order by id limit 1) as event,
      (select id from app_public.organization_user_connections where user_id = $2) as membership`,
    [leads.open.id, max.id],
  );
  return {
    source: await create("createLeadSource", { projectId: project.id, name: "Fair" }),
    reason: await create("createFalloutReason", { projectId: project.id, name: "Moved away" }),
    agent: withAgent.updateLead.agentId,
    noteOfOwen: await note(owen),
    noteOfMax: await note(max),
    noteOfSam: await note(sam),
    membershipOfMax: rows[0].membership,
    eventOfOpen: rows[0].event,
  };
}

beforeAll(async () => {
  world = await startPortfolio();
  people = cast(world);
  await world.owen.get(
    `mutation ($id: ID!) { updateOrganization(input: { id: $id, email: "office@harbour.example", phone: "+14165550123",
      address: { locality: "Toronto", country: "CA" } }) { id } }`,
    { id: world.harbour.id },
  );
  tried = operations(world, await setUp(world));
});
afterAll(() => world.stop());

describe("permissions", () => {
  // Reads come first, so that mutations do not change their counts.
  const reads = table.filter((row) => !/^(create|update|delete)/.test(row.operation));
  const writes = table.filter((row) => !reads.includes(row));
  test.each([...reads, ...writes])("$operation", async ({ operation, expected }) => {
    expect(await outcomes(people, tried[operation]!, shortCodes)).toEqual(expected);
  });

  test("the whole permission table is tested, and every operation of the API has a test", async () => {
    expect(Object.keys(tried).sort()).toEqual(table.map((row) => row.operation).sort());
    const { __schema: schema } = await world.owen.get(servedFields);
    expect(await uncoveredOperations(schema, world.owner)).toEqual([]);
    // Written in two parts, because a test that contains the name would count as its test.
    const name = ["knock", "AtTheDoor"].join("");
    const { type } = schema.mutationType.fields[0];
    schema.mutationType.fields.push({ name, type });
    expect(await uncoveredOperations(schema, world.owner)).toEqual([name]);
  });
});

const ask = (person: Person, query: string, variables = {}) => person.get(query, variables);

describe("no record of another organization is visible", () => {
  const secrets = () => [
    world.leads.mias.id,
    world.leads.maxs.id,
    world.leads.open.id,
    world.quiet.id,
    world.project.id,
  ];

  test.each([
    ["projectIds", () => `{ projectIds: ["${world.project.id}", "${world.quiet.slug}"] }`],
    ["assigneeIds", () => `{ assigneeIds: ["${world.max.id}", "${world.mia.id}"] }`],
    ["email", () => `{ email: "mias@example.com" }`],
    ["query", () => `{ query: "manny" }`],
    ["unassigned", () => `{ unassigned: true }`],
    ["status", () => `{ status: [NEW] }`],
    ["includeDeleted", () => `{ includeDeleted: true }`],
  ])("the filter %s of leads finds only the non-member's own", async (_member, filter) => {
    const text = `filter: ${filter()}`;
    const data = await ask(
      world.olga,
      `{ leads(${text}) { id } sorted: leads(${text}, orderBy: [EMAIL_ASC]) { id }
        leadsConnection(${text}) { totalCount nodes { id } aggregates { distinctCount { id } }
          groupedAggregates(groupBy: [ASSIGNEE_ID, PROJECT_ID]) { keys distinctCount { id } } } }`,
    );
    const own = data.leads.length;
    expect(own).toBeLessThanOrEqual(1);
    expect(data.leads.every((lead: any) => lead.id === world.leads.foreign.id)).toBe(true);
    expect(data.sorted).toEqual(data.leads);
    expect(data.leadsConnection.totalCount).toBe(own);
    expect(data.leadsConnection.nodes).toEqual(data.leads);
    expect(Number(data.leadsConnection.aggregates.distinctCount.id)).toBe(own);
    for (const secret of secrets()) expect(JSON.stringify(data)).not.toContain(secret);
  });

  test.each([
    ["organizationId", () => `organizationId: "${world.harbour.id}"`],
    ["projectId", () => `projectId: "${world.project.slug}"`],
    ["subjectId", () => `subjectId: "${world.leads.mias.id}"`],
    ["subjectType", () => `subjectType: "lead"`],
    ["names", () => `names: ["*"]`],
    ["afterSequence", () => `afterSequence: "0"`],
  ])("the filter %s of events finds only the non-member's own", async (_member, filter) => {
    const data = await ask(
      world.olga,
      `{ viewer { organizations { organizationId } }
        eventsConnection(filter: { ${filter()} }) { totalCount
          nodes { organizationId subjectId data subject { __typename ... on Lead { id } } } }
        events(filter: { ${filter()} }) { organizationId } }`,
    );
    const { nodes, totalCount } = data.eventsConnection;
    expect(totalCount).toBe(nodes.length);
    const own = [null, ...data.viewer.organizations.map((o: any) => o.organizationId)];
    for (const event of [...nodes, ...data.events]) expect(own).toContain(event.organizationId);
    for (const secret of secrets()) expect(JSON.stringify(data)).not.toContain(secret);
  });

  test("of a public project, only the public parts are visible", async () => {
    for (const person of [world.olga, world.anonymous, world.sam]) {
      const { project } = await ask(
        person,
        `query ($id: ID!) { project(id: $id) { title city metadata leads { id } leadSources { id } falloutReasons { id }
          events { id } organizations { role }
          organization { name slug description websiteUrl email phone address { locality } members { id } invites { id }
            events { id } viewerRole projects { id } } } }`,
        { id: world.park.id },
      );
      expect(project).toMatchObject({
        title: "Public Park",
        city: "Hamilton",
        metadata: null,
        leads: null,
        leadSources: null,
        falloutReasons: null,
        events: null,
        organizations: [],
      });
      expect(project.organization).toMatchObject({
        name: "Harbour Homes",
        email: null,
        phone: null,
        address: null,
        members: null,
        invites: null,
        events: null,
        viewerRole: null,
      });
      const shown = person === world.sam ? [world.project.id, world.park.id] : [world.park.id];
      expect(project.organization.projects.map((p: any) => p.id).sort()).toEqual(shown.sort());
    }
    const { project } = await ask(
      world.max,
      `{ project(id: "${world.park.id}") { metadata organization { email } } }`,
    );
    expect(project).toEqual({ metadata: { margin: 12 }, organization: { email: "office@harbour.example" } });
  });

  test("notification settings of a member are visible to admins and the member", async () => {
    const notifications = `notifications { newLead }`;
    await world.mia.get(
      `mutation ($id: ID!) { updateOrganizationNotifications(input: { organizationId: $id, notifications: { newLead: false } }) { id } }`,
      { id: world.harbour.id },
    );
    const query = `{ organization(id: "${world.harbour.id}") { members { user { id } ${notifications} } }
      events(filter: { subjectType: "member", organizationId: "${world.harbour.id}" }) { name } }`;
    for (const [person, seen, events] of [
      [world.owen, 4, true],
      [world.ada, 4, true],
      [world.max, 1, false],
    ] as const) {
      const data = await ask(person, query);
      expect(data.organization.members.filter((m: any) => m.notifications)).toHaveLength(seen);
      expect(data.events.some((event: any) => event.name === "member.updated")).toBe(events);
    }
  });

  test("users are visible to colleagues; email addresses only to themselves", async () => {
    const query = `query ($id: ID!) { user(id: $id) { firstName email username } }`;
    expect((await ask(world.max, query, { id: world.owen.id })).user.email).toBe(world.owen.email);
    for (const person of [world.olga, world.anonymous])
      expect((await person.sees(query, { id: world.owen.id })).user).toBeNull();
    // A person who wrote on their lead.
    expect((await world.sam.sees(query, { id: world.owen.id })).user).toEqual({
      firstName: "Owen",
      email: null,
      username: null,
    });
    expect((await world.sam.sees(query, { id: world.mia.id })).user).toBeNull();
    // The owner sees the lead of the affiliated seller, and the seller's name.
    const { lead } = await ask(
      world.owen,
      `{ lead(id: "${world.leads.sams.id}") { assigneeId assignee { fullName email username } } }`,
    );
    expect(lead).toEqual({
      assigneeId: world.sam.id,
      assignee: { fullName: "Sam Seller", email: null, username: null },
    });
  });

  test("ids of others are refused in inputs as if they did not exist", async () => {
    const { olga, peak, leads, max } = world;
    const { rows } = await world.owner.query(
      `select (select id from app_public.agents limit 1) as agent,
        (select id from app_public.lead_sources where project_id = $1 limit 1) as source,
        (select id from app_public.lead_sources where project_id = $2 limit 1) as own_source,
        (select id from app_public.lead_sources where project_id = $2 and not is_system limit 1) as plain,
        (select id from app_public.fallout_reasons where project_id = $1 limit 1) as reason`,
      [world.project.id, peak.id],
    );
    const ids = rows[0];
    const update = `mutation ($input: UpdateLeadInput!) { updateLead(input: $input) { id } }`;
    const create = `mutation ($input: CreateLeadInput!) { createLead(input: $input) { id } }`;
    const removal = `mutation ($input: DeleteLeadSourceInput!) { deleteLeadSource(input: $input) { id } }`;
    const own = { id: leads.foreign.id };
    const guesses: [string, Record<string, unknown>, string][] = [
      [create, { projectId: world.project.id, name: "X" }, "projectId"],
      [create, { projectId: world.project.slug, name: "X" }, "projectId"],
      [create, { projectId: peak.id, name: "X", sourceId: ids.source }, "sourceId"],
      [create, { projectId: peak.id, name: "X", assigneeId: max.id }, "assigneeId"],
      [create, { projectId: peak.id, name: "X", agent: { id: ids.agent } }, "agent.id"],
      [update, { ...own, sourceId: ids.source }, "sourceId"],
      [update, { ...own, assigneeId: max.id }, "assigneeId"],
      [update, { ...own, falloutReasonId: ids.reason }, "falloutReasonId"],
      [update, { ...own, agent: { id: ids.agent } }, "agent.id"],
      [update, { id: leads.mias.id, name: "Mine" }, "id"],
      [removal, { id: ids.own_source, reassignToId: ids.source }, "reassignToId"],
      [removal, { id: ids.source }, "id"],
    ];
    for (const [query, input, field] of guesses) {
      const missing = JSON.parse(
        JSON.stringify(input).replaceAll(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, (id) =>
          [leads.foreign.id, peak.id, ids.own_source].includes(id)
            ? id
            : "00000000-0000-7000-8000-000000000000",
        ),
      );
      const { requestId: _, ...refusal } = await olga.refused(query, { input });
      expect(refusal).toMatchObject({ code: "NOT_FOUND", field });
      const { requestId: __, ...unknown } = await olga.refused(query, { input: missing });
      expect(refusal).toEqual(input.projectId === world.project.slug ? refusal : unknown);
    }
  });

  test("ids of another project of the same organization do not join the two", async () => {
    const { rows } = await world.owner.query(
      `select (select id from app_public.lead_sources where project_id = $1 limit 1) as source,
        (select id from app_public.fallout_reasons where project_id = $1 limit 1) as reason`,
      [world.quiet.id],
    );
    const update = `mutation ($input: UpdateLeadInput!) { updateLead(input: $input) { id } }`;
    for (const [member, id] of Object.entries({
      sourceId: rows[0].source,
      falloutReasonId: rows[0].reason,
    })) {
      const refusal = await world.owen.refused(update, { input: { id: world.leads.open.id, [member]: id } });
      expect(refusal).toMatchObject({ code: "NOT_FOUND", field: member });
    }
  });

  test("a duplicate lead is only reported with its id to those who see it", async () => {
    const create = `mutation ($input: CreateLeadInput!) { createLead(input: $input) { id } }`;
    const again = { projectId: world.quiet.id, name: "Again", email: "MIAS@example.com" };
    expect(await world.owen.refused(create, { input: again })).toMatchObject({
      code: "CONFLICT",
      existingId: world.leads.mias.id,
    });
    for (const onDuplicate of ["ERROR", "RETURN_EXISTING", "MERGE"]) {
      const refusal = await world.max.refused(create, {
        input: { ...again, phone: "+14165550100", onDuplicate },
      });
      expect(refusal.code).toBe("CONFLICT");
      expect(JSON.stringify(refusal)).not.toContain(world.leads.mias.id);
    }
    const { lead } = await ask(world.owen, `{ lead(id: "${world.leads.mias.id}") { phone } }`);
    expect(lead.phone).toBeNull();
    // Without a role in the project, not even the conflict is reported.
    const refusal = await world.olga.refused(create, { input: { ...again, projectId: world.park.id } });
    expect(refusal.code).toBe("FORBIDDEN");
  });

  test("an affiliated seller can reference an agent by email address, but not change the existing one", async () => {
    const agents = async () =>
      (
        await world.owner.query(
          "select name, phone from app_public.agents where email = 'agatha@example.com'",
        )
      ).rows;
    const before = await agents();
    await world.sam.get(`mutation ($input: UpdateLeadInput!) { updateLead(input: $input) { id } }`, {
      input: {
        id: world.leads.sams.id,
        agent: { name: "Changed", email: "agatha@example.com", phone: "+14165550111" },
      },
    });
    expect(await agents()).toEqual(before);
  });

  test("members who only write their own leads cannot reassign them", async () => {
    const update = `mutation ($input: UpdateLeadInput!) { updateLead(input: $input) { id } }`;
    const refusal = await world.max.refused(update, {
      input: { id: world.leads.maxs.id, assigneeId: world.mia.id },
    });
    expect(refusal.code).toBe("FORBIDDEN");
    const { lead } = await ask(world.owen, `{ lead(id: "${world.leads.maxs.id}") { assigneeId } }`);
    expect(lead.assigneeId).toBe(world.max.id);
  });
});

describe("notes", () => {
  test.each([
    ["TEAM", ["owen", "max", "mia", "sam"]],
    ["ORGANIZATION", ["owen", "max", "mia"]],
    ["ASSIGNEE", ["max", "sam"]],
  ])("a note for %s is read by %p", async (visibility, readers) => {
    const { createLeadNote: note } = await ask(
      world.max,
      `mutation ($input: CreateLeadNoteInput!) { createLeadNote(input: $input) { id } }`,
      { input: { leadId: world.leads.sams.id, text: "Between us.", visibility } },
    );
    for (const name of ["owen", "max", "mia", "sam", "olga"] as const) {
      const data = await ask(world[name], `query ($id: ID!) { leadNote(id: $id) { id } }`, { id: note.id });
      expect([name, data.leadNote !== null]).toEqual([name, readers.includes(name)]);
    }
  });
});

describe("access tokens", () => {
  const token = (person: Person, input: Record<string, unknown>) => programOf(world, person, input);
  const create = `mutation ($input: CreateLeadInput!) { createLead(input: $input) { id } }`;
  const lead = () => ({ input: { projectId: world.project.id, name: "By a program" } });

  test("a read-only token cannot read secrets or write", async () => {
    const program = await token(world.owen, { readOnly: true });
    expect((await ask(program, "{ leads { id } }")).leads.length).toBeGreaterThan(3);
    for (const [query, variables] of [
      [create, lead()],
      [`mutation { updateLead(input: { id: "${world.leads.open.id}", name: "No" }) { id } }`, {}],
      [`mutation { deleteLead(input: { id: "${world.leads.open.id}" }) { id } }`, {}],
      [`mutation { createOrganization(input: { name: "No" }) { id } }`, {}],
    ] as const)
      expect((await program.refused(query, variables)).code).toBe("FORBIDDEN");
  });

  test("a token only has the permissions of its scopes", async () => {
    const reader = await token(world.owen, { scopes: ["lead.read"] });
    const data = await ask(
      reader,
      `{ leads { id } projects { id } organization(id: "${world.harbour.slug}") { name members { id } events { id } email }
        eventsConnection { nodes { organizationId } } }`,
    );
    expect(data.leads.length).toBeGreaterThan(3);
    expect(data.projects).toEqual([]);
    expect(data.organization).toEqual({ name: "Harbour Homes", members: null, events: null, email: null });
    expect(data.eventsConnection.nodes.every((e: any) => e.organizationId === null)).toBe(true);
    const note = `mutation { createLeadNote(input: { leadId: "${world.leads.open.id}", text: "No" }) { id } }`;
    expect((await reader.refused(note)).code).toBe("FORBIDDEN");
    expect(
      (
        await reader.refused(
          `mutation { updateLead(input: { id: "${world.leads.open.id}", name: "No" }) { id } }`,
        )
      ).code,
    ).toBe("FORBIDDEN");
    expect(
      (await reader.refused(`mutation { deleteLead(input: { id: "${world.leads.open.id}" }) { id } }`)).code,
    ).toBe("FORBIDDEN");
    expect((await reader.refused(create, lead())).code).toBe("NOT_FOUND"); // the project is invisible to it
    const manager = await token(world.owen, { scopes: ["project.*"] });
    expect(
      (await ask(manager, "{ leads { id } projects { id leads { id } leadSources { id } } }")).leads,
    ).toEqual([]);
    await ask(
      manager,
      `mutation { createLeadSource(input: { projectId: "${world.project.id}", name: "Token" }) { id } }`,
    );
    const writer = await token(world.owen, { scopes: ["lead.*", "project.read"] });
    const { createLead: made } = await ask(writer, create, lead());
    await ask(writer, `mutation { createLeadNote(input: { leadId: "${made.id}", text: "Yes" }) { id } }`);
    expect(
      (
        await writer.refused(
          `mutation { updateProject(input: { id: "${world.project.id}", title: "No" }) { id } }`,
        )
      ).code,
    ).toBe("FORBIDDEN");
  });

  test("a token for one organization has no access to the viewer's other ones", async () => {
    await world.owner.query(
      "insert into app_public.organization_user_connections (organization_id, user_id, role) values ($1, $2, 'OWNER')",
      [world.summit.id, world.ada.id],
    );
    const both = (await ask(world.ada, "{ projects { organizationId } }")).projects;
    expect(new Set(both.map((p: any) => p.organizationId))).toEqual(
      new Set([world.harbour.id, world.summit.id]),
    );
    const program = await token(world.ada, { organizationId: world.summit.id });
    const data = await ask(
      program,
      `{ projects { organizationId } leads { projectId } leadsConnection { totalCount } projectsConnection { totalCount }
        eventsConnection { nodes { organizationId } } viewer { organizations { organizationId } }
        lead(id: "${world.leads.open.id}") { id } project(id: "${world.project.id}") { id } }`,
    );
    expect(data.projects.map((p: any) => p.organizationId)).toEqual([world.summit.id]);
    expect(data).toMatchObject({
      leads: [{ projectId: world.peak.id }],
      leadsConnection: { totalCount: 1 },
      projectsConnection: { totalCount: 1 },
      viewer: { organizations: [{ organizationId: world.summit.id }] },
      lead: null,
      project: null,
    });
    for (const event of data.eventsConnection.nodes)
      expect([world.summit.id, null]).toContain(event.organizationId);
    expect((await program.refused(create, lead())).code).toBe("NOT_FOUND");
    expect(
      (
        await program.refused(
          `mutation { updateOrganization(input: { id: "${world.harbour.id}", name: "No" }) { id } }`,
        )
      ).code,
    ).toBe("FORBIDDEN");
  });
});
