/**
 * Escalation tickets: who sees and resolves them, that an action is executed once, and when the service opens
 * them.
 */
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import type { Person } from "../harness/api.ts";
import { createBuyer } from "../harness/deals.ts";
import { passTime } from "../harness/clock.ts";
import { negotiate, type Table } from "../harness/negotiations.ts";
import { createLead, startPortfolio, type Portfolio } from "../harness/portfolio.ts";
import { programOf } from "../harness/world.ts";

let world: Portfolio;
let everybody: Record<string, Person>;
let table: Table;
let serial = 0;

beforeAll(async () => {
  world = await startPortfolio();
  const { owen, ada, max, mia, sam, bob, olga, anonymous } = world;
  everybody = { owen, ada, max, mia, sam, bob, olga, anonymous };
  table = negotiate(world);
  // An additional action, as another migration would define it. It counts executions, fails on request, or
  // continues asynchronously.
  await world.owner.query(`begin;
    set local role plat_owner;
    create table app_private.done (ticket_id uuid, note text);
    create function app_private.act(ticket app_public.escalation_tickets) returns boolean language plpgsql volatile as $f$
    begin
      insert into app_private.done values (ticket.id, ticket.note);
      if ticket.note = 'refuse' then
        perform app_hidden.fail('PROVIDER_ERROR', 'The bank said no.');
      elsif ticket.note = 'break' then
        perform 1 / 0;
      elsif ticket.note = 'bad' then
        perform app_hidden.fail('BAD_USER_INPUT', 'This note cannot be.', '{"field": "note"}');
      end if;
      return ticket.note is distinct from 'later';
    end $f$;
    insert into app_hidden.ticket_actions (action, kind, permission, perform) values
      ('RETRY', 'OTHER', null, 'app_private.act'), ('REFUND', 'COMPLIANCE', 'finance.write', 'app_private.act');
    commit`);
});
afterAll(() => world.stop());

/** Opens a ticket as the service does, without a subject by default. */
async function open(more: Record<string, unknown> = {}): Promise<string> {
  const all: Record<string, unknown> = {
    kind: "OTHER",
    cause: `test ${++serial}`,
    organization_id: world.harbour.id,
    title: "Something came up",
    available_actions: ["RETRY", "APPROVE", "DISMISS"],
    ...more,
  };
  const { rows } = await world.owner.query(
    `select app_private.open_ticket(${Object.keys(all).map((name, i) => `${name} => $${i + 1}`)}) as id`,
    Object.values(all),
  );
  return rows[0].id;
}
const fields = `id status action actionStatus actionError note version resolvedAt dueAt priority resolvedBy { id } assignee { id }`;
const resolution = `mutation ($input: ResolveEscalationTicketInput!) { resolveEscalationTicket(input: $input) { ${fields} } }`;
const resolve = async (id: string, action: string, more = {}, person = world.owen) =>
  (await person.get(resolution, { input: { id, action, ...more } })).resolveEscalationTicket;
const refused = (id: string, action: string, more = {}, person = world.owen) =>
  person.refused(resolution, { input: { id, action, ...more } });
const read = async (id: string, person = world.owen) =>
  (await person.sees(`query ($id: ID!) { escalationTicket(id: $id) { ${fields} } }`, { id }))
    .escalationTicket;
const done = async (id: string) =>
  (await world.owner.query("select note from app_private.done where ticket_id = $1", [id])).rows.length;
const of = async (kind: string, subjectId: string) =>
  (
    await world.owen.get(
      `query ($id: ID!, $filter: EscalationTicketsFilter) { organization(id: $id) { escalationTickets(filter: $filter) {
         id kind status priority title description subjectType subjectId availableActions lead { id } project { id } } } }`,
      { id: world.harbour.id, filter: { kind: [kind], subjectId } },
    )
  ).organization.escalationTickets;

/** The outcome for each viewer. */
async function outcomes(ask: (person: Person) => Promise<unknown>) {
  const found: Record<string, unknown> = {};
  for (const [name, person] of Object.entries(everybody)) found[name] = await ask(person);
  return found;
}

describe("permissions", () => {
  test("tickets are visible to members, and with their lead to those who see it; the list is null for non-members", async () => {
    const plain = await open();
    const about = await open({ lead_id: world.leads.maxs.id, project_id: world.quiet.id });
    expect(
      await outcomes(async (person) => [!!(await read(plain, person)), !!(await read(about, person))]),
    ).toEqual({
      owen: [true, true],
      ada: [true, true],
      max: [true, true],
      mia: [true, false],
      sam: [false, false],
      bob: [false, false],
      olga: [false, false],
      anonymous: [false, false],
    });
    const list = `query ($id: ID!, $about: ID!) { organization(id: $id) { escalationTickets(first: 5, filter: { leadId: $about }) { id } } }`;
    expect(
      await outcomes(async (person) => {
        const { organization } = await person.get(list, { id: world.harbour.id, about: world.leads.maxs.id });
        return organization?.escalationTickets?.length ?? null;
      }),
    ).toEqual({ owen: 1, ada: 1, max: 1, mia: 0, sam: null, bob: null, olga: null, anonymous: null });
  });

  test("members resolve; owners and admins set priority, assignee and dueAt", async () => {
    const code = async (document: string, input: object, person: Person) =>
      (await person.ask(document, { input })).errors?.[0]?.extensions.code ?? "yes";
    expect(
      await outcomes(async (person) =>
        code(resolution, { id: await open(), action: "APPROVE", note: "Fine." }, person),
      ),
    ).toEqual({
      owen: "yes",
      ada: "yes",
      max: "yes",
      mia: "yes",
      sam: "NOT_FOUND",
      bob: "NOT_FOUND",
      olga: "NOT_FOUND",
      anonymous: "UNAUTHENTICATED",
    });
    const change = `mutation ($input: UpdateEscalationTicketInput!) { updateEscalationTicket(input: $input) { priority } }`;
    expect(
      await outcomes(async (person) => code(change, { id: await open(), priority: "URGENT" }, person)),
    ).toEqual({
      owen: "yes",
      ada: "yes",
      max: "FORBIDDEN",
      mia: "FORBIDDEN",
      sam: "NOT_FOUND",
      bob: "NOT_FOUND",
      olga: "NOT_FOUND",
      anonymous: "UNAUTHENTICATED",
    });
  });

  test("an action requires its own permission too, and a token its scopes", async () => {
    const id = await open({ kind: "COMPLIANCE", available_actions: ["REFUND", "DISMISS"] });
    expect(await refused(id, "REFUND", {}, world.max)).toMatchObject({
      code: "FORBIDDEN",
      permission: "finance.write",
    });
    expect(await read(id)).toMatchObject({ status: "OPEN", action: null, version: 1 });
    const reader = await programOf(world, world.owen, { scopes: ["workflow.read", "org.member"] });
    expect(await read(id, reader)).toMatchObject({ status: "OPEN" });
    expect(await refused(id, "DISMISS", {}, reader)).toMatchObject({
      code: "FORBIDDEN",
      permission: "workflow.run",
    });
    expect((await resolve(id, "REFUND")).status).toBe("RESOLVED");
  });
});

describe("opening", () => {
  test("opens one ticket per cause until it is resolved, also under concurrency", async () => {
    const cause = { cause: "the same" };
    const ids = await Promise.all(Array.from({ length: 8 }, () => open(cause)));
    expect(new Set(ids).size).toBe(1);
    await resolve(ids[0]!, "DISMISS");
    expect(await open(cause)).not.toBe(ids[0]);
  });

  test("only offers implemented actions; a former member is not assigned", async () => {
    await expect(open({ available_actions: ["MERGE"] })).rejects.toThrow(/nothing performs the action MERGE/);
    expect((await read(await open({ assignee_id: world.olga.id }))).assignee).toBeNull();
    expect((await read(await open({ assignee_id: world.max.id }))).assignee).toEqual({ id: world.max.id });
  });
});

describe("resolving", () => {
  test("is executed once, also by concurrent requests; outcome, person and reason are stored and in events", async () => {
    const id = await open();
    const answers = await Promise.all(
      Array.from({ length: 12 }, (_, i) =>
        (i % 2 ? world.max : world.owen).ask(resolution, { input: { id, action: "RETRY", note: "Again." } }),
      ),
    );
    expect(answers.map(({ data }) => data?.resolveEscalationTicket?.status)).toEqual(
      Array(12).fill("RESOLVED"),
    );
    expect(await done(id)).toBe(1);
    const ticket = await read(id);
    expect(ticket).toMatchObject({
      action: "RETRY",
      actionStatus: "SUCCEEDED",
      actionError: null,
      note: "Again.",
    });
    expect(ticket.resolvedAt).not.toBeNull();
    expect(await refused(id, "DISMISS")).toMatchObject({
      code: "INVALID_TRANSITION",
      from: "RESOLVED",
      to: "RESOLVING",
      allowedTransitions: [],
    });
    const { escalationTicket } = await world.owen.get(
      `query ($id: ID!) { escalationTicket(id: $id) { events { name data subject { __typename ... on EscalationTicket { id } } } } }`,
      { id },
    );
    expect(escalationTicket.events.map((event: any) => event.name)).toEqual([
      "escalation_ticket.resolved",
      "escalation_ticket.status_changed",
      "escalation_ticket.created",
    ]);
    expect(escalationTicket.events[0].subject).toEqual({ __typename: "EscalationTicket", id });
    expect(escalationTicket.events[0].data).not.toHaveProperty("cause");
    expect(escalationTicket.events[0].data).not.toHaveProperty("input");
  });

  test("a failed action changes nothing, reports the reason, and can be retried or replaced", async () => {
    const id = await open();
    expect(await resolve(id, "RETRY", { note: "refuse" })).toMatchObject({
      status: "FAILED",
      actionStatus: "FAILED",
      actionError: "The bank said no.",
      resolvedAt: null,
    });
    expect(await done(id)).toBe(0);
    const broken = await resolve(id, "RETRY", { note: "break" });
    expect(broken.status).toBe("FAILED");
    expect(broken.actionError).toMatch(/^This could not be done, and nothing was changed/);
    expect(await resolve(id, "RETRY", {}, world.ada)).toMatchObject({
      status: "RESOLVED",
      actionError: null,
      note: null,
      resolvedBy: { id: world.ada.id },
    });
    expect(await done(id)).toBe(1);
  });

  test("an invalid request is refused, and no action is chosen", async () => {
    const id = await open();
    const nobody = "0199aaaa-0000-7000-8000-000000000000";
    for (const [refusal, expected] of [
      [refused(nobody, "DISMISS"), { code: "NOT_FOUND", field: "id" }],
      [refused(id, "MERGE"), { code: "BAD_USER_INPUT", field: "action" }],
      [refused(id, "RETRY", { note: "bad" }), { code: "BAD_USER_INPUT", field: "note" }],
      [refused(id, "RETRY", { note: "x".repeat(20_001) }), { code: "BAD_USER_INPUT", field: "note" }],
      [refused(id, "DISMISS", { assigneeId: world.max.id }), { code: "BAD_USER_INPUT", field: "assigneeId" }],
      [refused(id, "DISMISS", { expectedVersion: 7 }), { code: "VERSION_MISMATCH", currentVersion: 1 }],
    ] as const)
      expect(await refusal).toMatchObject(expected);
    expect(await done(id)).toBe(0);
    expect(await read(id)).toMatchObject({ status: "OPEN", version: 1 });
    expect((await resolve(id, "DISMISS", { expectedVersion: 1 })).status).toBe("RESOLVED");
  });

  test("an asynchronous action keeps it RESOLVING until it ends, once", async () => {
    const id = await open();
    expect(await resolve(id, "RETRY", { note: "later" })).toMatchObject({
      status: "RESOLVING",
      actionStatus: "PENDING",
    });
    expect(await resolve(id, "RETRY")).toMatchObject({ status: "RESOLVING", note: "later" });
    expect(await refused(id, "DISMISS")).toMatchObject({ code: "INVALID_TRANSITION", from: "RESOLVING" });
    const end = async (error: string | null) =>
      (await world.owner.query("select app_private.end_resolution($1, $2) as ended", [id, error])).rows[0]
        .ended;
    expect([await end("No answer."), await end(null)]).toEqual([true, false]);
    expect(await read(id)).toMatchObject({ status: "FAILED", actionError: "No answer." });
    expect(await done(id)).toBe(1);
  });

  test("expires at dueAt; after that or a decision, it cannot be changed", async () => {
    const id = await open({ due_at: new Date(Date.now() + 3_600_000) });
    const change = (input: object) =>
      world.owen.refused(
        `mutation ($input: UpdateEscalationTicketInput!) { updateEscalationTicket(input: $input) { id } }`,
        { input: { id, ...input } },
      );
    expect(await change({ dueAt: "2020-01-01T00:00:00Z" })).toMatchObject({
      code: "BAD_USER_INPUT",
      field: "dueAt",
    });
    expect(await change({ assigneeId: world.olga.id })).toMatchObject({ code: "NOT_FOUND" });
    expect(await change({ assigneeId: world.sam.id })).toMatchObject({
      code: expect.stringMatching(/NOT_FOUND|BAD_USER_INPUT/),
      field: "assigneeId",
    });
    await passTime(world.owner, "2 hours");
    expect(await read(id)).toMatchObject({ status: "EXPIRED", action: null });
    expect(await refused(id, "DISMISS")).toMatchObject({ code: "INVALID_TRANSITION", from: "EXPIRED" });
    expect(await change({ priority: "LOW" })).toMatchObject({ code: "CONFLICT" });
  });

  test("REASSIGN assigns the lead to the given user, else to the ticket's assignee, else to the resolver", async () => {
    const lead = async () => table.lead();
    const assignee = async (id: string) => (await table.read("lead", id, "assignee { id }")).assignee?.id;
    const about = async (leadId: string, more = {}) =>
      open({
        kind: "NO_RESPONSE",
        available_actions: ["REASSIGN", "DISMISS"],
        lead_id: leadId,
        project_id: world.project.id,
        ...more,
      });
    const [first, second, third] = await Promise.all([lead(), lead(), lead()]);
    await resolve(await about(first!), "REASSIGN", { assigneeId: world.mia.id });
    await resolve(await about(second!, { assignee_id: world.max.id }), "REASSIGN");
    await resolve(await about(third!), "REASSIGN", {}, world.ada);
    expect([await assignee(first!), await assignee(second!), await assignee(third!)]).toEqual([
      world.mia.id,
      world.max.id,
      world.ada.id,
    ]);
    // The assignee of a lead must have a role in its project.
    const ticket = await about(first!);
    expect(await refused(ticket, "REASSIGN", { assigneeId: world.olga.id })).toMatchObject({
      code: "BAD_USER_INPUT",
      field: "assigneeId",
    });
    const empty = await open({ kind: "NO_RESPONSE", available_actions: ["REASSIGN"] });
    expect(await resolve(empty, "REASSIGN")).toMatchObject({
      status: "FAILED",
      actionError: expect.stringMatching(/no lead/),
    });
  });

  test("in an archived project tickets are opened, but cannot be resolved", async () => {
    const project = await table.create("createProject", {
      organizationId: world.harbour.id,
      title: "Old Oaks",
      currency: "CAD",
      status: "SELLING",
    });
    await world.owen.get(
      `mutation ($id: ID!) { updateProject(input: { id: $id, status: ARCHIVED }) { id } }`,
      { id: project },
    );
    const id = await open({ project_id: project });
    expect(await refused(id, "DISMISS")).toMatchObject({ code: "PROJECT_ARCHIVED" });
  });
});

describe("inventory conflicts", () => {
  const reserve = async (unitId: string, leadId: string, by = world.owen) =>
    table.create("createReservation", { unitId, leadId, acceptedTerms: true }, by);
  const status = async (id: string) => (await table.read("reservation", id, "status")).status;

  test("a refunded reservation whose home is claimed by another: RELEASE_CLAIM releases that claim", async () => {
    const [unitId, ann, ben] = [await table.unit(), await table.lead(), await table.lead()];
    const first = await reserve(unitId, ann);
    const { convertLead } = await world.owen.get(
      `mutation ($lead: ID!) { convertLead(input: { leadId: $lead }) { id } }`,
      { lead: ann },
    );
    const reason = await table.create("createFalloutReason", {
      projectId: world.project.id,
      name: `Changed their mind ${++serial}`,
    });
    await world.owen.get(
      `mutation ($id: ID!, $reason: ID!) { updateBuyer(input: { id: $id, status: CANCELLED, falloutReasonId: $reason }) { id } }`,
      { id: convertLead.id, reason },
    );
    const second = await reserve(unitId, ben);
    await world.owen.get(
      `mutation ($id: ID!) { updateReservation(input: { id: $id, status: REFUNDED }) { id } }`,
      { id: first },
    );
    expect(await status(second)).toBe("PENDING");
    const tickets = await of("INVENTORY_CONFLICT", first);
    expect(tickets).toEqual([
      {
        id: expect.any(String),
        kind: "INVENTORY_CONFLICT",
        status: "OPEN",
        priority: "HIGH",
        title: expect.stringMatching(/^Somebody else has unit Home/),
        description: expect.stringMatching(/was refunded, but its home was not offered again/),
        subjectType: "reservation",
        subjectId: first,
        availableActions: ["RELEASE_CLAIM", "DISMISS"],
        lead: { id: ann },
        project: { id: world.project.id },
      },
    ]);
    expect(await refused(tickets[0].id, "RELEASE_CLAIM", {}, world.max)).toMatchObject({
      code: "FORBIDDEN",
      permission: "inventory.manage",
    });
    expect((await resolve(tickets[0].id, "RELEASE_CLAIM", { note: "Promised to Ann." })).status).toBe(
      "RESOLVED",
    );
    expect(await table.read("reservation", second, "status cancellationReason")).toEqual({
      status: "CANCELLED",
      cancellationReason: "Promised to Ann.",
    });
    expect((await table.read("unit", unitId, "status")).status).toBe("AVAILABLE");
  });

  test("a refunded reservation of an unclaimed home opens no ticket", async () => {
    const [unitId, ann] = [await table.unit(), await table.lead()];
    const first = await reserve(unitId, ann);
    await world.owen.get(
      `mutation ($id: ID!) { updateReservation(input: { id: $id, status: REFUNDED }) { id } }`,
      { id: first },
    );
    expect(await of("INVENTORY_CONFLICT", first)).toEqual([]);
  });

  test("an expired reservation whose home another one claims; purchases keep their home", async () => {
    const [unitId, ann, ben] = [await table.unit(), await table.lead(), await table.lead()];
    const first = await reserve(unitId, ann);
    // Expired, but not yet processed: the next claim of the home discovers it.
    await world.owner.query(
      `begin; set local session_replication_role = replica;
       update app_hidden.claims set expires_at = now() - interval '1 second' where subject_id = '${first}';
       update app_public.reservations set expires_at = now() - interval '1 second' where id = '${first}'; commit`,
    );
    const { rows } = await world.owner.query(
      `insert into app_public.reservations (project_id, unit_id, lead_id, accepted_terms) values ($1, $2, $3, true) returning id`,
      [world.project.id, unitId, ben],
    );
    expect(await status(first)).toBe("EXPIRED");
    expect(await status(rows[0].id)).toBe("PENDING");
    const [ticket, ...more] = await of("INVENTORY_CONFLICT", first);
    expect(more).toEqual([]);
    expect(ticket).toMatchObject({ lead: { id: ann }, subjectType: "reservation" });
    await world.owen.get(`mutation ($lead: ID!) { convertLead(input: { leadId: $lead }) { id } }`, {
      lead: ben,
    });
    expect(await resolve(ticket.id, "RELEASE_CLAIM")).toMatchObject({
      status: "FAILED",
      actionError: expect.stringMatching(/has been bought/),
    });
    expect((await resolve(ticket.id, "DISMISS")).status).toBe("RESOLVED");
  });

  test("an accepted offer that expired, when another takes the home", async () => {
    const unitId = await table.unit();
    const negotiation = await table.negotiation({ unitId });
    await table.answer(await table.offer(negotiation, "BUYER", 390_000), "ACCEPT");
    await passTime(world.owner, "40 days");
    expect((await table.read("unit", unitId, "status")).status).toBe("AVAILABLE");
    expect(await of("INVENTORY_CONFLICT", negotiation)).toEqual([]);
    const other = await reserve(unitId, await table.lead());
    const [ticket] = await of("INVENTORY_CONFLICT", negotiation);
    expect(ticket).toMatchObject({
      subjectType: "negotiation",
      description: expect.stringMatching(/accepted/),
    });
    expect((await resolve(ticket.id, "RELEASE_CLAIM")).status).toBe("RESOLVED");
    expect(await status(other)).toBe("CANCELLED");
  });
});

describe("duplicate leads", () => {
  const phone = () => `+1416555${String(1000 + ++serial)}`;
  const lead = async (input: object, by = world.owen, project = world.project) =>
    (await createLead(by, { projectId: project.id, name: `Dana ${++serial}`, ...input })).id;

  test("one phone number, two addresses: MERGE merges the leads with all related records", async () => {
    const number = phone();
    const first = await lead({ phone: number, email: `dana${serial}@example.com`, tags: ["loft"] });
    const { contactProject } = await world.owen.get(
      `mutation ($input: ContactProjectInput!) { contactProject(input: $input) { lead { id } } }`,
      {
        input: {
          projectId: world.project.id,
          name: "Dana D",
          email: `d${serial}@example.com`,
          phone: number,
          company: "Dana Inc",
          text: "Hello",
        },
      },
    );
    const second = contactProject.lead.id;
    const [ticket] = await of("DUPLICATE_LEAD", second);
    expect(ticket).toMatchObject({
      lead: { id: first },
      priority: "LOW",
      availableActions: ["MERGE", "DISMISS"],
    });
    const unitId = await table.unit();
    const reservation = await table.create("createReservation", {
      unitId,
      leadId: second,
      acceptedTerms: true,
    });
    const negotiation = await table.negotiation({ reservationId: reservation, unitId });
    await table.offer(negotiation, "BUYER", 390_000);
    await table.create("createLeadNote", { leadId: second, text: "Wants a view." });
    await table.create("createTask", { leadId: second, title: "Call back" });
    await table.create("createContact", { leadId: second, name: "Spouse" });
    await table.create("createPersonalization", { leadId: second, unitId });
    expect((await resolve(ticket.id, "MERGE")).status).toBe("RESOLVED");
    expect(await table.read("lead", second, "id")).toBeNull();
    expect(
      await table.read(
        "lead",
        first,
        "status company email notes { text } tasks { title } contacts { name } reservations { id } messages { text } tags",
      ),
    ).toMatchObject({
      status: "RESERVED",
      company: "Dana Inc",
      notes: [{ text: "Wants a view." }],
      tasks: [{ title: "Call back" }],
      contacts: [{ name: "Spouse" }],
      reservations: [{ id: reservation }],
      messages: [{ text: "Hello" }],
      tags: ["loft"],
    });
    expect(await table.read("negotiation", negotiation, "lead { id } currentOffer { status }")).toEqual({
      lead: { id: first },
      currentOffer: { status: "PENDING" },
    });
  });

  test("no ticket is opened again after a dismissal; a shared phone number is ignored", async () => {
    const number = phone();
    const first = await lead({ phone: number });
    const second = await lead({ phone: phone() });
    const change = (value: string | null) =>
      world.owen.get(`mutation ($input: UpdateLeadInput!) { updateLead(input: $input) { id } }`, {
        input: { id: second, phone: value },
      });
    await change(number);
    const [ticket] = await of("DUPLICATE_LEAD", second);
    expect(ticket.lead).toEqual({ id: first });
    await resolve(ticket.id, "DISMISS", {}, world.max);
    await change(null);
    await change(number);
    expect(await of("DUPLICATE_LEAD", second)).toHaveLength(1);
    const [third, fourth, fifth] = [
      await lead({ phone: number }),
      await lead({ phone: number }),
      await lead({ phone: number }),
    ];
    expect(await of("DUPLICATE_LEAD", third)).toHaveLength(1);
    expect(await of("DUPLICATE_LEAD", fourth)).toHaveLength(1);
    expect(await of("DUPLICATE_LEAD", fifth)).toEqual([]);
    // Leads of another project do not count.
    const elsewhere = await lead({ phone: number }, world.owen, world.park);
    expect(await of("DUPLICATE_LEAD", elsewhere)).toEqual([]);
  });

  test("keeps all purchases of two buyers; users with own leads cannot merge those of a colleague", async () => {
    const number = phone();
    const [mine, hers] = [
      await lead({ phone: number }, world.max, world.quiet),
      await lead({ phone: number }, world.mia, world.quiet),
    ];
    const [ticket] = await of("DUPLICATE_LEAD", hers);
    expect(ticket.lead).toEqual({ id: mine });
    expect(await read(ticket.id, world.mia)).toBeNull();
    expect(await refused(ticket.id, "MERGE", {}, world.max)).toMatchObject({
      code: "FORBIDDEN",
      permission: "lead.write",
    });
    // The older one is kept.
    const both = [await table.lead({ phone: phone() }), await table.lead()];
    for (const leadId of both)
      await world.owen.get(
        `mutation ($lead: ID!, $unit: ID!) { convertLead(input: { leadId: $lead, unitId: $unit }) { id } }`,
        { lead: leadId, unit: await table.unit() },
      );
    const id = await open({
      kind: "DUPLICATE_LEAD",
      available_actions: ["MERGE"],
      lead_id: both[0],
      subject_type: "lead",
      subject_id: both[1],
      project_id: world.project.id,
    });
    // Each lead may have one purchase without a home, so the merged lead would have two.
    for (const leadId of both) await createBuyer(world.owen, world.project, { leadId });
    expect(await resolve(id, "MERGE")).toMatchObject({
      status: "FAILED",
      actionError: expect.stringMatching(/Both leads have a purchase without a home/),
    });
    await world.owner.query(
      "update app_public.buyers set deleted_at = now() where lead_id = $1 and unit_id is null",
      [both[1]],
    );
    expect((await resolve(id, "MERGE")).status).toBe("RESOLVED");
    const { lead: kept } = await world.owen.get(
      `query ($id: ID!) { lead(id: $id) { purchases { status } } }`,
      {
        id: both[0],
      },
    );
    expect(kept.purchases).toHaveLength(3);
  });
});

test("a list takes as many statements for many tickets as for one", async () => {
  const list = (first: number) =>
    world.statements(() =>
      world.owen.get(
        `query ($id: ID!, $first: Int!) { organization(id: $id) { escalationTickets(first: $first) {
           id lead { id } buyer { id } assignee { id } resolvedBy { id } project { id } organization { id } } } }`,
        { id: world.harbour.id, first },
      ),
    );
  await list(1);
  const [one, many] = [await list(1), await list(20)];
  expect(many.result.organization.escalationTickets).toHaveLength(20);
  expect(many.count).toBe(one.count);
});
