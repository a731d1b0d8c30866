/** Records related to leads and buyers: contacts, agreements, appointments, calls, notes, tasks, agents. */
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import type { Person } from "../harness/api.ts";
import { passTime } from "../harness/clock.ts";
import { createBuyer, invite } from "../harness/deals.ts";
import { join } from "../harness/world.ts";
import { createLead, createProject, startPortfolio, type Portfolio } from "../harness/portfolio.ts";
import { type Create, createIn, mutationOf } from "../harness/records.ts";
import { expectUnchanged } from "../harness/expectUnchanged.ts";

let world: Portfolio;
let owen: Person;
let create: Create;
let lead: string;
let buyer: string;

beforeAll(async () => {
  world = await startPortfolio();
  owen = world.owen;
  create = createIn(owen);
  lead = world.leads.open.id;
  buyer = await createBuyer(owen, world.project, { leadId: lead });
});
afterAll(() => world.stop());

/** Executes an operation and returns the requested fields. */
async function run(field: string, input: Record<string, unknown>, members = "id", person = owen) {
  const data = await person.get(mutationOf(field, `{ ${members} }`), {
    input,
  });
  return data[field];
}

/** The refusal of an operation that must change nothing. */
function refused(field: string, input: Record<string, unknown>, person = owen) {
  return expectUnchanged(world, () => person.refused(mutationOf(field, "{ __typename }"), { input }));
}

const at = (hour: number, day = 10) =>
  `2031-03-${String(day).padStart(2, "0")}T${String(hour).padStart(2, "0")}:00:00.000Z`;
/** For a page of buyers with unit, lead, deposits, agreements and appointments. */
const STATEMENTS = 2;
let days = 0;
/** Hours of a day that no other test uses. */
function slot(from = 9, to = 10) {
  const day = 1 + (days++ % 28);
  return { startsAt: at(from, day), endsAt: at(to, day) };
}

const children: [string, () => Record<string, unknown>][] = [
  ["createContact", () => ({ name: "Cleo Contact" })],
  ["createAgreement", () => ({ type: "PURCHASE", title: "Contract" })],
  ["createAppointment", () => ({ type: "PHONE", ...slot() })],
  ["createPhoneCall", () => ({ direction: "INBOUND" })],
  ["createLeadNote", () => ({ text: "Hello." })],
  ["createDeposit", () => ({ title: "First deposit", amount: 5000 })],
];

describe.each(children)("%s", (field, input) => {
  test("belongs to a lead or to a buyer, and to their project", async () => {
    // A note has its project only through its lead.
    const project = field === "createLeadNote" ? "" : "project { id }";
    const itsProject = project !== "" && { project: { id: world.project.id } };
    const ofLead = await run(field, { leadId: lead, ...input() }, `id lead { id } ${project} version`);
    expect(ofLead).toMatchObject({ lead: { id: lead }, ...itsProject, version: 1 });
    expect(await run(field, { buyerId: buyer, ...input() }, `id lead { id } ${project}`)).toMatchObject({
      lead: null,
      ...itsProject,
    });
  });

  test("refuses both and neither", async () => {
    for (const both of [{ leadId: lead, buyerId: buyer }, {}, { leadId: null, buyerId: null }])
      expect(await refused(field, { ...both, ...input() })).toMatchObject({
        code: "BAD_USER_INPUT",
        field: "leadId",
        message: "Specify either the lead or the buyer.",
      });
  });

  test("refuses a lead that the viewer cannot see, and an unknown one", async () => {
    for (const leadId of [world.leads.foreign.id, "00000000-0000-7000-8000-000000000000"])
      expect(await refused(field, { leadId, ...input() })).toMatchObject({
        code: "NOT_FOUND",
        field: "leadId",
      });
    expect(await refused(field, { buyerId: lead, ...input() })).toMatchObject({
      code: "NOT_FOUND",
      field: "buyerId",
    });
  });

  test("cannot be written in an archived project", async () => {
    const archived = await createProject(owen, {
      organizationId: world.harbour.id,
      title: `Archive of ${field}`,
    });
    const inside = await createLead(owen, { projectId: archived.id, name: "Late Larry" });
    const buyerInside = await createBuyer(owen, archived);
    const id = await create(field, { leadId: inside.id, ...input() });
    await run("updateProject", { id: archived.id, status: "ARCHIVED" });
    const type = field.replace("create", "");
    expect((await refused(field, { leadId: inside.id, ...input() })).code).toBe("PROJECT_ARCHIVED");
    expect((await refused(field, { buyerId: buyerInside, ...input() })).code).toBe("PROJECT_ARCHIVED");
    expect((await refused(`delete${type}`, { id })).code).toBe("PROJECT_ARCHIVED");
  });

  test("writes an event with the record", async () => {
    const id = await create(field, { leadId: lead, ...input() });
    const { rows } = await world.owner.query(
      "select name, data ->> 'leadId' as lead, project_id, actor_id from app_public.events where subject_id = $1",
      [id],
    );
    expect(rows).toEqual([
      {
        name: expect.stringMatching(/^[a-z_]+\.created$/),
        lead,
        project_id: world.project.id,
        actor_id: owen.id,
      },
    ]);
  });
});

describe("a contact", () => {
  test("normalizes values for the country of the project", async () => {
    const input = {
      leadId: lead,
      role: "CO_BUYER",
      name: "Cora Co",
      firstName: "Cora",
      lastName: "Co",
      legalName: "Cora A. Co",
      email: "Cora@Example.com",
      phone: "416 555 0199",
      company: "Co & Co",
      isSigner: true,
      ownershipPercent: "50",
      notes: "Signs too.",
      address: { locality: "Ottawa" },
    };
    const members =
      "id role name firstName email phone isSigner ownershipPercent notes address { locality country }";
    const contact = await run("createContact", input, members);
    expect(contact).toMatchObject({
      role: "CO_BUYER",
      email: "cora@example.com",
      phone: "+14165550199",
      isSigner: true,
      ownershipPercent: "50",
      address: { locality: "Ottawa", country: "CA" },
    });
    const changed = await run(
      "updateContact",
      { id: contact.id, phone: null, role: "SPOUSE", expectedVersion: 1 },
      members,
    );
    expect(changed).toMatchObject({
      role: "SPOUSE",
      phone: null,
      name: "Cora Co",
      email: "cora@example.com",
    });
    expect((await refused("updateContact", { id: contact.id, name: "Late", expectedVersion: 1 })).code).toBe(
      "VERSION_MISMATCH",
    );
    const { deleteContact } = await owen.get(
      `mutation ($id: ID!) { deleteContact(input: { id: $id }) { id deleted project { id } } }`,
      { id: contact.id },
    );
    expect(deleteContact).toEqual({ id: contact.id, deleted: true, project: { id: world.project.id } });
    const { contacts } = (
      await owen.get("query ($id: ID!) { lead(id: $id) { contacts { id } } }", { id: lead })
    ).lead;
    expect(contacts.map((c: any) => c.id)).not.toContain(contact.id);
  });

  test.each([
    ["a share of nothing", { ownershipPercent: 0 }, "ownershipPercent"],
    ["a share of 101 %", { ownershipPercent: 101 }, "ownershipPercent"],
    ["no name", { name: " " }, "name"],
    ["a bad email address", { email: "cora@" }, "email"],
    ["a bad phone number", { phone: "12" }, "phone"],
  ])("refuses %s", async (_title, input, field) => {
    expect(await refused("createContact", { leadId: lead, name: "Bad", ...input })).toMatchObject({
      code: "BAD_USER_INPUT",
      field,
    });
  });
});

describe("agents", () => {
  test("are created, changed, listed and deleted by the members of an organization", async () => {
    const input = {
      organizationId: world.harbour.slug,
      name: "Ari Agent",
      email: "Ari@Example.com",
      phone: "+1 416 555 0001",
    };
    const agent = await run("createAgent", input, "id name email phone version");
    expect(agent).toMatchObject({ email: "ari@example.com", phone: "+14165550001" });
    expect(await refused("createAgent", input)).toMatchObject({ code: "CONFLICT", field: "email" });
    expect(
      await run("updateAgent", { id: agent.id, brokerage: "Best Brokers" }, "name brokerage", world.max),
    ).toEqual({
      name: "Ari Agent",
      brokerage: "Best Brokers",
    });
    const list = "query ($id: ID!) { organization(id: $id) { agents { id } } }";
    const { organization } = await world.max.get(list, { id: world.harbour.slug });
    expect(organization.agents.map((a: any) => a.id)).toContain(agent.id);
    expect((await refused("createAgent", input, world.olga)).code).toBe("FORBIDDEN");
    expect((await refused("updateAgent", { id: agent.id, name: "No" }, world.olga)).code).toBe("NOT_FOUND");
    const brought = await createLead(owen, {
      projectId: world.project.id,
      name: "Brought",
      agent: { id: agent.id },
    });
    expect((await refused("deleteAgent", { id: agent.id })).code).toBe("CONFLICT");
    await run("deleteLead", { id: brought.id }, "id");
    await run("deleteAgent", { id: agent.id }, "id");
  });
});

test("the agent of a purchase is visible to those who see the purchase, and to its buyer", async () => {
  const { id: leadId } = await createLead(world.sam, { projectId: world.project.id, name: "Sold by Sam" });
  const sold = await createBuyer(owen, world.project, {
    leadId,
    agent: { name: "Ben Broker", email: "Ben@Example.com" },
  });
  const bea = await world.signUp("Bea Buyer");
  await invite(world, sold, bea);
  const ask = "query ($id: ID!) { buyer(id: $id) { agent { name email } } }";
  for (const person of [owen, world.max, world.sam, bea])
    expect((await person.get(ask, { id: sold })).buyer.agent).toEqual({
      name: "Ben Broker",
      email: "ben@example.com",
    });
  expect((await world.bob.get(ask, { id: sold })).buyer).toBeNull();
});

test("a lead with payments or agreements cannot be deleted; other related records are deleted with it", async () => {
  const doomed = await createLead(owen, { projectId: world.project.id, name: "Doomed" });
  const contact = await create("createContact", { leadId: doomed.id, name: "Cleo" });
  const deposit = await create("createDeposit", { leadId: doomed.id, title: "First", amount: 1 });
  expect(await refused("deleteLead", { id: doomed.id })).toMatchObject({
    code: "CONFLICT",
    dependents: { deposits: 1 },
  });
  await run("deleteDeposit", { id: deposit }, "id");
  await run("deleteLead", { id: doomed.id }, "id");
  expect(
    (await owen.get("query ($id: ID!) { contact(id: $id) { id } }", { id: contact })).contact,
  ).toBeNull();
});

describe("an appointment", () => {
  const details = `id status startsAt endsAt timeZone title type location videoUrl notes outcomeNote cancelledAt cancellationReason
    host { id } salesOffice { id } openHouse { id } allowedTransitions { to }`;

  test("has by default the time zone of its project and the place of the sales office", async () => {
    const project = await createProject(owen, {
      organizationId: world.harbour.id,
      title: "Zone",
      timeZone: "America/Toronto",
    });
    const inside = await createLead(owen, { projectId: project.id, name: "Zoe Zone" });
    const openHouse = await create("createOpenHouse", {
      projectId: project.id,
      startsAt: at(8),
      endsAt: at(18),
    });
    const times = slot();
    const made = await run(
      "createAppointment",
      {
        leadId: inside.id,
        type: "IN_PERSON_TOUR",
        title: "Visit",
        hostId: world.max.id,
        openHouseId: openHouse,
        notes: "Key at the door.",
        ...times,
      },
      details,
    );
    expect(made).toMatchObject({
      status: "SCHEDULED",
      timeZone: "America/Toronto",
      host: { id: world.max.id },
      salesOffice: { id: expect.any(String) },
      openHouse: { id: openHouse },
      notes: "Key at the door.",
    });
    expect(new Date(made.startsAt)).toEqual(new Date(times.startsAt));
    const elsewhere = await run(
      "updateAppointment",
      { id: made.id, location: "The café", timeZone: "Europe/Berlin" },
      details,
    );
    expect(elsewhere).toMatchObject({ location: "The café", salesOffice: null, timeZone: "Europe/Berlin" });
  });

  test.each([
    ["an end before its start", { startsAt: at(10), endsAt: at(9) }, "BAD_USER_INPUT", "endsAt"],
    ["no duration", { startsAt: at(10), endsAt: at(10) }, "BAD_USER_INPUT", "endsAt"],
    ["an unknown time zone", { timeZone: "Mars/Olympus" }, "BAD_USER_INPUT", "timeZone"],
    ["a bad address", { videoUrl: "javascript:alert(1)" }, "BAD_USER_INPUT", "videoUrl"],
    ["a completed appointment in the future", { status: "COMPLETED" }, "INVALID_TRANSITION", "status"],
  ])("refuses %s", async (_title, input, code, field) => {
    expect(
      await refused("createAppointment", { leadId: lead, type: "PHONE", ...slot(), ...input }),
    ).toMatchObject({ code, field });
  });

  test("has a host with a role in the project", async () => {
    const host = (hostId: string | null) =>
      refused("createAppointment", { leadId: lead, type: "PHONE", ...slot(), hostId });
    // A member of another organization is invisible; a visible person without a role in the project is
    // refused.
    expect(await host(world.olga.id)).toMatchObject({ code: "NOT_FOUND", field: "hostId" });
    const { createOrganization: other } = await owen.get(
      `mutation { createOrganization(input: { name: "Owens Other" }) { id } }`,
    );
    await join(world, other.id, world.olga, "MEMBER");
    expect(await host(world.olga.id)).toMatchObject({ code: "BAD_USER_INPUT", field: "hostId" });
  });

  test("of an open house belongs to its project", async () => {
    const elsewhere = await create("createOpenHouse", {
      projectId: world.quiet.id,
      startsAt: at(8),
      endsAt: at(18),
    });
    expect(
      await refused("createAppointment", {
        leadId: lead,
        type: "OPEN_HOUSE",
        openHouseId: elsewhere,
        ...slot(),
      }),
    ).toMatchObject({ code: "NOT_FOUND", field: "openHouseId" });
  });

  test("an update to an end before the start is refused", async () => {
    const id = await create("createAppointment", {
      leadId: lead,
      type: "PHONE",
      startsAt: at(9),
      endsAt: at(10),
    });
    expect(await refused("updateAppointment", { id, endsAt: at(8) })).toMatchObject({
      code: "BAD_USER_INPUT",
      field: "endsAt",
    });
    const { appointment } = await owen.get("query ($id: ID!) { appointment(id: $id) { endsAt version } }", {
      id,
    });
    expect([new Date(appointment.endsAt), appointment.version]).toEqual([new Date(at(10)), 1]);
  });

  test("stores when and why it was cancelled", async () => {
    const id = await create("createAppointment", { leadId: lead, type: "PHONE", ...slot() });
    const off = await run(
      "updateAppointment",
      { id, status: "CANCELLED", cancellationReason: "Ill." },
      details,
    );
    expect(off).toMatchObject({
      status: "CANCELLED",
      cancellationReason: "Ill.",
      cancelledAt: expect.any(String),
      allowedTransitions: [],
    });
  });

  test("is listed across the portfolio, the latest first, by status, kind, host, project and time", async () => {
    const project = await createProject(owen, { organizationId: world.harbour.id, title: "Listed" });
    const inside = await createLead(owen, { projectId: project.id, name: "Lis Listed" });
    const ids: string[] = [];
    for (const day of [12, 11, 13])
      ids.push(
        await create("createAppointment", {
          leadId: inside.id,
          type: day === 11 ? "CLOSING" : "PHONE",
          status: day === 13 ? "REQUESTED" : "SCHEDULED",
          hostId: day === 12 ? world.mia.id : null,
          startsAt: at(9, day),
          endsAt: at(10, day),
        }),
      );
    const list = async (filter: Record<string, unknown>) => {
      const data = await owen.get(
        `query ($filter: AppointmentsFilter) { appointments(filter: $filter) { id } appointmentsConnection(filter: $filter) { totalCount nodes { id } } }`,
        { filter: { projectIds: [project.slug], ...filter } },
      );
      const found = data.appointments.map((a: any) => a.id);
      expect(data.appointmentsConnection).toEqual({ totalCount: found.length, nodes: data.appointments });
      return found;
    };
    const [second, first, third] = ids;
    expect(await list({})).toEqual([third, second, first]);
    expect(await list({ status: ["REQUESTED"] })).toEqual([third]);
    expect(await list({ status: [] })).toEqual([]);
    expect(await list({ type: ["CLOSING", "PHONE"] })).toEqual([third, second, first]);
    expect(await list({ hostIds: [world.mia.id] })).toEqual([second]);
    expect(await list({ startsAt: { from: at(0, 11), to: at(9, 12) } })).toEqual([first]);
  });
});

describe("a host", () => {
  const book = (input: Record<string, unknown>, person = owen) =>
    run(
      "createAppointment",
      { leadId: lead, type: "SALES_MEETING", hostId: world.mia.id, ...input },
      "id",
      person,
    );
  const clash = (input: Record<string, unknown>, person = owen) =>
    refused(
      "createAppointment",
      { leadId: lead, type: "SALES_MEETING", hostId: world.mia.id, ...input },
      person,
    );

  test("cannot have overlapping appointments; one may follow the other", async () => {
    const first = await book({ startsAt: at(10, 20), endsAt: at(12, 20) });
    for (const [from, to] of [
      [10, 12],
      [11, 13],
      [9, 11],
      [9, 13],
    ] as const)
      expect(await clash({ startsAt: at(from, 20), endsAt: at(to, 20) })).toMatchObject({
        code: "CONFLICT",
        field: "hostId",
        existingId: first.id,
      });
    const next = await book({ startsAt: at(12, 20), endsAt: at(13, 20) });
    expect(await refused("updateAppointment", { id: next.id, startsAt: at(11, 20) })).toMatchObject({
      code: "CONFLICT",
      existingId: first.id,
    });
    const request = await book({ startsAt: at(10, 20), endsAt: at(11, 20), status: "REQUESTED" });
    expect(await refused("updateAppointment", { id: request.id, status: "SCHEDULED" })).toMatchObject({
      code: "CONFLICT",
      existingId: first.id,
    });
    await run("updateAppointment", { id: first.id, status: "RESCHEDULED" });
    await run("updateAppointment", { id: request.id, status: "SCHEDULED" });
    await run("deleteAppointment", { id: request.id }, "id");
    await book({ startsAt: at(10, 20), endsAt: at(11, 20) });
  });

  test("a refusal does not reveal appointments that the viewer cannot see", async () => {
    await book({ startsAt: at(10, 21), endsAt: at(11, 21), leadId: world.leads.mias.id });
    // max only sees his own leads in that project, and mia hosts for both.
    const refusal = await clash(
      { startsAt: at(10, 21), endsAt: at(11, 21), leadId: world.leads.maxs.id },
      world.max,
    );
    expect(refusal.code).toBe("CONFLICT");
    expect(refusal).not.toHaveProperty("existingId");
  });

  test("40 concurrent requests book one appointment", async () => {
    const leads = await Promise.all(
      Array.from({ length: 5 }, (_, i) =>
        createLead(owen, { projectId: world.project.id, name: `Rival ${i}` }),
      ),
    );
    const answers = await Promise.all(
      Array.from({ length: 40 }, (_, i) =>
        owen.ask(`mutation ($input: CreateAppointmentInput!) { createAppointment(input: $input) { id } }`, {
          input: {
            leadId: leads[i % 5]!.id,
            type: "PHONE",
            hostId: world.mia.id,
            startsAt: at(10, 22),
            endsAt: at(11, 22),
          },
        }),
      ),
    );
    const codes = answers.map((answer) => answer.errors?.[0]?.extensions.code ?? "booked");
    expect(codes.filter((code) => code === "booked")).toHaveLength(1);
    expect(new Set(codes)).toEqual(new Set(["booked", "CONFLICT"]));
    const winner = answers.find((answer) => !answer.errors)!.data.createAppointment.id;
    const inTheWay = answers.flatMap(({ errors }) => errors?.[0]!.extensions.existingId ?? []);
    expect(inTheWay).toEqual(Array.from({ length: 39 }, () => winner));
  });
});

describe("a phone call", () => {
  test("has the number of the lead by default, and a duration", async () => {
    const caller = await createLead(owen, {
      projectId: world.project.id,
      name: "Callie",
      phone: "416 555 0123",
    });
    const members =
      "id user { id } direction status outcome fromNumber toNumber durationSeconds recordingUrl tracker { id }";
    const call = await run(
      "createPhoneCall",
      {
        leadId: caller.id,
        direction: "OUTBOUND",
        fromNumber: "+14165550000",
        startedAt: "2026-01-05T10:00:00Z",
        endedAt: "2026-01-05T10:02:05Z",
      },
      members,
    );
    expect(call).toEqual({
      id: call.id,
      user: { id: owen.id },
      direction: "OUTBOUND",
      status: "COMPLETED",
      outcome: null,
      fromNumber: "+14165550000",
      toNumber: "+14165550123",
      durationSeconds: 125,
      recordingUrl: null,
      tracker: null,
    });
    expect(
      (await run("createPhoneCall", { leadId: caller.id, direction: "INBOUND", status: "MISSED" }, members))
        .fromNumber,
    ).toBe("+14165550123");
    const updated = await run(
      "updatePhoneCall",
      { id: call.id, outcome: "INTERESTED", recordingUrl: "https://calls.example/1.mp3" },
      members,
    );
    expect(updated).toMatchObject({ outcome: "INTERESTED", recordingUrl: "https://calls.example/1.mp3" });
    await run("deletePhoneCall", { id: call.id }, "id");
  });

  test("has a recording for owners and admins only, which events do not contain", async () => {
    const id = await create("createPhoneCall", {
      leadId: lead,
      direction: "INBOUND",
      recordingUrl: "https://calls.example/2.mp3",
    });
    const ask = "query ($id: ID!) { phoneCall(id: $id) { recordingUrl } }";
    for (const [person, url] of [
      [owen, "https://calls.example/2.mp3"],
      [world.ada, "https://calls.example/2.mp3"],
      [world.max, null],
    ] as const)
      expect((await person.get(ask, { id })).phoneCall.recordingUrl).toBe(url);
    const { rows } = await world.owner.query(
      "select 1 from app_public.events where subject_id = $1 and data::text like '%calls.example%'",
      [id],
    );
    expect(rows).toEqual([]);
  });

  test.each([
    [
      "an end before its start",
      { startedAt: "2026-01-05T10:00:00Z", endedAt: "2026-01-05T09:00:00Z" },
      "endedAt",
    ],
    ["a start in the future", { startedAt: "2099-01-01T00:00:00Z" }, "startedAt"],
    ["a bad number", { toNumber: "+1" }, "toNumber"],
    ["a recording that is not a URL", { recordingUrl: "x" }, "recordingUrl"],
  ])("refuses %s", async (_title, input, field) => {
    expect(await refused("createPhoneCall", { leadId: lead, direction: "INBOUND", ...input })).toMatchObject({
      code: "BAD_USER_INPUT",
      field,
    });
  });

  test("of a tracker belongs to its project", async () => {
    const elsewhere = await create("createTracker", {
      projectId: world.quiet.id,
      name: "Sign",
      kind: "PHONE_NUMBER",
    });
    expect(
      await refused("createPhoneCall", { leadId: lead, direction: "INBOUND", trackerId: elsewhere }),
    ).toMatchObject({
      code: "NOT_FOUND",
      field: "trackerId",
    });
  });
});

describe("an agreement", () => {
  const members = "id status sentAt viewedAt signedAt executedAt declinedAt voidReason";

  test("stores when it was sent, viewed, signed and executed", async () => {
    const { id } = await run("createAgreement", { buyerId: buyer, type: "PURCHASE", title: "Contract" });
    const steps = ["SENT", "VIEWED", "PARTIALLY_SIGNED", "SIGNED", "EXECUTED"];
    let last: Record<string, unknown> = {};
    for (const status of steps) last = await run("updateAgreement", { id, status }, members);
    expect(last).toMatchObject({
      status: "EXECUTED",
      sentAt: expect.any(String),
      viewedAt: expect.any(String),
      signedAt: expect.any(String),
      executedAt: expect.any(String),
      declinedAt: null,
    });
    const { rows } = await world.owner.query(
      "select name from app_public.events where subject_id = $1 order by id",
      [id],
    );
    expect(rows.map((row) => row.name)).toEqual([
      "agreement.created",
      "agreement.sent",
      "agreement.status_changed",
      "agreement.status_changed",
      "agreement.signed",
      "agreement.executed",
    ]);
  });

  test("is voided with a reason, and can only be deleted as a draft", async () => {
    const { id } = await run("createAgreement", {
      leadId: lead,
      type: "NDA",
      title: "Secret",
      status: "SENT",
    });
    expect((await refused("deleteAgreement", { id })).code).toBe("CONFLICT");
    expect(await refused("updateAgreement", { id, status: "VOIDED" })).toMatchObject({
      code: "BAD_USER_INPUT",
      field: "voidReason",
    });
    expect(
      await run("updateAgreement", { id, status: "VOIDED", voidReason: "Wrong name." }, members),
    ).toMatchObject({ voidReason: "Wrong name." });
    const draft = await create("createAgreement", { leadId: lead, type: "NDA", title: "Draft" });
    await run("deleteAgreement", { id: draft }, "id");
  });

  test("expires if it is not signed in time, without any job", async () => {
    const soon = new Date(Date.now() + 3_600_000).toISOString();
    const sent = await create("createAgreement", {
      leadId: lead,
      type: "NDA",
      title: "Soon",
      status: "SENT",
      expiresAt: soon,
    });
    const draft = await create("createAgreement", {
      leadId: lead,
      type: "NDA",
      title: "Draft",
      expiresAt: soon,
    });
    const signed = await create("createAgreement", {
      leadId: lead,
      type: "NDA",
      title: "Signed",
      status: "SIGNED",
      expiresAt: soon,
    });
    expect(
      await refused("createAgreement", {
        leadId: lead,
        type: "NDA",
        title: "Past",
        expiresAt: "2020-01-01T00:00:00Z",
      }),
    ).toMatchObject({
      code: "BAD_USER_INPUT",
      field: "expiresAt",
    });
    await passTime(world.owner, "2 hours");
    const status = async (id: string) =>
      (await owen.get("query ($id: ID!) { agreement(id: $id) { status } }", { id })).agreement.status;
    expect([await status(sent), await status(draft), await status(signed)]).toEqual([
      "EXPIRED",
      "DRAFT",
      "SIGNED",
    ]);
    expect((await refused("updateAgreement", { id: sent, status: "VIEWED" })).code).toBe(
      "INVALID_TRANSITION",
    );
  });
});

describe("a note and a task of a buyer", () => {
  test("are changed like those of a lead", async () => {
    const note = await run("createLeadNote", { buyerId: buyer, text: "Wants blinds." }, "id text editedAt");
    expect(
      await run(
        "updateLeadNote",
        { id: note.id, text: "Wants shutters.", pinned: true },
        "text pinned editedAt",
      ),
    ).toMatchObject({
      text: "Wants shutters.",
      pinned: true,
      editedAt: expect.any(String),
    });
    const task = await run(
      "createTask",
      { buyerId: buyer, title: "Order shutters" },
      "id project { id } organization { id }",
    );
    expect(task).toMatchObject({ project: { id: world.project.id }, organization: { id: world.harbour.id } });
    expect(
      await run("updateTask", { id: task.id, status: "COMPLETED" }, "status completedBy { id }"),
    ).toEqual({
      status: "COMPLETED",
      completedBy: { id: owen.id },
    });
    expect(await refused("createTask", { leadId: lead, buyerId: buyer, title: "Both" })).toMatchObject({
      code: "BAD_USER_INPUT",
      field: "buyerId",
    });
  });
});

describe("the lists of a purchase", () => {
  test("contain its own rows and those of its lead", async () => {
    const from = await createLead(owen, { projectId: world.project.id, name: "From Fred" });
    const purchase = await createBuyer(owen, world.project, { leadId: from.id });
    for (const [field, input] of children) {
      await create(field, { leadId: from.id, ...input() });
      await create(field, { buyerId: purchase, ...input() });
    }
    await create("createTask", { leadId: from.id, title: "One" });
    await create("createTask", { buyerId: purchase, title: "Two" });
    const parts = ["contacts", "agreements", "appointments", "phoneCalls", "notes", "deposits", "tasks"];
    const lists = parts.map((list) => `${list} { id lead { id } buyer { id } }`).join(" ");
    const data = await owen.get(
      `query ($lead: ID!, $buyer: ID!) { lead(id: $lead) { ${lists} } buyer(id: $buyer) { ${lists} } }`,
      {
        lead: from.id,
        buyer: purchase,
      },
    );
    for (const list of parts) {
      const ofLead = expect.objectContaining({ lead: { id: from.id }, buyer: null });
      const ofBuyer = expect.objectContaining({ lead: null, buyer: { id: purchase } });
      expect([list, data.lead[list]]).toEqual([list, [ofLead]]);
      expect([list, data.buyer[list]]).toEqual([list, expect.arrayContaining([ofLead, ofBuyer])]);
      expect([list, data.buyer[list].length]).toEqual([list, 2]);
    }
  });

  test("of many purchases take as many statements as those of few", async () => {
    const project = await createProject(owen, { organizationId: world.harbour.id, title: "Many" });
    const five = async () => {
      for (let i = 0; i < 5; i++) {
        const unitId = await create("createUnit", {
          projectId: project.id,
          title: `U${++days}`,
          status: "AVAILABLE",
          price: 1,
        });
        const { id: leadId } = await createLead(owen, { projectId: project.id, name: "Many" });
        const buyerId = await createBuyer(owen, project, { unitId, leadId });
        for (const [field, input] of children) {
          await create(field, { leadId, ...input() });
          await create(field, { buyerId, ...input() });
        }
      }
    };
    const ask = () =>
      world.statements(() =>
        owen.get(
          `query ($projectId: ID!) { buyers(first: 50, filter: { projectIds: [$projectId] }) { id unit { id title } lead { id name }
            deposits { id amountDue isOverdue } agreements { id status } appointments { id startsAt host { id } } } }`,
          { projectId: project.id },
        ),
      );
    await five();
    // The first query after a change of permissions is sent twice.
    await ask();
    const few = await ask();
    await five();
    await five();
    const more = await ask();
    expect([few.result.buyers.length, more.result.buyers.length]).toEqual([5, 15]);
    for (const { deposits, agreements, appointments } of more.result.buyers)
      expect([deposits.length, agreements.length, appointments.length]).toEqual([2, 2, 2]);
    expect([few.count, more.count]).toEqual([STATEMENTS, STATEMENTS]);
  });
});
