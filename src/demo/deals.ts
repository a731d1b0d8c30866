import type { Stage } from "./stage.ts";

/** Buyer, home and progress of each purchase, oldest first. */
const purchases: {
  unit: string;
  firstName: string;
  lastName: string;
  status: string;
  daysAgo: number;
  financing: string;
}[] = [
  { unit: "101", firstName: "Ruth", lastName: "Abara", status: "CLOSED", daysAgo: 140, financing: "CASH" },
  {
    unit: "102",
    firstName: "Paul",
    lastName: "Lemieux",
    status: "CLEAR_TO_CLOSE",
    daysAgo: 125,
    financing: "CONVENTIONAL",
  },
  { unit: "104", firstName: "Iris", lastName: "Vogel", status: "FIRM", daysAgo: 110, financing: "CASH" },
  {
    unit: "201",
    firstName: "Samir",
    lastName: "Nasser",
    status: "FIRM",
    daysAgo: 95,
    financing: "CONVENTIONAL",
  },
  {
    unit: "202",
    firstName: "Elena",
    lastName: "Petrova",
    status: "CONDITIONAL",
    daysAgo: 70,
    financing: "CONVENTIONAL",
  },
  { unit: "301", firstName: "Joon", lastName: "Seo", status: "CONDITIONAL", daysAgo: 50, financing: "JUMBO" },
  { unit: "303", firstName: "Clara", lastName: "Nunes", status: "IN_REVIEW", daysAgo: 4, financing: "CASH" },
];

/** A negotiation of the demo: the lead, the home, the offers in order, and the outcome. */
const negotiations: {
  lead: string;
  by: string;
  unit: string;
  offers: [side: "BUYER" | "SELLER", price: number][];
  end?: "ACCEPT" | "REJECT" | "EXPIRED" | "CANCELLED";
}[] = [
  {
    lead: "Sarah Cohen",
    by: "amir",
    unit: "302",
    offers: [
      ["BUYER", 735_000],
      ["SELLER", 762_000],
      ["BUYER", 748_000],
    ],
  },
  { lead: "Marc Dubois", by: "liam", unit: "304", offers: [["BUYER", 690_000]], end: "REJECT" },
  { lead: "Zainab Ali", by: "amir", unit: "402", offers: [["BUYER", 730_000]], end: "EXPIRED" },
  { lead: "Emily Clarke", by: "mei", unit: "404", offers: [["BUYER", 745_000]], end: "CANCELLED" },
  { lead: "Diego Fernandez", by: "jonas", unit: "501", offers: [] },
  {
    lead: "Viktor Ivanov",
    by: "sofia",
    unit: "602",
    offers: [
      ["BUYER", 760_000],
      ["SELLER", 775_000],
    ],
    end: "ACCEPT",
  },
];

/** Deals in every state: reservations, negotiations, purchases, their personalizations and their deposits. */
export async function deals(stage: Stage): Promise<void> {
  const reason = await stage.as<{ price: string; unresponsive: string }>(
    "demo",
    `select min(r.id::text) filter (where r.category = 'PRICE') as price, min(r.id::text) filter (where r.category = 'UNRESPONSIVE') as unresponsive
     from app_public.fallout_reasons r where r.project_id = $1`,
    [stage.id("project gardens")],
  );
  await reservations(stage, reason.unresponsive);
  for (const row of negotiations) await negotiation(stage, row, reason.price);
  for (const row of purchases) await purchase(stage, row);
  await conversion(stage);
  await unfinished(stage, reason.price);
  await encounters(stage);
  await date(stage);
}

async function reserve(
  stage: Stage,
  by: string,
  lead: string,
  unit: string,
  further: Record<string, unknown> = {},
): Promise<string> {
  const { id } = await stage.as(by, "select r.id from app_public.create_reservation($1) r", [
    {
      lead_id: stage.id(`lead ${lead}`),
      unit_id: stage.id(`unit ${unit}`),
      accepted_terms: true,
      buyer_legal_name: lead,
      occupancy_type: "PRIMARY_RESIDENCE",
      ...further,
    },
  ]);
  return stage.keep(`reservation ${unit}`, id);
}

const changeReservation = (stage: Stage, by: string, input: Record<string, unknown>) =>
  stage.as(by, "select r.id from app_public.update_reservation($1) r", [input]);

async function reservations(stage: Stage, unresponsive: string): Promise<void> {
  await reserve(stage, "mei", "Ananya Rao", "204", {
    status: "CONFIRMED",
    financing_type: "CONVENTIONAL",
    preapproved: true,
  });
  await reserve(stage, "jonas", "Kevin Wong", "405", { financing_type: "CASH" });
  const called = await reserve(stage, "mei", "Maria Gonzalez", "203");
  await changeReservation(stage, "mei", {
    id: called,
    status: "CANCELLED",
    cancellation_reason: "Found a home with a second bedroom.",
    fallout_reason_id: unresponsive,
  });
  const lapsed = await reserve(stage, "jonas", "Ahmed Saleh", "305");
  await stage.asOwner("select app_private.end_reservation($1, 'EXPIRED')", [lapsed]);
  const undone = await reserve(stage, "mei", "Priya Sharma", "205", { status: "CONFIRMED" });
  await changeReservation(stage, "demo", { id: undone, status: "REFUNDED" });
}

async function negotiation(
  stage: Stage,
  { lead, by, unit, offers, end }: (typeof negotiations)[number],
  price: string,
): Promise<void> {
  const { id } = await stage.create(by, "negotiations", {
    unit_id: stage.id(`unit ${unit}`),
    lead_id: stage.id(`lead ${lead}`),
  });
  let last = "";
  for (const [side, amount] of offers) {
    const offer = await stage.as(by, "select o.id from app_public.create_offer($1) o", [
      {
        negotiation_id: id,
        side,
        price: amount,
        financing_type: "CONVENTIONAL",
        closing_date: stage.day(430),
      },
    ]);
    last = offer.id;
  }
  if (end === "EXPIRED")
    await stage.asOwner("select app_private.end_offer($1, 'EXPIRED', 'EXPIRED')", [last]);
  else if (end === "CANCELLED")
    await stage.as(by, "select n.id from app_public.update_negotiation($1) n", [
      { id, status: "CANCELLED", cancellation_reason: "Buys with her sister later." },
    ]);
  else if (end)
    await stage.as(
      by,
      "select r.id from app_public.create_offer_response(offer_id => $1, action => $2, fallout_reason_id => $3) r",
      [last, end, end === "REJECT" ? price : null],
    );
}

async function purchase(stage: Stage, row: (typeof purchases)[number]): Promise<void> {
  const { unit, firstName, lastName, status, daysAgo, financing } = row;
  const { id } = await stage.as(
    "amir",
    `select b.id from app_public.create_buyer($1 || jsonb_build_object('price', (select u.price from app_hidden.masked_units u where u.id = $2))) b`,
    [
      {
        project_id: stage.id("project gardens"),
        unit_id: stage.id(`unit ${unit}`),
        first_name: firstName,
        last_name: lastName,
        legal_name: `${firstName} ${lastName}`,
        email: `${firstName}.${lastName}@mail.example`.toLowerCase(),
        status,
        financing_type: financing,
        financing_contingency: financing !== "CASH",
        assignee_id: stage.id(daysAgo % 2 ? "mei" : "jonas"),
        purchase_date: stage.day(-daysAgo),
        estimated_closing_date: stage.day(430),
      },
      stage.id(`unit ${unit}`),
    ],
  );
  stage.keep(`purchase ${unit}`, id);
  // The home was sold when its purchase was signed.
  await stage.asOwner(
    `update app_public.units u set status_changed_at = $2, sold_at = $2, market_before = $2 - u.listing_date::timestamptz where u.id = $1`,
    [stage.id(`unit ${unit}`), stage.daysAgo(daysAgo)],
  );
}

/** A lead who reserves, buys, signs in as a buyer and chooses her options. */
async function conversion(stage: Stage): Promise<void> {
  const reservation = await reserve(stage, "mei", "Laura Bianchi", "401", { status: "CONFIRMED" });
  const { id } = await stage.as(
    "mei",
    "select b.id from app_public.convert_lead(lead_id => $1, reservation_id => $2) b",
    [stage.id("lead Laura Bianchi"), reservation],
  );
  stage.keep("purchase 401", id);
  // Invitations are sent by mail, which nobody reads in the demo.
  const { id: user } = await stage.as(
    null,
    `select u.id from app_public.create_account('laura@plat.example', $1, 'Laura', 'Bianchi', 'laura') u`,
    [stage.passwordHash],
  );
  stage.keep("laura", user);
  await stage.asOwner("update app_public.users set email_verified_at = now() where id = $1", [user]);
  await stage.asOwner("update app_public.buyers set user_id = $2 where id = $1", [id, user]);

  // She changes her mind: the second choice replaces the first one once it is approved.
  let choice = "";
  for (const title of ["Kitchen", "Kitchen and floors"]) {
    choice = await personalize(stage, "laura", "401", title);
    await changeChoice(stage, "laura", choice, "SUBMITTED");
    await changeChoice(stage, "mei", choice, "APPROVED");
  }
  await stage.create("mei", "personalization_credits", {
    personalization_id: choice,
    title: "Welcome credit",
    amount: 500,
  });
  for (const [unit, steps] of [
    ["104", ["SUBMITTED", "APPROVED", "SIGNED", "LOCKED"]],
    ["201", ["SUBMITTED", "APPROVED", "SIGNED"]],
    ["202", ["SUBMITTED", "CHANGES_REQUESTED"]],
    ["301", ["SUBMITTED"]],
    ["102", ["CANCELLED"]],
    ["303", []],
  ] as const) {
    const made = await personalize(stage, "amir", unit, "Design studio");
    for (const step of steps) await changeChoice(stage, "amir", made, step);
  }
}

/** Chooses an option for each element that is not yet built: upgrades, and the standard for the bathrooms. */
async function personalize(stage: Stage, by: string, unit: string, title: string): Promise<string> {
  const { id } = await stage.as(
    by,
    `select p.id from app_public.create_personalization($1, array(
       select row(o.id, 1, null)::app_public.personalization_selection_input from (
         select distinct on (e.id) o.id from app_public.spec_options o
         join app_public.spec_elements e on e.id = o.element_id
         join app_public.units u on u.project_id = o.project_id
         where u.id = $2 and o.active
           and app_private.construction_has_come_to(u.construction_status, e.lock_phase) is not true
         order by e.id, (o.tier = 'UPGRADE') = (e.title <> 'Bathrooms') desc, o.sequence) o)) p`,
    [
      {
        unit_id: stage.id(`unit ${unit}`),
        buyer_id: stage.id(`purchase ${unit}`),
        title,
        // Buyers do not set the deadline.
        ...(by !== "laura" && { due_on: stage.day(21) }),
      },
      stage.id(`unit ${unit}`),
    ],
  );
  return id;
}

const changeChoice = (stage: Stage, by: string, id: string, status: string) =>
  stage.as(by, "select p.id from app_public.update_personalization($1) p", [{ id, status }]);

/** Purchases that have just begun, and one that was cancelled. */
async function unfinished(stage: Stage, price: string): Promise<void> {
  const project_id = stage.id("project gardens");
  const buy = (input: Record<string, unknown>) =>
    stage.as("amir", "select b.id from app_public.create_buyer($1) b", [{ project_id, ...input }]);
  await buy({
    first_name: "Theo",
    last_name: "Marchand",
    email: "theo.marchand@mail.example",
    price: 739_000,
  });
  await buy({
    unit_id: stage.id("unit 403"),
    first_name: "Hana",
    last_name: "Sato",
    email: "hana.sato@mail.example",
    price: 1_020_000,
    status: "OUT_FOR_SIGNATURE",
  });
  const { id } = await buy({
    unit_id: stage.id("unit 103"),
    legal_name: "Birch & Vale Holdings",
    company: "Birch & Vale Holdings",
    price: 995_000,
    status: "IN_REVIEW",
  });
  await stage.as("amir", "select b.id from app_public.update_buyer($1) b", [
    {
      id,
      status: "CANCELLED",
      cancellation_reason: "Withdrew within the rescission period.",
      fallout_reason_id: price,
    },
  ]);
}

/** Calls, visits, documents and payments of some of them. */
async function encounters(stage: Stage): Promise<void> {
  const lead = (name: string) => ({ lead_id: stage.id(`lead ${name}`) });
  const buyer = (unit: string) => ({ buyer_id: stage.id(`purchase ${unit}`) });
  const visit = (by: string, days: number, hour: number, input: Record<string, unknown>) => {
    const starts = stage.daysAgo(-days);
    starts.setUTCHours(hour, 0, 0, 0);
    const ends = new Date(starts.getTime() + 3_600_000);
    return stage.create(by, "appointments", {
      type: "IN_PERSON_TOUR",
      host_id: stage.id(by),
      starts_at: starts,
      ends_at: ends,
      ...input,
    });
  };
  await visit("mei", 1, 15, { ...lead("Emily Clarke"), title: "Second look at 404" });
  await visit("jonas", 2, 16, { ...lead("Diego Fernandez"), type: "VIRTUAL_TOUR", status: "CONFIRMED" });
  await visit("mei", 5, 18, { ...buyer("401"), type: "DESIGN_STUDIO", title: "Kitchen and floors" });
  const past = await visit("amir", -6, 15, {
    ...lead("Sarah Cohen"),
    type: "SALES_MEETING",
    status: "CONFIRMED",
  });
  await stage.as("amir", "select a.id from app_hidden.update_record(null::app_public.appointments, $1) a", [
    { id: past.id, status: "COMPLETED", outcome_note: "Wants the price below 750,000." },
  ]);
  await stage.create("mei", "phone_calls", {
    ...lead("Wei Zhang"),
    direction: "OUTBOUND",
    status: "COMPLETED",
    outcome: "CALLBACK_REQUESTED",
    started_at: stage.daysAgo(2.1),
    ended_at: stage.daysAgo(2.097),
  });
  await stage.create("mei", "contacts", {
    ...buyer("401"),
    role: "CO_BUYER",
    name: "Marco Bianchi",
    email: "marco.bianchi@mail.example",
    is_signer: true,
    ownership_percent: 50,
  });
  const agreement = await stage.create("mei", "agreements", {
    ...buyer("401"),
    type: "PURCHASE",
    title: "Agreement of purchase and sale, home 401",
    status: "SENT",
  });
  await stage.as("mei", "select a.id from app_hidden.update_record(null::app_public.agreements, $1) a", [
    { id: agreement.id, status: "VIEWED" },
  ]);
  const deposit = await stage.as<{ id: string | null }>(
    "demo",
    "select d.id from app_public.deposits d where d.buyer_id = $1 order by d.sequence, d.id limit 1",
    [stage.id("purchase 401")],
  );
  if (deposit?.id)
    await stage.as(
      "demo",
      `select d.id from app_hidden.update_record(null::app_public.deposits, jsonb_build_object('id', $1::uuid, 'method', 'WIRE',
         'amount_paid', (select app_public.deposits_amount_due(row(x.*)::app_public.deposits) from app_hidden.masked_deposits x where x.id = $1))) d`,
      [deposit.id],
    );
}

/** Moves timestamps of what was just created into the past. */
async function date(stage: Stage): Promise<void> {
  for (const { unit, daysAgo } of purchases)
    await stage.asOwner(
      "update app_public.buyers set inserted_at = $2, status_changed_at = $2 where id = $1",
      [stage.id(`purchase ${unit}`), stage.daysAgo(daysAgo)],
    );
}
