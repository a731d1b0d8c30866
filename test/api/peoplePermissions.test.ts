/**
 * Permissions for contacts, agreements, appointments, phone calls, notes, tasks and deposits. The table is the
 * specification of each of these kinds, except for those in `exceptions`:
 *
 *   yes            the operation succeeds, or the record is visible
 *   null           null without an error
 *   a code         refused with that code: FORBID is FORBIDDEN, UNAUTH is UNAUTHENTICATED
 *
 * owner, admin and member are of Harbour Homes, whose project Harbour View is open and whose Quiet Quay is in the lead mode
 * PRIVATE; the seller and the builder are members of organizations affiliated with Harbour View; the buyer and the other
 * buyer accepted invitations to purchases there; the outsider owns Summit Sales. A buyer sees what was sent, agreed or is to
 * be paid (agreements, appointments, deposits); the rest is internal.
 */
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import type { Person } from "../harness/api.ts";
import {
  readById,
  mutation,
  type Operation,
  outcome,
  outcomes,
  readMatrix,
  shortCodes,
} from "../harness/matrix.ts";
import { createBuyer, invite } from "../harness/deals.ts";
import { cast, createLead, type Portfolio, startPortfolio } from "../harness/portfolio.ts";
import { createIn, mutationOf } from "../harness/records.ts";
import { programOf } from "../harness/world.ts";

const matrix = `
                              | owner | admin | member    | seller    | builder   | buyer     | other buyer | outsider  | anonymous
read, unassigned              | yes   | yes   | yes       | null      | null      | null      | null        | null      | UNAUTH
read, the seller's            | yes   | yes   | yes       | yes       | null      | null      | null        | null      | UNAUTH
read, the member's, private   | yes   | yes   | yes       | null      | null      | null      | null        | null      | UNAUTH
read, another's, private      | yes   | yes   | null      | null      | null      | null      | null        | null      | UNAUTH
read, the buyer's             | yes   | yes   | yes       | null      | null      | shared    | null        | null      | UNAUTH
read, of the buyer's lead     | yes   | yes   | yes       | null      | null      | shared    | null        | null      | UNAUTH
read, the seller's buyer's    | yes   | yes   | yes       | yes       | null      | null      | null        | null      | UNAUTH
read, another organization's  | null  | null  | null      | null      | null      | null      | null        | yes       | UNAUTH
create, unassigned            | yes   | yes   | yes       | NOT_FOUND | NOT_FOUND | NOT_FOUND | NOT_FOUND   | NOT_FOUND | UNAUTH
create, the seller's          | yes   | yes   | yes       | yes       | NOT_FOUND | NOT_FOUND | NOT_FOUND   | NOT_FOUND | UNAUTH
create, the member's, private | yes   | yes   | yes       | NOT_FOUND | NOT_FOUND | NOT_FOUND | NOT_FOUND   | NOT_FOUND | UNAUTH
create, another's, private    | yes   | yes   | NOT_FOUND | NOT_FOUND | NOT_FOUND | NOT_FOUND | NOT_FOUND   | NOT_FOUND | UNAUTH
create, the buyer's           | yes   | yes   | yes       | NOT_FOUND | NOT_FOUND | FORBID    | NOT_FOUND   | NOT_FOUND | UNAUTH
create, the seller's buyer's  | yes   | yes   | yes       | yes       | NOT_FOUND | NOT_FOUND | NOT_FOUND   | NOT_FOUND | UNAUTH
update, unassigned            | yes   | yes   | others'   | NOT_FOUND | NOT_FOUND | NOT_FOUND | NOT_FOUND   | NOT_FOUND | UNAUTH
update, the seller's          | yes   | yes   | others'   | others'   | NOT_FOUND | NOT_FOUND | NOT_FOUND   | NOT_FOUND | UNAUTH
update, another's, private    | yes   | yes   | NOT_FOUND | NOT_FOUND | NOT_FOUND | NOT_FOUND | NOT_FOUND   | NOT_FOUND | UNAUTH
update, the buyer's           | yes   | yes   | others'   | NOT_FOUND | NOT_FOUND | its buyer | NOT_FOUND   | NOT_FOUND | UNAUTH
delete, unassigned            | yes   | yes   | theirs    | NOT_FOUND | NOT_FOUND | NOT_FOUND | NOT_FOUND   | NOT_FOUND | UNAUTH
delete, the seller's          | yes   | yes   | theirs    | theirs    | NOT_FOUND | NOT_FOUND | NOT_FOUND   | NOT_FOUND | UNAUTH
delete, another's, private    | yes   | yes   | NOT_FOUND | NOT_FOUND | NOT_FOUND | NOT_FOUND | NOT_FOUND   | NOT_FOUND | UNAUTH
delete, the buyer's           | yes   | yes   | theirs    | NOT_FOUND | NOT_FOUND | its buyer | NOT_FOUND   | NOT_FOUND | UNAUTH
`;

interface Kind {
  type: string;
  query: string;
  input: () => Record<string, unknown>;
  update: Record<string, unknown>;
  /** Whether the buyer sees it. */
  shared: boolean;
  /** Whether they can change, and delete, one that somebody else created. */
  others: { update: boolean; delete: boolean };
}

let hours = 0;
const everybody = { update: true, delete: true };
const kinds: Kind[] = [
  {
    type: "Contact",
    query: "contact",
    input: () => ({ name: "Cleo" }),
    update: { company: "Co" },
    shared: false,
    others: everybody,
  },
  {
    type: "PhoneCall",
    query: "phoneCall",
    input: () => ({ direction: "INBOUND" }),
    update: { notes: "Long." },
    shared: false,
    others: everybody,
  },
  {
    type: "LeadNote",
    query: "leadNote",
    input: () => ({ text: "Hm." }),
    update: { text: "Aha." },
    shared: false,
    others: { update: false, delete: false },
  },
  {
    type: "Task",
    query: "task",
    input: () => ({ title: "Do it" }),
    update: { priority: "HIGH" },
    shared: false,
    others: { update: true, delete: false },
  },
  {
    type: "Agreement",
    query: "agreement",
    input: () => ({ type: "NDA", title: "Secret", status: "SENT" }),
    update: { title: "Secrets" },
    shared: true,
    others: everybody,
  },
  {
    type: "Appointment",
    query: "appointment",
    input: () => ({ type: "PHONE", startsAt: hour(++hours), endsAt: hour(hours + 1) }),
    update: { title: "Call" },
    shared: true,
    others: everybody,
  },
  {
    type: "Deposit",
    query: "deposit",
    input: () => ({ title: "First", amount: 100 }),
    update: { reference: "7" },
    shared: true,
    others: everybody,
  },
];
const hour = (n: number) => new Date(Date.UTC(2031, 0, 1, n)).toISOString();

const { names, rows: lines } = readMatrix(matrix);
const rows = lines.map(({ operation, expected }) => {
  const [verb, ...deal] = operation.split(", ");
  return { operation, verb: verb!, deal: deal.join(", "), expected };
});

/** The outcome in the table for a kind. */
function specified(kind: Kind, cell: string): string {
  if (cell === "shared") return kind.shared ? "yes" : "null";
  if (cell === "its buyer") return kind.shared ? "FORBID" : "NOT_FOUND";
  if (cell === "others'") return kind.others.update ? "yes" : "FORBID";
  if (cell === "theirs") return kind.others.delete ? "yes" : "FORBID";
  return cell;
}

let world: Portfolio;
let people: Record<string, Person>;
/** The argument of an input for each deal of the table. */
let deals: Record<string, Record<string, string>>;
let bea: Person;

beforeAll(async () => {
  world = await startPortfolio();
  const { owen, sam, leads, project } = world;
  bea = await world.signUp("Bea Buyer");
  const ben = await world.signUp("Ben Other");
  people = cast(world, { buyer: bea, "other buyer": ben });
  const { id: leadOfBuyer } = await createLead(owen, { projectId: project.id, name: "Bea as a lead" });
  const { id: leadOfSeller } = await createLead(sam, { projectId: project.id, name: "Sold by Sam" });
  const [purchase, others, sold] = [
    await createBuyer(owen, project, { leadId: leadOfBuyer }),
    await createBuyer(owen, project),
    await createBuyer(owen, project, { leadId: leadOfSeller }),
  ];
  await invite(world, purchase, bea);
  await invite(world, others, ben);
  deals = {
    unassigned: { leadId: leads.open.id },
    "the seller's": { leadId: leads.sams.id },
    "the member's, private": { leadId: leads.maxs.id },
    "another's, private": { leadId: leads.mias.id },
    "the buyer's": { buyerId: purchase },
    "of the buyer's lead": { leadId: leadOfBuyer },
    "the seller's buyer's": { buyerId: sold },
    "another organization's": { leadId: leads.foreign.id },
  };
});
afterAll(() => world.stop());

/** Executes an operation with its input. */
const call = (person: Person, field: string, input: Record<string, unknown>) =>
  person.ask(mutationOf(field, "{ __typename }"), { input });

describe.each(kinds)("$type", (kind) => {
  const { type, query, input, update } = kind;
  const owner = (deal: string) => (deal === "another organization's" ? world.olga : world.owen);
  const make = (deal: string) => {
    // Agreements become visible when they are sent; only drafts can be deleted.
    return createIn(owner(deal))(`create${type}`, { ...deals[deal], ...input() });
  };
  const draft = (deal: string) =>
    createIn(owner(deal))(`create${type}`, {
      ...deals[deal],
      ...input(),
      ...(type === "Agreement" ? { status: "DRAFT" } : {}),
    });

  test.each(rows)("$operation", async ({ verb, deal, expected }) => {
    const shown = verb === "read" || verb === "update" ? await make(deal) : "";
    const tried: Record<string, Operation> = {
      read: readById(query, shown),
      create: mutation(`create${type}`, () => ({ ...deals[deal], ...input() })),
      update: mutation(`update${type}`, { id: shown, ...update }),
      delete: mutation(`delete${type}`, async () => ({ id: await draft(deal) })),
    };
    const wanted = Object.fromEntries(names.map((name) => [name, specified(kind, expected[name]!)]));
    // Buyers do not see drafts.
    if (type === "Agreement" && verb === "delete" && deal === "the buyer's") wanted.buyer = "NOT_FOUND";
    expect(await outcomes(people, tried[verb]!, shortCodes)).toEqual(wanted);
  });

  test("the lists of a purchase contain only shared records for the buyer", async () => {
    const list = { LeadNote: "notes" }[type] ?? `${query}s`;
    const ask = `query ($id: ID!) { buyer(id: $id) { list: ${list} { id } } }`;
    const id = deals["the buyer's"]!.buyerId!;
    const made = [await make("the buyer's"), await make("of the buyer's lead")];
    const seen = async (person: Person) => {
      const { buyer } = await person.get(ask, { id });
      return made.filter((one) => buyer.list.some((row: { id: string }) => row.id === one)).length;
    };
    expect([await seen(world.owen), await seen(bea)]).toEqual([2, kind.shared ? 2 : 0]);
  });
});

test("internal records of the team are invisible to the buyer", async () => {
  const create = createIn(world.owen);
  const deal = deals["the buyer's"]!;
  const appointment = await create("createAppointment", {
    ...deal,
    type: "PHONE",
    startsAt: hour(++hours),
    endsAt: hour(hours + 1),
    notes: "Haggles.",
  });
  await call(world.owen, "updateAppointment", { id: appointment, outcomeNote: "Haggled." });
  const deposit = await create("createDeposit", { ...deal, title: "First", amount: 1, notes: "Late payer." });
  const ask = `query ($a: ID!, $d: ID!) { appointment(id: $a) { notes outcomeNote events { id } } deposit(id: $d) { notes amountDue events { id } } }`;
  const ids = { a: appointment, d: deposit };
  expect(await world.max.get(ask, ids)).toMatchObject({
    appointment: { notes: "Haggles.", outcomeNote: "Haggled." },
    deposit: { notes: "Late payer.", amountDue: "1.00" },
  });
  expect(await bea.get(ask, ids)).toEqual({
    appointment: { notes: null, outcomeNote: null, events: [] },
    deposit: { notes: null, amountDue: "1.00", events: [] },
  });
});

test("a buyer sees the name and phone number of the host, but not the email address", async () => {
  const id = await createIn(world.owen)("createAppointment", {
    ...deals["the buyer's"],
    type: "CLOSING",
    startsAt: hour(++hours),
    endsAt: hour(hours + 1),
    hostId: world.ada.id,
  });
  const ask =
    "query ($id: ID!) { appointment(id: $id) { host { fullName email } salesOffice { id } project { id } } }";
  expect((await bea.get(ask, { id })).appointment).toEqual({
    host: { fullName: "Ada Admin", email: null },
    salesOffice: { id: expect.any(String) },
    project: { id: world.project.id },
  });
});

test("a buyer does not see the draft of an agreement", async () => {
  const id = await createIn(world.owen)("createAgreement", {
    ...deals["the buyer's"],
    type: "PURCHASE",
    title: "Draft",
  });
  const seen = async () =>
    (await bea.get("query ($id: ID!) { agreement(id: $id) { status } }", { id })).agreement;
  expect(await seen()).toBeNull();
  await call(world.owen, "updateAgreement", { id, status: "SENT" });
  expect(await seen()).toEqual({ status: "SENT" });
});

test("the list of appointments has the portfolio's, and a buyer's own", async () => {
  const ask = (person: Person) =>
    person.get("{ appointments { id } appointmentsConnection { totalCount nodes { id } } }");
  const counts: Record<string, number> = {};
  for (const name of names) {
    if (people[name]!.token === null) {
      const { code } = await people[name]!.refused("{ appointments { id } }");
      counts[name] = code === "UNAUTHENTICATED" ? 0 : Number.NaN;
      continue;
    }
    const { appointments, appointmentsConnection } = await ask(people[name]!);
    expect([name, appointmentsConnection.totalCount, appointmentsConnection.nodes.length]).toEqual([
      name,
      appointments.length,
      Math.min(100, appointments.length),
    ]);
    counts[name] = appointments.length;
  }
  const { rows: held } = await world.owner.query(
    `select count(*) filter (where a.organization_id = $1)::int as owner, count(*) filter (where a.assignee_id = $2)::int as seller,
       count(*) filter (where a.buyer_id = $3 or a.lead_id = $4)::int as buyer, count(*) filter (where a.organization_id <> $1)::int as outsider,
       count(*) filter (where a.organization_id = $1 and (a.project_id = $5 or a.assignee_id = $6))::int as member
     from app_public.appointments a where a.deleted_at is null`,
    [
      world.harbour.id,
      world.sam.id,
      deals["the buyer's"]!.buyerId,
      deals["of the buyer's lead"]!.leadId,
      world.project.id,
      world.max.id,
    ],
  );
  const { owner, ...others } = held[0];
  expect(counts).toEqual({ owner, admin: owner, builder: 0, "other buyer": 0, anonymous: 0, ...others });
  for (const amount of Object.values(held[0])) expect(amount).toBeGreaterThan(0);
});

describe("deposits", () => {
  const pay = async (deal: string, input: Record<string, unknown>) => {
    const attempt = mutation("updateDeposit", async () => {
      const id = await createIn(world.owen)("createDeposit", { ...deals[deal], title: "Pay", amount: 100 });
      if (input.status === "PAID")
        for (const status of ["INVOICED", "PROCESSING"])
          await call(world.owen, "updateDeposit", { id, status });
      return { id, ...input };
    });
    return outcomes(people, attempt, shortCodes);
  };

  test.each([
    ["paid in part", { amountPaid: 50 }],
    ["paid", { status: "PAID" }],
    ["waived", { status: "WAIVED" }],
  ])("can be %s with the permission for money", async (_title, input) => {
    const nobody = {
      builder: "NOT_FOUND",
      "other buyer": "NOT_FOUND",
      outsider: "NOT_FOUND",
      anonymous: "UNAUTH",
    };
    expect(await pay("the seller's", input)).toEqual({
      owner: "yes",
      admin: "yes",
      member: "FORBID",
      seller: "FORBID",
      buyer: "NOT_FOUND",
      ...nobody,
    });
    expect(await pay("the buyer's", input)).toMatchObject({
      member: "FORBID",
      seller: "NOT_FOUND",
      buyer: "FORBID",
      ...nobody,
    });
  });
});

describe("an access token", () => {
  const token = (scopes: string[]) => programOf(world, world.owen, { scopes });

  test("sees records of leads with lead.read, and of buyers with buyer.read", async () => {
    const create = createIn(world.owen);
    const ids = {
      lead: await create("createContact", { ...deals["unassigned"], name: "L" }),
      buyer: await create("createContact", { ...deals["the buyer's"], name: "B" }),
    };
    const seen = async (scopes: string[]) => {
      const data = await (
        await token(scopes)
      ).get(
        "query ($lead: ID!, $buyer: ID!) { lead: contact(id: $lead) { id } buyer: contact(id: $buyer) { id } }",
        ids,
      );
      return Object.keys(data).filter((key) => data[key]);
    };
    expect(await seen(["lead.read"])).toEqual(["lead"]);
    expect(await seen(["buyer.*"])).toEqual(["buyer"]);
    expect(await seen(["lead.read", "buyer.read"])).toEqual(["lead", "buyer"]);
    expect(await seen(["project.read"])).toEqual([]);
    const reader = await token(["lead.read"]);
    const refusals = [
      await call(reader, "createContact", { ...deals["unassigned"], name: "No" }),
      await call(reader, "updateContact", { id: ids.lead, name: "No" }),
    ];
    expect(refusals.map((answer) => outcome(answer))).toEqual(["FORBIDDEN", "FORBIDDEN"]);
  });
});
