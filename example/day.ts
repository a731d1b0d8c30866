/**
 * A day of business: a developer opens a tower of 200 homes, and sells, from the first project to a resale.
 *
 *   npm start                  in one terminal
 *   npm run example            in another
 *
 * It plays what a program of yours would do, one request after another, and prints what it did. Read it from the top: each section
 * is a function, each request a GraphQL document as the service takes it. docs/example.md goes through it.
 */
import { codeIn, connect, download, mailTo, pdf, Refused, wait, type Ask } from "./plat.ts";

/** So that the day can be played again on the same service. */
const today = Date.now().toString(36);
const email = (name: string) => `${name}.${today}@example.com`;
const password = "correct horse battery";

let sections = 0;
const section = (title: string) => console.log(`\n${++sections}. ${title}`);
const done = (text: string) => console.log(`   ${text}`);
const money = (amount: string, currency = "CAD") =>
  new Intl.NumberFormat("en-CA", { style: "currency", currency }).format(Number(amount));

/** What the service refuses is part of the day, too: the refusal is what the section wants to see. */
async function refused(what: Promise<unknown>): Promise<Refused> {
  const outcome = await what.catch((error: unknown) => error);
  if (outcome instanceof Refused) return outcome;
  throw new Error("This should have been refused.", { cause: outcome });
}

/** Somebody without an account. */
const anybody = connect();

// --- Accounts --------------------------------------------------------------------------------------------------------------

const CREATE_ACCOUNT = `mutation ($input: CreateAccountInput!) { createAccount(input: $input) { id } }`;
const LOGIN = `mutation ($input: LoginInput!) { login(input: $input) { token expiresAt } }`;
const VERIFY_EMAIL = `mutation ($input: VerifyEmailInput!) { verifyEmail(input: $input) { email } }`;

/** An account, confirmed by the code that its mail brings, and whoever asks with its token from then on. */
async function signUp(firstName: string, lastName: string): Promise<Ask> {
  const address = email(firstName.toLowerCase());
  await anybody(CREATE_ACCOUNT, { input: { email: address, password, firstName, lastName } });
  const { login } = await anybody(LOGIN, { input: { username: address, password } });
  const ask = connect({ token: login.token });
  const mail = await mailTo(address, /confirm your email address/i);
  await ask(VERIFY_EMAIL, { input: { token: codeIn(mail) } });
  done(`${firstName} ${lastName} signed up as ${address} and confirmed the address.`);
  return ask;
}

// --- 1. The developer ------------------------------------------------------------------------------------------------------

const CREATE_ORGANIZATION = `mutation ($input: CreateOrganizationInput!) {
  createOrganization(input: $input) { id slug viewerRole }
}`;
const INVITE = `mutation ($input: CreateOrganizationInviteInput!) {
  createOrganizationInvite(input: $input) { status }
}`;
const ACCEPT_INVITE = `mutation ($input: AcceptOrganizationInviteInput!) {
  acceptOrganizationInvite(input: $input) { role user { id } }
}`;
const CREATE_REPRESENTATIVE = `mutation ($input: CreateOrganizationPaymentsRepresentativeInput!) {
  createOrganizationPaymentsRepresentative(input: $input) { id }
}`;
const PAYMENTS_STATUS = `query ($id: ID!) { organization(id: $id) { paymentsStatus } }`;

/** Ada founds the developer, Sam sells for it, and the payment processor knows whom it deals with. */
async function foundDeveloper() {
  section("The developer and its people");
  const ada = await signUp("Ada", "Lang");
  const { createOrganization: developer } = await ada(CREATE_ORGANIZATION, {
    input: { name: `Skyline Homes ${today}`, kind: "DEVELOPER", timeZone: "America/Toronto" },
  });
  done(`Ada founded ${developer.slug} and is its ${developer.viewerRole}.`);

  await ada(INVITE, { input: { organizationId: developer.id, email: email("sam"), role: "MEMBER" } });
  const sam = await signUp("Sam", "Okafor");
  const invitation = await mailTo(email("sam"), /invitation to join/i);
  const { acceptOrganizationInvite: membership } = await sam(ACCEPT_INVITE, {
    input: { token: codeIn(invitation) },
  });
  done(`Sam took the invitation and is a ${membership.role}.`);

  await ada(CREATE_REPRESENTATIVE, {
    input: {
      organizationId: developer.id,
      kind: "AUTHORIZED_REPRESENTATIVE",
      firstName: "Ada",
      lastName: "Lang",
      email: email("ada"),
      dob: "1980-05-17",
      title: "Director",
      address: { thoroughfare: "1 Quay Street", locality: "Toronto", postalCode: "M5J 2N8", country: "CA" },
    },
  });
  await wait(
    () => ada(PAYMENTS_STATUS, { id: developer.id }),
    ({ organization }) => organization.paymentsStatus === "ENABLED",
  );
  done("The payment processor has verified whom it deals with: cards can be charged.");
  return { ada, sam, developer, samId: membership.user.id as string };
}

// --- 2. The tower ----------------------------------------------------------------------------------------------------------

const CREATE_PROJECT = `mutation ($input: CreateProjectInput!) {
  createProject(input: $input) { id slug status currency }
}`;
const CREATE_FLOOR_PLAN = `mutation ($input: CreateFloorPlanInput!) { createFloorPlan(input: $input) { id code } }`;
const CREATE_MILESTONE = `mutation ($input: CreateDepositScheduleMilestoneInput!) {
  createDepositScheduleMilestone(input: $input) { id title }
}`;
const CREATE_CATEGORY = `mutation ($input: CreateSpecCategoryInput!) { createSpecCategory(input: $input) { id } }`;
const CREATE_ELEMENT = `mutation ($input: CreateSpecElementInput!) { createSpecElement(input: $input) { id } }`;
const CREATE_OPTION = `mutation ($input: CreateSpecOptionInput!) { createSpecOption(input: $input) { id title price } }`;
const CREATE_SOURCE = `mutation ($input: CreateLeadSourceInput!) { createLeadSource(input: $input) { id code } }`;
const CREATE_REASON = `mutation ($input: CreateFalloutReasonInput!) { createFalloutReason(input: $input) { id name } }`;
const IMPORT_UNITS = `mutation ($input: ImportUnitsInput!) {
  importUnits(input: $input) { createdCount failedCount errors { row column message } }
}`;
const RELEASE = `mutation ($input: UpdateUnitsInput!) { updateUnits(input: $input) { id } }`;
const STOCK = `query ($projectId: ID!) {
  unitsConnection(filter: { projectIds: [$projectId] }) { totalCount groupedAggregates(groupBy: STATUS) { keys distinctCount { id } } }
}`;

const plans = [
  { code: "S1", title: "Studio", bedrooms: 0, baths: 1, sqft: 410, basePrice: 419_000 },
  { code: "A1", title: "One bedroom", bedrooms: 1, baths: 1, sqft: 560, basePrice: 549_000 },
  { code: "B1", title: "Two bedrooms", bedrooms: 2, baths: 2, sqft: 790, basePrice: 729_000 },
  { code: "C1", title: "Three bedrooms", bedrooms: 3, baths: 2, sqft: 1_040, basePrice: 959_000 },
];

/** 25 floors of eight homes, each floor 2,500 above the one below: the price list, as a spreadsheet would have it. */
function priceList(): string {
  const lines = ["Unit #;Plan;Floor;Price;Beds;Baths;Sqft"];
  for (let floor = 1; floor <= 25; floor++)
    for (let place = 1; place <= 8; place++) {
      const plan = plans[Math.floor((place - 1) / 2)]!;
      const price = plan.basePrice + (floor - 1) * 2_500;
      lines.push(
        [
          floor * 100 + place,
          plan.code,
          floor,
          `$${price.toLocaleString("en")}`,
          plan.bedrooms,
          plan.baths,
          plan.sqft,
        ].join(";"),
      );
    }
  return lines.join("\n");
}

/** The project with all that selling takes, and its 200 homes from the price list. */
async function openTower(ada: Ask, developer: { id: string }) {
  section("The tower");
  const { createProject: tower } = await ada(CREATE_PROJECT, {
    input: {
      organizationId: developer.id,
      title: `Harbour Tower ${today}`,
      status: "SELLING",
      visibility: "PUBLIC",
      type: "CONDOMINIUM",
      currency: "CAD",
      timeZone: "America/Toronto",
      address: { thoroughfare: "9 Quay Street", locality: "Toronto", postalCode: "M5J 2N8", country: "CA" },
      reservationFee: 5_000,
      // Whoever has an account reserves a home for themselves, and pays the fee first.
      publicReservations: true,
      reservationExpiration: 7,
      // Where the law gives buyers days to think it over, a purchase is IN_REVIEW until they have passed.
      rescissionDays: 0,
      soldTrigger: "FIRM",
    },
  });
  const projectId = tower.id as string;
  for (const plan of plans) await ada(CREATE_FLOOR_PLAN, { input: { projectId, status: "ACTIVE", ...plan } });
  done(`${tower.slug} is ${tower.status}, with ${plans.length} floor plans.`);

  await ada(CREATE_MILESTONE, {
    input: {
      projectId,
      title: "On signing",
      percent: 5,
      percentBase: "PURCHASE_PRICE",
      dueRule: "ON_SIGNING",
    },
  });
  await ada(CREATE_MILESTONE, {
    input: {
      projectId,
      title: "On closing",
      percent: 15,
      percentBase: "PURCHASE_PRICE",
      dueRule: "ON_CLOSING",
    },
  });
  const { createSpecCategory: kitchen } = await ada(CREATE_CATEGORY, {
    input: { projectId, title: "Kitchen" },
  });
  const { createSpecElement: counter } = await ada(CREATE_ELEMENT, {
    input: { categoryId: kitchen.id, title: "Counter", required: true },
  });
  const { createSpecOption: quartz } = await ada(CREATE_OPTION, {
    input: { elementId: counter.id, title: "Quartz", tier: "UPGRADE", price: 4_800, cost: 2_900 },
  });
  const { createLeadSource: source } = await ada(CREATE_SOURCE, {
    input: { projectId, name: "Show home", category: "WALK_IN" },
  });
  const { createFalloutReason: reason } = await ada(CREATE_REASON, {
    input: { projectId, name: "Loan refused", category: "FINANCING" },
  });
  done("Deposits are due at signing and closing; kitchens can be chosen; sources and reasons have names.");

  const file = new File([priceList()], "price-list.csv", { type: "text/csv" });
  const { importUnits: imported } = await ada(IMPORT_UNITS, { input: { projectId, file } });
  if (imported.failedCount > 0) throw new Error(JSON.stringify(imported.errors));
  done(`The price list brought ${imported.createdCount} homes, UNRELEASED.`);

  const { updateUnits: released } = await ada(RELEASE, {
    input: { projectId, filter: { level: { max: 20 } }, status: "AVAILABLE" },
  });
  const { unitsConnection: stock } = await ada(STOCK, { projectId });
  done(`${released.length} of ${stock.totalCount} are released; the top five floors are kept back.`);
  return { tower, quartz, source, reason };
}

// --- 3. An agency ----------------------------------------------------------------------------------------------------------

const AFFILIATE = `mutation ($input: CreateProjectOrganizationInput!) {
  createProjectOrganization(input: $input) { id role status }
}`;
const ACCEPT_AFFILIATION = `mutation ($input: AcceptProjectOrganizationInviteInput!) {
  acceptProjectOrganizationInvite(input: $input) { role people { id fullName } }
}`;

/** Another organization sells along: for its own leads only, once it has accepted. */
async function inviteAgency(ada: Ask, { tower }: { tower: { id: string } }) {
  section("An agency");
  const vera = await signUp("Vera", "Stone");
  const { createOrganization: agency } = await vera(CREATE_ORGANIZATION, {
    input: { name: `Summit Realty ${today}`, kind: "AGENCY" },
  });
  const { createProjectOrganization: invite } = await ada(AFFILIATE, {
    input: { projectId: tower.id, organizationId: agency.id, role: "AGENCY" },
  });
  const { acceptProjectOrganizationInvite: part } = await vera(ACCEPT_AFFILIATION, {
    input: { id: invite.id },
  });
  done(
    `${agency.slug} takes part as ${part.role}: ${part.people.map((person: any) => person.fullName).join(", ")} can have leads.`,
  );
  return { vera, veraId: part.people[0].id as string };
}

// --- 4. People who ask -----------------------------------------------------------------------------------------------------

const CREATE_WORKFLOW = `mutation ($input: CreateWorkflowInput!) { createWorkflow(input: $input) { id } }`;
const ENABLE_WORKFLOW = `mutation ($input: EnableWorkflowInput!) { enableWorkflow(input: $input) { name status } }`;
const PUBLIC_PROJECT = `query ($id: ID!) {
  project(id: $id) { title floorPlans { title sqft } units(first: 1, filter: { status: [AVAILABLE] }) { number price } }
}`;
const CONTACT = `mutation ($input: ContactProjectInput!) { contactProject(input: $input) { id } }`;
const LEADS = `query ($filter: LeadsFilter) { leads(filter: $filter, first: 50) { id name email status tags tasks { title } } }`;
const CREATE_LEAD = `mutation ($input: CreateLeadInput!) { createLead(input: $input) { id name status phone } }`;
const CREATE_NOTE = `mutation ($input: CreateLeadNoteInput!) { createLeadNote(input: $input) { author { fullName } } }`;
const CREATE_CALL = `mutation ($input: CreatePhoneCallInput!) { createPhoneCall(input: $input) { lead { status } } }`;
const CREATE_APPOINTMENT = `mutation ($input: CreateAppointmentInput!) {
  createAppointment(input: $input) { startsAt status }
}`;
const UPSERT_LEADS = `mutation ($input: UpsertLeadsInput!) {
  upsertLeads(input: $input) {
    createdCount unchangedCount refusedCount rows { position outcome externalId errors { code field message } }
  }
}`;
const UPDATE_LEADS = `mutation ($input: UpdateLeadsInput!) { updateLeads(input: $input) { updatedCount } }`;
const SUGGEST_EMAIL = `mutation ($input: SuggestLeadEmailInput!) {
  suggestLeadEmail(input: $input) { subject status facts { field } warnings }
}`;

/** What nobody should forget is a workflow's; the rest is entered as it happens. */
async function meetLeads(
  ada: Ask,
  sam: Ask,
  { developer, tower, source, samId, veraId }: Parts & { veraId: string },
) {
  section("People who ask");
  const { createWorkflow: workflow } = await ada(CREATE_WORKFLOW, {
    input: {
      organizationId: developer.id,
      projectId: tower.id,
      name: "Call whoever asks",
      subjectType: "LEAD",
      trigger: { type: "EVENT", event: "lead.created" },
      steps: [
        { type: "ADD_TAG", config: { tag: "to-call" } },
        {
          type: "CREATE_TASK",
          config: { title: "Call {{ lead.name }}", type: "CALL", dueInSeconds: 86_400 },
        },
      ],
    },
  });
  await ada(ENABLE_WORKFLOW, { input: { id: workflow.id } });

  const { project: page } = await anybody(PUBLIC_PROJECT, { id: tower.slug });
  done(
    `Anybody reads of ${page.title}: ${page.floorPlans.length} plans, a home at ${money(page.units[0].price)}.`,
  );
  await anybody(CONTACT, {
    input: { projectId: tower.slug, name: "Mira Chen", email: email("mira"), text: "Is a high floor left?" },
  });
  const {
    leads: [mira],
  } = await wait(
    () => sam(LEADS, { filter: { projectIds: [tower.id] } }),
    ({ leads }) => leads[0]?.tasks.length === 1,
  );
  done(
    `Mira's question made a lead (${mira.status}); the workflow tagged it ${mira.tags} and wants: ${mira.tasks[0].title}.`,
  );

  const enter = async (name: string, more = {}) => {
    const { createLead: lead } = await sam(CREATE_LEAD, {
      input: {
        projectId: tower.id,
        name,
        email: email(name.split(" ")[0]!.toLowerCase()),
        sourceId: source.id,
        assigneeId: samId,
        ...more,
      },
    });
    return lead;
  };
  const bo = await enter("Bo Larsen", { phone: "416 555 0123", tags: ["two-bedroom"] });
  const nia = await enter("Nia Rossi");
  await ada(UPDATE_LEADS, { input: { ids: [mira.id], assigneeId: veraId } });
  done("Mira lives abroad: Vera of the agency speaks with her, and sees no other lead.");
  const again = await refused(enter("B. Larsen", { email: email("bo").toUpperCase() }));
  done(`Bo and Nia walked in. Bo a second time: ${again.code} on ${again.extensions.field}.`);

  await sam(CREATE_NOTE, { input: { leadId: bo.id, text: "Two bedrooms, not below the 10th floor." } });
  const { createPhoneCall: call } = await sam(CREATE_CALL, {
    input: { leadId: bo.id, direction: "OUTBOUND", outcome: "APPOINTMENT_SET" },
  });
  const tomorrow = new Date(Date.now() + 86_400_000);
  const { createAppointment: tour } = await sam(CREATE_APPOINTMENT, {
    input: {
      leadId: bo.id,
      type: "IN_PERSON_TOUR",
      startsAt: tomorrow.toISOString(),
      endsAt: new Date(tomorrow.getTime() + 3_600_000).toISOString(),
    },
  });
  done(`Sam called Bo, who is ${call.lead.status} now; a tour is ${tour.status}.`);

  // What another system knows comes in one call, by the ids that it has; sent again, it changes nothing.
  const known = Array.from({ length: 200 }, (_, n) => ({
    externalId: `C-${n + 1}`,
    name: `Contact ${n + 1}`,
    email: n === 7 ? "nobody" : email(`contact${n + 1}`),
  }));
  const send = async () =>
    (await ada(UPSERT_LEADS, { input: { projectId: tower.id, system: "crm", leads: known } })).upsertLeads;
  const brought = await send();
  const [bad] = brought.rows.filter((row: any) => row.errors.length > 0);
  const repeated = await send();
  done(
    `The CRM sent 200 contacts: ${brought.createdCount} are leads, ${bad.externalId} is refused (${bad.errors[0].field}). ` +
      `Sent again, ${repeated.unchangedCount} are as they were.`,
  );
  const { updateLeads: mailing } = await ada(UPDATE_LEADS, {
    input: {
      filter: { projectIds: [tower.id], query: "Contact" },
      addTags: ["newsletter"],
      assigneeId: samId,
    },
  });
  done(`${mailing.updatedCount} of them are Sam's from now on, with a tag.`);
  const { suggestLeadEmail: draft } = await sam(SUGGEST_EMAIL, {
    input: { leadId: bo.id, purpose: "Confirm the tour and name homes that fit." },
  });
  done(`A mail to Bo is drafted from ${draft.facts.length} facts: "${draft.subject}". Nothing was sent.`);
  return { mira, bo, nia };
}

// --- 5. A reservation ------------------------------------------------------------------------------------------------------

const FREE_HOMES = `query ($filter: UnitsFilter!) { units(filter: $filter, first: 1) { id title number price status } }`;
const HOLD = `mutation ($input: CreateUnitHoldInput!) { createUnitHold(input: $input) { id expiresAt unit { status } } }`;
const RESERVE = `mutation ($input: CreateReservationInput!) {
  createReservation(input: $input) { id number status price expiresAt unit { number status } lead { status } }
}`;

const RESERVE_ALONE = `mutation ($input: CreateReservationInput!) {
  createReservation(input: $input) { id number status feeDeposit { id amountDue } }
}`;
const MY_RESERVATION = `query ($id: ID!) { reservation(id: $id) { number status unit { number status } } }`;

/** A free home with so many bedrooms on these floors. */
async function freeHome(ask: Ask, projectId: string, bedrooms: number, floors: [number, number]) {
  const filter = {
    projectId,
    status: ["AVAILABLE"],
    bedrooms: { min: bedrooms, max: bedrooms },
    level: { min: floors[0], max: floors[1] },
  };
  const { units } = await ask(FREE_HOMES, { filter });
  return units[0] as { id: string; title: string; number: string; price: string };
}

/** Bo takes a home; nobody else can from then on. */
async function reserve(sam: Ask, tower: { id: string }, bo: { id: string }, vera: Ask) {
  section("A reservation");
  const home = await freeHome(sam, tower.id, 2, [10, 20]);
  const { createUnitHold: hold } = await sam(HOLD, { input: { unitId: home.id, leadId: bo.id } });
  done(`Bo thinks it over: ${home.number} is ${hold.unit.status} for him, until ${hold.expiresAt}.`);
  const { createReservation: reservation } = await sam(RESERVE, {
    input: { unitId: home.id, leadId: bo.id, acceptedTerms: true, status: "CONFIRMED" },
  });
  done(
    `Bo reserved ${home.number}: ${reservation.number}, ${money(reservation.price)}; the home is ${reservation.unit.status}.`,
  );
  const late = await refused(vera(HOLD, { input: { unitId: home.id } }));
  done(`Vera of the agency wants the same home: ${late.code}, until ${late.extensions.claimedUntil}.`);

  // Nobody of the team has to be there: the hold keeps the home until the fee is paid, and the fee confirms.
  const ivy = await signUp("Ivy", "Moreau");
  const studio = await freeHome(ivy, tower.id, 0, [5, 20]);
  await ivy(HOLD, { input: { unitId: studio.id } });
  const { createReservation: alone } = await ivy(RESERVE_ALONE, {
    input: { unitId: studio.id, acceptedTerms: true },
  });
  const { createProcessorCard: card } = await ivy(ADD_CARD, { input: { token: "tok_visa" } });
  await ivy(PAY, {
    input: { depositId: alone.feeDeposit.id, amount: alone.feeDeposit.amountDue, cardId: card.id },
  });
  const { reservation: confirmed } = await wait(
    () => ivy(MY_RESERVATION, { id: alone.id }),
    (answer) => answer.reservation.status !== alone.status,
  );
  done(
    `At night Ivy reserves ${confirmed.unit.number} for herself and pays the fee of ${money(alone.feeDeposit.amountDue)}: ` +
      `${alone.number} was ${alone.status} and is ${confirmed.status}.`,
  );
  return { home, reservation };
}

// --- 6. A negotiation ------------------------------------------------------------------------------------------------------

const NEGOTIATE = `mutation ($input: CreateNegotiationInput!) { createNegotiation(input: $input) { id status listPrice } }`;
const OFFER = `mutation ($input: CreateOfferInput!) { createOffer(input: $input) { id status price } }`;
const RESPOND = `mutation ($input: CreateOfferResponseInput!) {
  createOfferResponse(input: $input) { offer { status negotiation { status reservation { price } unit { status } } } }
}`;

/** Bo bids, the developer answers, Bo agrees. */
async function negotiate(ada: Ask, home: { id: string }, bo: { id: string }, reservation: { id: string }) {
  section("A negotiation");
  const { createNegotiation: negotiation } = await ada(NEGOTIATE, {
    input: { unitId: home.id, leadId: bo.id, reservationId: reservation.id, floorPrice: 700_000 },
  });
  const { createOffer: bid } = await ada(OFFER, {
    input: { negotiationId: negotiation.id, side: "BUYER", price: 705_000, financingType: "CONVENTIONAL" },
  });
  const { createOffer: counter } = await ada(OFFER, {
    input: { negotiationId: negotiation.id, side: "SELLER", price: 735_000, parentId: bid.id },
  });
  const {
    createOfferResponse: { offer },
  } = await ada(RESPOND, { input: { offerId: counter.id, action: "ACCEPT" } });
  done(
    `Bo bid ${money(bid.price)}, the developer asked ${money(counter.price)}: ${offer.status}. ` +
      `The reservation is at ${money(offer.negotiation.reservation.price)}, the home ${offer.negotiation.unit.status}.`,
  );
}

// --- 7. The purchase -------------------------------------------------------------------------------------------------------

const CONVERT = `mutation ($input: ConvertLeadInput!) {
  convertLead(input: $input) { id status price deposits { id title amountDue status } unit { status } lead { status } }
}`;
const INVITE_BUYER = `mutation ($input: InviteBuyerInput!) { inviteBuyer(input: $input) }`;
const ACCEPT_PURCHASE = `mutation ($input: AcceptBuyerInviteInput!) {
  acceptBuyerInvite(input: $input) { id unit { number } price deposits { id title amountDue } }
}`;
const ADD_CARD = `mutation ($input: CreateProcessorCardInput!) { createProcessorCard(input: $input) { id brand last4 } }`;
const PAY = `mutation ($input: CreatePaymentIntentInput!) {
  createPaymentIntent(input: $input) { status charge { id status amount } }
}`;
const DEPOSIT = `query ($id: ID!, $buyerId: ID!) {
  deposit(id: $id) { title status amountPaid }
  buyer(id: $buyerId) { netPurchasePriceBalance }
}`;
const UPLOAD_PROOF = `mutation ($input: UploadBuyerDocumentInput!) { uploadBuyerDocument(input: $input) { id title } }`;
const ON_FILE = `query ($id: ID!) { buyer(id: $id) { documentsOnFile } }`;
const PERSONALIZE = `mutation ($input: CreatePersonalizationInput!) { createPersonalization(input: $input) { id total } }`;
const SUBMIT = `mutation ($input: UpdatePersonalizationInput!) { updatePersonalization(input: $input) { status total } }`;

/** The reservation becomes a purchase; Bo follows it, pays the first deposit and chooses the kitchen. */
async function purchase(
  ada: Ask,
  { bo, home, quartz }: { bo: { id: string }; home: { id: string }; quartz: { id: string } },
) {
  section("The purchase");
  const { convertLead: buyer } = await ada(CONVERT, { input: { leadId: bo.id, legalName: "Bo Larsen" } });
  done(`The lead is ${buyer.lead.status}, the purchase ${buyer.status}, the home ${buyer.unit.status}.`);
  await ada(INVITE_BUYER, { input: { buyerId: buyer.id, email: email("bo") } });
  const invitation = await mailTo(email("bo"), /your home in/i);
  const asBo = await signUp("Bo", "Larsen");
  const { acceptBuyerInvite: seen } = await asBo(ACCEPT_PURCHASE, { input: { token: codeIn(invitation) } });
  done(
    `Bo sees the purchase of ${seen.unit.number}: ${seen.deposits.map((d: any) => `${d.title} ${money(d.amountDue)}`).join(", ")}.`,
  );

  const { createProcessorCard: card } = await asBo(ADD_CARD, { input: { token: "tok_visa" } });
  const [first] = seen.deposits;
  const { createPaymentIntent: payment } = await asBo(PAY, {
    input: { depositId: first.id, amount: first.amountDue, cardId: card.id },
  });
  const { deposit, buyer: owed } = await wait(
    () => asBo(DEPOSIT, { id: first.id, buyerId: buyer.id }),
    (answer) => answer.deposit.status === "PAID",
  );
  done(
    `Bo paid ${money(payment.charge.amount)} by ${card.brand} ${card.last4}: ${deposit.title} is ${deposit.status}, ` +
      `${money(owed.netPurchasePriceBalance)} are left.`,
  );

  const letter = new File([pdf("Letter of the bank")], "bank.pdf", { type: "application/pdf" });
  await asBo(UPLOAD_PROOF, {
    input: { buyerId: buyer.id, category: "PROOF_OF_FUNDS", title: "Letter of the bank", file: letter },
  });
  const { buyer: filed } = await ada(ON_FILE, { id: buyer.id });
  done(
    `Bo uploads a letter of the bank: ${filed.documentsOnFile} is on file, for whoever may read such documents.`,
  );

  const { createPersonalization: kitchen } = await asBo(PERSONALIZE, {
    input: { unitId: home.id, buyerId: buyer.id, selections: [{ optionId: quartz.id }] },
  });
  const submit = async (ask: Ask, status: string) =>
    (await ask(SUBMIT, { input: { id: kitchen.id, status } })).updatePersonalization;
  await submit(asBo, "SUBMITTED");
  const approved = await submit(ada, "APPROVED");
  done(
    `Bo chose a quartz counter for ${money(approved.total)}; the choice is ${approved.status} and its price frozen.`,
  );
  return { buyer, asBo };
}

// --- 8. The closing --------------------------------------------------------------------------------------------------------

const AGREEMENT = `mutation ($input: CreateAgreementInput!) { createAgreement(input: $input) { id status } }`;
const UPLOAD_AGREEMENT = `mutation ($input: UploadAgreementFileInput!) { uploadAgreementFile(input: $input) { id } }`;
const ADD_SIGNER = `mutation ($input: CreateAgreementSignerInput!) { createAgreementSigner(input: $input) { id } }`;
const UPDATE_AGREEMENT = `mutation ($input: UpdateAgreementInput!) { updateAgreement(input: $input) { status } }`;
const REQUEST_CODE = `mutation ($input: RequestSigningCodeInput!) {
  requestSigningCode(input: $input) { title consentText checksum canSign }
}`;
const SIGN = `mutation ($input: SignAgreementInput!) { signAgreement(input: $input) { status signedAt } }`;
const TRAIL = `query ($id: ID!) { agreement(id: $id) { status trail { kind } } }`;
const UPDATE_BUYER = `mutation ($input: UpdateBuyerInput!) {
  updateBuyer(input: $input) { status unit { number status soldPrice } netPurchasePrice }
}`;
const PERSON = `query ($id: ID!) { lead(id: $id) { purchases { unit { number } status } } }`;
const SOLD = `{ recentlySoldUnits { number soldPrice soldAt } }`;

/** The contract, and the keys. */
async function close(
  ada: Ask,
  asBo: Ask,
  { buyer, bo, tower }: { buyer: { id: string }; bo: { id: string }; tower: { id: string } },
) {
  section("The closing");
  const { createAgreement: agreement } = await ada(AGREEMENT, {
    input: { buyerId: buyer.id, title: "Purchase agreement", type: "PURCHASE" },
  });
  const input = { agreementId: agreement.id };
  const contract = new File([pdf("Purchase agreement")], "contract.pdf", { type: "application/pdf" });
  await ada(UPLOAD_AGREEMENT, { input: { ...input, file: contract } });
  const signers = [
    { ask: asBo, name: "Bo Larsen", email: email("bo"), role: "BUYER", sequence: 1 },
    { ask: ada, name: "Ada Lang", email: email("ada"), role: "SELLER_REPRESENTATIVE", sequence: 2 },
  ];
  const ids = [];
  for (const { ask: _, ...signer } of signers)
    ids.push((await ada(ADD_SIGNER, { input: { ...input, ...signer } })).createAgreementSigner.id);
  await ada(UPDATE_AGREEMENT, { input: { id: agreement.id, status: "SENT" } });
  for (const [n, { ask, name, email: address }] of signers.entries()) {
    await ask(REQUEST_CODE, { input: { signerId: ids[n] } });
    const code = codeIn(await mailTo(address, /code/i));
    const { signAgreement: signed } = await ask(SIGN, { input: { signerId: ids[n], code, consent: true } });
    done(`${name} signed with the code of a mail: the agreement is ${signed.status}.`);
  }
  const { agreement: kept } = await ada(TRAIL, { id: agreement.id });
  done(`Its trail has ${kept.trail.length} entries, each signature with the checksum of what was signed.`);
  let home;
  for (const status of ["CLEAR_TO_CLOSE", "CLOSED"])
    ({ updateBuyer: home } = await ada(UPDATE_BUYER, { input: { id: buyer.id, status } }));
  const { recentlySoldUnits: sold } = await ada(SOLD);
  done(
    `Bo has the keys: ${home.unit.number} is ${home.unit.status}, sold at ${money(home.unit.soldPrice)} (${sold.length} in the list).`,
  );
  // The same person buys a second home: no new lead, no second address.
  const second = await freeHome(ada, tower.id, 0, [1, 20]);
  await ada(CONVERT, { input: { leadId: bo.id, unitId: second.id } });
  const { lead } = await ada(PERSON, { id: bo.id });
  done(
    `Bo buys a studio, too: ${lead.purchases
      .map((of: any) => `${of.unit.number} ${of.status}`)
      .toSorted()
      .join(", ")}.`,
  );
}

// --- 9. A deal that fails, and the resale ----------------------------------------------------------------------------------

const GIVE_BACK = `mutation ($input: UpdateLeadInput!) { updateLead(input: $input) { name } }`;
const CANCEL = `mutation ($input: CancelBuyerInput!) {
  cancelBuyer(input: $input) { dryRun effects { kind recordType title statusAfter } buyer { status unit { status price } } }
}`;

/** Nia's loan is refused; the home is free again at its list price, and Mira buys it. */
async function resell(
  ada: Ask,
  sam: Ask,
  vera: Ask,
  { tower, nia, mira, reason }: Parts & { nia: { id: string }; mira: { id: string } },
) {
  section("A deal that fails, and the resale");
  const home = await freeHome(sam, tower.id, 1, [15, 20]);
  await sam(RESERVE, { input: { unitId: home.id, leadId: nia.id, acceptedTerms: true } });
  const { convertLead: first } = await ada(CONVERT, { input: { leadId: nia.id, price: 560_000 } });
  done(
    `Nia bought ${home.number} at ${money(first.price)}, ${money(home.price)} in the list: ${first.status}.`,
  );
  // What it takes along is shown before it is done.
  const cancel = async (dryRun: boolean) =>
    (await ada(CANCEL, { input: { id: first.id, falloutReasonId: reason.id, dryRun } })).cancelBuyer;
  const { effects } = await cancel(true);
  const { buyer: gone } = await cancel(false);
  const [free] = (
    await ada(FREE_HOMES, { filter: { projectId: tower.id, query: home.number, status: ["AVAILABLE"] } })
  ).units;
  done(
    `Her loan is refused. Cancelling touches ${effects.length} records; the purchase is ${gone.status}, ` +
      `${free.number} ${free.status} at ${money(free.price)}.`,
  );
  await vera(GIVE_BACK, { input: { id: mira.id, assigneeId: null } });
  const { leads: left } = await vera(LEADS, { filter: { projectIds: [tower.id] } });
  done(`Mira has moved to Toronto: Vera gives her back to the developer, and sees ${left.length} leads now.`);
  const { convertLead: second } = await ada(CONVERT, { input: { leadId: mira.id, unitId: home.id } });
  done(`Mira buys it the same day, at ${money(second.price)}: the home is ${second.unit.status}.`);
}

// --- 10. The evening --------------------------------------------------------------------------------------------------------

const REPORT = `mutation ($input: CreateCustomReportInput!) { createCustomReport(input: $input) { id rows(first: 20) } }`;
const EXPORT_REPORT = `mutation ($input: ExportCustomReportInput!) { exportCustomReport(input: $input) { id status } }`;
const CREATE_EXPORT = `mutation ($input: CreateCustomExportInput!) { createCustomExport(input: $input) { id } }`;
const RUN_EXPORT = `mutation ($input: RunCustomExportInput!) { runCustomExport(input: $input) { id status } }`;
const EXPORT = `query ($id: ID!) { export(id: $id) { status rowCount url filename } }`;
const SEARCH = `query ($query: String!) { search(query: $query, first: 5) { title type } }`;
const SESSIONS = `{ viewer { sessions { id isCurrent } } }`;
const LOGOUT = `mutation ($input: LogoutInput!) { logout(input: $input) { sessions { isCurrent } } }`;
const EVENTS = `query ($filter: EventsFilter) { eventsConnection(filter: $filter) { totalCount } }`;

/** An export, once it is made. */
const fetched = (ask: Ask, id: string) =>
  wait(
    () => ask(EXPORT, { id }),
    (answer) => answer.export.status === "COMPLETED",
  );

/** What the developer looks at before it goes home. */
async function lookBack(ada: Ask, { developer, tower }: Parts) {
  section("The evening");
  const { createCustomReport: report } = await ada(REPORT, {
    input: {
      organizationId: developer.id,
      projectId: tower.id,
      name: "Homes by status",
      kind: "INVENTORY",
      subject: "UNITS",
      groupBy: ["status"],
      columns: [
        { aggregate: "COUNT", as: "homes" },
        { column: "price", aggregate: "SUM", as: "value" },
      ],
    },
  });
  for (const row of report.rows.rows)
    done(`${row.status.padEnd(10)} ${String(row.homes).padStart(3)} × ${money(row.value)}`);

  const { exportCustomReport: figures } = await ada(EXPORT_REPORT, {
    input: { id: report.id, format: "CSV" },
  });
  const { export: sheet } = await fetched(ada, figures.id);
  done(
    `The figures are a file, too, ${sheet.filename}: ${(await download(sheet.url)).trim().split("\n")[0]}.`,
  );

  const { createCustomExport: definition } = await ada(CREATE_EXPORT, {
    input: {
      organizationId: developer.id,
      projectId: tower.id,
      name: "All homes",
      subject: "UNITS",
      format: "CSV",
    },
  });
  const { runCustomExport: run } = await ada(RUN_EXPORT, { input: { id: definition.id } });
  const { export: file } = await fetched(ada, run.id);
  const lines = (await download(file.url)).trim().split("\n").length;
  done(`${file.filename} was exported: ${file.rowCount} rows, ${lines} lines with the header.`);

  const { search: found } = await wait(
    () => ada(SEARCH, { query: "larsen" }),
    ({ search }) => search.length > 0,
  );
  done(`Search for "larsen": ${found.map((hit: any) => `${hit.title} (${hit.type})`).join(", ")}.`);
  await anybody(LOGIN, { input: { username: email("ada"), password } });
  const { viewer } = await ada(SESSIONS);
  const { logout } = await ada(LOGOUT, { input: { others: true } });
  done(`Ada was signed in at ${viewer.sessions.length} places and is at ${logout.sessions.length} now.`);
  const inGerman = await refused(
    connect({ language: "de" })(CREATE_ACCOUNT, { input: { email: "nobody", password: "short" } }),
  );
  done(`Whoever reads German is told: ${inGerman.message}`);
  const { eventsConnection: events } = await ada(EVENTS, { filter: { organizationIds: [developer.id] } });
  done(`The day left ${events.totalCount} events, from the first home to the last.`);
}

// --- The day ---------------------------------------------------------------------------------------------------------------

interface Parts {
  developer: { id: string };
  tower: { id: string; slug: string };
  source: { id: string };
  reason: { id: string };
  samId: string;
}

const { ada, sam, developer, samId } = await foundDeveloper();
const { tower, quartz, source, reason } = await openTower(ada, developer);
const parts: Parts = { developer, tower, source, reason, samId };
const { vera, veraId } = await inviteAgency(ada, parts);
const { mira, bo, nia } = await meetLeads(ada, sam, { ...parts, veraId });
const { home, reservation } = await reserve(sam, tower, bo, vera);
await negotiate(ada, home, bo, reservation);
const { buyer, asBo } = await purchase(ada, { bo, home, quartz });
await close(ada, asBo, { buyer, bo, tower });
await resell(ada, sam, vera, { ...parts, nia, mira });
await lookBack(ada, parts);
console.log("\nThe day is done.");
