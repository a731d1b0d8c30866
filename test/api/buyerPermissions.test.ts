/**
 * Permissions for purchases, and what a buyer sees. The table is the specification:
 *
 *   yes            the operation succeeds, or the value is visible
 *   3              number of listed records; a connection has the same count
 *   null · none    null without an error · an empty list
 *   hidden         the record itself is not visible
 *   a code         refused with that code: FORBID is FORBIDDEN, UNAUTH is UNAUTHENTICATED, NOTFND is NOT_FOUND
 *
 * owner, admin, member and mia are of Harbour Homes, whose project Harbour View is not public and open to its members, and
 * whose Quiet Quay is in the lead mode PRIVATE; seller and builder are members of organizations affiliated with Harbour View;
 * buyer and other have accepted the invitations to one purchase each in Harbour View; the outsider owns Summit Sales.
 */
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import type { Person } from "../harness/api.ts";
import { ask, mutation, type Operation, outcomes, readMatrix } from "../harness/matrix.ts";
import { cast, type Portfolio, startPortfolio } from "../harness/portfolio.ts";
import { createIn, type Create } from "../harness/records.ts";
import { picture } from "../harness/upload.ts";
import { createOutbox, runJobs } from "../tasks/worker.ts";

const matrix = `
                                      | owner  | admin  | member | mia    | seller | builder | buyer  | other  | outsider | anonymous
buyer, the buyer's                    | yes    | yes    | yes    | yes    | null   | null    | yes    | null   | null     | UNAUTH
buyer, the other's                    | yes    | yes    | yes    | yes    | null   | null    | null   | yes    | null     | UNAUTH
buyer of the seller                   | yes    | yes    | yes    | yes    | yes    | null    | null   | null   | null     | UNAUTH
buyer of the member, private          | yes    | yes    | yes    | null   | null   | null    | null   | null   | null     | UNAUTH
buyer, foreign                        | null   | null   | null   | null   | null   | null    | null   | null   | yes      | UNAUTH
buyers                                | 4      | 4      | 4      | 3      | 1      | none    | 1      | 1      | 1        | UNAUTH
buyers of the project                 | 3      | 3      | 3      | 3      | 1      | none    | 1      | 1      | none     | UNAUTH
buyers, query                         | 4      | 4      | 4      | 3      | 1      | none    | none   | none   | 1        | UNAUTH
buyersConnection                      | 4      | 4      | 4      | 3      | 1      | none    | 1      | 1      | 1        | UNAUTH
project.buyers                        | 3      | 3      | 3      | 3      | 1      | null    | null   | null   | hidden   | hidden
unit.buyer                            | yes    | yes    | yes    | yes    | null   | null    | yes    | hidden | hidden   | hidden
lot.buyer                             | yes    | yes    | yes    | yes    | null   | null    | hidden | yes    | hidden   | hidden
lead.buyer                            | yes    | yes    | yes    | yes    | hidden | hidden  | hidden | hidden | hidden   | UNAUTH
viewer.purchases                      | none   | none   | none   | none   | none   | none    | 1      | 1      | none     | hidden
buyer.dob                             | yes    | yes    | null   | null   | hidden | hidden  | null   | hidden | hidden   | UNAUTH
buyer.amountFinanced                  | yes    | yes    | yes    | yes    | hidden | hidden  | yes    | hidden | hidden   | UNAUTH
buyer.metadata                        | yes    | yes    | yes    | yes    | hidden | hidden  | null   | hidden | hidden   | UNAUTH
buyer.metadata of the seller          | yes    | yes    | yes    | yes    | yes    | hidden  | hidden | hidden | hidden   | UNAUTH
buyer.lead                            | yes    | yes    | yes    | yes    | hidden | hidden  | null   | hidden | hidden   | UNAUTH
buyer.leadSource                      | yes    | yes    | yes    | yes    | hidden | hidden  | null   | hidden | hidden   | UNAUTH
buyer.agent                           | yes    | yes    | yes    | yes    | hidden | hidden  | yes    | hidden | hidden   | UNAUTH
buyer.agent of the seller             | yes    | yes    | yes    | yes    | yes    | hidden  | hidden | hidden | hidden   | UNAUTH
buyer.user                            | yes    | yes    | yes    | yes    | hidden | hidden  | yes    | hidden | hidden   | UNAUTH
buyer.user.email                      | null   | null   | null   | null   | hidden | hidden  | yes    | hidden | hidden   | UNAUTH
buyer.assignee                        | yes    | yes    | yes    | yes    | hidden | hidden  | yes    | hidden | hidden   | UNAUTH
buyer.assignee.email                  | yes    | yes    | yes    | yes    | hidden | hidden  | null   | hidden | hidden   | UNAUTH
buyer.assignee.phone                  | yes    | yes    | yes    | yes    | hidden | hidden  | yes    | hidden | hidden   | UNAUTH
buyer.events                          | 3      | 3      | 3      | 3      | hidden | hidden  | none   | hidden | hidden   | UNAUTH
buyer.allowedTransitions              | 2      | 2      | 2      | 2      | hidden | hidden  | none   | hidden | hidden   | UNAUTH
buyer.documents                       | 2      | 2      | 2      | 2      | hidden | hidden  | 1      | hidden | hidden   | UNAUTH
buyer.reservation                     | yes    | yes    | yes    | yes    | hidden | hidden  | yes    | hidden | hidden   | UNAUTH
events of the purchase                | 3      | 3      | 3      | 3      | none   | none    | none   | none   | none     | UNAUTH
createBuyer                           | yes    | yes    | yes    | yes    | yes    | FORBID  | FORBID | FORBID | NOTFND   | UNAUTH
createBuyer, of a claimed unit        | CLAIM  | CLAIM  | CLAIM  | CLAIM  | CLAIM  | FORBID  | FORBID | NOTFND | NOTFND   | UNAUTH
createBuyer, private project          | yes    | yes    | yes    | yes    | NOTFND | NOTFND  | NOTFND | NOTFND | NOTFND   | UNAUTH
createBuyer for somebody else's deal  | yes    | yes    | FORBID | yes    | NOTFND | NOTFND  | NOTFND | NOTFND | NOTFND   | UNAUTH
updateBuyer, the buyer's              | yes    | yes    | yes    | yes    | NOTFND | NOTFND  | FORBID | NOTFND | NOTFND   | UNAUTH
updateBuyer of the seller             | yes    | yes    | yes    | yes    | yes    | NOTFND  | NOTFND | NOTFND | NOTFND   | UNAUTH
updateBuyer of the member, private    | yes    | yes    | yes    | NOTFND | NOTFND | NOTFND  | NOTFND | NOTFND | NOTFND   | UNAUTH
updateBuyer, a step of the buyer's    | STEP   | STEP   | STEP   | STEP   | NOTFND | NOTFND  | FORBID | NOTFND | NOTFND   | UNAUTH
deleteBuyer, a draft                  | yes    | yes    | yes    | yes    | NOTFND | NOTFND  | NOTFND | NOTFND | NOTFND   | UNAUTH
deleteBuyer, the buyer's              | CONFL  | CONFL  | CONFL  | CONFL  | NOTFND | NOTFND  | FORBID | NOTFND | NOTFND   | UNAUTH
convertLead, open project             | yes    | yes    | yes    | yes    | NOTFND | NOTFND  | NOTFND | NOTFND | NOTFND   | UNAUTH
convertLead of the seller             | yes    | yes    | yes    | yes    | yes    | NOTFND  | NOTFND | NOTFND | NOTFND   | UNAUTH
convertLead of the member, private    | yes    | yes    | yes    | NOTFND | NOTFND | NOTFND  | NOTFND | NOTFND | NOTFND   | UNAUTH
inviteBuyer, open project             | yes    | yes    | yes    | yes    | NOTFND | NOTFND  | NOTFND | NOTFND | NOTFND   | UNAUTH
inviteBuyer of the seller             | yes    | yes    | yes    | yes    | yes    | NOTFND  | NOTFND | NOTFND | NOTFND   | UNAUTH
inviteBuyer, the buyer's              | CONFL  | CONFL  | CONFL  | CONFL  | NOTFND | NOTFND  | FORBID | NOTFND | NOTFND   | UNAUTH
acceptBuyerInvite with a guess        | INPUT  | INPUT  | INPUT  | INPUT  | INPUT  | INPUT   | INPUT  | INPUT  | INPUT    | UNAUTH
`;

const codes: Record<string, string> = {
  FORBIDDEN: "FORBID",
  UNAUTHENTICATED: "UNAUTH",
  NOT_FOUND: "NOTFND",
  INVENTORY_UNAVAILABLE: "CLAIM",
  INVALID_TRANSITION: "STEP",
  CONFLICT: "CONFL",
  BAD_USER_INPUT: "INPUT",
};
const { rows } = readMatrix(matrix);

let world: Portfolio;
let create: Create;
let people: Record<string, Person>;
let operations: Record<string, Operation>;
let bea: Person, ben: Person;
/** Ids of the records. */
let known: Record<string, any>;

/** A query by id, optionally of the records at `path`. */
const readById =
  (field: string, id: string, path = ""): Operation =>
  async (person) => {
    const members = path.split(".").filter(Boolean);
    const leaf = /^(dob|amountFinanced|metadata|email|phone)$/.test(members.at(-1) ?? "")
      ? ""
      : "{ __typename }";
    const selection = members.length
      ? `{ ${members.join(" { ")} ${leaf} ${"}".repeat(members.length - 1)} }`
      : "{ id }";
    const answer = await person.ask(`query ($id: ID!) { ${field}(id: $id) ${selection} }`, { id });
    if (!members.length || answer.errors) return answer;
    let value = answer.data[field] ?? "hidden";
    for (const member of members) value = value === null || value === "hidden" ? value : value[member];
    return { ...answer, data: { value } };
  };
async function accept(buyerId: string, person: Person): Promise<void> {
  const outbox = await createOutbox();
  await world.owen.get(
    `mutation ($id: ID!, $email: EmailAddress) { inviteBuyer(input: { buyerId: $id, email: $email }) }`,
    { id: buyerId, email: person.email },
  );
  await runJobs(world.database.ownerUrl, outbox.provider);
  const token = /#purchase=(\S+)$/m.exec((await outbox.take())[0]!.text!)![1]!;
  await person.get(`mutation ($token: String!) { acceptBuyerInvite(input: { token: $token }) { id } }`, {
    token,
  });
  await outbox.remove();
}

beforeAll(async () => {
  world = await startPortfolio();
  const { owen, ada, max, mia, sam, olga, project, quiet, peak } = world;
  create = createIn(owen);
  [bea, ben] = (await Promise.all(["Bea Buyer", "Ben Buyer"].map(world.signUp))) as [Person, Person];
  people = cast(world, { mia, buyer: bea, other: ben });
  await ada.get(
    `mutation ($id: ID!) { updateUser(input: { id: $id, title: "Sales manager", phone: "+14165550100" }) { id } }`,
    { id: ada.id },
  );

  let serial = 0;
  const home = (input: Record<string, unknown> = {}) =>
    create("createUnit", {
      projectId: project.id,
      title: `Home ${++serial}`,
      status: "AVAILABLE",
      price: 400_000,
      metadata: { a: 1 },
      ...input,
    });
  const lead = (input: Record<string, unknown> = {}, person = owen) =>
    create("createLead", { projectId: project.id, name: `Lead ${++serial}`, ...input }, person);
  const file = `data:;base64,${(await picture()).toString("base64")}`;
  known = {
    plan: await create("createFloorPlan", { projectId: project.id, title: "Plan", status: "ACTIVE" }),
    otherPlan: await create("createFloorPlan", {
      projectId: project.id,
      title: "Other plan",
      status: "ACTIVE",
    }),
    lot: await create("createLot", { projectId: project.id, number: "1", status: "AVAILABLE", price: 1 }),
    otherLot: await create("createLot", {
      projectId: project.id,
      number: "2",
      status: "AVAILABLE",
      price: 1,
    }),
    freeLot: await create("createLot", { projectId: project.id, number: "3", status: "AVAILABLE", price: 1 }),
  };
  known.unit = await home({ floorPlanId: known.plan, lotId: known.lot });
  known.free = await home({ floorPlanId: known.plan });
  known.image = await create("uploadUnitImage", { unitId: known.unit, file });
  known.otherImage = await create("uploadUnitImage", { unitId: known.free, file });
  known.lead = await lead({
    name: "Bea Buyer",
    assigneeId: ada.id,
    source: "WALK_IN",
    agent: { name: "Ann Agent", email: "ann@example.com" },
  });
  await create("createLeadNote", { leadId: known.lead, text: "Haggles." });
  await create("createTask", { leadId: known.lead, title: "Call" });
  known.reservation = await create("createReservation", {
    unitId: known.unit,
    leadId: known.lead,
    acceptedTerms: true,
    notes: "Inner circle.",
    metadata: { a: 1 },
  });
  known.shown = await create("uploadReservationDocument", {
    reservationId: known.reservation,
    file,
    visibleToBuyer: true,
  });
  known.agent = (
    await owen.get(`query ($id: ID!) { lead(id: $id) { agent { id } } }`, { id: known.lead })
  ).lead.agent.id;
  known.hidden = await create("uploadReservationDocument", { reservationId: known.reservation, file });
  known.negotiation = await create("createNegotiation", {
    unitId: known.unit,
    leadId: known.lead,
    floorPrice: 1,
    notes: "Secret.",
  });
  known.offer = await create("createOffer", {
    negotiationId: known.negotiation,
    side: "BUYER",
    price: 395_000,
  });
  known.response = await create("createOfferResponse", { offerId: known.offer, action: "ACCEPT" });
  known.own = await create("convertLead", { leadId: known.lead });
  await owen.get(
    `mutation ($id: ID!) { updateBuyer(input: { id: $id, dob: "1980-01-02", amountFinanced: 300000, metadata: { a: 1 } }) { id } }`,
    {
      id: known.own,
    },
  );
  known.others = await create("createBuyer", { projectId: project.id, price: 2, lotId: known.otherLot });
  known.sams = await create(
    "createBuyer",
    { projectId: project.id, price: 3, metadata: { a: 1 }, agent: { name: "Sal Agent" } },
    sam,
  );
  known.maxs = await create("createBuyer", { projectId: quiet.id, price: 4, assigneeId: max.id });
  known.foreign = await create("createBuyer", { projectId: peak.id, price: 5 }, olga);
  /** Creates related records of a lead or purchase; returns the ids of those that its buyer sees. */
  const children = async (of: Record<string, unknown>) => {
    await create("createContact", { ...of, name: "Carl Contact", role: "SPOUSE" });
    await create("createPhoneCall", { ...of, direction: "OUTBOUND" });
    await create("createLeadNote", { ...of, text: "Haggles." });
    await create("createTask", { ...of, title: "Call" });
    await create("createAgreement", { ...of, title: "Draft", type: "PURCHASE" });
    const agreement = await create("createAgreement", {
      ...of,
      title: "Contract",
      type: "PURCHASE",
      status: "SENT",
    });
    const soon = Date.now() + ++serial * 86_400_000;
    const appointment = await create("createAppointment", {
      ...of,
      type: "SALES_MEETING",
      hostId: max.id,
      startsAt: new Date(soon).toISOString(),
      endsAt: new Date(soon + 3_600_000).toISOString(),
    });
    const deposit = await create("createDeposit", { ...of, title: "First", amount: 100 });
    return { agreement, appointment, deposit };
  };
  known.children = [await children({ buyerId: known.own })];
  await children({ buyerId: known.others });
  await children({ buyerId: known.sams });
  known.personalization = await create("createPersonalization", { unitId: known.unit, buyerId: known.own });
  await create("createPersonalization", { unitId: known.free });
  const otherNegotiation = await create("createNegotiation", { unitId: known.free, leadId: await lead() });
  await create("createOffer", { negotiationId: otherNegotiation, side: "BUYER", price: 1 });
  await accept(known.own, bea);
  await accept(known.others, ben);
  // Only the events of the purchase are counted, not those of invitations.
  const filter = `filter: { names: ["buyer.created", "buyer.updated", "buyer.invitation_accepted"] }`;

  const draft = (input: Record<string, unknown> = {}) =>
    create("createBuyer", { projectId: project.id, price: 1, ...input });
  const mails = () => world.owner.query("delete from app_private.limit_uses");
  const invitation = (input: () => object | Promise<object>) =>
    mutation("inviteBuyer", async () => ({ ...(await input()) }), "");
  operations = {
    "buyer, the buyer's": readById("buyer", known.own),
    "buyer, the other's": readById("buyer", known.others),
    "buyer of the seller": readById("buyer", known.sams),
    "buyer of the member, private": readById("buyer", known.maxs),
    "buyer, foreign": readById("buyer", known.foreign),
    buyers: ask("{ buyers { id } }"),
    "buyers of the project": ask(`query ($ids: [ID!]) { buyers(filter: { projectIds: $ids }) { id } }`, {
      ids: [project.slug],
    }),
    "buyers, query": ask(`{ buyers(filter: { query: "" }) { id } }`),
    buyersConnection: ask("{ buyersConnection { totalCount nodes { id } } }"),
    "project.buyers": readById("project", project.id, "buyers"),
    "unit.buyer": readById("unit", known.unit, "buyer"),
    "lot.buyer": readById("lot", known.otherLot, "buyer"),
    "lead.buyer": readById("lead", known.lead, "buyer"),
    "viewer.purchases": async (person) => {
      const answer = await person.ask("{ viewer { purchases { id } } }");
      return { ...answer, data: { value: answer.data.viewer?.purchases ?? "hidden" } };
    },
    "buyer.dob": readById("buyer", known.own, "dob"),
    "buyer.amountFinanced": readById("buyer", known.own, "amountFinanced"),
    "buyer.metadata": readById("buyer", known.own, "metadata"),
    "buyer.metadata of the seller": readById("buyer", known.sams, "metadata"),
    "buyer.lead": readById("buyer", known.own, "lead"),
    "buyer.leadSource": readById("buyer", known.own, "leadSource"),
    "buyer.agent": readById("buyer", known.own, "agent"),
    "buyer.agent of the seller": readById("buyer", known.sams, "agent"),
    "buyer.user": readById("buyer", known.own, "user"),
    "buyer.user.email": readById("buyer", known.own, "user.email"),
    "buyer.assignee": readById("buyer", known.own, "assignee"),
    "buyer.assignee.email": readById("buyer", known.own, "assignee.email"),
    "buyer.assignee.phone": readById("buyer", known.own, "assignee.phone"),
    "buyer.events": async (person) => {
      const answer = await person.ask(`query ($id: ID!) { buyer(id: $id) { events(${filter}) { id } } }`, {
        id: known.own,
      });
      return { ...answer, data: { value: answer.data.buyer?.events ?? "hidden" } };
    },
    "buyer.allowedTransitions": readById("buyer", known.own, "allowedTransitions"),
    "buyer.documents": readById("buyer", known.own, "documents"),
    "buyer.reservation": readById("buyer", known.own, "reservation"),
    "events of the purchase": ask(
      `query ($id: ID) { events(filter: { subjectId: $id, names: ["buyer.created", "buyer.updated", "buyer.invitation_accepted"] }) { id } }`,
      { id: known.own },
    ),
    createBuyer: mutation("createBuyer", async () => ({ projectId: project.id, price: 1 })),
    "createBuyer, of a claimed unit": mutation("createBuyer", () => ({
      projectId: project.id,
      price: 1,
      unitId: known.unit,
    })),
    "createBuyer, private project": mutation("createBuyer", () => ({ projectId: quiet.id, price: 1 })),
    "createBuyer for somebody else's deal": mutation("createBuyer", () => ({
      projectId: quiet.id,
      price: 1,
      assigneeId: mia.id,
    })),
    "updateBuyer, the buyer's": mutation("updateBuyer", () => ({ id: known.own, company: `C${++serial}` })),
    "updateBuyer of the seller": mutation("updateBuyer", () => ({ id: known.sams, company: `C${++serial}` })),
    "updateBuyer of the member, private": mutation("updateBuyer", () => ({
      id: known.maxs,
      company: `C${++serial}`,
    })),
    "updateBuyer, a step of the buyer's": mutation("updateBuyer", () => ({ id: known.own, status: "DRAFT" })),
    "deleteBuyer, a draft": mutation("deleteBuyer", async () => ({ id: await draft() })),
    "deleteBuyer, the buyer's": mutation("deleteBuyer", () => ({ id: known.own })),
    "convertLead, open project": mutation("convertLead", async () => ({
      leadId: await lead(),
      unitId: await home(),
    })),
    "convertLead of the seller": mutation("convertLead", async () => ({
      leadId: await lead({}, sam),
      unitId: await home(),
    })),
    "convertLead of the member, private": mutation("convertLead", async () => ({
      leadId: await lead({ projectId: quiet.id, assigneeId: max.id }),
      unitId: await home({ projectId: quiet.id }),
    })),
    "inviteBuyer, open project": invitation(async () => {
      await mails();
      return { buyerId: await draft(), email: "somebody@example.com" };
    }),
    "inviteBuyer of the seller": invitation(async () => {
      await mails();
      return { buyerId: known.sams, email: "somebody@example.com" };
    }),
    "inviteBuyer, the buyer's": invitation(() => ({
      buyerId: known.own,
      email: "somebody@example.com",
    })),
    "acceptBuyerInvite with a guess": mutation("acceptBuyerInvite", () => ({ token: "plat_purchase_guess" })),
  };
});
afterAll(() => world.stop());

// Reads come first, so that mutations do not change their counts.
const isWrite = (row: { operation: string }) =>
  /^(create|update|delete|convert|invite|accept)/.test(row.operation);

describe("permissions for purchases", () => {
  const tries = (operation: string) => outcomes(people, operations[operation]!, codes);

  test.each(rows.filter((row) => !isWrite(row)))("$operation", async ({ operation, expected }) => {
    expect(await tries(operation)).toEqual(expected);
  });

  test("the table contains every operation", () => {
    expect(Object.keys(operations).sort()).toEqual(rows.map((row) => row.operation).sort());
  });

  describe("what a buyer sees", () => {
    let introspected: Promise<any> | undefined;
    /** The fields of a record with a value, including those of nested objects and lists. */
    async function shown(person: Person, finder: string, id: string): Promise<string[]> {
      const { __schema: schema } = await (introspected ??= world.owen
        .get(`{ __schema { queryType { fields { name type { ...T } } } types { name kind fields { name args { name type { kind } } type { ...T } } } } }
          fragment T on __Type { kind name ofType { kind name ofType { kind name ofType { kind name } } } }`));
      const named = (type: any): any => (type.ofType ? named(type.ofType) : type);
      const root = schema.queryType.fields.find((field: any) => field.name === finder);
      const type = schema.types.find((t: any) => t.name === named(root.type).name);
      const fields = type.fields.filter(
        (field: any) => !field.args.some((arg: any) => arg.type.kind === "NON_NULL"),
      );
      const selections = fields.map((field: any) => {
        const of = named(field.type);
        const selection = ["OBJECT", "INTERFACE", "UNION"].includes(of.kind)
          ? /Connection$/.test(field.name)
            ? "{ totalCount }"
            : "{ __typename }"
          : "";
        return `${field.name} ${selection}`;
      });
      const record: Record<string, any> = {};
      for (let from = 0; from < selections.length; from += 60) {
        const some = selections.slice(from, from + 60).join(" ");
        const answer = await person.ask(`query ($id: ID!) { record: ${finder}(id: $id) { ${some} } }`, {
          id,
        });
        expect(answer.errors).toBeUndefined();
        Object.assign(record, answer.data.record);
      }
      const isThere = (value: any) =>
        value !== null &&
        value !== undefined &&
        !(Array.isArray(value) && value.length === 0) &&
        value.totalCount !== 0;
      const shownFields = Object.keys(record).filter((name) => isThere(record[name]));
      const connections = Object.keys(record).filter((name) => /Connection$/.test(name));
      // A connection is consistent with its list.
      for (const name of connections)
        expect([name, isThere(record[name])]).toEqual([
          name,
          isThere(record[name.replace(/Connection$/, "")]),
        ]);
      return shownFields.filter((name) => !connections.includes(name)).sort();
    }

    test("queries by id find only the buyer's own records and what the project shows", async () => {
      const { __schema: schema } = await world.owen.get(
        `{ __schema { queryType { fields { name args { name type { kind ofType { name } } } type { name kind } } } } }`,
      );
      const finders: string[] = schema.queryType.fields
        .filter((f: any) => f.args.length === 1 && f.args[0].name === "id" && f.type.kind === "OBJECT")
        .map((f: any) => f.name);
      const tables = (
        await world.owner.query(
          `select c.relname as name from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attname = 'id'
           where c.relnamespace = 'app_public'::regnamespace and c.relkind in ('r', 'p') order by 1`,
        )
      ).rows.map((row) => row.name as string);
      const ids = new Map<string, string>();
      for (const table of tables)
        for (const row of (
          await world.owner.query(`select id from app_public.${table} order by id desc limit 12`)
        ).rows)
          ids.set(row.id, table);
      const own = await world.owner.query(
        "select id from app_public.events where organization_id is null and actor_id = $1 or subject_id = $1 order by 1",
        [bea.id],
      );
      for (const { id } of own.rows) ids.set(id, "events");
      const person = (
        await world.owner.query("select person_id from app_public.buyers where id = $1", [known.own])
      ).rows[0].person_id;
      ids.set(person, "persons");
      const all = [...ids.keys()];
      const seen: Record<string, string[]> = {};
      // Each finder is called with the ids of its own table.
      for (const finder of finders)
        for (let at = 0; at < all.length; at += 25) {
          const some = all.slice(at, at + 25);
          // The ids are variables, so that all requests of a finder share one plan.
          const answer = await bea.ask(
            `query (${some.map((_, i) => `$i${i}: ID!`).join(", ")}) {
              ${some.map((_, i) => `r${i}: ${finder}(id: $i${i}) { id }`).join(" ")} }`,
            Object.fromEntries(some.map((id, i) => [`i${i}`, id])),
          );
          expect(answer.errors).toBeUndefined();
          for (const record of Object.values<any>(answer.data))
            if (record) (seen[ids.get(record.id)!] ??= []).push(record.id);
        }
      // Offers have two finders.
      for (const [table, list] of Object.entries(seen)) seen[table] = [...new Set(list)].toSorted();
      const apps = await world.owner.query("select id from app_public.integration_apps order by 1");
      const offices = await world.owner.query(
        "select id from app_public.sales_offices where project_id = any ($1) order by 1",
        [[world.project.id, world.park.id]],
      );
      expect(seen).toEqual({
        agents: [known.agent],
        agreements: known.children.map((c: any) => c.agreement).sort(),
        appointments: known.children.map((c: any) => c.appointment).sort(),
        deposits: known.children.map((c: any) => c.deposit).sort(),
        negotiations: [known.negotiation],
        offers: [known.offer],
        offer_responses: [known.response],
        personalizations: [known.personalization],
        persons: [person],
        buyers: [known.own],
        // Those of the account.
        events: own.rows.map((row) => row.id),
        floor_plans: [known.plan],
        integration_apps: apps.rows.map((row) => row.id),
        lots: [known.lot],
        // The public project makes its organization public.
        organizations: [world.harbour.id],
        projects: [world.project.id, world.park.id].sort(),
        reservation_documents: [known.shown],
        reservations: [known.reservation],
        // To buyers, a project shows what a public project shows to everybody.
        sales_offices: offices.rows.map((row) => row.id),
        unit_images: [known.image],
        units: [known.unit],
        // The assignee of the purchase and the host of the appointment.
        users: [bea.id, world.ada.id, world.max.id].sort(),
      });
    });

    test("root lists contain only the buyer's own records and public ones", async () => {
      const { __schema: schema } = await world.owen.get(
        `{ __schema { queryType { fields { name args { name type { kind } } type { kind name ofType { kind name ofType { kind name ofType { kind } } } } } } } }`,
      );
      const found: Record<string, unknown> = {};
      for (const field of schema.queryType.fields) {
        if (field.args.some((arg: any) => arg.type.kind === "NON_NULL")) continue;
        const text = JSON.stringify(field.type);
        if (!/"LIST"/.test(text) && !/Connection"/.test(text)) continue;
        const isConnection = /Connection"/.test(text);
        const answer = await bea.ask(
          `{ list: ${field.name} ${isConnection ? "{ totalCount }" : "{ __typename }"} }`,
        );
        const list = answer.data?.list;
        const amount = isConnection ? list?.totalCount : list?.length;
        if (amount) found[field.name] = amount;
      }
      // Only events of the account: signing up, signing in, the verified address.
      const { events, eventsConnection, ...others } = found;
      expect(eventsConnection).toBe(events);
      expect(
        (await bea.get("{ events { subjectType } }")).events.every((e: any) => e.subjectType === "user"),
      ).toBe(true);
      expect(others).toEqual({
        appointments: 1,
        appointmentsConnection: 1,
        offers: 1,
        offersConnection: 1,
        buyers: 1,
        buyersConnection: 1,
        // Applications that can be connected, also by an organization if the viewer has one.
        organizationIntegrationApps: expect.any(Number),
        userIntegrationApps: expect.any(Number),
        publicProjects: 1,
        reservations: 1,
        reservationsConnection: 1,
      });
    });

    test.each([
      [
        "lot",
        () => known.lot,
        [
          "currency",
          "id",
          "insertedAt",
          "multiUnit",
          "number",
          "organizationId",
          "project",
          "projectId",
          "status",
          "statusChangedAt",
          "title",
          "units",
          "updatedAt",
          "version",
        ],
      ],
      [
        "floorPlan",
        () => known.plan,
        [
          "availableCount",
          "homeType",
          "id",
          "insertedAt",
          "organizationId",
          "project",
          "projectId",
          "sequence",
          "status",
          "title",
          "units",
          "updatedAt",
          "version",
        ],
      ],
      [
        "reservation",
        () => known.reservation,
        [
          "acceptedTerms",
          "acceptedTermsAt",
          "assignee",
          "assigneeId",
          "currency",
          "documents",
          "expiration",
          "extendedCount",
          "id",
          "insertedAt",
          "isSelfService",
          "leadId",
          "listPriceSnapshot",
          "negotiation",
          "number",
          "organizationId",
          "price",
          "project",
          "projectId",
          "purchase",
          "purchaseId",
          "status",
          "statusChangedAt",
          "totalContractPrice",
          "unit",
          "unitId",
          "updatedAt",
          "userId",
          "version",
        ],
      ],
      [
        "negotiation",
        () => known.negotiation,
        [
          "acceptedOffer",
          "buyer",
          "buyerId",
          "closedAt",
          "currency",
          "id",
          "insertedAt",
          "leadId",
          "listPrice",
          "offerExpirationHours",
          "offers",
          "openedAt",
          "organizationId",
          "project",
          "projectId",
          "reservation",
          "reservationId",
          "round",
          "status",
          "statusChangedAt",
          "unit",
          "unitId",
          "updatedAt",
          "version",
        ],
      ],
      [
        "offer",
        () => known.offer,
        [
          "createdById",
          "currency",
          "expiresAt",
          "id",
          "insertedAt",
          "kind",
          "legalName",
          "manual",
          "negotiation",
          "negotiationId",
          "number",
          "organizationId",
          "price",
          "project",
          "projectId",
          "response",
          "round",
          "sequence",
          "side",
          "status",
          "statusChangedAt",
          "updatedAt",
          "version",
        ],
      ],
      [
        "deposit",
        () => known.children[0].deposit,
        [
          "allowedTransitions",
          "amount",
          "amountDue",
          "amountPaid",
          "amountRefunded",
          "amountToReturn",
          "buyer",
          "buyerId",
          "currency",
          "heldBy",
          "id",
          "insertedAt",
          "isOverdue",
          "isReservationFee",
          "offer",
          "offerId",
          "organizationId",
          "project",
          "projectId",
          "sequence",
          "status",
          "statusChangedAt",
          "title",
          "updatedAt",
          "version",
        ],
      ],
      [
        "agreement",
        () => known.children[0].agreement,
        [
          "allowedTransitions",
          "buyer",
          "buyerId",
          "id",
          "insertedAt",
          "number",
          "organizationId",
          "project",
          "projectId",
          "reminderDays",
          "sentAt",
          "signingProvider",
          "status",
          "statusChangedAt",
          "title",
          "type",
          "updatedAt",
          "version",
        ],
      ],
      [
        "appointment",
        () => known.children[0].appointment,
        [
          "allowedTransitions",
          "buyer",
          "buyerId",
          "endsAt",
          "host",
          "hostId",
          "id",
          "insertedAt",
          "organizationId",
          "project",
          "projectId",
          "salesOffice",
          "startsAt",
          "status",
          "statusChangedAt",
          "timeZone",
          "type",
          "updatedAt",
          "version",
        ],
      ],
      [
        "personalization",
        () => known.personalization,
        [
          "allowedTransitions",
          "buyer",
          "buyerId",
          "creditsTotal",
          "currency",
          "discountsTotal",
          "id",
          "insertedAt",
          "organizationId",
          "project",
          "projectId",
          "selectionsTotal",
          "status",
          "statusChangedAt",
          "total",
          "unit",
          "unitId",
          "updatedAt",
          "version",
        ],
      ],
    ] as [string, () => string, string[]][])(
      "visible fields of the buyer's own %s",
      async (finder, id, fields) => {
        expect(await shown(bea, finder, id())).toEqual(fields);
      },
    );
    test("visible fields of the buyer's own purchase", async () => {
      expect(await shown(bea, "buyer", known.own!)).toEqual([
        "acceptedOffer",
        "agent",
        "agentId",
        "agreements",
        "amountFinanced",
        "appointments",
        "assignee",
        "assigneeId",
        "currency",
        "deposits",
        "documents",
        "email",
        "firstName",
        "fullName",
        "id",
        "insertedAt",
        "invitedAt",
        "lastName",
        "leadId",
        "negotiations",
        "netPurchasePrice",
        "netPurchasePriceBalance",
        "organizationId",
        "person",
        "personId",
        "personalization",
        "personalizations",
        "price",
        "project",
        "projectId",
        "purchaseDate",
        "purchaseFirmDate",
        "reservation",
        "reservationId",
        "source",
        "sourceId",
        "status",
        "statusChangedAt",
        "unit",
        "unitId",
        "updatedAt",
        "user",
        "userId",
        "version",
      ]);
    });
    test("visible fields of the buyer's own unit", async () => {
      expect(await shown(bea, "unit", known.unit!)).toEqual([
        "buyer",
        "constructionStatus",
        "currency",
        "daysOnMarket",
        "floorPlan",
        "floorPlanId",
        "floorPlanOverrides",
        "id",
        "images",
        "insertedAt",
        "isAccessible",
        "isBmr",
        "isFurnished",
        "isSpec",
        "listingDate",
        "lot",
        "lotId",
        "model",
        "moveInReady",
        "organizationId",
        "project",
        "projectId",
        "soldAt",
        "standardStatus",
        "status",
        "statusChangedAt",
        "title",
        "updatedAt",
        "version",
      ]);
    });
    test("visible fields of the project", async () => {
      expect(await shown(bea, "project", world.project.id)).toEqual([
        "address",
        "allowMultipleOffers",
        "allowedTransitions",
        "city",
        "currency",
        "floorPlans",
        "holdExpiration",
        "holdExpirationLimit",
        "holdsPerOrganization",
        "holdsPerPerson",
        "id",
        "insertedAt",
        "leadAssignment",
        "lots",
        "organization",
        "organizationId",
        "publicHoldExpiration",
        "publicReservationFeeRequired",
        "publicReservations",
        "rescissionDays",
        "reservationExpiration",
        "salesOffice",
        "serviceIndex",
        "slug",
        "soldTrigger",
        "status",
        "timeZone",
        "title",
        "type",
        "units",
        "updatedAt",
        "version",
        "visibility",
      ]);
    });
    test("visible fields of the people who serve the buyer", async () => {
      expect(await shown(bea, "user", world.ada.id!)).toEqual([
        "firstName",
        "fullName",
        "id",
        "insertedAt",
        "language",
        "lastName",
        "phone",
        "slug",
        "status",
        "timeZone",
        "title",
        "updatedAt",
        "version",
      ]);
    });
  });

  test.each(rows.filter(isWrite))("$operation", async ({ operation, expected }) => {
    expect(await tries(operation)).toEqual(expected);
  });
});
