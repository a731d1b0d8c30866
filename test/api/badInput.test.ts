/**
 * Invalid inputs: each is refused with its code, the invalid field and a message with a remedy, and changes
 * nothing.
 */
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import type { Person } from "../harness/api.ts";
import { createLead, createProject, startPortfolio, type Portfolio } from "../harness/portfolio.ts";
import { createBuyer } from "../harness/deals.ts";
import { createIn, mutationOf } from "../harness/records.ts";
import { expectUnchanged } from "../harness/expectUnchanged.ts";
import { testWithSeeds } from "../harness/seeds.ts";

let world: Portfolio;
let archived: { id: string; slug: string };
let archivedLead: string;
let archivedNote: string;
let ids: Record<string, string>;

const run = (person: Person, field: string, input: Record<string, unknown>) => {
  return person.ask(mutationOf(field), { input });
};

/** Asserts the refusal and its message, and that nothing was stored. */
async function refusedAs(
  person: Person,
  field: string,
  input: Record<string, unknown>,
  expected: Record<string, unknown>,
): Promise<Record<string, any>> {
  return expectUnchanged(world, async () => {
    const answer = await run(person, field, input);
    const [error] = answer.errors ?? [];
    expect(error?.extensions).toMatchObject(expected);
    expect(error!.extensions.requestId).toEqual(expect.any(String));
    expectSentence(error!.message);
    return { ...error!.extensions, message: error!.message };
  });
}

function expectSentence(message: string) {
  expect(message).toMatch(/^[A-Za-z$"].{10,}/);
  expect(message).not.toMatch(
    /app_(public|hidden|private)|constraint|relation|violates|null value|syntax|column|SQL|plpgsql/i,
  );
}

beforeAll(async () => {
  world = await startPortfolio();
  const { owen, harbour, project } = world;
  archived = await createProject(owen, { organizationId: harbour.id, title: "Old Oaks" });
  archivedLead = (await createLead(owen, { projectId: archived.id, name: "Late Larry" })).id;
  archivedNote = (await run(owen, "createLeadNote", { leadId: archivedLead, text: "Bye." })).data
    .createLeadNote.id;
  await owen.get(`mutation ($id: ID!) { updateProject(input: { id: $id, status: ARCHIVED }) { id } }`, {
    id: archived.id,
  });
  await owen.get(
    `mutation ($open: ID!, $max: ID!) { one: updateLead(input: { id: $open, agent: { name: "Agatha", email: "agatha@example.com" } }) { id }
      two: updateLead(input: { id: $max, company: "In use" }) { id } }`,
    { open: world.leads.open.id, max: world.leads.maxs.id },
  );
  const { rows } = await world.owner.query(
    `select (select id from app_public.lead_sources where project_id = $1 and code = 'WEB_DIRECT') as system_source,
      (select id from app_public.fallout_reasons where project_id = $1 and category = 'PRICE') as reason,
      (select id from app_public.lead_sources where project_id = $2 and code = 'WEB_DIRECT') as archived_source,
      (select id from app_public.fallout_reasons where project_id = $2 and category = 'PRICE') as archived_reason,
      (select id from app_public.agents limit 1) as agent`,
    [project.id, archived.id],
  );
  ids = rows[0];
  for (const [key, field, input] of [
    ["source", "createLeadSource", { projectId: project.id, name: "Fair" }],
    ["other_source", "createLeadSource", { projectId: project.id, name: "Radio" }],
    [
      "reservation_reason",
      "createFalloutReason",
      { projectId: project.id, name: "For reservations", appliesTo: ["RESERVATION"] },
    ],
    ["note", "createLeadNote", { leadId: world.leads.open.id, text: "Hello." }],
  ] as const)
    ids[key] = (await run(owen, field, input)).data[field].id;
  await run(owen, "updateLead", { id: world.leads.open.id, sourceId: ids.source });
});
afterAll(() => world.stop());

type Case = [
  what: string,
  field: string,
  input: () => Record<string, unknown>,
  field: string | null,
  code?: string,
];

const lead = (input: Record<string, unknown>) => () => ({
  projectId: world.project.id,
  name: "Nobody",
  ...input,
});
const change = (input: Record<string, unknown>) => () => ({ id: world.leads.open.id, ...input });
const project = (input: Record<string, unknown>) => () => ({
  organizationId: world.harbour.id,
  title: "Nowhere",
  ...input,
});
const remake = (input: Record<string, unknown>) => () => ({ id: world.project.id, ...input });
const note = (input: Record<string, unknown>) => () => ({
  leadId: world.leads.open.id,
  text: "Hm.",
  ...input,
});
const source = (input: Record<string, unknown>) => () => ({
  projectId: world.project.id,
  name: "New",
  ...input,
});
const reason = (input: Record<string, unknown>) => () => ({
  projectId: world.project.id,
  name: "New",
  ...input,
});
const organization = (input: Record<string, unknown>) => () => ({ name: "New", ...input });
const nobody = "00000000-0000-7000-8000-000000000000";

describe("bad values", () => {
  test.each<Case>([
    // ids
    ["an id that is not a UUID", "updateLead", change({ id: "nobody" }), "id"],
    ["an unknown id", "updateLead", change({ id: nobody }), "id", "NOT_FOUND"],
    ["a number as id", "updateLead", change({ id: 17 }), "id"],
    ["an empty id", "updateLead", change({ id: "" }), "id"],
    ["a slug of 10,000 characters", "updateProject", remake({ id: "a".repeat(10_000) }), "id"],
    ["an unknown slug", "updateProject", remake({ id: "nowhere" }), "id", "NOT_FOUND"],
    ["an unknown project", "createLead", lead({ projectId: "nowhere" }), "projectId", "NOT_FOUND"],
    ["a source that is not a UUID", "createLead", lead({ sourceId: "WEB_DIRECT" }), "sourceId"],
    ["an unknown assignee", "createLead", lead({ assigneeId: nobody }), "assigneeId", "NOT_FOUND"],
    [
      "an assignee outside of the project's organizations",
      "createLead",
      () => ({ projectId: world.project.id, name: "N", assigneeId: world.olga.id }),
      "assigneeId",
      "NOT_FOUND",
    ],
    ["an unknown agent", "createLead", lead({ agent: { id: nobody } }), "agent.id", "NOT_FOUND"],
    ["an agent whose id is not a UUID", "createLead", lead({ agent: { id: "agatha" } }), "agent.id"],
    ["an agent without a name", "createLead", lead({ agent: { email: "new@agent.example" } }), "agent.name"],
    ["an empty agent", "updateLead", change({ agent: {} }), "agent.name"],
    [
      "an agent with an invalid email address",
      "createLead",
      lead({ agent: { name: "A", email: "a b@c.example" } }),
      "agent.email",
    ],
    [
      "an agent with an invalid phone number",
      "createLead",
      lead({ agent: { name: "A", phone: "call me" } }),
      "agent.phone",
    ],
    [
      "a name of an agent that is too long",
      "updateLead",
      change({ agent: { name: "a".repeat(301) } }),
      "agent.name",
    ],
    // text
    ["a name of spaces", "createLead", lead({ name: "  \t " }), "name"],
    ["a name that is null", "updateLead", change({ name: null }), "name"],
    ["a name changed to spaces", "updateLead", change({ name: " " }), "name"],
    ["a name of 301 characters", "updateLead", change({ name: "a".repeat(301) }), "name"],
    ["a name of 200 KB", "createLead", lead({ name: "a".repeat(200_000) }), "name"],
    ["a note of spaces", "createLeadNote", note({ text: "\n " }), "text"],
    ["a note of 200 KB", "createLeadNote", note({ text: "a".repeat(200_000) }), "text"],
    ["a note without its lead", "createLeadNote", () => ({ text: "Hm." }), "leadId"],
    ["an overview of 1,501 characters", "updateProject", remake({ overview: "a".repeat(1501) }), "overview"],
    ["a title that is null", "updateProject", remake({ title: null }), "title"],
    ["an organization of spaces", "createOrganization", organization({ name: " " }), "name"],
    [
      "an organization's name that is null",
      "updateOrganization",
      () => ({ id: world.harbour.id, name: null }),
      "name",
    ],
    [
      "tags over the limit",
      "updateLead",
      change({ tags: Array.from({ length: 51 }, (_, i) => `t${i}`) }),
      "tags",
    ],
    ["a tag of 3,000 characters", "createLead", lead({ tags: ["a".repeat(3000)] }), "tags"],
    ["tags that are null", "updateLead", change({ tags: null }), "tags"],
    // email, phone, URL, places
    ["an email address with spaces", "createLead", lead({ email: "a b@example.com" }), "email"],
    ["an email address without a domain", "updateLead", change({ email: "ada@" }), "email"],
    [
      "an email address of 300 characters",
      "createLead",
      lead({ email: `${"a".repeat(290)}@example.com` }),
      "email",
    ],
    ["a phone number of letters", "createLead", lead({ phone: "call me maybe" }), "phone"],
    ["a phone number that is too short", "createLead", lead({ phone: "12" }), "phone"],
    ["a phone number of 30 digits", "updateLead", change({ phone: "+".padEnd(31, "1") }), "phone"],
    ["a phone number that begins with zero", "createLead", lead({ phone: "+0123456789" }), "phone"],
    [
      "an organization's phone number without a country code",
      "updateOrganization",
      () => ({ id: world.harbour.id, phone: "416 555 0100" }),
      "phone",
    ],
    [
      "a URL with the scheme javascript:",
      "updateProject",
      remake({ websiteUrl: "javascript:alert(1)" }),
      "websiteUrl",
    ],
    [
      "a URL with spaces",
      "updateOrganization",
      () => ({ id: world.harbour.id, websiteUrl: "https://a b.example" }),
      "websiteUrl",
    ],
    [
      "a URL of 3,000 characters",
      "createProject",
      project({ websiteUrl: `https://example.com/${"a".repeat(3000)}` }),
      "websiteUrl",
    ],
    ["an unknown time zone", "createProject", project({ timeZone: "Mars/Olympus" }), "timeZone"],
    ["an offset as time zone", "updateProject", remake({ timeZone: "+3" }), "timeZone"],
    // PostgreSQL would accept them: with the sign reversed, as an abbreviation, or as a POSIX rule.
    ["UTC with an offset", "updateProject", remake({ timeZone: "UTC+5" }), "timeZone"],
    ["an abbreviation", "updateProject", remake({ timeZone: "PST" }), "timeZone"],
    ["a POSIX rule", "updateProject", remake({ timeZone: "EST5EDT4" }), "timeZone"],
    ["a rule that looks like a place", "updateProject", remake({ timeZone: "America/Foo+5" }), "timeZone"],
    ["a time zone that is null", "updateProject", remake({ timeZone: null }), "timeZone"],
    ["an unknown currency", "createProject", project({ currency: "ZZZ" }), "currency"],
    ["a currency of four letters", "createProject", project({ currency: "EURO" }), "currency"],
    ["a country of three letters", "createProject", project({ address: { country: "CAN" } }), "address"],
    ["an unknown country", "createProject", project({ address: { country: "ZZ" } }), "address"],
    [
      "a line of an address of 10,000 characters",
      "updateLead",
      change({ address: { thoroughfare: "a".repeat(10_000) } }),
      "address",
    ],
    ["an invalid language", "updateLead", change({ preferredLanguage: "English!" }), "preferredLanguage"],
    // numbers, days, times
    [
      "more decimals than the currency has",
      "updateProject",
      remake({ reservationFee: "10.001" }),
      "reservationFee",
    ],
    [
      "decimals of a currency without decimals",
      "createProject",
      project({ currency: "JPY", cancellationFee: "10.5" }),
      "cancellationFee",
    ],
    [
      "a budget with more decimals than the currency has",
      "updateLead",
      change({ budgetMin: "1.234" }),
      "budgetMin",
    ],
    ["a negative fee", "updateProject", remake({ reservationFee: "-1" }), "reservationFee"],
    ["a fee out of range", "updateProject", remake({ reservationFee: "9".repeat(25) }), "reservationFee"],
    ["a fee that is not a number", "updateProject", remake({ reservationFee: "ten" }), "reservationFee"],
    ["an infinite fee", "updateProject", remake({ reservationFee: "Infinity" }), "reservationFee"],
    ["budgets in the wrong order", "updateLead", change({ budgetMin: "200", budgetMax: "100" }), null],
    [
      "days in the wrong order",
      "updateProject",
      remake({ salesStartDate: "2027-05-01", completionDate: "2027-04-30" }),
      null,
    ],
    [
      "a day that does not exist",
      "updateProject",
      remake({ salesStartDate: "2027-02-30" }),
      "salesStartDate",
    ],
    [
      "a time that does not exist",
      "createLead",
      lead({ registeredAt: "2026-02-30T00:00:00Z" }),
      "registeredAt",
    ],
    ["a time without a zone", "createLead", lead({ registeredAt: "2026-02-20T00:00:00" }), "registeredAt"],
    [
      "a registration in the future",
      "createLead",
      lead({ registeredAt: "2999-01-01T00:00:00Z" }),
      "registeredAt",
    ],
    [
      "an expiration of no hours",
      "updateProject",
      remake({ reservationExpiration: 0 }),
      "reservationExpiration",
    ],
    [
      "an expiration that is null",
      "updateProject",
      remake({ reservationExpiration: null }),
      "reservationExpiration",
    ],
    ["rescission days below zero", "createProject", project({ rescissionDays: -1 }), "rescissionDays"],
    [
      "an integer beyond 32 bits",
      "updateProject",
      remake({ rescissionDays: 3_000_000_000 }),
      "rescissionDays",
    ],
    // enumerations, booleans, codes
    ["an unknown status", "updateLead", change({ status: "HAPPY" }), "status"],
    ["a status that is null", "updateLead", change({ status: null }), "status"],
    ["a project's status that is null", "updateProject", remake({ status: null }), "status"],
    ["a visibility that is null", "updateProject", remake({ visibility: null }), "visibility"],
    ["a boolean that is text", "updateLead", change({ isAgent: "yes" }), "isAgent"],
    ["an unknown field", "updateLead", change({ colour: "red" }), "colour"],
    ["a code in lower case", "createLeadSource", source({ code: "web direct" }), "code"],
    ["a code that already exists", "createLeadSource", source({ code: "WEB_DIRECT" }), "code", "CONFLICT"],
    [
      "a reason that already exists, in another case",
      "createFalloutReason",
      reason({ name: "PRICE TOO HIGH" }),
      "name",
      "CONFLICT",
    ],
    ["a reason that applies to nothing", "createFalloutReason", reason({ appliesTo: [] }), "appliesTo"],
    [
      "a reason that applies to something unknown",
      "createFalloutReason",
      reason({ appliesTo: ["EVERYTHING"] }),
      "appliesTo[0]",
    ],
    ["a text as sequence", "createFalloutReason", reason({ sequence: "first" }), "sequence"],
    // slugs
    [
      "a slug in use",
      "updateProject",
      () => ({ id: world.park.id, slug: world.project.slug }),
      "slug",
      "CONFLICT",
    ],
    ["a slug that looks like an id", "updateProject", remake({ slug: nobody }), "slug"],
    ["a slug with spaces and capitals", "createProject", project({ slug: "My Project" }), "slug"],
    ["a slug of 101 characters", "createProject", project({ slug: "a".repeat(101) }), "slug"],
    ["a slug that is null", "updateProject", remake({ slug: null }), "slug"],
    [
      "an organization's slug in use",
      "createOrganization",
      () => ({ name: "New", slug: world.summit.slug }),
      "slug",
      "CONFLICT",
    ],
    [
      "an organization's slug that looks like an id",
      "updateOrganization",
      () => ({ id: world.harbour.id, slug: nobody }),
      "slug",
    ],
  ])("%s", async (_what, operation, input, field, code = "BAD_USER_INPUT") => {
    const expected = field === null ? { code } : { code, field };
    expect(await refusedAs(world.owen, operation, input(), expected)).toMatchObject(expected);
  });
});

describe("refuses values that already exist", () => {
  const cases: Case[] = [
    [
      "a stale version",
      "updateLead",
      change({ name: "Old news", expectedVersion: 1 }),
      null,
      "VERSION_MISMATCH",
    ],
    ["a version from the future", "updateProject", remake({ expectedVersion: 99 }), null, "VERSION_MISMATCH"],
    [
      "the email address of another lead",
      "updateLead",
      change({ email: "SAMS@example.com" }),
      "email",
      "CONFLICT",
    ],
    ["a lead lost without a reason", "updateLead", change({ status: "LOST" }), "falloutReasonId"],
    [
      "a lead lost for a reason of reservations",
      "updateLead",
      () => change({ status: "LOST", falloutReasonId: ids.reservation_reason })(),
      "falloutReasonId",
    ],
    [
      "a lead that is set to CONVERTED",
      "updateLead",
      change({ status: "CONVERTED" }),
      "status",
      "INVALID_TRANSITION",
    ],
    ["a new lead that is LOST", "createLead", lead({ status: "LOST" }), "status", "INVALID_TRANSITION"],
    [
      "a project that skips a status",
      "updateProject",
      remake({ status: "COMPLETED" }),
      "status",
      "INVALID_TRANSITION",
    ],
    [
      "a new project that is archived",
      "createProject",
      project({ status: "ARCHIVED" }),
      "status",
      "INVALID_TRANSITION",
    ],
    ["deleting a source in use", "deleteLeadSource", () => ({ id: ids.source }), null, "CONFLICT"],
    [
      "deleting a source of every project",
      "deleteLeadSource",
      () => ({ id: ids.system_source }),
      null,
      "CONFLICT",
    ],
    [
      "deleting a source of every project, with another for its leads",
      "deleteLeadSource",
      () => ({ id: ids.system_source, reassignToId: ids.source }),
      null,
      "CONFLICT",
    ],
    [
      "reassigning to the source itself",
      "deleteLeadSource",
      () => ({ id: ids.source, reassignToId: ids.source }),
      "reassignToId",
      "NOT_FOUND",
    ],
    [
      "reassigning to a source of another project",
      "deleteLeadSource",
      () => ({ id: ids.source, reassignToId: ids.archived_source }),
      "reassignToId",
      "NOT_FOUND",
    ],
    [
      "reassigning to an invalid id",
      "deleteLeadSource",
      () => ({ id: ids.source, reassignToId: "RADIO" }),
      "reassignToId",
    ],
    ["deleting a project with leads", "deleteProject", () => ({ id: world.project.id }), null, "CONFLICT"],
    [
      "updating an archived project",
      "updateProject",
      () => ({ id: archived.id, title: "New Oaks" }),
      null,
      "PROJECT_ARCHIVED",
    ],
    ["deleting an archived project", "deleteProject", () => ({ id: archived.id }), null, "PROJECT_ARCHIVED"],
    [
      "a lead in an archived project",
      "createLead",
      () => ({ projectId: archived.id, name: "Nobody" }),
      null,
      "PROJECT_ARCHIVED",
    ],
    [
      "changing a lead in an archived project",
      "updateLead",
      () => ({ id: archivedLead, name: "Larry" }),
      null,
      "PROJECT_ARCHIVED",
    ],
    [
      "an agent for a lead in an archived project",
      "updateLead",
      () => ({ id: archivedLead, agent: { name: "New" } }),
      null,
      "PROJECT_ARCHIVED",
    ],
    [
      "deleting a lead in an archived project",
      "deleteLead",
      () => ({ id: archivedLead }),
      null,
      "PROJECT_ARCHIVED",
    ],
    [
      "a note in an archived project",
      "createLeadNote",
      () => ({ leadId: archivedLead, text: "Hm." }),
      null,
      "PROJECT_ARCHIVED",
    ],
    [
      "changing a note in an archived project",
      "updateLeadNote",
      () => ({ id: archivedNote, text: "Hm." }),
      null,
      "PROJECT_ARCHIVED",
    ],
    [
      "deleting a note in an archived project",
      "deleteLeadNote",
      () => ({ id: archivedNote }),
      null,
      "PROJECT_ARCHIVED",
    ],
    [
      "a source in an archived project",
      "createLeadSource",
      () => ({ projectId: archived.id, name: "New" }),
      null,
      "PROJECT_ARCHIVED",
    ],
    [
      "changing a source in an archived project",
      "updateLeadSource",
      () => ({ id: ids.archived_source, name: "New" }),
      null,
      "PROJECT_ARCHIVED",
    ],
    [
      "a reason in an archived project",
      "createFalloutReason",
      () => ({ projectId: archived.id, name: "New" }),
      null,
      "PROJECT_ARCHIVED",
    ],
    [
      "deleting a reason in an archived project",
      "deleteFalloutReason",
      () => ({ id: ids.archived_reason }),
      null,
      "PROJECT_ARCHIVED",
    ],
    [
      "restoring an archived project to another status",
      "updateProject",
      () => ({ id: archived.id, status: "DRAFT" }),
      "status",
      "INVALID_TRANSITION",
    ],
  ];
  test.each(cases)("%s", async (_what, operation, input, field, code = "BAD_USER_INPUT") => {
    const refusal = await refusedAs(
      world.owen,
      operation,
      input(),
      field === null ? { code } : { code, field },
    );
    expect(refusal.code).toBe(code);
  });

  test("VERSION_MISMATCH contains the current version", async () => {
    const { lead: now } = await world.owen.get(`{ lead(id: "${world.leads.open.id}") { version } }`);
    const expected = { code: "VERSION_MISMATCH", currentVersion: now.version };
    const input = change({ name: "Old", expectedVersion: now.version - 1 })();
    expect(await refusedAs(world.owen, "updateLead", input, expected)).toMatchObject(expected);
  });

  test("INVALID_TRANSITION contains from, to and the allowed transitions", async () => {
    const byHand = {
      code: "INVALID_TRANSITION",
      from: "NEW",
      to: "CONVERTED",
      allowedTransitions: [
        "COLD",
        "CONTACTED",
        "HOT",
        "LOST",
        "NEGOTIATING",
        "RESERVED",
        "UNQUALIFIED",
        "WARM",
      ],
    };
    const input = change({ status: "CONVERTED" })();
    expect(await refusedAs(world.owen, "updateLead", input, byHand)).toMatchObject(byHand);
    const elsewhere = { from: "ARCHIVED", to: "DRAFT", allowedTransitions: ["SELLING"] };
    const back = { id: archived.id, status: "DRAFT" };
    expect(await refusedAs(world.owen, "updateProject", back, elsewhere)).toMatchObject(elsewhere);
  });

  test("CONFLICT names the dependent records or the existing record", async () => {
    const inUse = await refusedAs(
      world.owen,
      "deleteLeadSource",
      { id: ids.source },
      { dependents: { leads: 1 } },
    );
    expect(inUse.message).toContain("1 lead");
    expect(inUse.message).toContain("reassignToId");
    await refusedAs(world.owen, "deleteProject", { id: world.quiet.id }, { dependents: { leads: 2 } });
    await refusedAs(world.owen, "createLead", lead({ email: "Open@Example.com" })(), {
      code: "CONFLICT",
      field: "email",
      existingId: world.leads.open.id,
    });
    await run(world.owen, "updateLead", {
      id: world.leads.sams.id,
      status: "LOST",
      falloutReasonId: ids.reason,
    });
    await refusedAs(
      world.owen,
      "deleteFalloutReason",
      { id: ids.reason },
      { code: "CONFLICT", dependents: { leads: 1 } },
    );
  });
});

describe("invalid requests", () => {
  const refusals: [string, string, Record<string, unknown> | undefined, Record<string, unknown>][] = [
    [
      "an id that is no UUID",
      `{ lead(id: "nobody") { id } }`,
      undefined,
      { code: "BAD_USER_INPUT", field: "id" },
    ],
    [
      "a slug of 10,000 characters",
      `query ($id: ID!) { project(id: $id) { id } }`,
      { id: "a".repeat(10_000) },
      { code: "BAD_USER_INPUT", field: "id" },
    ],
    [
      "first below zero",
      "{ leads(first: -1) { id } }",
      undefined,
      { code: "BAD_USER_INPUT", field: "first" },
    ],
    [
      "first over 1000",
      "{ projects(first: 1001) { id } }",
      undefined,
      { code: "LIMIT_EXCEEDED", field: "first", limit: 1000 },
    ],
    [
      "an unknown status in a filter",
      "{ leads(filter: { status: [HAPPY] }) { id } }",
      undefined,
      { code: "BAD_USER_INPUT", allowed: expect.arrayContaining(["NEW", "CONTACTED", "HOT", "CONVERTED"]) },
    ],
    [
      "an unknown status in a variable",
      "query ($f: LeadsFilter) { leads(filter: $f) { id } }",
      { f: { status: ["NEW", "HAPPY"] } },
      {
        code: "BAD_USER_INPUT",
        field: "status[1]",
        allowed: expect.arrayContaining(["NEW", "CONTACTED", "HOT", "CONVERTED"]),
      },
    ],
    [
      "a status that is not a string",
      "query ($f: LeadsFilter) { leads(filter: $f) { id } }",
      { f: { status: 5 } },
      { code: "BAD_USER_INPUT", allowed: expect.arrayContaining(["NEW"]) },
    ],
    [
      "a status between quotes, in the document",
      '{ leads(filter: { status: ["NEW"] }) { id } }',
      undefined,
      { code: "BAD_USER_INPUT", allowed: expect.arrayContaining(["NEW"]) },
    ],
    [
      "null where a value is required",
      "query ($id: ID!) { lead(id: $id) { id } }",
      { id: null },
      { code: "BAD_USER_INPUT", field: "id" },
    ],
    [
      "an invalid time in a filter",
      `{ leads(filter: { registeredAt: { from: "yesterday" } }) { id } }`,
      undefined,
      { code: "BAD_USER_INPUT", field: "filter.registeredAt.from" },
    ],
    [
      "a sequence that is not a number",
      `{ eventsConnection(filter: { afterSequence: "x" }) { totalCount } }`,
      undefined,
      { code: "BAD_USER_INPUT", field: "afterSequence" },
    ],
    [
      "a sequence out of range",
      `{ eventsConnection(filter: { afterSequence: "${"9".repeat(40)}" }) { totalCount } }`,
      undefined,
      { code: "BAD_USER_INPUT", field: "afterSequence" },
    ],
    [
      "a project filter that is neither an id nor a slug",
      "query ($f: LeadsFilter) { leads(filter: $f) { id } }",
      { f: { projectIds: ["x".repeat(200)] } },
      { code: "BAD_USER_INPUT", field: "projectIds" },
    ],
    [
      "an invalid decimal in the document",
      `mutation { updateProject(input: { id: "x", reservationFee: "ten" }) { id } }`,
      undefined,
      { code: "BAD_USER_INPUT", field: "reservationFee" },
    ],
    [
      "a missing required field",
      `mutation { createLead(input: { name: "X" }) { id } }`,
      undefined,
      { code: "BAD_USER_INPUT", field: "projectId" },
    ],
    [
      "NUL in text",
      `mutation ($i: UpdateLeadInput!) { updateLead(input: $i) { id } }`,
      { i: { id: "x", name: "a\0b" } },
      { code: "BAD_USER_INPUT" },
    ],
    [
      "NUL in a filter",
      `query ($q: String) { leads(filter: { query: $q }) { id } }`,
      { q: "\0" },
      { code: "BAD_USER_INPUT" },
    ],
    [
      "half a surrogate in text",
      `mutation ($i: UpdateLeadInput!) { updateLead(input: $i) { id } }`,
      { i: { id: "x", name: "a\ud800b" } },
      { code: "BAD_USER_INPUT" },
    ],
  ];
  test.each(refusals)("%s", async (_what, query, variables, expected) => {
    await expectUnchanged(world, async () => {
      const { message, ...refusal } = await world.owen.refused(query, variables);
      expect(refusal).toMatchObject(expected);
      expectSentence(message);
    });
  });

  test("an unknown token", async () => {
    const stranger = world.person("plat_nonsense");
    const answer = await stranger.ask("{ viewer { id } }");
    expect(answer.status).toBe(401);
    expect(answer.errors![0]!.extensions.code).toBe("UNAUTHENTICATED");
  });

  test.each([
    ["broken JSON", "application/json", '{"query": ', 400],
    ["another media type", "text/plain", "{ viewer { id } }", 415],
    ["no query", "application/json", "{}", 400],
  ])("%s", async (_what, type, body, status) => {
    const answer = await world.post(body, { "content-type": type });
    expect(answer.status).toBe(status);
    expectSentence(answer.errors![0]!.message);
  });
});

describe("duplicates of a lead's email address", () => {
  const again = (input: Record<string, unknown>) =>
    run(world.owen, "createLead", {
      projectId: world.project.id,
      name: "Again",
      email: " OPEN@example.com ",
      ...input,
    });

  test("RETURN_EXISTING returns the unchanged lead", async () => {
    const answer = await expectUnchanged(world, () =>
      again({ onDuplicate: "RETURN_EXISTING", phone: "+14165550111" }),
    );
    expect(answer.data.createLead.id).toBe(world.leads.open.id);
  });

  test("MERGE only fills empty columns", async () => {
    const read = `{ lead(id: "${world.leads.open.id}") { name phone company version } }`;
    await run(world.owen, "updateLead", { id: world.leads.open.id, company: "Kept" });
    const before = (await world.owen.get(read)).lead;
    const answer = await again({ onDuplicate: "MERGE", phone: "+14165550111", company: "Lost" });
    expect(answer.data.createLead.id).toBe(world.leads.open.id);
    expect((await world.owen.get(read)).lead).toEqual({
      name: before.name,
      phone: "+14165550111",
      company: "Kept",
      version: before.version + 1,
    });
    await expectUnchanged(world, () => again({ onDuplicate: "MERGE", phone: "+14165550222" }));
  });

  test.each(["ERROR", "RETURN_EXISTING", "MERGE"])(
    "of concurrent requests (%s), one lead results",
    async (onDuplicate) => {
      const email = `same.${onDuplicate.toLowerCase()}@example.com`;
      const answers = await Promise.all(
        Array.from({ length: 12 }, () =>
          run(world.owen, "createLead", { projectId: world.project.id, name: "Twin", email, onDuplicate }),
        ),
      );
      const made = new Set(answers.flatMap((answer) => answer.data?.createLead?.id ?? []));
      expect(made.size).toBe(1);
      const codes = answers.flatMap((answer) => answer.errors?.map((error) => error.extensions) ?? []);
      expect(codes).toHaveLength(onDuplicate === "ERROR" ? 11 : 0);
      for (const code of codes) expect(code).toMatchObject({ code: "CONFLICT", existingId: [...made][0] });
      const { leadsConnection } = await world.owen.get(
        `{ leadsConnection(filter: { email: "${email}" }) { totalCount } }`,
      );
      expect(leadsConnection.totalCount).toBe(1);
    },
  );
});

describe("normalization", () => {
  test("a phone number without a country code gets that of the project's country", async () => {
    const germany = await createProject(world.owen, {
      organizationId: world.harbour.id,
      title: "Hafen",
      address: { locality: "Hamburg", country: "DE" },
    });
    const phoneOf = async (projectId: string, phone: string) => {
      const { id } = await createLead(world.owen, { projectId, name: "Caller", phone });
      return (await world.owen.get(`{ lead(id: "${id}") { phone } }`)).lead.phone;
    };
    expect(await phoneOf(world.project.id, "(416) 555-0199")).toBe("+14165550199");
    expect(await phoneOf(germany.id, "040 / 123456-7")).toBe("+49401234567");
    expect(await phoneOf(germany.id, "+1 416 555 0199")).toBe("+14165550199");
    expect(await phoneOf(germany.id, "0043 1 2345678")).toBe("+4312345678");
  });

  test("so does that of an agent", async () => {
    const { createLead: made } = await world.owen
      .get(
        `mutation ($id: ID!) { createProject(input: { organizationId: $id, title: "Bern", address: { country: "CH" } }) { id } }`,
        { id: world.harbour.id },
      )
      .then(({ createProject: bern }) =>
        world.owen.get(
          `mutation ($id: ID!) { createLead(input: { projectId: $id, name: "L", agent: { name: "Beat", phone: "031 123 45 67" } }) { agent { phone } } }`,
          { id: bern.id },
        ),
      );
    expect(made.agent.phone).toBe("+41311234567");
  });

  test("text is trimmed, empty text becomes null, and email addresses are lower-cased", async () => {
    const { id } = await createLead(world.owen, {
      projectId: world.project.id,
      name: "  Tess  Trim ",
      company: "  ",
      email: " Tess@EXAMPLE.com ",
    });
    const data = await world.owen.get(`{ lead(id: "${id}") { name company email } }`);
    expect(data.lead).toEqual({ name: "Tess  Trim", company: null, email: "tess@example.com" });
  });

  test("deleteLeadSource moves leads, buyers and trackers to the other source", async () => {
    const buyer = await createBuyer(world.owen, world.project);
    // As for a buyer that was converted from a lead.
    await world.owner.query("update app_public.buyers set source_id = $2 where id = $1", [buyer, ids.source]);
    const tracker = await createIn(world.owen)("createTracker", {
      projectId: world.project.id,
      name: "Post",
      kind: "LINK",
      destinationUrl: "https://plat.example",
      leadSourceId: ids.source,
    });
    const data = await world.owen.get(
      `mutation ($input: DeleteLeadSourceInput!) { deleteLeadSource(input: $input) { id deleted reassignedLeads reassignedBuyers project { id } } }`,
      { input: { id: ids.source, reassignToId: ids.other_source } },
    );
    expect(data.deleteLeadSource).toEqual({
      id: ids.source,
      deleted: true,
      reassignedLeads: 1,
      reassignedBuyers: 1,
      project: { id: world.project.id },
    });
    const { lead: moved } = await world.owen.get(
      `{ lead(id: "${world.leads.open.id}") { source leadSource { id name leadCount } } }`,
    );
    expect(moved).toEqual({
      source: "RADIO",
      leadSource: { id: ids.other_source, name: "Radio", leadCount: 1 },
    });
    const { rows } = await world.owner.query(
      "select b.source_id as buyer, t.lead_source_id as tracker from app_public.buyers b, app_public.trackers t where b.id = $1 and t.id = $2",
      [buyer, tracker],
    );
    expect(rows).toEqual([{ buyer: ids.other_source, tracker: ids.other_source }]);
  });
});

describe("random input", () => {
  /** A generator of pseudorandom numbers in [0, 1), determined by its seed. */
  function random(seed: number): () => number {
    let state = seed;
    return () => {
      state = (state * 1_664_525 + 1_013_904_223) % 4_294_967_296;
      return state / 4_294_967_296;
    };
  }
  const samples: unknown[] = [
    null,
    "",
    " ",
    "a",
    "'; drop table leads; --",
    "\u0000",
    "\ud83d",
    "😀".repeat(80),
    "x".repeat(5000),
    "\u202e\u200f",
    "%",
    "\\",
    "{}",
    "[]",
    "{1,2}",
    "(,,)",
    "null",
    "true",
    "NaN",
    "Infinity",
    "-Infinity",
    "1e400",
    "0x10",
    "-0",
    "1.5",
    "00000000-0000-0000-0000-000000000000",
    "2026-02-30",
    "0000-00-00",
    "294277-01-01T00:00:00Z",
    "0001-01-01T00:00:00Z",
    "9999-12-31T23:59:60Z",
    "2026-01-01T00:00:00+99:99",
    "infinity",
    "epoch",
    "now",
    0,
    -1,
    1,
    1.5,
    1e21,
    2 ** 31,
    -(2 ** 31) - 1,
    Number.MAX_SAFE_INTEGER,
    true,
    false,
    [],
    {},
    [null],
    [[]],
    [[["x"]]],
    { a: null },
    { a: { b: [1] } },
    "a@b.co",
    "+14165550100",
    "USD",
    "CA",
    "en",
    "UTC",
    "https://example.com",
    "SELLING",
    "NEW",
    "LOST",
    "PUBLIC",
  ];

  describe.each([
    "createLead",
    "updateLead",
    "createProject",
    "updateProject",
    "createLeadNote",
    "createLeadSource",
    "createFalloutReason",
    "updateOrganization",
    "createOrganization",
  ])("%s", (field) => {
    testWithSeeds(`${field} never fails as ours, and never tells how it is made`, async (seed) => {
      const type = `${field[0]!.toUpperCase()}${field.slice(1)}Input`;
      const { __type: described } = await world.owen.get(
        `{ __type(name: "${type}") { inputFields { name } } }`,
      );
      const valid: Record<string, unknown> = {
        createLead: lead({})(),
        updateLead: change({})(),
        createProject: project({})(),
        updateProject: { id: world.park.id },
        createLeadNote: note({})(),
        createLeadSource: source({})(),
        createFalloutReason: reason({})(),
        updateOrganization: { id: world.harbour.id },
        createOrganization: organization({})(),
      }[field] as Record<string, unknown>;
      const next = random(seed * field.length * 7919);
      const pick = () => samples[Math.floor(next() * samples.length)];
      for (const { name } of described.inputFields) {
        for (let tries = 0; tries < 6; tries++) {
          const input = {
            ...valid,
            [name]: pick(),
            ...(next() < 0.2 ? { address: { locality: pick(), country: pick() } } : {}),
          };
          const answer = await run(world.owen, field, input);
          for (const error of answer.errors ?? []) {
            expect([JSON.stringify(input).slice(0, 300), error.extensions.code]).not.toContain("INTERNAL");
            expect(error.message).not.toMatch(
              /app_(public|hidden|private)|violates|plpgsql|invalid input syntax/i,
            );
          }
          expect(answer.status).toBeLessThan(500);
        }
      }
    });
  });

  testWithSeeds("filters never fail as ours", async (seed) => {
    const next = random(42 * seed);
    const pick = () => samples[Math.floor(next() * samples.length)];
    for (const [list, type] of [
      ["leads", "LeadsFilter"],
      ["projects", "ProjectsFilter"],
      ["events", "EventsFilter"],
    ] as const) {
      const { __type: described } = await world.owen.get(
        `{ __type(name: "${type}") { inputFields { name } } }`,
      );
      for (const { name } of described.inputFields)
        for (let tries = 0; tries < 15; tries++) {
          const value = tries % 3 === 0 ? [pick()] : tries % 3 === 1 ? { from: pick(), to: pick() } : pick();
          const answer = await world.owen.ask(
            `query ($f: ${type}) { ${list}(filter: $f) { id } ${list}Connection(filter: $f) { totalCount } }`,
            { f: { [name]: value } },
          );
          for (const error of answer.errors ?? [])
            expect([name, JSON.stringify(value).slice(0, 200), error.extensions.code]).not.toContain(
              "INTERNAL",
            );
        }
    }
  });
});
