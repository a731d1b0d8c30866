/** Deposits: amounts to the cent, due dates, and outcomes. */
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import type { Person } from "../harness/api.ts";
import { passTime } from "../harness/clock.ts";
import { createBuyer } from "../harness/deals.ts";
import { createLead, createProject, startPortfolio, type Portfolio } from "../harness/portfolio.ts";
import { type Create, createIn, mutationOf } from "../harness/records.ts";
import { expectUnchanged } from "../harness/expectUnchanged.ts";

let world: Portfolio;
let owen: Person;
let create: Create;
let buyer: string;

const members = `id status amount percent percentBase amountDue amountPaid amountRefunded currency sequence dueAt isOverdue paidAt refundedAt
  releasedAt forfeitedAt heldBy method reference milestone { id } reservation { id } allowedTransitions { to }`;

beforeAll(async () => {
  world = await startPortfolio();
  owen = world.owen;
  create = createIn(owen);
  buyer = await createBuyer(owen, world.project);
});
afterAll(() => world.stop());

async function run(field: string, input: Record<string, unknown>, person = owen) {
  const data = await person.get(mutationOf(field, `{ ${members} }`), {
    input,
  });
  return data[field];
}
function refused(field: string, input: Record<string, unknown>, person = owen) {
  return expectUnchanged(world, () => person.refused(mutationOf(field), { input }));
}
const make = (input: Record<string, unknown>, person = owen) =>
  run("createDeposit", { buyerId: buyer, title: "Deposit", ...input }, person);
const pay = (id: string, amountPaid: unknown, person = owen) =>
  run("updateDeposit", { id, amountPaid }, person);
const read = async (id: string) =>
  (await owen.get(`query ($id: ID!) { deposit(id: $id) { ${members} } }`, { id })).deposit;

describe("a percentage", () => {
  test.each([
    // price, percent, due: half up at the last digit of the currency
    ["400000.00", "5", "20000.00"],
    ["400000.00", "0.0001", "0.40"],
    ["333333.33", "5", "16666.67"],
    ["333333.33", "15", "50000.00"],
    ["0.10", "5", "0.01"],
    ["0.09", "5", "0.00"],
    ["100.10", "2.5", "2.50"],
    ["100.20", "2.5", "2.51"],
    ["299999.99", "33.3333", "99999.90"],
    ["999999999999.00", "100", "999999999999.00"],
    ["123456.78", "1.005", "1240.74"],
    ["200.00", "0.0025", "0.01"],
    ["199.99", "0.0025", "0.00"],
  ])("of %s, %s %%, is %s", async (price, percent, due) => {
    const of = await createBuyer(owen, world.project, { price });
    const deposit = await make({ buyerId: of, percent });
    expect(deposit).toMatchObject({
      amountDue: due,
      percent,
      percentBase: "PURCHASE_PRICE",
      amount: null,
      currency: "CAD",
      amountPaid: "0.00",
    });
  });

  test("is rounded to the digits of the currency", async () => {
    const yen = await createProject(owen, {
      organizationId: world.harbour.id,
      title: "Yen",
      currency: "JPY",
    });
    const of = await createBuyer(owen, yen, { price: "33333" });
    expect(await make({ buyerId: of, percent: "1.5" })).toMatchObject({ amountDue: "500", currency: "JPY" });
    const dinar = await createProject(owen, {
      organizationId: world.harbour.id,
      title: "Dinar",
      currency: "KWD",
    });
    const inDinar = await createBuyer(owen, dinar, { price: "1000.001" });
    expect((await make({ buyerId: inDinar, percent: "0.05" })).amountDue).toBe("0.500");
  });

  test("is of the price alone, or with the personalization: gross before, net after discounts and credits", async () => {
    const project = await createProject(owen, { organizationId: world.harbour.id, title: "Chosen" });
    const unitId = await create("createUnit", {
      projectId: project.id,
      title: "C1",
      status: "AVAILABLE",
      price: "400000.00",
    });
    const of = await createBuyer(owen, project, { unitId, price: "400000.00" });
    const categoryId = await create("createSpecCategory", { projectId: project.id, title: "Kitchen" });
    const elementId = await create("createSpecElement", { categoryId, title: "Counter" });
    const optionId = await create("createSpecOption", {
      elementId,
      title: "Marble",
      price: "10000.00",
      tier: "UPGRADE",
    });
    const personalizationId = await create("createPersonalization", {
      unitId,
      buyerId: of,
      selections: [{ optionId }],
    });
    await create("createPersonalizationDiscount", { personalizationId, title: "Sale", percent: 10 });
    await create("createPersonalizationCredit", { personalizationId, title: "Thanks", amount: "500.00" });
    for (const status of ["SUBMITTED", "APPROVED"])
      await owen.get(
        `mutation ($id: ID!) { updatePersonalization(input: { id: $id, status: ${status} }) { id } }`,
        { id: personalizationId },
      );
    const due = async (percentBase: string) =>
      (await make({ buyerId: of, percent: 5, percentBase })).amountDue;
    expect([
      await due("PURCHASE_PRICE"),
      await due("GROSS_PURCHASE_PRICE"),
      await due("NET_PURCHASE_PRICE"),
    ]).toEqual(["20000.00", "20500.00", "20425.00"]);
    const { buyer: purchase } = await owen.get(
      "query ($id: ID!) { buyer(id: $id) { netPurchasePrice netPurchasePriceBalance } }",
      { id: of },
    );
    expect(purchase).toEqual({ netPurchasePrice: "408500.00", netPurchasePriceBalance: "408500.00" });
  });

  test("follows the price until its payment is requested", async () => {
    const of = await createBuyer(owen, world.project);
    const [requested, open] = [
      await make({ buyerId: of, percent: 10 }),
      await make({ buyerId: of, percent: 10 }),
    ];
    await run("updateDeposit", { id: requested.id, status: "INVOICED" });
    await world.owner.query("update app_public.buyers set price = 500000 where id = $1", [of]);
    expect([(await read(requested.id)).amountDue, (await read(open.id)).amountDue]).toEqual([
      "40000.00",
      "50000.00",
    ]);
  });

  test("of a lead is of the price of its reservation, and refused without one", async () => {
    const { id: leadId } = await createLead(owen, { projectId: world.project.id, name: "Percy Percent" });
    expect(await refused("createDeposit", { leadId, title: "Deposit", percent: 5 })).toMatchObject({
      code: "BAD_USER_INPUT",
      field: "percent",
    });
    const unit = await create("createUnit", {
      projectId: world.project.id,
      title: "P1",
      status: "AVAILABLE",
      price: 210_000,
    });
    const reservationId = await create("createReservation", { unitId: unit, leadId, acceptedTerms: true });
    const input = { leadId, title: "Deposit", percent: 5 };
    expect(await run("createDeposit", input)).toMatchObject({ amountDue: "10500.00", reservation: null });
    expect(await run("createDeposit", { ...input, reservationId })).toMatchObject({
      amountDue: "10500.00",
      reservation: { id: reservationId },
    });
    expect(
      await refused("createDeposit", { ...input, leadId: world.leads.open.id, reservationId }),
    ).toMatchObject({
      code: "BAD_USER_INPUT",
      field: "reservationId",
    });
    const { deposits } = (
      await owen.get("query ($id: ID!) { reservation(id: $id) { deposits { amountDue } } }", {
        id: reservationId,
      })
    ).reservation;
    expect(deposits).toEqual([{ amountDue: "10500.00" }]);
    // When the lead becomes a buyer, its deposits remain and are among those of the buyer.
    const { convertLead } = await owen.get(
      `mutation ($leadId: ID!) { convertLead(input: { leadId: $leadId }) { netPurchasePriceBalance deposits { id amountDue } } }`,
      { leadId },
    );
    expect(convertLead).toMatchObject({
      netPurchasePriceBalance: "210000.00",
      deposits: [{ amountDue: "10500.00" }, { amountDue: "10500.00" }],
    });
    await pay(convertLead.deposits[0].id, 10_000);
    const { lead } = await owen.get(
      "query ($id: ID!) { lead(id: $id) { buyer { netPurchasePriceBalance } } }",
      { id: leadId },
    );
    expect(lead.buyer.netPurchasePriceBalance).toBe("200000.00");
  });
});

describe("invalid input", () => {
  test.each([
    ["both amount and percent", { amount: 1, percent: 1 }, "percent"],
    ["neither amount nor percent", {}, "amount"],
    ["no amount", { amount: 0 }, "amount"],
    ["an amount below zero", { amount: -5 }, "amount"],
    ["an amount with three decimals", { amount: "1.005" }, "amount"],
    ["0 %", { percent: 0 }, "percent"],
    ["101 %", { percent: 101 }, "percent"],
    ["100.0001 %", { percent: "100.0001" }, "percent"],
    ["five digits after the point", { percent: "1.00001" }, "percent"],
    ["no title", { amount: 1, title: " " }, "title"],
    ["a day that does not exist", { amount: 1, dueAt: "2026-02-30" }, "dueAt"],
  ])("%s", async (_title, input, field) => {
    expect(await refused("createDeposit", { buyerId: buyer, title: "Deposit", ...input })).toMatchObject({
      code: "BAD_USER_INPUT",
      field,
    });
  });

  test("a reservation and a milestone of others", async () => {
    const nobody = "00000000-0000-7000-8000-000000000000";
    const elsewhere = await create("createDepositScheduleMilestone", {
      projectId: world.quiet.id,
      title: "Elsewhere",
      amount: 1,
    });
    for (const [field, id] of [
      ["reservationId", nobody],
      ["milestoneId", nobody],
      ["milestoneId", elsewhere],
    ])
      expect(
        await refused("createDeposit", { buyerId: buyer, title: "Deposit", amount: 1, [field!]: id }),
      ).toMatchObject({ code: "NOT_FOUND", field });
  });
});

test("when a purchase is cancelled, unpaid deposits are cancelled and new ones refused", async () => {
  const of = await createBuyer(owen, world.project);
  const [open, part] = [await make({ buyerId: of, amount: 10 }), await make({ buyerId: of, amount: 10 })];
  await pay(part.id, 5);
  const { rows } = await world.owner.query(
    "select id from app_public.fallout_reasons where project_id = $1 limit 1",
    [world.project.id],
  );
  await owen.get(
    `mutation ($id: ID!, $reason: ID!) { updateBuyer(input: { id: $id, status: CANCELLED, falloutReasonId: $reason }) { id } }`,
    { id: of, reason: rows[0].id },
  );
  expect([(await read(open.id)).status, (await read(part.id)).status]).toEqual([
    "CANCELLED",
    "PARTIALLY_PAID",
  ]);
  expect(await refused("createDeposit", { buyerId: of, title: "Late", amount: 1 })).toMatchObject({
    code: "CONFLICT",
    field: "buyerId",
  });
});

describe("payments", () => {
  test("make a deposit partially paid, then paid; they cannot exceed the amount due or be undone", async () => {
    const { id } = await make({ amount: "1000.00" });
    expect(await pay(id, "0.01")).toMatchObject({
      status: "PARTIALLY_PAID",
      amountPaid: "0.01",
      paidAt: null,
    });
    expect(await pay(id, "999.99")).toMatchObject({ status: "PARTIALLY_PAID" });
    expect(await refused("updateDeposit", { id, amountPaid: "1000.01" })).toMatchObject({
      code: "BAD_USER_INPUT",
      field: "amountPaid",
    });
    expect(await refused("updateDeposit", { id, amountPaid: "500" })).toMatchObject({
      code: "BAD_USER_INPUT",
      field: "amountPaid",
    });
    expect(await refused("updateDeposit", { id, amountPaid: "999.995" })).toMatchObject({
      code: "BAD_USER_INPUT",
      field: "amountPaid",
    });
    expect(await pay(id, "1000")).toMatchObject({
      status: "PAID",
      amountPaid: "1000.00",
      paidAt: expect.any(String),
    });
    expect((await refused("updateDeposit", { id, amountPaid: "1000.01" })).code).toBe("CONFLICT");
    expect(await run("updateDeposit", { id, status: "REFUNDED" })).toMatchObject({
      status: "REFUNDED",
      amountPaid: "1000.00",
      amountRefunded: "1000.00",
      refundedAt: expect.any(String),
      releasedAt: null,
    });
    const { rows } = await world.owner.query(
      "select name from app_public.events where subject_id = $1 order by id",
      [id],
    );
    expect(rows.map((row) => row.name)).toEqual([
      "deposit.created",
      "deposit.status_changed",
      "deposit.updated",
      "deposit.paid",
      "deposit.refunded",
    ]);
  });

  test("by wire can be partially refunded, up to the amount paid, with the permission finance.write", async () => {
    const { id } = await make({ amount: "1000.00" });
    const giveBack = { id, amountRefunded: "200" };
    expect(await refused("updateDeposit", giveBack)).toMatchObject({
      code: "CONFLICT",
      field: "amountRefunded",
    });
    await pay(id, "1000");
    expect(await refused("updateDeposit", { id, amountRefunded: "1000.01" })).toMatchObject({
      code: "BAD_USER_INPUT",
      field: "amountRefunded",
    });
    expect(await refused("updateDeposit", giveBack, world.max)).toMatchObject({
      code: "FORBIDDEN",
      permission: "finance.write",
      field: "amountRefunded",
    });
    expect(await run("updateDeposit", giveBack)).toMatchObject({
      status: "PARTIALLY_PAID",
      amountPaid: "1000.00",
      amountRefunded: "200.00",
    });
    expect(await refused("updateDeposit", { id, amountRefunded: "199" })).toMatchObject({
      code: "BAD_USER_INPUT",
      field: "amountRefunded",
    });
    expect(await pay(id, "1200")).toMatchObject({ status: "PAID", amountPaid: "1200.00" });
    expect(await run("updateDeposit", { id, amountRefunded: "1200" })).toMatchObject({ status: "REFUNDED" });
  });

  test("a deposit marked PAID manually is paid in full; one marked partially paid needs an amount", async () => {
    const { id } = await make({ percent: 5 });
    for (const status of ["INVOICED", "PROCESSING"]) await run("updateDeposit", { id, status });
    expect(await refused("updateDeposit", { id, status: "PARTIALLY_PAID" })).toMatchObject({
      code: "BAD_USER_INPUT",
      field: "amountPaid",
    });
    expect(await refused("updateDeposit", { id, status: "PAID", amountPaid: 1 })).toMatchObject({
      code: "BAD_USER_INPUT",
      field: "status",
    });
    expect(await run("updateDeposit", { id, status: "PAID" })).toMatchObject({
      status: "PAID",
      amountPaid: "20000.00",
    });
  });

  test("recorded 20 times concurrently are all added", async () => {
    const { id } = await make({ amount: 20 });
    const answers = await Promise.all(
      Array.from({ length: 20 }, () =>
        owen.ask(
          `mutation ($id: ID!) { updateDeposit(input: { id: $id, amountPaid: 20, expectedVersion: 1 }) { status } }`,
          { id },
        ),
      ),
    );
    const codes = answers.map((answer) => answer.errors?.[0]?.extensions.code ?? "paid").sort();
    expect(codes).toEqual([...Array.from({ length: 19 }, () => "VERSION_MISMATCH"), "paid"]);
    expect(await read(id)).toMatchObject({ status: "PAID", amountPaid: "20.00" });
  });

  test("a deposit with a payment cannot be deleted, one without can", async () => {
    const { id } = await make({ amount: 10 });
    const gone = await make({ amount: 10 });
    await pay(id, 5);
    expect((await refused("deleteDeposit", { id })).code).toBe("CONFLICT");
    await owen.get(`mutation ($id: ID!) { deleteDeposit(input: { id: $id }) { deleted } }`, { id: gone.id });
    expect(await read(gone.id)).toBeNull();
  });
});

describe("due dates", () => {
  test("follow the time zone of the project", async () => {
    // 11 hours behind UTC and 14 ahead of it: their dates always differ.
    const [west, east] = await Promise.all(
      ["Pacific/Pago_Pago", "Pacific/Kiritimati"].map((timeZone) =>
        createProject(owen, { organizationId: world.harbour.id, title: timeZone, timeZone }),
      ),
    );
    const today = async (project: { id: string }) =>
      (
        await world.owner.query<{ day: string }>("select app_hidden.project_today($1)::text as day", [
          project.id,
        ])
      ).rows[0]!.day;
    const due = await today(west!);
    const overdue = async (project: { id: string }) =>
      (await make({ buyerId: await createBuyer(owen, project), amount: 1, dueAt: due })).isOverdue;
    expect([await overdue(west!), await overdue(east!)]).toEqual([false, true]);
  });

  test("make unpaid deposits overdue when they pass, and change nothing else", async () => {
    const { rows } = await world.owner.query<{ day: string }>(
      "select app_hidden.project_today($1)::text as day",
      [world.project.id],
    );
    const dueAt = rows[0]!.day;
    const made = await Promise.all(Array.from({ length: 4 }, () => make({ amount: 100, dueAt })));
    const never = await make({ amount: 100 });
    const [open, part, paid, waived] = made.map(({ id }) => id) as [string, string, string, string];
    await pay(part, 50);
    await pay(paid, 100);
    await run("updateDeposit", { id: waived, status: "WAIVED" });
    const overdue = () =>
      Promise.all([open, part, paid, waived, never.id].map(async (id) => (await read(id)).isOverdue));
    expect(await overdue()).toEqual([false, false, false, false, false]);
    await passTime(world.owner, "2 days");
    expect(await overdue()).toEqual([true, true, false, false, false]);
  });
});

describe("the schedule of a project", () => {
  test("is copied to a purchase once, and its days follow the purchase", async () => {
    const project = await createProject(owen, {
      organizationId: world.harbour.id,
      title: "Schedule",
      timeZone: "America/Toronto",
    });
    const milestone = (input: Record<string, unknown>) =>
      create("createDepositScheduleMilestone", { projectId: project.id, ...input });
    await milestone({ sequence: 1, title: "Signing", amount: 5000, dueRule: "ON_SIGNING" });
    await milestone({
      sequence: 2,
      title: "30 days",
      percent: 5,
      dueRule: "DAYS_AFTER_SIGNING",
      dueOffsetDays: 30,
    });
    await milestone({ sequence: 3, title: "Firm", percent: 5, dueRule: "ON_FIRM" });
    await milestone({
      sequence: 4,
      title: "A day",
      percent: "2.5",
      dueRule: "FIXED_DATE",
      dueDate: "2031-05-01",
    });
    await milestone({ sequence: 5, title: "Roof", percent: 1, dueRule: "CONSTRUCTION_PHASE" });
    await milestone({ sequence: 6, title: "Closing", percent: 10, dueRule: "ON_CLOSING" });
    const purchase = await createBuyer(owen, project, { purchaseDate: "2031-01-15" });
    const copy = async (id: string) =>
      (await world.owner.query("select app_private.copy_deposit_schedule($1) as amount", [id])).rows[0]
        .amount;
    const deposits = async () =>
      (
        await world.owner.query(
          `select title, app_private.deposit_due(d)::text as due, due_at::text as day from app_public.deposits d where buyer_id = $1 order by sequence`,
          [purchase],
        )
      ).rows.map(({ title, due, day }) => [title, due, day]);
    await copy(purchase);
    expect(await copy(purchase)).toBe(0);
    expect(await deposits()).toEqual([
      ["Signing", "5000.00", "2031-01-15"],
      ["30 days", "20000.00", "2031-02-14"],
      ["Firm", "20000.00", null],
      ["A day", "10000.00", "2031-05-01"],
      ["Roof", "4000.00", null],
      ["Closing", "40000.00", null],
    ]);
    const { rows } = await world.owner.query(
      "select id from app_public.deposits where buyer_id = $1 and title = 'Signing'",
      [purchase],
    );
    await run("updateDeposit", { id: rows[0].id, dueAt: "2031-01-20" });
    await world.owner.query(
      "update app_public.buyers set purchase_date = '2031-01-16', purchase_firm_date = '2031-02-01', estimated_closing_date = '2032-06-30' where id = $1",
      [purchase],
    );
    expect((await deposits()).map(([, , day]) => day)).toEqual([
      "2031-01-20",
      "2031-02-15",
      "2031-02-01",
      "2031-05-01",
      null,
      "2032-06-30",
    ]);
  });

  test("provides defaults for a deposit of a milestone", async () => {
    const milestoneId = await create("createDepositScheduleMilestone", {
      projectId: world.project.id,
      sequence: 7,
      title: "Fill",
      percent: 5,
      percentBase: "NET_PURCHASE_PRICE",
      dueRule: "FIXED_DATE",
      dueDate: "2031-05-01",
    });
    expect(await make({ milestoneId })).toMatchObject({
      percent: "5",
      percentBase: "NET_PURCHASE_PRICE",
      dueAt: "2031-05-01",
      sequence: 7,
      milestone: { id: milestoneId },
    });
    expect(await make({ milestoneId, amount: 100, dueAt: "2031-06-01" })).toMatchObject({
      amount: "100.00",
      percent: null,
      dueAt: "2031-06-01",
    });
  });
});

test("concurrently created deposits have distinct positions", async () => {
  const project = await createProject(owen, { organizationId: world.harbour.id, title: "Places" });
  const of = await createBuyer(owen, project);
  const made = await Promise.all(Array.from({ length: 10 }, () => make({ buyerId: of, amount: 1 })));
  expect(made.map(({ sequence }) => sequence).sort((a, b) => a - b)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
});

test("the deposits of a project are visible with finance.read", async () => {
  const ask = "query ($id: ID!) { project(id: $id) { deposits(first: 1) { id } } }";
  expect((await owen.get(ask, world.project)).project.deposits).toHaveLength(1);
  for (const person of [world.max, world.sam, world.bob])
    expect((await person.get(ask, world.project)).project.deposits).toBeNull();
});
