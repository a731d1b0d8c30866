/** One person with several homes: a lead becomes several purchases, and the person keeps one identity. */
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import type { Person } from "../harness/api.ts";
import { createIn, type Create } from "../harness/records.ts";
import { expectUnchanged } from "../harness/expectUnchanged.ts";
import { affiliate, createProject, programOf, startWorld, type World } from "../harness/world.ts";
import { createOutbox, runJobs, type Outbox } from "../tasks/worker.ts";

let world: World;
let outbox: Outbox;
let owen: Person;
let create: Create;
let project: string;
let reason: string;
let serial = 0;

beforeAll(async () => {
  world = await startWorld();
  outbox = await createOutbox();
  owen = world.owen;
  create = createIn(owen);
  project = world.project.id;
  reason = await create("createFalloutReason", {
    projectId: project,
    name: "Changed their mind",
    appliesTo: ["BUYER", "LEAD", "RESERVATION"],
  });
});
afterAll(async () => {
  await outbox.remove();
  await world.stop();
});

const unit = (input: Record<string, unknown> = {}) =>
  create("createUnit", {
    projectId: project,
    title: `Home ${++serial}`,
    status: "AVAILABLE",
    price: 400_000,
    ...input,
  });
const lead = (input: Record<string, unknown> = {}) =>
  create("createLead", {
    projectId: project,
    name: "Laura Lens",
    email: `laura.${++serial}@example.com`,
    ...input,
  });
const reserve = (leadId: string, unitId: string) =>
  create("createReservation", { acceptedTerms: true, leadId, unitId });
const CONVERT = `mutation ($input: ConvertLeadInput!) { convertLead(input: $input) { id } }`;
const convert = async (input: Record<string, unknown>): Promise<string> =>
  (await owen.get(CONVERT, { input })).convertLead.id;
const update = (type: string, input: Record<string, unknown>) =>
  owen.get(`mutation ($input: Update${type}Input!) { update${type}(input: $input) { id } }`, { input });
const cancel = (id: string) => update("Buyer", { id, status: "CANCELLED", falloutReasonId: reason });
const LEAD = `query ($id: ID!) { lead(id: $id) { status source convertedAt falloutReason { id }
  buyer { id } purchases { id } person { id name leads { id } purchases { id } } events { name } } }`;
const readLead = async (id: string, person = owen) => (await person.get(LEAD, { id })).lead;
const ids = (records: { id: string }[]) => records.map(({ id }) => id);

test("a lead becomes a purchase for each of its reservations, and is converted once", async () => {
  const leadId = await lead({ source: "WALK_IN" });
  const [first, second, third] = [await unit(), await unit({ price: 500_000 }), await unit()];
  const reservations = [await reserve(leadId, first), await reserve(leadId, second)];
  expect(await owen.refused(CONVERT, { input: { leadId } })).toMatchObject({
    code: "BAD_USER_INPUT",
    field: "reservationId",
  });
  const purchases = [await convert({ leadId, reservationId: reservations[0] })];
  const { convertedAt } = await readLead(leadId);
  // A repeated request does not convert the other reservation.
  expect(await expectUnchanged(world, () => owen.refused(CONVERT, { input: { leadId } }))).toMatchObject({
    code: "CONFLICT",
    field: "leadId",
    existingId: purchases[0],
  });
  purchases.push(await convert({ leadId, reservationId: reservations[1] }));
  // A third one, reserved by a lead that is already a buyer, and created manually.
  await reserve(leadId, third);
  purchases.push(await create("createBuyer", { projectId: project, leadId, unitId: third, price: 1 }));
  for (const input of [
    { leadId, reservationId: reservations[1] },
    { leadId, unitId: second },
  ])
    expect(await expectUnchanged(world, () => owen.refused(CONVERT, { input }))).toMatchObject({
      code: "CONFLICT",
      existingId: purchases[1],
    });
  expect(await readLead(leadId)).toMatchObject({
    status: "CONVERTED",
    source: "WALK_IN",
    convertedAt,
    buyer: { id: purchases[2] },
    purchases: [...purchases].reverse().map((id) => ({ id })),
    person: { name: "Laura Lens", leads: [{ id: leadId }] },
  });
  const { rows } = await world.owner.query(
    "select changes -> 'status' ->> 1 as step from app_public.events where subject_id = $1 and changes ? 'status' order by id",
    [leadId],
  );
  expect(rows.map(({ step }) => step)).toEqual(["RESERVED", "CONVERTED"]);
  const { leadsConnection } = await owen.get(
    `query ($id: ID!) { leadsConnection(filter: { projectIds: [$id], status: [CONVERTED] }) { totalCount } }`,
    { id: project },
  );
  expect(leadsConnection.totalCount).toBe(1);
  const { buyer } = await owen.get(
    `query ($id: ID!) { buyer(id: $id) { source person { purchases { id } } } }`,
    {
      id: purchases[0],
    },
  );
  expect(buyer).toEqual({
    source: "WALK_IN",
    person: { purchases: [...purchases].reverse().map((id) => ({ id })) },
  });

  // It is only open again after the last purchase is cancelled.
  await cancel(purchases[1]!);
  await cancel(purchases[2]!);
  expect(await readLead(leadId)).toMatchObject({ status: "CONVERTED", buyer: { id: purchases[0] } });
  await cancel(purchases[0]!);
  expect(await readLead(leadId)).toMatchObject({ status: "NEW", convertedAt: null, buyer: null });
});

test("has at most one purchase without a home, also with concurrent requests", async () => {
  const leadId = await lead();
  const input = { projectId: project, leadId, price: 1 };
  const answers = await Promise.all(
    Array.from({ length: 10 }, () =>
      owen.ask(`mutation ($input: CreateBuyerInput!) { createBuyer(input: $input) { id } }`, { input }),
    ),
  );
  const [won, ...more] = answers.filter((answer) => !answer.errors);
  expect(more).toEqual([]);
  for (const { errors } of answers.filter((answer) => answer.errors))
    expect(errors![0]!.extensions.code).toBe("CONFLICT");
  expect(
    await owen.refused(`mutation ($input: CreateBuyerInput!) { createBuyer(input: $input) { id } }`, {
      input,
    }),
  ).toMatchObject({ code: "CONFLICT", existingId: won!.data.createBuyer.id });
  await create("createBuyer", { ...input, unitId: await unit() });
});

test("a payment of the lead counts for one of its purchases", async () => {
  const leadId = await lead();
  const [first, second] = [await unit(), await unit()];
  const reservations = [await reserve(leadId, first), await reserve(leadId, second)];
  const deposit = async (input: Record<string, unknown>) => {
    const id = await create("createDeposit", { leadId, title: "Deposit", amount: 1000, ...input });
    await update("Deposit", { id, amountPaid: 1000 });
    return id;
  };
  const general = await deposit({});
  const ofSecond = await deposit({ reservationId: reservations[1] });
  const [a, b] = [
    await convert({ leadId, reservationId: reservations[0] }),
    await convert({ leadId, reservationId: reservations[1] }),
  ];
  const { buyers } = await owen.get(
    `query ($unitIds: [ID!]) { buyers(filter: { unitIds: $unitIds }, orderBy: [INSERTED_AT_ASC]) {
      id netPurchasePriceBalance deposits { id } } }`,
    { unitIds: [first, second] },
  );
  expect(buyers).toEqual([
    { id: a, netPurchasePriceBalance: "399000.00", deposits: [{ id: general }] },
    { id: b, netPurchasePriceBalance: "399000.00", deposits: [{ id: ofSecond }] },
  ]);
});

test("a person can register in another project, and again after the lead was closed", async () => {
  const email = "laura@example.com";
  const leadId = await lead({ email, source: "WALK_IN" });
  const other = await createProject(owen, { organizationId: world.harbour.id, title: "Harbour Hills" });
  const there = await lead({ projectId: other.id, email: "LAURA@example.com" });
  const CREATE = `mutation ($input: CreateLeadInput!) { createLead(input: $input) { id } }`;
  const again = { projectId: project, name: "Laura Lens", email };
  expect(await owen.refused(CREATE, { input: again })).toMatchObject({
    code: "CONFLICT",
    existingId: leadId,
  });
  const purchase = await convert({ leadId, unitId: await unit() });
  const anew = await lead({ email });
  expect(await owen.refused(CREATE, { input: again })).toMatchObject({ code: "CONFLICT", existingId: anew });
  const { person } = await readLead(leadId);
  expect(person).toEqual({
    id: expect.any(String),
    name: "Laura Lens",
    leads: expect.arrayContaining([leadId, there, anew].map((id) => ({ id }))),
    purchases: [{ id: purchase }],
  });
  expect(await readLead(there)).toMatchObject({ person });
  // A message by the contact form is added to the open lead.
  const { contactProject } = await owen.get(
    `mutation ($input: ContactProjectInput!) { contactProject(input: $input) { lead { id } leadCreated } }`,
    { input: { projectId: project, name: "Laura", email, text: "One more?" } },
  );
  expect(contactProject).toEqual({ lead: { id: anew }, leadCreated: false });
  // While another lead is open, cancelling the former purchase makes its lead LOST, with the reason of the
  // purchase.
  await cancel(purchase);
  expect(await readLead(leadId)).toMatchObject({
    status: "LOST",
    source: "WALK_IN",
    falloutReason: { id: reason },
  });
  expect(
    await owen.refused(`mutation ($input: UpdateLeadInput!) { updateLead(input: $input) { id } }`, {
      input: { id: leadId, status: "HOT" },
    }),
  ).toMatchObject({ code: "CONFLICT", field: "email" });

  // A change of the address keeps the person, unless it is the address of a known person.
  await update("Lead", { id: there, email: "lens@example.com" });
  expect((await readLead(there)).person.id).not.toBe(person.id);
  await update("Lead", { id: there, email });
  expect((await readLead(there)).person.id).toBe(person.id);
  const alone = await lead({ email: "lone@example.com" });
  const { person: lone } = await readLead(alone);
  await update("Lead", { id: alone, email: "lonely@example.com" });
  const bought = await convert({ leadId: alone, unitId: await unit() });
  expect((await readLead(alone)).person).toMatchObject({ id: lone.id, purchases: [{ id: bought }] });
  await update("Lead", { id: alone, email });
  expect((await readLead(alone)).person).toMatchObject({ id: person.id });
  expect(ids((await readLead(leadId)).person.purchases)).toContain(bought);
});

test("twenty concurrent registrations of one address in as many projects create one person", async () => {
  const projects = await Promise.all(
    Array.from({ length: 20 }, (_, i) =>
      createProject(owen, { organizationId: world.harbour.id, title: `Phase ${i}` }),
    ),
  );
  const made = await Promise.all(
    projects.map(({ id }) => lead({ projectId: id, email: "twenty@example.com" })),
  );
  expect(ids((await readLead(made[0]!)).person.leads).sort()).toEqual(made.sort());
});

test("persons of many leads take as many statements as that of one", async () => {
  const list = (first: number) =>
    world.statements(() =>
      owen.get(
        `query ($first: Int!) { leads(first: $first) { id purchases { id } person { id name leads { id } purchases { id unit { id } } } } }`,
        { first },
      ),
    );
  await list(1);
  const [one, many] = [await list(1), await list(20)];
  expect(many.result.leads).toHaveLength(20);
  expect(many.count).toBe(one.count);
});

test("viewers see of a person only their visible deals", async () => {
  const email = "secret@example.com";
  const elsewhere = await createProject(owen, { organizationId: world.harbour.id, title: "Elsewhere" });
  const hidden = await lead({ projectId: elsewhere.id, email });
  const home = await create("createBuyer", {
    projectId: elsewhere.id,
    leadId: hidden,
    price: 1,
  });
  const { person } = await readLead(hidden);

  // A lead of the agency with that address: the same person, with only that lead visible.
  await affiliate(world, world.project, world.summit, "AGENCY");
  const own = await createIn(world.olga)("createLead", { projectId: project, name: "L. Lens", email });
  expect((await readLead(own, world.olga)).person).toEqual({
    id: person.id,
    name: "L. Lens",
    leads: [{ id: own }],
    purchases: [],
  });
  const PERSON = `query ($id: ID!) { person(id: $id) { id leads { id } purchases { id } } }`;
  expect((await world.max.get(PERSON, { id: person.id })).person).toEqual({
    id: person.id,
    leads: [{ id: own }, { id: hidden }],
    purchases: [{ id: home }],
  });
  const stranger = await world.signUp("Stan Stranger");
  for (const viewer of [
    stranger,
    await programOf(world, owen, { scopes: ["project.read"], organizationId: world.harbour.id }),
  ])
    expect((await viewer.get(PERSON, { id: person.id })).person).toBeNull();
  expect(await world.anonymous.refused(PERSON, { id: person.id })).toMatchObject({ code: "UNAUTHENTICATED" });
  expect(
    await expectUnchanged(world, () => world.olga.refused(CONVERT, { input: { leadId: hidden } })),
  ).toMatchObject({ code: "NOT_FOUND", field: "leadId" });
  // In another organization, the same address is another person.
  const summits = await createProject(world.olga, { organizationId: world.summit.id, title: "Summit" });
  const theirs = await createIn(world.olga)("createLead", { projectId: summits.id, name: "Laura", email });
  expect((await readLead(theirs, world.olga)).person.id).not.toBe(person.id);
});

test("a user who accepted an invitation sees later purchases under the same address", async () => {
  const laura = await world.signUp("Laura Lens");
  const leadId = await lead({ email: laura.email });
  const first = await convert({ leadId, unitId: await unit() });
  await owen.get(`mutation ($id: ID!) { inviteBuyer(input: { buyerId: $id }) }`, { id: first });
  await runJobs(world.database.ownerUrl, outbox.provider);
  const mails = await outbox.take();
  const [token] = mails.flatMap(({ text }) => /#purchase=(\S+)$/m.exec(text!)?.[1] ?? []);
  await laura.get(`mutation ($token: String!) { acceptBuyerInvite(input: { token: $token }) { id } }`, {
    token,
  });

  const second = await convert({ leadId, reservationId: await reserve(leadId, await unit()) });
  // She reserves the third home herself.
  const unitId = await unit();
  const { createReservation } = await laura.get(
    `mutation ($input: CreateReservationInput!) { createReservation(input: $input) { id } }`,
    { input: { unitId, acceptedTerms: true } },
  );
  const third = await convert({ leadId, reservationId: createReservation.id });
  // A draft, and a purchase under another address, require invitations of their own.
  await create("createBuyer", { projectId: project, leadId, price: 1 });
  await create("createBuyer", {
    projectId: project,
    leadId,
    unitId: await unit(),
    price: 1,
    status: "FIRM",
    email: "her.mother@example.com",
  });
  const { viewer, buyers } = await laura.get(
    `{ viewer { purchases { id } } buyers { id lead { id } person { leads { id } purchases { id } } } }`,
  );
  expect(ids(viewer.purchases).sort()).toEqual([first, second, third].sort());
  expect(buyers).toEqual(
    [third, second, first].map((id) => ({
      id,
      lead: null,
      person: { leads: [], purchases: [third, second, first].map((other) => ({ id: other })) },
    })),
  );
  expect(await laura.refused(CONVERT, { input: { leadId, unitId: await unit() } })).toMatchObject({
    code: "NOT_FOUND",
    field: "leadId",
  });
});

test("a member merges two leads of a person who bought with both", async () => {
  const [one, two] = [await lead({ phone: "+14165550777" }), await lead({ phone: "+14165550777" })];
  await convert({ leadId: one, unitId: await unit() });
  await convert({ leadId: two, unitId: await unit() });
  const { rows } = await world.owner.query(
    "select id from app_public.escalation_tickets where kind = 'DUPLICATE_LEAD' and subject_id = $1",
    [two],
  );
  await owen.get(
    `mutation ($id: ID!) { resolveEscalationTicket(input: { id: $id, action: MERGE }) { status } }`,
    { id: rows[0].id },
  );
  const kept = await readLead(one);
  expect(kept.purchases).toHaveLength(2);
  expect(kept.person.purchases).toEqual(kept.purchases);
});
