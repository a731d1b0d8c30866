/** The operations of the permission matrix, each executed as a given person on records of the portfolio. */
import { ask, readById, mutation, type Operation } from "../harness/matrix.ts";
import type { Portfolio } from "../harness/portfolio.ts";
import { createIn } from "../harness/records.ts";

/** Ids for the operations, in addition to those of the portfolio. */
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

const listOf = (field: string, filter = "") => ask(`{ ${field}${filter} { id } }`);

const connection = (field: string, groupBy: string) =>
  ask(`{ ${field} { totalCount nodes { id } aggregates { distinctCount { id } }
    groupedAggregates(groupBy: [${groupBy}]) { distinctCount { id } } } }`);

const name = () => `Somebody ${++serial}`;

export function operations(world: Portfolio, records: Records): Record<string, Operation> {
  const { harbour, summit, project, quiet, park, peak, leads } = world;
  /** Creates a record of Harbour Homes to be deleted. */
  const fresh = createIn(world.owen);
  const lead = (input: Record<string, unknown>) => mutation("createLead", () => ({ name: name(), ...input }));
  const note = (leadId: string) => mutation("createLeadNote", { leadId, text: "Called." });
  const update = (id: string) => mutation("updateLead", () => ({ id, company: name() }));
  return {
    // organizations
    organization: readById("organization", summit.id),
    "organization, by slug": readById("organization", harbour.slug),
    "organization.members": readById("organization", harbour.id, "members { id }"),
    "organization.invites": readById("organization", harbour.id, "invites { id }"),
    "organization.events": readById("organization", harbour.id, "events(first: 1) { id }"),
    organizationUserConnection: readById("organizationUserConnection", records.membershipOfMax),
    createOrganization: mutation("createOrganization", () => ({ name: name() })),
    updateOrganization: mutation("updateOrganization", () => ({ id: harbour.id, description: name() })),
    // projects
    project: readById("project", project.id),
    "project, by slug": readById("project", project.slug),
    "project, a public one": readById("project", park.id),
    "project, foreign": readById("project", peak.id),
    publicProject: readById("publicProject", park.id),
    projects: listOf("projects"),
    publicProjects: listOf("publicProjects"),
    projectsConnection: connection("projectsConnection", "ORGANIZATION_ID"),
    "project.organizations": readById("project", project.id, "organizations { role }"),
    "project.leads": readById("project", project.id, "leads { id }"),
    "project.leadSources": readById("project", project.id, "leadSources { id }"),
    "project.falloutReasons": readById("project", project.id, "falloutReasons { id }"),
    "project.events": readById("project", project.id, "events(first: 1) { id }"),
    createProject: mutation("createProject", () => ({ organizationId: harbour.id, title: name() })),
    updateProject: mutation("updateProject", () => ({ id: project.id, design: name() })),
    deleteProject: mutation("deleteProject", async () => ({
      id: await fresh("createProject", { organizationId: harbour.id, title: name() }),
    })),
    // leads
    "lead, unassigned": readById("lead", leads.open.id),
    "lead of the seller": readById("lead", leads.sams.id),
    "lead of the member, private": readById("lead", leads.maxs.id),
    "lead of another member, private": readById("lead", leads.mias.id),
    leads: listOf("leads"),
    "leads, query": listOf("leads", '(filter: { query: "example.com" })'),
    leadsConnection: connection("leadsConnection", "PROJECT_ID"),
    "createLead, open project": lead({ projectId: project.id }),
    "createLead, private project": lead({ projectId: quiet.id }),
    "createLead, public project": lead({ projectId: park.id }),
    "updateLead, unassigned": update(leads.open.id),
    "updateLead of the seller": update(leads.sams.id),
    "updateLead of the member, private": update(leads.maxs.id),
    "updateLead of another member, private": update(leads.mias.id),
    "deleteLead, unassigned": mutation("deleteLead", async () => ({
      id: await fresh("createLead", { projectId: project.id, name: name() }),
    })),
    "deleteLead, one's own": mutation("deleteLead", async (person) => {
      const { rows } = await world.owner.query(
        "insert into app_public.leads (project_id, name, assignee_id) values ($1, $2, $3) returning id",
        [project.id, name(), person === world.olga || person === world.bob ? null : person.id],
      );
      return { id: rows[0].id };
    }),
    // notes
    "lead.notes": readById("lead", leads.sams.id, "notes { id }"),
    leadNote: readById("leadNote", records.noteOfSam),
    "createLeadNote, unassigned": note(leads.open.id),
    "createLeadNote of the seller": note(leads.sams.id),
    "createLeadNote of another member, private": note(leads.mias.id),
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
    "deleteLeadNote, the owner's": mutation("deleteLeadNote", async () => ({
      id: await fresh("createLeadNote", { leadId: leads.sams.id, text: "Gone soon." }),
    })),
    // lead sources, fallout reasons, agents
    leadSource: readById("leadSource", records.source),
    createLeadSource: mutation("createLeadSource", () => ({ projectId: project.id, name: name() })),
    updateLeadSource: mutation("updateLeadSource", () => ({ id: records.source, name: name() })),
    deleteLeadSource: mutation("deleteLeadSource", async () => ({
      id: await fresh("createLeadSource", { projectId: project.id, name: name() }),
    })),
    falloutReason: readById("falloutReason", records.reason),
    createFalloutReason: mutation("createFalloutReason", () => ({ projectId: project.id, name: name() })),
    updateFalloutReason: mutation("updateFalloutReason", () => ({ id: records.reason, name: name() })),
    deleteFalloutReason: mutation("deleteFalloutReason", async () => ({
      id: await fresh("createFalloutReason", { projectId: project.id, name: name() }),
    })),
    agent: readById("agent", records.agent),
    "lead.agent": readById("lead", leads.sams.id, "agent { id }"),
    // events
    "event of an unassigned lead": readById("event", records.eventOfOpen),
    "lead.events": readById("lead", leads.sams.id, "events(first: 1) { id }"),
    "events, of leads": listOf("events", `(filter: { subjectId: "${leads.mias.id}" }, first: 1)`),
    "eventsConnection, of a lead": ask(
      `query ($id: ID) { eventsConnection(filter: { subjectId: $id, names: ["lead.created"] }) { totalCount nodes { id } } }`,
      { id: leads.mias.id },
    ),
  };
}
