/**
 * Who may do what with organizations, projects, leads and what belongs to them. The table is the specification:
 *
 *   yes            the operation goes through, or the record is seen
 *   3              that many records are listed; a connection counts the same many everywhere
 *   null · none    null without an error · an empty list
 *   hidden         not even the record around it is seen
 *   a code         refused with it: FORBID is FORBIDDEN, UNAUTH is UNAUTHENTICATED
 *
 * owner, admin and member are of Harbour Homes, whose project Harbour View is open and whose Quiet Quay is in the lead
 * mode PRIVATE; the seller and the builder are members of organizations affiliated with Harbour View; the outsider owns
 * Summit Sales.
 */
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import type { Answer, Person } from "../harness/api.ts";
import { startPortfolio, type Portfolio } from "../harness/portfolio.ts";
import { operations, type Operation, type Records } from "./permissionOperations.ts";

const matrix = `
                                          | owner  | admin  | member | seller    | builder   | outsider  | anonymous
organization                              | null   | null   | null   | null      | null      | yes       | null
organization, by slug                     | yes    | yes    | yes    | yes       | yes       | yes       | yes
organization.members                      | 4      | 4      | 4      | null      | null      | null      | null
organization.invites                      | none   | none   | null   | null      | null      | null      | null
organization.events                       | 1      | 1      | null   | null      | null      | null      | null
organizationUserConnection                | yes    | yes    | yes    | null      | null      | null      | null
createOrganization                        | yes    | yes    | yes    | yes       | yes       | yes       | UNAUTH
updateOrganization                        | yes    | yes    | FORBID | FORBID    | FORBID    | FORBID    | UNAUTH
project                                   | yes    | yes    | yes    | yes       | yes       | null      | null
project, by slug                          | yes    | yes    | yes    | yes       | yes       | null      | null
project, a public one                     | yes    | yes    | yes    | yes       | yes       | yes       | yes
project, foreign                          | null   | null   | null   | null      | null      | yes       | null
publicProject                             | yes    | yes    | yes    | yes       | yes       | yes       | yes
projects                                  | 3      | 3      | 3      | 1         | 1         | 1         | none
publicProjects                            | 1      | 1      | 1      | 1         | 1         | 1         | 1
projectsConnection                        | 3      | 3      | 3      | 1         | 1         | 1         | none
project.organizations                     | 3      | 3      | 3      | 3         | 3         | hidden    | hidden
project.leads                             | 2      | 2      | 2      | 1         | null      | hidden    | hidden
project.leadSources                       | 7      | 7      | 7      | 7         | null      | hidden    | hidden
project.falloutReasons                    | 6      | 6      | 6      | 6         | null      | hidden    | hidden
project.events                            | 1      | 1      | null   | null      | null      | hidden    | hidden
createProject                             | yes    | yes    | FORBID | FORBID    | FORBID    | FORBID    | UNAUTH
updateProject                             | yes    | yes    | FORBID | FORBID    | FORBID    | NOT_FOUND | UNAUTH
deleteProject                             | yes    | yes    | FORBID | NOT_FOUND | NOT_FOUND | NOT_FOUND | UNAUTH
lead, unassigned                          | yes    | yes    | yes    | null      | null      | null      | null
lead of the seller                        | yes    | yes    | yes    | yes       | null      | null      | null
lead of the member, private               | yes    | yes    | yes    | null      | null      | null      | null
lead of another member, private           | yes    | yes    | null   | null      | null      | null      | null
leads                                     | 4      | 4      | 3      | 1         | none      | 1         | none
leads, query                              | 4      | 4      | 3      | 1         | none      | 1         | none
leadsConnection                           | 4      | 4      | 3      | 1         | none      | 1         | none
createLead, open project                  | yes    | yes    | yes    | yes       | FORBID    | NOT_FOUND | UNAUTH
createLead, private project               | yes    | yes    | yes    | NOT_FOUND | NOT_FOUND | NOT_FOUND | UNAUTH
createLead, public project                | yes    | yes    | yes    | FORBID    | FORBID    | FORBID    | UNAUTH
updateLead, unassigned                    | yes    | yes    | yes    | NOT_FOUND | NOT_FOUND | NOT_FOUND | UNAUTH
updateLead of the seller                  | yes    | yes    | yes    | yes       | NOT_FOUND | NOT_FOUND | UNAUTH
updateLead of the member, private         | yes    | yes    | yes    | NOT_FOUND | NOT_FOUND | NOT_FOUND | UNAUTH
updateLead of another member, private     | yes    | yes    | NOT_FOUND | NOT_FOUND | NOT_FOUND | NOT_FOUND | UNAUTH
deleteLead, unassigned                    | yes    | yes    | yes    | NOT_FOUND | NOT_FOUND | NOT_FOUND | UNAUTH
deleteLead, one's own                     | yes    | yes    | yes    | yes       | NOT_FOUND | NOT_FOUND | UNAUTH
lead.notes                                | 3      | 3      | 3      | 3         | hidden    | hidden    | hidden
leadNote                                  | yes    | yes    | yes    | yes       | null      | null      | null
createLeadNote, unassigned                | yes    | yes    | yes    | NOT_FOUND | NOT_FOUND | NOT_FOUND | UNAUTH
createLeadNote of the seller              | yes    | yes    | yes    | yes       | NOT_FOUND | NOT_FOUND | UNAUTH
createLeadNote of another member, private | yes    | yes    | NOT_FOUND | NOT_FOUND | NOT_FOUND | NOT_FOUND | UNAUTH
updateLeadNote, the owner's               | yes    | yes    | FORBID | FORBID    | NOT_FOUND | NOT_FOUND | UNAUTH
updateLeadNote, the member's              | yes    | yes    | yes    | FORBID    | NOT_FOUND | NOT_FOUND | UNAUTH
updateLeadNote, the seller's              | yes    | yes    | FORBID | yes       | NOT_FOUND | NOT_FOUND | UNAUTH
deleteLeadNote, the owner's               | yes    | yes    | FORBID | FORBID    | NOT_FOUND | NOT_FOUND | UNAUTH
leadSource                                | yes    | yes    | yes    | yes       | null      | null      | null
createLeadSource                          | yes    | yes    | FORBID | FORBID    | FORBID    | NOT_FOUND | UNAUTH
updateLeadSource                          | yes    | yes    | FORBID | FORBID    | NOT_FOUND | NOT_FOUND | UNAUTH
deleteLeadSource                          | yes    | yes    | FORBID | FORBID    | NOT_FOUND | NOT_FOUND | UNAUTH
falloutReason                             | yes    | yes    | yes    | yes       | null      | null      | null
createFalloutReason                       | yes    | yes    | FORBID | FORBID    | FORBID    | NOT_FOUND | UNAUTH
updateFalloutReason                       | yes    | yes    | FORBID | FORBID    | NOT_FOUND | NOT_FOUND | UNAUTH
deleteFalloutReason                       | yes    | yes    | FORBID | FORBID    | NOT_FOUND | NOT_FOUND | UNAUTH
agent                                     | yes    | yes    | yes    | yes       | null      | null      | null
lead.agent                                | yes    | yes    | yes    | yes       | hidden    | hidden    | hidden
event of an unassigned lead               | yes    | yes    | yes    | null      | null      | null      | null
lead.events                               | 1      | 1      | 1      | 1         | hidden    | hidden    | hidden
events, of leads                          | 1      | 1      | none   | none      | none      | none      | none
eventsConnection, of a lead               | 1      | 1      | none   | none      | none      | none      | none
`;

const codes: Record<string, string> = { FORBIDDEN: "FORBID", UNAUTHENTICATED: "UNAUTH" };

/** What the answer amounts to, in the words of the table. */
function outcome(answer: Answer): string {
  const code = answer.errors?.[0]?.extensions.code;
  if (code) return codes[code] ?? code;
  const [value] = Object.values(answer.data) as any[];
  if (value === null || value === "hidden") return String(value);
  if (Array.isArray(value)) return value.length === 0 ? "none" : String(value.length);
  if (typeof value.totalCount !== "number") return "yes";
  const counts = new Set<number>([value.totalCount, value.nodes.length]);
  if (value.aggregates) counts.add(Number(value.aggregates.distinctCount.id));
  if (value.groupedAggregates)
    counts.add(
      value.groupedAggregates.reduce((sum: number, group: any) => sum + Number(group.distinctCount.id), 0),
    );
  return counts.size === 1 ? String([...counts][0] || "none") : `counts differ: ${[...counts].join(", ")}`;
}

const [header, ...lines] = matrix.trim().split("\n");
const cells = (line: string) => line.split("|").map((cell) => cell.trim());
const names = cells(header!).filter(Boolean);
const rows = lines.map((line) => ({ operation: cells(line)[0]!, expected: cells(line).slice(1) }));

let world: Portfolio;
let people: Record<string, Person>;
let tried: Record<string, Operation>;

async function setUp(portfolio: Portfolio): Promise<Records> {
  const { owen, max, sam, project, leads } = portfolio;
  const create = async (person: Person, field: string, input: Record<string, unknown>) => {
    const type = `${field[0]!.toUpperCase()}${field.slice(1)}Input`;
    const data = await person.get(`mutation ($input: ${type}!) { ${field}(input: $input) { id } }`, {
      input,
    });
    return data[field].id as string;
  };
  const note = (person: Person) =>
    create(person, "createLeadNote", { leadId: leads.sams.id, text: "Hello." });
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
    source: await create(owen, "createLeadSource", { projectId: project.id, name: "Fair" }),
    reason: await create(owen, "createFalloutReason", { projectId: project.id, name: "Moved away" }),
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
  const { owen, ada, max, sam, bob, olga, anonymous } = world;
  people = { owner: owen, admin: ada, member: max, seller: sam, builder: bob, outsider: olga, anonymous };
  tried = operations(await setUp(world));
});
afterAll(() => world.stop());

describe("who may do what", () => {
  // Reads come first in the table's counts: nothing that the mutations make may change them.
  const reads = rows.filter((row) => !/^(create|update|delete)/.test(row.operation));
  const writes = rows.filter((row) => !reads.includes(row));
  test.each([...reads, ...writes])("$operation", async ({ operation, expected }) => {
    const found: string[] = [];
    for (const name of names) found.push(outcome(await tried[operation]!(world, people[name]!)));
    expect(Object.fromEntries(names.map((name, i) => [name, found[i]]))).toEqual(
      Object.fromEntries(names.map((name, i) => [name, expected[i]])),
    );
  });

  test("every operation of the area is in the table", () => {
    expect(Object.keys(tried).sort()).toEqual(rows.map((row) => row.operation).sort());
  });
});
