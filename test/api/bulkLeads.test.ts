/** Leads in bulk: importLeads, upsertLeads and updateLeads, as every kind of viewer. */
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import type { Person } from "../harness/api.ts";
import { createLead, createProject, startPortfolio, type Portfolio } from "../harness/portfolio.ts";
import { upload } from "../harness/upload.ts";
import { programOf } from "../harness/world.ts";

let world: Portfolio;
let reason: string;
beforeAll(async () => {
  world = await startPortfolio();
  const data = await world.owen.get(`{ project(id: "${world.project.id}") { falloutReasons { id name } } }`);
  reason = data.project.falloutReasons.find((r: any) => r.name === "Price too high").id;
});
afterAll(() => world.stop());

let serial = 0;
const newProject = async (input: Record<string, unknown> = {}): Promise<string> =>
  (
    await createProject(world.owen, {
      organizationId: world.harbour.id,
      title: `Bulk ${++serial}`,
      address: { country: "CA" },
      ...input,
    })
  ).id;

const rowFields = `position externalId outcome isDuplicate code errors { code field message } warnings leadId lead { id name email
  phone status tags source leadSource { code } company budgetMin assignee { id } firstName subscribed registeredAt origin metadata
  address { locality country } version externalIds { system externalId } }`;
const upsertDocument = `mutation ($input: UpsertLeadsInput!) { upsertLeads(input: $input) { dryRun createdCount updatedCount unchangedCount
  refusedCount rows { ${rowFields} } } }`;
const updateDocument = `mutation ($input: UpdateLeadsInput!) { updateLeads(input: $input) { dryRun updatedCount unchangedCount refusedCount
  rows { ${rowFields} } } }`;
const importDocument = `mutation ($input: ImportLeadsInput!) { importLeads(input: $input) { dryRun createdCount updatedCount skippedCount
  failedCount duplicateCount errors { row column code message value } rows { ${rowFields} } leads { id name email } } }`;

type Input = Record<string, unknown>;
const upsert = async (input: Input, person: Person = world.owen): Promise<any> =>
  (await person.get(upsertDocument, { input: { system: "crm", ...input } })).upsertLeads;
const update = async (input: Input, person: Person = world.owen): Promise<any> =>
  (await person.get(updateDocument, { input })).updateLeads;
const outcomes = ({ rows }: any) => rows.map((row: any) => row.code ?? row.outcome);
const sendFile = (input: Input, file: string, person: Person = world.owen) =>
  upload(
    world,
    person,
    importDocument,
    { input: { ...input, file: null } },
    { "variables.input.file": { bytes: Buffer.from(file), name: "leads.csv", type: "text/csv" } },
  );
async function importing(input: Input, file: string): Promise<any> {
  const answer = await sendFile(input, file);
  if (answer.errors) throw new Error(JSON.stringify(answer.errors));
  return answer.data.importLeads;
}
const eventsOf = async (projectId: string): Promise<string[]> =>
  (
    await world.owner.query(
      "select name, channel from app_public.events where project_id = $1 and subject_type = 'lead' order by sequence",
      [projectId],
    )
  ).rows.map((row) => `${row.name} ${row.channel}`);

describe("upsertLeads", () => {
  test("creates, changes, skips and refuses rows, and reports the outcome of each", async () => {
    const projectId = await newProject();
    const entries = [
      {
        externalId: "1",
        name: "Ann Archer",
        email: "Ann@bulk.example",
        phone: "416 555 0101",
        tags: ["vip", "fair, 2026"],
        source: "walk_in",
        assignee: "max.member@example.com",
        budgetMin: "400000",
        registeredAt: "2026-01-02T03:04:05Z",
        metadata: { score: 7, note: null },
        address: { locality: "Toronto" },
      },
      { externalId: "2", firstName: "Bo", lastName: "Berg", subscribed: true, status: "WARM" },
      { externalId: "3", email: "nameless@bulk.example" },
      { externalId: "4", name: "Cy", phone: "123", budgetMin: "1.005", source: "Nowhere" },
      { externalId: "5", name: "Di", status: "LOST" },
      { externalId: "1", name: "Ann again" },
      { externalId: "7", name: "Eve", email: "ANN@bulk.example" },
      { externalId: "8", name: "Flo", budgetMin: 2, budgetMax: 1 },
      { externalId: "9", name: "Gus", assigneeId: world.olga.id },
      { name: "Without id" },
    ];
    // The email addresses in these tests contain the names of the people.
    const { rows: people } = await world.owner.query(
      "select email from app_hidden.user_identities where user_id = $1",
      [world.max.id],
    );
    entries[0]!.assignee = people[0].email;
    const first = await upsert({ projectId, leads: entries });
    expect(first).toMatchObject({
      dryRun: false,
      createdCount: 2,
      updatedCount: 0,
      unchangedCount: 0,
      refusedCount: 8,
    });
    expect(first.rows[0]).toMatchObject({
      position: 0,
      externalId: "1",
      outcome: "CREATED",
      code: null,
      errors: [],
      lead: {
        name: "Ann Archer",
        firstName: "Ann",
        email: "ann@bulk.example",
        phone: "+14165550101",
        tags: ["vip", "fair, 2026"],
        source: "WALK_IN",
        leadSource: { code: "WALK_IN" },
        assignee: { id: world.max.id },
        budgetMin: "400000.00",
        registeredAt: expect.stringMatching(/^2026-01-02T03:04:05/),
        origin: "INTEGRATION",
        metadata: { score: 7, note: null },
        address: { locality: "Toronto", country: "CA" },
        externalIds: [{ system: "crm", externalId: "1" }],
        version: 1,
      },
    });
    expect(first.rows[1].lead).toMatchObject({ name: "Bo Berg", subscribed: true, status: "WARM" });
    const reported = first.rows.slice(2).map(({ errors, outcome, leadId }: any) => {
      expect([outcome, leadId]).toEqual(["REFUSED", null]);
      return errors.map(({ code, field }: any) => `${code} ${field}`);
    });
    expect(reported).toEqual([
      ["BAD_USER_INPUT name"],
      ["BAD_USER_INPUT budgetMin", "BAD_USER_INPUT phone", "BAD_USER_INPUT source"],
      ["BAD_USER_INPUT falloutReasonId", "INVALID_TRANSITION status"],
      ["CONFLICT externalId"],
      ["CONFLICT email"],
      ["BAD_USER_INPUT budgetMax"],
      ["NOT_FOUND assigneeId"],
      ["BAD_USER_INPUT externalId"],
    ]);
    expect(first.rows[3].errors[2].message).toMatch(/Use one of .*WALK_IN/);
    expect(await eventsOf(projectId)).toEqual(["lead.created API", "lead.created API"]);

    // The key of a tracker records a visit of it, and sets its lead source.
    const { createTracker: tracker } = await world.owen.get(
      `mutation ($input: CreateTrackerInput!) { createTracker(input: $input) { id key } }`,
      { input: { projectId, name: "Poster", kind: "LINK", destinationUrl: "https://homes.example/" } },
    );
    const byKey = await upsert({ projectId, leads: [{ externalId: "k", name: "Kay", source: tracker.key }] });
    expect(byKey.rows[0]).toMatchObject({
      outcome: "CREATED",
      lead: { source: tracker.key, leadSource: null },
    });
    const { tracker: counted } = await world.owen.get(`{ tracker(id: "${tracker.id}") { leadCount } }`);
    expect(counted.leadCount).toBe(1);
    await upsert({ projectId, leads: [{ externalId: "k", source: null }] });
    expect((await world.owen.get(`{ tracker(id: "${tracker.id}") { leadCount } }`)).tracker.leadCount).toBe(
      0,
    );
    await world.owen.get(`mutation { deleteLead(input: { id: "${byKey.rows[0].leadId}" }) { id } }`);

    // Repeating it changes nothing; given fields are changed, null clears, and omitted fields are unchanged.
    const again = await upsert({ projectId, leads: entries.slice(0, 2) });
    expect([outcomes(again), again.unchangedCount]).toEqual([["UNCHANGED", "UNCHANGED"], 2]);
    const changed = await upsert({
      projectId,
      leads: [
        { externalId: "1", company: "Archer Ltd", phone: null, address: null, tags: [], metadata: null },
        { externalId: "2", name: null },
        { externalId: "2b", name: "New One", status: "HOT" },
      ],
    });
    expect(outcomes(changed)).toEqual(["UPDATED", "BAD_USER_INPUT", "CREATED"]);
    expect(changed.rows[0].lead).toMatchObject({
      id: first.rows[0].leadId,
      company: "Archer Ltd",
      phone: null,
      tags: [],
      address: null,
      metadata: null,
      budgetMin: "400000.00",
      version: 2,
    });
    expect((await eventsOf(projectId)).slice(5)).toEqual(["lead.created API", "lead.updated API"]);
    // The lists of leads can be filtered by the id.
    const { leads } = await world.owen.get(`{ leads(filter: { externalId: "crm:2b" }) { name } }`);
    expect(leads).toEqual([{ name: "New One" }]);
  });

  test("a row with the email address of an existing lead is refused, merged or skipped, as requested", async () => {
    const projectId = await newProject();
    const { id } = await createLead(world.owen, {
      projectId,
      name: "Hal Here",
      email: "hal@bulk.example",
      company: "Here Ltd",
    });
    const entry = {
      externalId: "h1",
      name: "Hal",
      email: "hal@bulk.example",
      company: "X",
      phone: "4165550102",
    };
    const [refused] = (await upsert({ projectId, leads: [entry] })).rows;
    expect(refused).toMatchObject({
      code: "CONFLICT",
      isDuplicate: true,
      leadId: id,
      lead: { externalIds: [] },
    });
    const dry = await upsert({ projectId, leads: [entry], onDuplicate: "MERGE", dryRun: true });
    expect(dry).toMatchObject({
      dryRun: true,
      updatedCount: 1,
      rows: [{ lead: { externalIds: [], phone: null } }],
    });
    const [merged] = (await upsert({ projectId, leads: [entry], onDuplicate: "MERGE" })).rows;
    expect(merged).toMatchObject({
      outcome: "UPDATED",
      isDuplicate: true,
      lead: { id, name: "Hal Here", company: "Here Ltd", phone: "+14165550102" },
    });
    expect(merged.lead.externalIds).toEqual([{ system: "crm", externalId: "h1" }]);
    // A second id of the same system is a conflict, because it is another record there; one of another system
    // is added.
    const other = { ...entry, externalId: "h2" };
    expect(outcomes(await upsert({ projectId, leads: [other], onDuplicate: "MERGE" }))).toEqual(["CONFLICT"]);
    const left = await upsert({
      projectId,
      system: "mailer",
      leads: [other],
      onDuplicate: "RETURN_EXISTING",
    });
    expect(left.rows[0]).toMatchObject({ outcome: "UNCHANGED", lead: { id, name: "Hal Here" } });
    expect(left.rows[0].lead.externalIds).toHaveLength(2);
    // The ids of a deleted lead can be used again.
    await world.owen.get(`mutation { deleteLead(input: { id: "${id}" }) { id } }`);
    const [anew] = (await upsert({ projectId, leads: [entry] })).rows;
    expect(anew.outcome).toBe("CREATED");
    expect(anew.leadId).not.toBe(id);
  });

  test("assigns leads by turns, keeps unsubscriptions, and starts workflows for each lead", async () => {
    const projectId = await newProject({ leadAssignment: "ROUND_ROBIN" });
    await world.owner.query(
      "insert into app_private.withdrawn_addresses (organization_id, email) values ($1, 'gone@bulk.example')",
      [world.harbour.id],
    );
    const leads = Array.from({ length: 6 }, (_, i) => ({ externalId: `t${i}`, name: `Turn ${i}` }));
    const made = await upsert({
      projectId,
      leads: [
        ...leads,
        { externalId: "own", name: "Named", assigneeId: world.owen.id },
        { externalId: "gone", name: "Gone", email: "gone@bulk.example", subscribed: true },
      ],
    });
    expect(made.createdCount).toBe(8);
    const takers = made.rows.slice(0, 6).map((row: any) => row.lead.assignee.id);
    expect(new Set(takers)).toEqual(new Set([world.max.id, world.mia.id]));
    expect(takers.filter((id: string) => id === world.max.id)).toHaveLength(3);
    expect(takers.slice(0, 2)).toEqual(takers.slice(2, 4));
    expect(made.rows[6].lead.assignee.id).toBe(world.owen.id);
    expect(made.rows[7]).toMatchObject({
      outcome: "CREATED",
      warnings: [expect.stringMatching(/unsubscribed/)],
      lead: { subscribed: false },
    });
    // The next lead continues the turns after the last row.
    const { createLead: next } = await world.owen.get(
      `mutation { createLead(input: { projectId: "${projectId}", name: "Next" }) { assignee { id } } }`,
    );
    expect(next.assignee.id).not.toBe(made.rows[7].lead.assignee.id);
    expect(await eventsOf(projectId)).toHaveLength(9);
  });

  test("takes the same number of statements for one lead and for a thousand, and refuses more", async () => {
    const projectId = await newProject();
    const entries = (amount: number, tag: string) =>
      Array.from({ length: amount }, (_, i) => ({
        externalId: `m${i}`,
        name: `Many ${i}`,
        email: `many${i}@bulk.example`,
        tags: [tag],
      }));
    const one = await world.statements(() => upsert({ projectId, leads: entries(1, "a") }));
    const many = await world.statements(() => upsert({ projectId, leads: entries(500, "b") }));
    expect(many.result).toMatchObject({ createdCount: 499, updatedCount: 1 });
    expect(many.count).toBe(one.count);
    const refusal = await world.owen.refused(upsertDocument, {
      input: { projectId, system: "crm", leads: entries(501, "c") },
    });
    expect(refusal).toMatchObject({ code: "LIMIT_EXCEEDED", limit: 500, field: "leads" });
  });

  test("creates each agent once", async () => {
    const projectId = await newProject();
    const agents = async () =>
      (await world.owner.query("select count(*)::int as n from app_public.agents")).rows[0].n;
    const before = await agents();
    const agent = { name: "Al Agent", email: "al@bulk.example", phone: "4165550199", brokerage: "Al & Co" };
    const leads = [
      { externalId: "a1", name: "A1", agent },
      { externalId: "a2", name: "A2", agent },
      { externalId: "a3", name: "A3", agent: { email: "AL@bulk.example" } },
      { externalId: "a4", name: "A4", agent: { phone: "1" } },
      { externalId: "a5", name: "A5", agent: { id: crypto.randomUUID() } },
    ];
    await upsert({ projectId, leads, dryRun: true });
    expect(await agents()).toBe(before);
    const made = await upsert({ projectId, leads });
    expect(outcomes(made)).toEqual(["CREATED", "CREATED", "CREATED", "BAD_USER_INPUT", "NOT_FOUND"]);
    expect(made.rows[4].errors).toMatchObject([{ field: "agentId" }]);
    expect(await agents()).toBe(before + 1);
    const of = async (row: number) =>
      (await world.owen.get(`{ lead(id: "${made.rows[row].leadId}") { agent { name phone brokerage } } }`))
        .lead.agent;
    expect(await of(2)).toEqual({ name: "Al Agent", phone: "+14165550199", brokerage: "Al & Co" });
    const changed = await upsert({
      projectId,
      leads: [
        { externalId: "a1", agent: null },
        { externalId: "a2", company: "Kept" },
      ],
    });
    expect(changed.updatedCount).toBe(2);
    expect([await of(0), (await of(1)).name]).toEqual([null, "Al Agent"]);
    const file =
      "name,email,Broker Name,Broker Email,Brokerage\nBy Al,byal@bulk.example,Al Agent,al@bulk.example,Al & Co\n";
    const imported = await importing({ projectId }, file);
    expect(imported.createdCount).toBe(1);
    expect(await agents()).toBe(before + 1);
  });

  test("two concurrent calls with the same rows create each lead once", async () => {
    const projectId = await newProject();
    const leads = Array.from({ length: 20 }, (_, i) => ({
      externalId: `r${i}`,
      name: `Race ${i}`,
      email: `race${i}@bulk.example`,
    }));
    const answers = await Promise.all([
      upsert({ projectId, leads }),
      upsert({ projectId, leads: leads.toReversed() }),
      upsert({ projectId, system: "other", leads, onDuplicate: "MERGE" }),
    ]);
    expect(answers.reduce((sum, { createdCount }) => sum + createdCount, 0)).toBe(20);
    const {
      rows: [count],
    } = await world.owner.query(
      "select count(*)::int as leads, count(distinct email)::int as emails from app_public.leads where project_id = $1",
      [projectId],
    );
    expect(count).toEqual({ leads: 20, emails: 20 });
  });

  test("requires the same permissions as createLead", async () => {
    const entry = (externalId: string, rest: Input = {}) => [
      { externalId, name: `Of ${externalId}`, ...rest },
    ];
    const tried = async (person: Person, input: Input) => {
      const answer = await person.ask(upsertDocument, { input: { system: "crm", ...input } });
      return answer.errors?.[0]!.extensions.code ?? outcomes(answer.data.upsertLeads)[0];
    };
    const projectId = world.project.id;
    expect(await tried(world.ada, { projectId, leads: entry("ada") })).toBe("CREATED");
    expect(await tried(world.max, { projectId, leads: entry("max") })).toBe("CREATED");
    expect(await tried(world.olga, { projectId, leads: entry("olga") })).toBe("NOT_FOUND");
    expect(await tried(world.bob, { projectId, leads: entry("bob") })).toBe("FORBIDDEN");
    expect(await tried(world.anonymous, { projectId: world.park.id, leads: entry("x") })).toBe(
      "UNAUTHENTICATED",
    );
    expect(await tried(world.olga, { projectId: world.park.id, leads: entry("x") })).toBe("FORBIDDEN");
    const reader = await programOf(world, world.owen, { scopes: ["project.read", "lead.read"] });
    expect(await tried(reader, { projectId, leads: entry("reader") })).toBe("FORBIDDEN");

    // External ids of an agency's leads are separate: the owner's "ada" is another lead than the agency's.
    const sams = await upsert({ projectId, leads: entry("ada") }, world.sam);
    expect(sams.rows[0]).toMatchObject({ outcome: "CREATED", lead: { assignee: { id: world.sam.id } } });
    const owners = await world.owen.get(
      `{ lead(id: "${sams.rows[0].leadId}") { externalIds { externalId } } }`,
    );
    expect(owners.lead.externalIds).toEqual([]);
    expect(
      outcomes(await upsert({ projectId, leads: entry("ada", { assigneeId: world.max.id }) }, world.sam)),
    ).toEqual(["FORBIDDEN"]);
    // As in createLead, a lead that the viewer cannot see is only reported as a conflict of the email
    // address.
    const [hidden] = (
      await upsert({ projectId, leads: entry("new", { email: "open@example.com" }) }, world.sam)
    ).rows;
    expect(hidden).toMatchObject({ code: "CONFLICT", leadId: null, lead: null, isDuplicate: false });
    const [merged] = (
      await upsert(
        { projectId, leads: entry("new", { email: "open@example.com" }), onDuplicate: "MERGE" },
        world.sam,
      )
    ).rows;
    expect(merged).toMatchObject({ code: "CONFLICT", leadId: null });

    // In a project where members only see their own leads, the id of a colleague's lead does not change it.
    const quiet = world.quiet.id;
    await upsert({ projectId: quiet, leads: entry("mias", { assigneeId: world.mia.id }) });
    const [colleagues] = (
      await upsert({ projectId: quiet, leads: entry("mias", { company: "X" }) }, world.max)
    ).rows;
    expect(colleagues).toMatchObject({ code: "CONFLICT", leadId: null });
    // Leads cannot be assigned to people of a BUILDER.
    const builders = entry("builders", { assigneeId: world.bob.id });
    expect(outcomes(await upsert({ projectId, leads: builders }))).toEqual(["NOT_FOUND"]);
    // An external id identifies one lead of the organization, across projects.
    expect(outcomes(await upsert({ projectId: await newProject(), leads: entry("ada") }))).toEqual([
      "CONFLICT",
    ]);
    const archived = await newProject();
    await world.owen.get(`mutation { updateProject(input: { id: "${archived}", status: ARCHIVED }) { id } }`);
    expect(await tried(world.owen, { projectId: archived, leads: entry("late") })).toBe("PROJECT_ARCHIVED");
    const bad = await world.owen.refused(upsertDocument, {
      input: { projectId, system: "My CRM", leads: [] },
    });
    expect(bad).toMatchObject({ code: "BAD_USER_INPUT", field: "system" });
  });

  test("a row that the database refuses does not affect other rows", async () => {
    const projectId = await newProject();
    const { project } = await world.owen.get(
      `{ project(id: "${projectId}") { falloutReasons { id name } } }`,
    );
    const falloutReasonId = project.falloutReasons.find((r: any) => r.name === "Price too high").id;
    const leads = Array.from({ length: 40 }, (_, i) => ({ externalId: `n${i}`, name: `Neighbour ${i}` }));
    const made = await upsert({ projectId, leads });
    expect(made.createdCount).toBe(40);
    for (const at of [5, 6, 31]) {
      const { createUnit: unit } = await world.owen.get(
        `mutation { createUnit(input: { projectId: "${projectId}", title: "U${at}", number: "${at}", status: AVAILABLE, price: 1 }) { id } }`,
      );
      await world.owen.get(
        `mutation { createReservation(input: { leadId: "${made.rows[at].leadId}", unitId: "${unit.id}", acceptedTerms: true }) { id } }`,
      );
    }
    const lost = await upsert({
      projectId,
      leads: leads.map((lead) => ({ ...lead, status: "LOST", falloutReasonId })),
    });
    expect(lost).toMatchObject({ updatedCount: 37, refusedCount: 3 });
    for (const at of [5, 6, 31])
      expect(lost.rows[at]).toMatchObject({
        code: "CONFLICT",
        errors: [{ field: "status", message: expect.stringMatching(/open reservation/) }],
        lead: { status: "RESERVED" },
      });
    // An email address of another open lead, and amounts that contradict stored ones.
    const more = await upsert({
      projectId,
      leads: [
        { externalId: "e1", name: "E1", email: "e1@bulk.example" },
        { externalId: "e2", name: "E2", budgetMin: 10 },
      ],
    });
    expect(outcomes(more)).toEqual(["CREATED", "CREATED"]);
    const crossed = await upsert({
      projectId,
      leads: [
        { externalId: "e1", company: "One" },
        { externalId: "e2", email: "e1@bulk.example", budgetMax: 9 },
      ],
    });
    expect(crossed.rows.map(({ errors }: any) => errors.map(({ field }: any) => field))).toEqual([
      [],
      ["budgetMax", "email"],
    ]);
  });
});

describe("updateLeads", () => {
  test("assigns, tags and changes the status, with one event per lead", async () => {
    const projectId = await newProject();
    const made = await upsert({
      projectId,
      leads: Array.from({ length: 4 }, (_, i) => ({
        externalId: `u${projectId}${i}`,
        name: `Up ${i}`,
        tags: ["a"],
      })),
    });
    const ids = made.rows.map((row: any) => row.leadId);
    const changed = await update({
      ids: [...ids.slice(0, 3), world.leads.foreign.id, ids[0]],
      assigneeId: world.max.id,
      addTags: ["b", "a"],
      removeTags: ["c"],
      status: "WARM",
    });
    expect(changed).toMatchObject({ dryRun: false, updatedCount: 3, unchangedCount: 0, refusedCount: 1 });
    expect(outcomes(changed)).toEqual(["UPDATED", "UPDATED", "UPDATED", "NOT_FOUND"]);
    expect(changed.rows[3]).toMatchObject({ leadId: null, lead: null, errors: [{ field: "ids" }] });
    expect(changed.rows[0].lead).toMatchObject({
      assignee: { id: world.max.id },
      tags: ["a", "b"],
      status: "WARM",
      version: 2,
    });
    const again = await update({ ids: ids.slice(0, 3), addTags: ["b"], status: "WARM" });
    expect(outcomes(again)).toEqual(["UNCHANGED", "UNCHANGED", "UNCHANGED"]);
    const events = await eventsOf(projectId);
    expect(events.filter((name) => !name.startsWith("lead.created"))).toHaveLength(3);

    // By filter, within the project.
    const filter = { projectIds: [projectId], unassigned: true };
    const dry = await update({ filter, removeTags: ["a"], dryRun: true });
    expect(dry).toMatchObject({ dryRun: true, updatedCount: 1, rows: [{ lead: { tags: ["a"] } }] });
    expect((await update({ filter, removeTags: ["a"] })).rows[0].lead.tags).toEqual([]);
    const off = await update({ filter: { projectIds: [projectId] }, unassign: true });
    expect(off).toMatchObject({ updatedCount: 3, unchangedCount: 1 });
    expect(off.rows.every((row: any) => row.lead.assignee === null)).toBe(true);
  });

  test("invalid transitions and conflicting leads are refused row by row", async () => {
    const projectId = await newProject();
    const made = await upsert({
      projectId,
      leads: ["s1", "s2", "s3"].map((id) => ({ externalId: `${id}${projectId}`, name: id })),
    });
    const ids: string[] = made.rows.map((row: any) => row.leadId);
    await world.owner.query("begin; commit");
    const client = await world.owner.connect();
    try {
      await client.query("begin; set local plat.service = 'on'");
      await client.query("update app_public.leads set status = 'CONVERTED' where id = $1", [ids[0]]);
      await client.query("insert into app_public.buyers (project_id, lead_id, price) values ($1, $2, 1)", [
        projectId,
        ids[0],
      ]);
      await client.query("commit");
    } finally {
      client.release();
    }
    expect(outcomes(await update({ ids, status: "HOT" }))).toEqual([
      "INVALID_TRANSITION",
      "UPDATED",
      "UPDATED",
    ]);
    expect(outcomes(await update({ ids, status: "LOST" }))).toEqual([
      "INVALID_TRANSITION",
      "BAD_USER_INPUT",
      "BAD_USER_INPUT",
    ]);
    // The reason belongs to another project, which the trigger refuses for each lead.
    expect(outcomes(await update({ ids, status: "LOST", falloutReasonId: reason }))).toEqual([
      "INVALID_TRANSITION",
      "NOT_FOUND",
      "NOT_FOUND",
    ]);
    const { project } = await world.owen.get(
      `{ project(id: "${projectId}") { falloutReasons { id name } } }`,
    );
    const own = project.falloutReasons.find((r: any) => r.name === "Price too high").id;
    const { createUnit: unit } = await world.owen.get(
      `mutation { createUnit(input: { projectId: "${projectId}", number: "1", title: "One", status: AVAILABLE, price: 1 }) { id } }`,
    );
    await world.owen.get(
      `mutation { createReservation(input: { leadId: "${ids[1]}", unitId: "${unit.id}", acceptedTerms: true }) { id } }`,
    );
    const lost = await update({
      ids: ids.slice(1),
      status: "LOST",
      falloutReasonId: own,
      falloutNote: "Too dear.",
    });
    expect(outcomes(lost)).toEqual(["CONFLICT", "UPDATED"]);
    expect(lost.rows[0].errors[0].message).toMatch(/open reservation/);
  });

  test("requires the permissions of each viewer", async () => {
    const { open, sams, foreign, maxs, mias } = world.leads;
    const ids = [open.id, sams.id, foreign.id, maxs.id, mias.id];
    const tag = { ids, addTags: ["seen"] };
    const N = "NOT_FOUND";
    expect(outcomes(await update(tag, world.max))).toEqual(["UPDATED", "UPDATED", N, "UPDATED", N]);
    expect(outcomes(await update(tag, world.sam))).toEqual([N, "UNCHANGED", N, N, N]);
    expect(outcomes(await update(tag, world.olga))).toEqual([N, N, "UPDATED", N, N]);
    expect(outcomes(await update(tag, world.bob))).toEqual([N, N, N, N, N]);
    const reader = await programOf(world, world.owen, { scopes: ["lead.read"] });
    expect(outcomes(await update({ ...tag, addTags: ["read"] }, reader))).toEqual([
      "FORBIDDEN",
      "FORBIDDEN",
      N,
      "FORBIDDEN",
      "FORBIDDEN",
    ]);
    // Assigning a lead that the viewer could then not see is refused, and so is an assignee outside of the
    // project.
    expect(outcomes(await update({ ids: [maxs.id], assigneeId: world.mia.id }, world.max))).toEqual([
      "FORBIDDEN",
    ]);
    expect(outcomes(await update({ ids: [open.id], assigneeId: world.olga.id }))).toEqual(["BAD_USER_INPUT"]);
    expect(await world.anonymous.refused(updateDocument, { input: tag })).toMatchObject({
      code: "UNAUTHENTICATED",
    });
    // A viewer who only sees own leads can unassign one, and then no longer sees it.
    const [back] = (
      await upsert({ projectId: world.project.id, leads: [{ externalId: "back", name: "Back" }] }, world.sam)
    ).rows.map(({ lead }: any) => lead);
    const silently = { projectId: world.project.id, leads: [{ externalId: "back", assigneeId: null }] };
    expect(outcomes(await upsert(silently, world.sam))).toEqual(["FORBIDDEN"]);
    expect(await update({ ids: [back.id], unassign: true }, world.sam)).toMatchObject({
      updatedCount: 1,
      rows: [{ outcome: "UPDATED", lead: null }],
    });
    // A filter selects the leads that the viewer's lists show.
    const all = await update({ filter: {}, addTags: ["mine"] }, world.sam);
    const { leads } = await world.sam.get(`{ leads(first: 1000) { id tags } }`);
    expect(all.updatedCount).toBe(leads.length);
    expect(leads.every((lead: any) => lead.tags.includes("mine"))).toBe(true);
    const { rows: marked } = await world.owner.query(
      "select count(*)::int as amount from app_public.leads where 'mine' = any (tags::text[])",
    );
    expect(marked[0].amount).toBe(leads.length);
  });

  test("reports missing and invalid arguments", async () => {
    const refusal = (input: Input) => world.owen.refused(updateDocument, { input });
    expect(await refusal({ addTags: ["x"] })).toMatchObject({ code: "BAD_USER_INPUT", field: "ids" });
    expect(await refusal({ ids: [world.leads.open.id] })).toMatchObject({ field: "status" });
    expect(await refusal({ ids: [], unassign: true, assigneeId: world.max.id })).toMatchObject({
      field: "unassign",
    });
    expect(await refusal({ ids: ["x"], addTags: ["x"] })).toMatchObject({
      code: "BAD_USER_INPUT",
      field: "ids",
    });
    const ids = Array.from({ length: 501 }, () => crypto.randomUUID());
    expect(await refusal({ ids, addTags: ["x"] })).toMatchObject({ code: "LIMIT_EXCEEDED", limit: 500 });
  });

  test("takes the same number of statements for many leads as for one", async () => {
    const projectId = await newProject();
    const made = await upsert({
      projectId,
      leads: Array.from({ length: 200 }, (_, i) => ({ externalId: `c${projectId}${i}`, name: `C ${i}` })),
    });
    const ids = made.rows.map((row: any) => row.leadId);
    const one = await world.statements(() => update({ ids: ids.slice(0, 1), addTags: ["x"] }));
    const many = await world.statements(() =>
      update({ ids, addTags: ["y"], assigneeId: world.max.id, status: "HOT" }),
    );
    expect(many.result.updatedCount).toBe(200);
    expect(many.count).toBe(one.count);
  });
});

describe("importLeads", () => {
  test("imports the leads of a file and reports those that existed", async () => {
    const projectId = await newProject({ timeZone: "America/Toronto" });
    await createLead(world.owen, { projectId, name: "Ida Inside", email: "ida@bulk.example" });
    const file = [
      "Full Name,Email,Mobile,Lead Source,Tags,Registered,Opt-in,City,Maximum Budget,Stage,Comment",
      'Jo Jarvis,JO@bulk.example,416 555 0111,Walk in,"vip; garden",2026-03-04,yes,Toronto,"$650,000",warm,Hi',
      "Ida Inside,ida@bulk.example,,,,,,,,,",
      "Kim,kim(at)bulk,call me,Moon,,yesterday,maybe,,lots,,",
      ",,,,,,,,,,",
      ",lone@bulk.example,,,,,,,,,",
      "Jo Twice,jo@bulk.example,,,,,,,,,",
      "=cmd(),,,,,,,,,,",
    ].join("\r\n");
    const dry = await importing({ projectId, dryRun: true }, file);
    expect(await eventsOf(projectId)).toEqual(["lead.created API"]);
    const done = await importing({ projectId }, file);
    const plain = ({ leads, rows, errors, createdCount, duplicateCount }: any) => ({
      counts: [createdCount, duplicateCount],
      errors,
      outcomes: outcomes({ rows }),
      names: leads.map((lead: any) => lead.name),
    });
    expect(plain(dry)).toEqual(plain(done));
    expect(done).toMatchObject({
      createdCount: 2,
      updatedCount: 0,
      skippedCount: 1,
      failedCount: 3,
      duplicateCount: 1,
    });
    expect(done.errors.map(({ row, column, code }: any) => `${row} ${column} ${code}`)).toEqual([
      "4 Email BAD_USER_INPUT",
      "4 Lead Source BAD_USER_INPUT",
      "4 Maximum Budget BAD_USER_INPUT",
      "4 Mobile BAD_USER_INPUT",
      "4 Opt-in BAD_USER_INPUT",
      "4 Registered BAD_USER_INPUT",
      "6 Full Name BAD_USER_INPUT",
      "7 Email CONFLICT",
    ]);
    expect(done.rows.map((row: any) => [row.position, row.outcome, row.isDuplicate])).toEqual([
      [2, "CREATED", false],
      [3, "UNCHANGED", true],
      [4, "REFUSED", false],
      [6, "REFUSED", false],
      [7, "REFUSED", false],
      [8, "CREATED", false],
    ]);
    expect(done.rows[0].lead).toMatchObject({
      name: "Jo Jarvis",
      email: "jo@bulk.example",
      phone: "+14165550111",
      leadSource: { code: "WALK_IN" },
      tags: ["vip", "garden"],
      registeredAt: expect.stringMatching(/^2026-03-04T05:00:00/),
      subscribed: true,
      status: "WARM",
      origin: "IMPORT",
      address: { locality: "Toronto", country: "CA" },
    });
    expect(await eventsOf(projectId)).toEqual([
      "lead.created API",
      "lead.created IMPORT",
      "lead.created IMPORT",
    ]);
    // Importing again changes nothing; with updateExisting, it applies the values of the file.
    expect(await importing({ projectId, updateExisting: true }, file)).toMatchObject({
      createdCount: 1, // the row without an address creates a lead each time
      updatedCount: 0,
      skippedCount: 2,
    });
    const changed = await importing(
      { projectId, updateExisting: true },
      "email,company\nida@bulk.example,Inside Inc",
    );
    expect(changed).toMatchObject({
      updatedCount: 1,
      duplicateCount: 1,
      rows: [{ lead: { company: "Inside Inc" } }],
    });
  });

  test("accepts rows without a member if no member has the email address", async () => {
    const nil = await world.signUp("Nil Newcomer");
    const { createOrganization } = await nil.get(
      `mutation { createOrganization(input: { name: "Nameless" }) { id } }`,
    );
    const project = await createProject(nil, {
      organizationId: createOrganization.id,
      title: `Bulk ${++serial}`,
      address: { country: "CA" },
    });
    await world.owner.query("delete from app_hidden.user_identities where user_id = $1", [nil.id]);
    const { data } = await sendFile({ projectId: project.id }, "name\nLea\n", nil);
    expect(data.importLeads).toMatchObject({ createdCount: 1, failedCount: 0, errors: [] });
  });

  test("matches leads by the ids of a system that the caller specifies", async () => {
    const projectId = await newProject();
    const file = "External ID,Name,Company\nf1,Fil,A\nf2,Fay,B\n";
    const refused = await sendFile({ projectId }, file);
    expect(refused.errors![0]!.extensions).toMatchObject({ code: "BAD_USER_INPUT", field: "system" });
    const input = { projectId, system: `sheet${++serial}` };
    expect(await importing(input, file)).toMatchObject({ createdCount: 2 });
    expect(await importing({ ...input, updateExisting: true }, file.replace(",A", ",C"))).toMatchObject({
      updatedCount: 1,
      skippedCount: 1,
    });
    expect((await upsert({ ...input, leads: [{ externalId: "f2", company: "B" }] })).unchangedCount).toBe(1);
  });

  test("requires an owner or admin of the project's organization, and a token with the permission", async () => {
    const file = "name\nLea\n";
    const { project } = world;
    for (const person of [world.max, world.sam, world.bob])
      expect((await sendFile({ projectId: project.id }, file, person)).errors![0]!.extensions.code).toBe(
        "FORBIDDEN",
      );
    expect((await sendFile({ projectId: project.id }, file, world.olga)).errors![0]!.extensions.code).toBe(
      "NOT_FOUND",
    );
    expect(
      (await sendFile({ projectId: project.id }, file, world.anonymous)).errors![0]!.extensions.code,
    ).toBe("UNAUTHENTICATED");
    const program = await programOf(world, world.owen, { scopes: ["project.read", "project.manage"] });
    expect((await sendFile({ projectId: project.id }, file, program)).errors![0]!.extensions).toMatchObject({
      code: "FORBIDDEN",
      permission: "lead.write",
    });
    expect((await sendFile({ projectId: project.id }, file, world.ada)).data.importLeads.createdCount).toBe(
      1,
    );
  });
});
