/** The operations of the permission matrix: each is tried by somebody, on records of the portfolio. */
import type { Answer, Person } from "../harness/api.ts";
import type { Portfolio } from "../harness/portfolio.ts";

export type Operation = (world: Portfolio, person: Person) => Promise<Answer>;

/** Ids that the operations work on beside those of the portfolio. */
export interface Records {
  source: string;
  reason: string;
  agent: string;
  noteOfOwen: string;
  noteOfMax: string;
  noteOfSam: string;
  membershipOfMax: string;
  eventOfOpen: string;
}

let serial = 0;

const byId = (field: string, id: (world: Portfolio) => string, selection = "id"): Operation => {
  return (world, person) =>
    person.ask(`query ($id: ID!) { ${field}(id: $id) { ${selection} } }`, { id: id(world) });
};

const listOf = (field: string, filter = ""): Operation => {
  return (_world, person) => person.ask(`{ ${field}${filter} { id } }`);
};

const connection = (field: string, groupBy: string): Operation => {
  return (_world, person) =>
    person.ask(`{ ${field} { totalCount nodes { id } aggregates { distinctCount { id } }
      groupedAggregates(groupBy: [${groupBy}]) { distinctCount { id } } } }`);
};

const nested = (
  field: string,
  id: (world: Portfolio) => string,
  member: string,
  selection = "id",
): Operation => {
  return async (world, person) => {
    const query = `query ($id: ID!) { ${field}(id: $id) { list: ${member} { ${selection} } } }`;
    const answer = await person.ask(query, { id: id(world) });
    // The row is about the list: the outcome of whoever does not even see its record is "hidden".
    const list = answer.data?.[field] ? answer.data[field].list : "hidden";
    return { ...answer, data: answer.data && { list } };
  };
};

const mutation = (
  field: string,
  input: (world: Portfolio, person: Person) => Record<string, unknown> | Promise<Record<string, unknown>>,
): Operation => {
  const type = `${field[0]!.toUpperCase()}${field.slice(1)}Input`;
  return async (world, person) =>
    person.ask(`mutation ($input: ${type}!) { ${field}(input: $input) { __typename } }`, {
      input: await input(world, person),
    });
};

/** A record of Harbour Homes that somebody is about to try and delete. */
const fresh = async (world: Portfolio, field: string, input: Record<string, unknown>): Promise<string> => {
  const type = `${field[0]!.toUpperCase()}${field.slice(1)}Input`;
  const data = await world.owen.get(`mutation ($input: ${type}!) { ${field}(input: $input) { id } }`, {
    input,
  });
  return data[field].id;
};

const name = () => `Somebody ${++serial}`;

export function operations(records: Records): Record<string, Operation> {
  const lead = (input: (w: Portfolio) => Record<string, unknown>) =>
    mutation("createLead", (w) => ({ name: name(), ...input(w) }));
  const note = (of: (w: Portfolio) => string) =>
    mutation("createLeadNote", (w) => ({ leadId: of(w), text: "Called." }));
  const update = (of: (w: Portfolio) => string) =>
    mutation("updateLead", (w) => ({ id: of(w), company: name() }));
  return {
    // organizations
    organization: byId("organization", (w) => w.summit.id),
    "organization, by slug": byId("organization", (w) => w.harbour.slug),
    "organization.members": nested("organization", (w) => w.harbour.id, "members"),
    "organization.invites": nested("organization", (w) => w.harbour.id, "invites"),
    "organization.events": nested("organization", (w) => w.harbour.id, "events(first: 1)"),
    organizationUserConnection: byId("organizationUserConnection", () => records.membershipOfMax),
    createOrganization: mutation("createOrganization", () => ({ name: name() })),
    updateOrganization: mutation("updateOrganization", (w) => ({ id: w.harbour.id, description: name() })),
    // projects
    project: byId("project", (w) => w.project.id),
    "project, by slug": byId("project", (w) => w.project.slug),
    "project, a public one": byId("project", (w) => w.park.id),
    "project, foreign": byId("project", (w) => w.peak.id),
    publicProject: byId("publicProject", (w) => w.park.id),
    projects: listOf("projects"),
    publicProjects: listOf("publicProjects"),
    projectsConnection: connection("projectsConnection", "ORGANIZATION_ID"),
    "project.organizations": nested("project", (w) => w.project.id, "organizations", "role"),
    "project.leads": nested("project", (w) => w.project.id, "leads"),
    "project.leadSources": nested("project", (w) => w.project.id, "leadSources"),
    "project.falloutReasons": nested("project", (w) => w.project.id, "falloutReasons"),
    "project.events": nested("project", (w) => w.project.id, "events(first: 1)"),
    createProject: mutation("createProject", (w) => ({ organizationId: w.harbour.id, title: name() })),
    updateProject: mutation("updateProject", (w) => ({ id: w.project.id, design: name() })),
    deleteProject: mutation("deleteProject", async (w) => ({
      id: await fresh(w, "createProject", { organizationId: w.harbour.id, title: name() }),
    })),
    // leads
    "lead, unassigned": byId("lead", (w) => w.leads.open.id),
    "lead of the seller": byId("lead", (w) => w.leads.sams.id),
    "lead of the member, private": byId("lead", (w) => w.leads.maxs.id),
    "lead of another member, private": byId("lead", (w) => w.leads.mias.id),
    leads: listOf("leads"),
    "leads, query": listOf("leads", '(filter: { query: "example.com" })'),
    leadsConnection: connection("leadsConnection", "PROJECT_ID"),
    "createLead, open project": lead((w) => ({ projectId: w.project.id })),
    "createLead, private project": lead((w) => ({ projectId: w.quiet.id })),
    "createLead, public project": lead((w) => ({ projectId: w.park.id })),
    "updateLead, unassigned": update((w) => w.leads.open.id),
    "updateLead of the seller": update((w) => w.leads.sams.id),
    "updateLead of the member, private": update((w) => w.leads.maxs.id),
    "updateLead of another member, private": update((w) => w.leads.mias.id),
    "deleteLead, unassigned": mutation("deleteLead", async (w) => ({
      id: await fresh(w, "createLead", { projectId: w.project.id, name: name() }),
    })),
    "deleteLead, one's own": mutation("deleteLead", async (w, person) => {
      const { rows } = await w.owner.query(
        "insert into app_public.leads (project_id, name, assignee_id) values ($1, $2, $3) returning id",
        [w.project.id, name(), person === w.olga || person === w.bob ? null : person.id],
      );
      return { id: rows[0].id };
    }),
    // notes
    "lead.notes": nested("lead", (w) => w.leads.sams.id, "notes"),
    leadNote: byId("leadNote", () => records.noteOfSam),
    "createLeadNote, unassigned": note((w) => w.leads.open.id),
    "createLeadNote of the seller": note((w) => w.leads.sams.id),
    "createLeadNote of another member, private": note((w) => w.leads.mias.id),
    "updateLeadNote, the owner's": mutation("updateLeadNote", () => ({
      id: records.noteOfOwen,
      text: name(),
    })),
    "updateLeadNote, the member's": mutation("updateLeadNote", () => ({
      id: records.noteOfMax,
      text: name(),
    })),
    "updateLeadNote, the seller's": mutation("updateLeadNote", () => ({
      id: records.noteOfSam,
      text: name(),
    })),
    "deleteLeadNote, the owner's": mutation("deleteLeadNote", async (w) => ({
      id: await fresh(w, "createLeadNote", { leadId: w.leads.sams.id, text: "Gone soon." }),
    })),
    // lead sources, fallout reasons, agents
    leadSource: byId("leadSource", () => records.source),
    createLeadSource: mutation("createLeadSource", (w) => ({ projectId: w.project.id, name: name() })),
    updateLeadSource: mutation("updateLeadSource", () => ({ id: records.source, name: name() })),
    deleteLeadSource: mutation("deleteLeadSource", async (w) => ({
      id: await fresh(w, "createLeadSource", { projectId: w.project.id, name: name() }),
    })),
    falloutReason: byId("falloutReason", () => records.reason),
    createFalloutReason: mutation("createFalloutReason", (w) => ({ projectId: w.project.id, name: name() })),
    updateFalloutReason: mutation("updateFalloutReason", () => ({ id: records.reason, name: name() })),
    deleteFalloutReason: mutation("deleteFalloutReason", async (w) => ({
      id: await fresh(w, "createFalloutReason", { projectId: w.project.id, name: name() }),
    })),
    agent: byId("agent", () => records.agent),
    "lead.agent": nested("lead", (w) => w.leads.sams.id, "agent"),
    // events
    "event of an unassigned lead": byId("event", () => records.eventOfOpen),
    "lead.events": nested("lead", (w) => w.leads.sams.id, "events(first: 1)"),
    "events, of leads": async (w, person) => {
      const filter = `filter: { subjectId: "${w.leads.mias.id}" }, first: 1`;
      return person.ask(`{ events(${filter}) { id } }`);
    },
    "eventsConnection, of a lead": async (w, person) =>
      person.ask(
        `query ($id: ID) { eventsConnection(filter: { subjectId: $id, names: ["lead.created"] }) { totalCount nodes { id } } }`,
        { id: w.leads.mias.id },
      ),
  };
}
