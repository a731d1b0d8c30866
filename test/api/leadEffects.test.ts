/** Effects of calls and appointments on their lead, and the assignment of new leads. */
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import type { Person } from "../harness/api.ts";
import { createBuyer } from "../harness/deals.ts";
import { createLead, createProject, startPortfolio, type Portfolio } from "../harness/portfolio.ts";
import { type Create, createIn, mutationOf } from "../harness/records.ts";
import { join } from "../harness/world.ts";

let world: Portfolio;
let owen: Person;
let create: Create;

beforeAll(async () => {
  world = await startPortfolio();
  owen = world.owen;
  create = createIn(owen);
});
afterAll(() => world.stop());

const read = async (id: string) =>
  (
    await owen.get(
      `query ($id: ID!) { lead(id: $id) { status firstResponseAt lastInteractionAt doNotContact version assignee { id } } }`,
      { id },
    )
  ).lead;
let names = 0;
const newLead = async (input: Record<string, unknown> = {}, person = owen) =>
  (await createLead(person, { projectId: world.project.id, name: `Lead ${++names}`, ...input })).id;
const change = (field: string, input: Record<string, unknown>) => {
  return owen.get(mutationOf(field), { input });
};

const meeting = { type: "SALES_MEETING", startsAt: "2031-01-01T10:00:00Z", endsAt: "2031-01-01T11:00:00Z" };

describe("the first contact", () => {
  test.each<[string, string, Record<string, unknown>, boolean, boolean]>([
    // whether it counts as a response, and as an interaction
    ["an outbound call", "createPhoneCall", { direction: "OUTBOUND" }, true, true],
    [
      "an outbound call that nobody answered",
      "createPhoneCall",
      { direction: "OUTBOUND", status: "NO_ANSWER" },
      true,
      true,
    ],
    [
      "an outbound call that was only queued",
      "createPhoneCall",
      { direction: "OUTBOUND", status: "QUEUED" },
      false,
      false,
    ],
    [
      "an outbound call that failed",
      "createPhoneCall",
      { direction: "OUTBOUND", status: "FAILED" },
      false,
      false,
    ],
    ["an inbound call", "createPhoneCall", { direction: "INBOUND" }, false, true],
    ["an appointment", "createAppointment", meeting, true, true],
    ["a requested appointment", "createAppointment", { ...meeting, status: "REQUESTED" }, false, true],
    ["a note", "createLeadNote", { text: "Hm." }, false, false],
  ])("%s", async (_title, field, input, isResponse, isInteraction) => {
    const leadId = await newLead();
    await create(field, { leadId, ...input });
    const lead = await read(leadId);
    expect([lead.status, lead.firstResponseAt !== null, lead.lastInteractionAt !== null]).toEqual([
      isResponse ? "CONTACTED" : "NEW",
      isResponse,
      isInteraction,
    ]);
    const { rows } = await world.owner.query(
      "select changes -> 'status' as change from app_public.events where subject_id = $1 and changes ? 'status'",
      [leadId],
    );
    expect(rows).toEqual(isResponse ? [{ change: ["NEW", "CONTACTED"] }] : []);
  });

  test("does not change the status of a lead that is WARM, only the time of the contact", async () => {
    const leadId = await newLead({ status: "WARM", registeredAt: "2026-01-01T00:00:00Z" });
    await create("createPhoneCall", { leadId, direction: "OUTBOUND", startedAt: "2026-01-02T00:00:00Z" });
    await create("createPhoneCall", { leadId, direction: "OUTBOUND", startedAt: "2026-01-03T00:00:00Z" });
    const lead = await read(leadId);
    expect([lead.status, new Date(lead.firstResponseAt), new Date(lead.lastInteractionAt)]).toEqual([
      "WARM",
      new Date("2026-01-02T00:00:00Z"),
      new Date("2026-01-03T00:00:00Z"),
    ]);
  });

  test("is set when a queued call is made, and when an appointment request is accepted", async () => {
    const [called, requested] = [await newLead(), await newLead()];
    const call = await create("createPhoneCall", { leadId: called, direction: "OUTBOUND", status: "QUEUED" });
    const request = await create("createAppointment", { leadId: requested, ...meeting, status: "REQUESTED" });
    await change("updatePhoneCall", { id: call, status: "IN_PROGRESS" });
    await change("updateAppointment", { id: request, status: "SCHEDULED" });
    expect([(await read(called)).status, (await read(requested)).status]).toEqual(["CONTACTED", "CONTACTED"]);
  });

  test("the lead is NEW again when its reservation ends", async () => {
    const leadId = await newLead();
    await world.owner.query(
      `begin; set local session_replication_role = replica;
       update app_public.leads set status = 'RESERVED', status_before_deal = 'NEW' where id = '${leadId}'; commit`,
    );
    await create("createPhoneCall", { leadId, direction: "OUTBOUND" });
    await world.owner.query("select app_private.follow_deals(array[$1::uuid])", [leadId]);
    expect((await read(leadId)).status).toBe("CONTACTED");
  });

  test("20 concurrent calls cause one transition", async () => {
    const leadId = await newLead();
    await Promise.all(
      Array.from({ length: 20 }, () => create("createPhoneCall", { leadId, direction: "OUTBOUND" })),
    );
    const { rows } = await world.owner.query(
      "select from app_public.events where subject_id = $1 and changes ? 'status'",
      [leadId],
    );
    expect(rows).toHaveLength(1);
  });
});

describe("the last interaction", () => {
  test("never moves backwards or into the future", async () => {
    const leadId = await newLead();
    const when = async () => new Date((await read(leadId)).lastInteractionAt).toISOString();
    const call = (startedAt: string) =>
      create("createPhoneCall", { leadId, direction: "INBOUND", startedAt });
    await call("2026-02-02T10:00:00Z");
    expect(await when()).toBe("2026-02-02T10:00:00.000Z");
    await call("2026-01-01T10:00:00Z");
    expect(await when()).toBe("2026-02-02T10:00:00.000Z");
    await create("createAppointment", { leadId, ...meeting });
    expect(new Date(await when()).getTime()).toBeLessThanOrEqual(Date.now() + 5000);
  });

  test("of a buyer is that of the converted lead", async () => {
    const leadId = await newLead();
    const buyerId = await createBuyer(owen, world.project, { leadId: leadId });
    await create("createPhoneCall", { buyerId, direction: "INBOUND", startedAt: "2026-02-02T10:00:00Z" });
    expect((await read(leadId)).lastInteractionAt).toMatch(/^2026-02-02T10:00:00/);
    const alone = await createBuyer(owen, world.project);
    await create("createPhoneCall", { buyerId: alone, direction: "INBOUND" });
  });
});

test("DO_NOT_CALL marks the lead, also if the call is with the buyer or later", async () => {
  const [leadId, other] = [await newLead(), await newLead()];
  await create("createPhoneCall", { leadId, direction: "OUTBOUND", outcome: "DO_NOT_CALL" });
  const buyerId = await createBuyer(owen, world.project, { leadId: other });
  const call = await create("createPhoneCall", { buyerId, direction: "OUTBOUND" });
  expect((await read(other)).doNotContact).toBe(false);
  await change("updatePhoneCall", { id: call, outcome: "DO_NOT_CALL" });
  expect([(await read(leadId)).doNotContact, (await read(other)).doNotContact]).toEqual([true, true]);
});

describe("assignment of a new lead", () => {
  const assignees = async (projectId: string) => {
    const { rows } = await world.owner.query<{ assignee: string | null; amount: number }>(
      "select assignee_id as assignee, count(*)::int as amount from app_public.leads where project_id = $1 group by 1 order by 1",
      [projectId],
    );
    return Object.fromEntries(rows.map(({ assignee, amount }) => [assignee, amount]));
  };
  const inMode = (title: string, leadAssignment: string) =>
    createProject(owen, { organizationId: world.harbour.id, title, leadAssignment, visibility: "PUBLIC" });

  test("assigns to the members by turns, also for 50 concurrent leads", async () => {
    const third = await world.signUp("Theo Third");
    await join(world, world.harbour.id, third, "MEMBER");
    const project = await inMode("Round Robin", "ROUND_ROBIN");
    await Promise.all(Array.from({ length: 50 }, () => newLead({ projectId: project.id })));
    const shares = await assignees(project.id);
    expect(Object.keys(shares).sort()).toEqual([world.max.id, world.mia.id, third.id].sort());
    expect(Object.values(shares).sort()).toEqual([16, 17, 17]);
    // Former members are skipped, and leads with a given assignee or a duplicate take no turn.
    await world.owner.query("delete from app_public.organization_user_connections where user_id = $1", [
      third.id,
    ]);
    const next = async () => (await read(await newLead({ projectId: project.id }))).assignee.id;
    const named = await newLead({ projectId: project.id, assigneeId: world.ada.id });
    expect((await read(named)).assignee.id).toBe(world.ada.id);
    const turns = [await next(), await next(), await next(), await next()];
    expect([...turns].sort()).toEqual([world.max.id, world.max.id, world.mia.id, world.mia.id].sort());
    expect(turns[0]).not.toBe(turns[1]);
  });

  test("takes a turn without waiting for uncommitted leads", async () => {
    const project = await inMode("Round Robin at once", "ROUND_ROBIN");
    const others = await Promise.all(
      Array.from({ length: 3 }, async () => {
        const client = await world.owner.connect();
        await client.query("begin");
        await client.query("insert into app_public.leads (project_id, name) values ($1, 'On its way')", [
          project.id,
        ]);
        return client;
      }),
    );
    // Three uncommitted leads have taken turns.
    await Promise.all(Array.from({ length: 9 }, () => newLead({ projectId: project.id })));
    expect(Object.values<number>(await assignees(project.id)).reduce((sum, n) => sum + n)).toBe(9);
    for (const client of others) await client.query("commit");
    for (const client of others) client.release();
    const members: number[] = Object.values(await assignees(project.id));
    expect(members.reduce((sum, n) => sum + n)).toBe(12);
    // Members alternate in the order of turn numbers; a number is only missing if a transaction was retried.
    const { rows } = await world.owner.query<{ turn: number; user_id: string }>(
      "select turn::int, user_id from app_private.lead_turns where project_id = $1 order by turn",
      [project.id],
    );
    expect(new Set(rows.map(({ turn }) => turn)).size).toBe(12);
    const order = [...new Set(rows.map(({ user_id }) => user_id))].toSorted();
    const first = order.indexOf(rows[0]!.user_id);
    expect(rows.map(({ user_id }) => user_id)).toEqual(
      rows.map(({ turn }) => order[(first + turn - rows[0]!.turn) % order.length]),
    );
  });

  test("each lead of one transaction takes a turn, and only the latest turns are stored", async () => {
    const project = await inMode("Round Robin of many", "ROUND_ROBIN");
    await world.owner.query(
      "insert into app_public.leads (project_id, name) select $1, 'Lead ' || n from generate_series(1, 240) n",
      [project.id],
    );
    const members: number[] = Object.values(await assignees(project.id));
    expect(Math.max(...members) - Math.min(...members)).toBe(0);
    const { rows } = await world.owner.query(
      "select count(*)::int as turns from app_private.lead_turns where project_id = $1",
      [project.id],
    );
    expect(rows[0].turns).toBeLessThan(60);
  });

  test("leads from the contact form take a turn too", async () => {
    const project = await inMode("Robin Form", "ROUND_ROBIN");
    const form = (email: string) =>
      world.anonymous.get(
        `mutation ($input: ContactProjectInput!) { contactProject(input: $input) { id } }`,
        { input: { projectId: project.id, name: "Fay Form", email } },
      );
    for (const email of ["one@example.com", "two@example.com", "one@example.com"]) await form(email);
    expect(Object.values(await assignees(project.id))).toEqual([1, 1]);
  });

  test("leads of an organization without a MEMBER are assigned to owners and admins", async () => {
    const { createOrganization: solo } = await world.olga.get(
      `mutation { createOrganization(input: { name: "Solo Sales" }) { id } }`,
    );
    const project = await createProject(world.olga, {
      organizationId: solo.id,
      title: "Solo",
      leadAssignment: "ROUND_ROBIN",
    });
    await newLead({ projectId: project.id }, world.olga);
    expect(await assignees(project.id)).toEqual({ [world.olga.id!]: 1 });
  });

  test.each(["MANUAL", "PRIVATE"])("a lead of a project in the mode %s is unassigned", async (mode) => {
    const project = await inMode(`Mode ${mode}`, mode);
    const leadId = await newLead({ projectId: project.id });
    expect((await read(leadId)).assignee).toBeNull();
    const seen = async (person: Person) =>
      (await person.get("query ($id: ID!) { lead(id: $id) { id } }", { id: leadId })).lead !== null;
    expect(await seen(world.max)).toBe(mode === "MANUAL");
    await change("updateLead", { id: leadId, assigneeId: world.max.id });
    expect([await seen(world.max), await seen(world.mia)]).toEqual([true, mode === "MANUAL"]);
  });

  test("reassigning a lead reassigns its related records, and writes events", async () => {
    const leadId = await newLead({ projectId: world.quiet.id, assigneeId: world.max.id });
    const id = await create("createAppointment", { leadId, ...meeting });
    const seen = async (person: Person) =>
      await person.get("query ($id: ID!) { appointment(id: $id) { version } appointments { id } }", { id });
    expect((await seen(world.max)).appointments).toContainEqual({ id });
    expect(await seen(world.mia)).toMatchObject({ appointment: null });
    await change("updateLead", { id: leadId, assigneeId: world.mia.id });
    expect((await seen(world.mia)).appointments).toContainEqual({ id });
    expect(await seen(world.mia)).toMatchObject({ appointment: { version: 1 } });
    expect(await seen(world.max)).toMatchObject({ appointment: null });
    const { rows } = await world.owner.query(
      "select name, changes from app_public.events where subject_id = any ($1) and name not like '%.created' order by id",
      [[leadId, id]],
    );
    expect(rows.map((row) => row.name)).toEqual(["lead.status_changed", "lead.assigned"]);
    expect(rows[1].changes).toEqual({ assigneeId: [world.max.id, world.mia.id] });
  });

  test("members who only see their own leads cannot reassign them", async () => {
    const answer = await world.max.refused(
      `mutation ($id: ID!, $to: ID!) { updateLead(input: { id: $id, assigneeId: $to }) { id } }`,
      { id: world.leads.maxs.id, to: world.mia.id },
    );
    expect(answer.code).toBe("FORBIDDEN");
  });

  test("related records created or moved during a reassignment do not stay with the former assignee", async () => {
    const leadId = await newLead({ assigneeId: world.max.id });
    const slot = (n: number) => ({
      startsAt: new Date(Date.UTC(2032, 0, 1, n)).toISOString(),
      endsAt: new Date(Date.UTC(2032, 0, 1, n + 1)).toISOString(),
    });
    const moved = await Promise.all(
      Array.from({ length: 5 }, (_, n) =>
        create("createAppointment", { leadId, type: "PHONE", hostId: world.mia.id, ...slot(n) }),
      ),
    );
    const field = (name: string, input: Record<string, unknown>) => {
      return owen.ask(mutationOf(name), { input });
    };
    const answers = await Promise.all(
      Array.from({ length: 10 }, (_, n) => [
        field("updateLead", { id: leadId, assigneeId: [world.max.id, world.mia.id, world.ada.id][n % 3] }),
        field("createAppointment", { leadId, type: "PHONE", hostId: world.mia.id, ...slot(10 + n) }),
        field("createPhoneCall", { leadId, direction: "OUTBOUND" }),
        field("updateAppointment", { id: moved[n % 5]!, ...slot(30 + n) }),
      ]).flat(),
    );
    expect(answers.map((answer) => answer.errors?.[0]?.extensions)).toEqual(answers.map(() => undefined));
    const { rows } = await world.owner.query(
      `select count(*)::int as amount from app_public.appointments a join app_public.leads l on l.id = a.lead_id
       where l.id = $1 and a.assignee_id = l.assignee_id`,
      [leadId],
    );
    expect(rows).toEqual([{ amount: 15 }]);
  });
});
