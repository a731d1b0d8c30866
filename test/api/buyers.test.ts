/** Purchases: their fields, the status of their home, and what happens when they are cancelled. */
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import type { Person } from "../harness/api.ts";
import { passTime } from "../harness/clock.ts";
import { createIn, type Create } from "../harness/records.ts";
import { createProject } from "../harness/portfolio.ts";
import { expectUnchanged } from "../harness/expectUnchanged.ts";
import { join, startWorld, type World } from "../harness/world.ts";

let world: World;
let owen: Person;
let create: Create;
let project: string;
/** A reason of the project that applies to purchases. */
let reason: string;
let serial = 0;

const statuses = [
  "DRAFT",
  "OUT_FOR_SIGNATURE",
  "IN_REVIEW",
  "CONDITIONAL",
  "FIRM",
  "CLEAR_TO_CLOSE",
  "CLOSED",
  "CANCELLED",
] as const;

beforeAll(async () => {
  world = await startWorld();
  owen = world.owen;
  create = createIn(owen);
  project = world.project.id;
  reason = await reasonOf(project);
});
afterAll(() => world.stop());

async function reasonOf(projectId: string, appliesTo = ["BUYER"]): Promise<string> {
  return create("createFalloutReason", { projectId, name: `Reason ${++serial}`, appliesTo });
}

const unit = (input: Record<string, unknown> = {}) =>
  create("createUnit", {
    projectId: project,
    title: `Home ${++serial}`,
    status: "AVAILABLE",
    price: 400_000,
    sqft: 1000,
    ...input,
  });
const lot = (input: Record<string, unknown> = {}) =>
  create("createLot", {
    projectId: project,
    number: `L${++serial}`,
    status: "AVAILABLE",
    price: 90_000,
    ...input,
  });
const lead = (input: Record<string, unknown> = {}) =>
  create("createLead", {
    projectId: project,
    name: "Bea Buyer",
    email: `bea.${++serial}@example.com`,
    ...input,
  });
const buy = (input: Record<string, unknown> = {}) =>
  create("createBuyer", { projectId: project, price: 390_000, ...input });

const FIELDS = `id version status fullName firstName lastName legalName email phone company currency price netPurchasePrice
  netPurchasePriceBalance ppsf contractSentAt purchaseDate rescissionEndsAt purchaseFirmDate estimatedClosingDate closingDate
  cancellationDate cancellationReason statusChangedAt dob metadata falloutReason { id } assignee { id } agent { name email }
  unit { id status price soldPrice soldAt closedAt buyer { id } } lot { id status price buyer { id } } lead { id status buyer { id } }
  allowedTransitions { to allowed blockedBy }`;
const CREATE = `mutation ($input: CreateBuyerInput!) { createBuyer(input: $input) { ${FIELDS} } }`;
const UPDATE = `mutation ($input: UpdateBuyerInput!) { updateBuyer(input: $input) { ${FIELDS} } }`;

const read = async (id: string, person = owen) =>
  (await person.get(`query ($id: ID!) { buyer(id: $id) { ${FIELDS} } }`, { id })).buyer;
const update = async (id: string, input: Record<string, unknown>, person = owen) =>
  (await person.get(UPDATE, { input: { id, ...input } })).updateBuyer;
const step = (id: string, status: string) =>
  update(id, { status, ...(status === "CANCELLED" ? { falloutReasonId: reason } : {}) });
const refused = (field: "createBuyer" | "updateBuyer", input: Record<string, unknown>, person = owen) =>
  expectUnchanged(world, () => person.refused(field === "createBuyer" ? CREATE : UPDATE, { input }));
const today = (timeZone = "UTC") => new Intl.DateTimeFormat("en-CA", { timeZone }).format();

describe("a new purchase", () => {
  test("has the given values, is a draft, and claims its unit", async () => {
    const unitId = await unit();
    const { createBuyer: buyer } = await owen.get(CREATE, {
      input: {
        projectId: world.project.slug,
        unitId,
        firstName: " Bea ",
        lastName: "Buyer",
        email: "Bea@Example.com",
        phone: "416 555 0123",
        price: "389000.50",
        metadata: { crm: 7 },
        agent: { name: "Ann Agent", email: "ann@example.com" },
        assigneeId: world.max.id,
        estimatedClosingDate: "2031-02-03",
      },
    });
    expect(buyer).toMatchObject({
      version: expect.any(Number),
      status: "DRAFT",
      fullName: "Bea Buyer",
      email: "bea@example.com",
      phone: "+14165550123",
      currency: "CAD",
      price: "389000.50",
      netPurchasePrice: "389000.50",
      netPurchasePriceBalance: "389000.50",
      ppsf: "389.00",
      metadata: { crm: 7 },
      assignee: { id: world.max.id },
      agent: { name: "Ann Agent", email: "ann@example.com" },
      estimatedClosingDate: "2031-02-03",
      purchaseDate: null,
      rescissionEndsAt: null,
      unit: { id: unitId, status: "PENDING", buyer: { id: buyer.id } },
    });
    expect(buyer.allowedTransitions).toEqual([
      { to: "CANCELLED", allowed: false, blockedBy: ["falloutReasonId"] },
      { to: "OUT_FOR_SIGNATURE", allowed: true, blockedBy: [] },
    ]);
  });

  test("copies omitted personal data from the lead, which remains open", async () => {
    const leadId = await lead({ name: "Bea van Buren", company: "Buren Ltd", phone: "+31201234567" });
    await owen.get(
      `mutation ($id: ID!) { updateLead(input: { id: $id, assigneeId: "${world.max.id}" }) { id } }`,
      {
        id: leadId,
      },
    );
    const buyer = await read(await buy({ leadId, lastName: "Bea" }));
    expect(buyer).toMatchObject({
      firstName: null,
      lastName: "Bea",
      company: "Buren Ltd",
      phone: "+31201234567",
    });
    const other = await lead({ name: "Bea van Buren" });
    expect(await read(await buy({ leadId: other }))).toMatchObject({
      firstName: "Bea",
      lastName: "van Buren",
      lead: { id: other, status: "NEW" },
    });
    expect(buyer.assignee.id).toBe(world.max.id);
    expect(buyer.lead).toEqual({ id: leadId, status: "NEW", buyer: { id: buyer.id } });
  });

  test("claims the lot, or nothing without a home, and always has a name", async () => {
    const lotId = await lot();
    const buyer = await read(await buy({ lotId }));
    expect(buyer).toMatchObject({ fullName: "Unnamed buyer", unit: null, ppsf: null });
    expect(buyer.lot).toEqual({ id: lotId, status: "PENDING", price: "90000.00", buyer: { id: buyer.id } });
    expect(await read(await buy({ company: "Buren Ltd" }))).toMatchObject({
      fullName: "Buren Ltd",
      unit: null,
      lot: null,
    });
  });

  test.each(statuses.filter((status) => status !== "CANCELLED"))(
    "can be entered as %s, with its dates and its home",
    async (status) => {
      const buyer = await read(await buy({ unitId: await unit(), status, purchaseDate: "2026-03-04" }));
      const signed = statuses.indexOf(status) >= 2;
      expect(buyer).toMatchObject({
        status,
        purchaseDate: "2026-03-04",
        purchaseFirmDate: statuses.indexOf(status) >= 4 ? today() : null,
        closingDate: status === "CLOSED" ? today() : null,
        unit: {
          status: status === "CLOSED" ? "CLOSED" : signed ? "SOLD" : "PENDING",
          soldPrice: signed ? "390000.00" : null,
        },
      });
    },
  );

  test.each([
    ["no price", {}, { code: "BAD_USER_INPUT" }],
    ["a price below zero", { price: -1 }, { code: "BAD_USER_INPUT", field: "price" }],
    ["a price with too many digits", { price: "1.001" }, { code: "BAD_USER_INPUT", field: "price" }],
    ["a wrong email address", { price: 1, email: "bea" }, { code: "BAD_USER_INPUT", field: "email" }],
    ["a wrong phone number", { price: 1, phone: "12" }, { code: "BAD_USER_INPUT", field: "phone" }],
    ["CANCELLED", { price: 1, status: "CANCELLED" }, { code: "INVALID_TRANSITION", to: "CANCELLED" }],
  ])("%s", async (_name, input, expected) => {
    expect(await refused("createBuyer", { projectId: project, ...input })).toMatchObject(expected);
  });

  test("that is signed in the future also closes on that date", async () => {
    expect(await read(await buy({ status: "CLOSED", purchaseDate: "2200-01-01" }))).toMatchObject({
      purchaseDate: "2200-01-01",
      closingDate: "2200-01-01",
    });
  });

  test("refers only to records of this project", async () => {
    const { id: elsewhere } = await createProject(owen, {
      organizationId: world.harbour.id,
      title: "Elsewhere",
    });
    const foreign = {
      unitId: await unit({ projectId: elsewhere }),
      lotId: await lot({ projectId: elsewhere }),
      leadId: await lead({ projectId: elsewhere }),
    };
    for (const [field, id] of Object.entries(foreign))
      expect(await refused("createBuyer", { projectId: project, price: 1, [field]: id })).toMatchObject({
        code: "NOT_FOUND",
        field,
      });
    expect(
      await refused("createBuyer", {
        projectId: project,
        price: 1,
        unitId: await unit(),
        lotId: await lot(),
      }),
    ).toMatchObject({ code: "BAD_USER_INPUT", field: "lotId" });
    expect(
      await refused("createBuyer", { projectId: project, price: 1, assigneeId: world.olga.id }),
    ).toMatchObject({ code: "NOT_FOUND", field: "assigneeId" });
    const nothing = "00000000-0000-7000-8000-000000000000";
    for (const field of ["unitId", "lotId", "leadId", "projectId", "assigneeId"])
      expect(await refused("createBuyer", { projectId: project, price: 1, [field]: nothing })).toMatchObject({
        code: "NOT_FOUND",
        field,
      });
  });

  test("of a home that is claimed or not for sale is refused", async () => {
    const unitId = await unit();
    await buy({ unitId });
    expect(await refused("createBuyer", { projectId: project, price: 1, unitId })).toMatchObject({
      code: "INVENTORY_UNAVAILABLE",
      field: "unitId",
      claimedUntil: null,
    });
    expect(
      await refused("createBuyer", {
        projectId: project,
        price: 1,
        unitId: await unit({ status: "UNRELEASED" }),
      }),
    ).toMatchObject({ code: "INVENTORY_UNAVAILABLE", field: "unitId" });
    const lotId = await lot();
    await buy({ unitId: await unit({ lotId }) });
    expect(await refused("createBuyer", { projectId: project, price: 1, lotId })).toMatchObject({
      code: "INVENTORY_UNAVAILABLE",
      field: "lotId",
    });
  });

  test("of a lead that is already a buyer is refused with that purchase", async () => {
    const leadId = await lead();
    const first = await buy({ leadId });
    expect(await refused("createBuyer", { projectId: project, price: 1, leadId })).toMatchObject({
      code: "CONFLICT",
      field: "leadId",
      existingId: first,
    });
  });

  test("when two are created concurrently for one unit, one succeeds", async () => {
    const unitId = await unit();
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => owen.ask(CREATE, { input: { projectId: project, price: 1, unitId } })),
    );
    expect(answers.filter((answer) => !answer.errors)).toHaveLength(1);
    expect(new Set(answers.flatMap((a) => a.errors?.map((e) => e.extensions.code) ?? []))).toEqual(
      new Set(["INVENTORY_UNAVAILABLE"]),
    );
    const { rows } = await world.owner.query(
      "select kind, subject_type from app_hidden.claims where unit_id = $1 and released_at is null",
      [unitId],
    );
    expect(rows).toEqual([{ kind: "PURCHASE", subject_type: "buyer" }]);
  });
});

describe("states of a purchase", () => {
  const pairs = statuses
    .slice(0, -1)
    .flatMap((from) => statuses.map((to) => [from, to] as const))
    .filter(([from, to]) => from !== to);
  const isListed = ([from, to]: readonly [string, string]) =>
    to === "CANCELLED"
      ? from !== "CLOSED"
      : statuses.findIndex((status) => status === to) === statuses.findIndex((status) => status === from) + 1;
  const listedFrom = async (id: string): Promise<string[]> =>
    (await read(id)).allowedTransitions.map((transition: { to: string }) => transition.to);

  test.each(pairs.filter(isListed))("%s → %s", async (from, to) => {
    const id = await buy({ status: from });
    expect(await listedFrom(id)).toContain(to);
    expect(await step(id, to)).toMatchObject({ status: to });
  });

  test.each(pairs.filter((pair) => !isListed(pair)))("not %s → %s", async (from, to) => {
    const id = await buy({ status: from });
    const allowedTransitions = await listedFrom(id);
    expect(allowedTransitions).not.toContain(to);
    expect(await refused("updateBuyer", { id, status: to, falloutReasonId: reason })).toMatchObject({
      code: "INVALID_TRANSITION",
      from,
      to,
      field: "status",
      allowedTransitions,
    });
  });

  test("CANCELLED is final", async () => {
    const id = await buy();
    await step(id, "CANCELLED");
    for (const to of statuses.slice(0, -1))
      expect(await refused("updateBuyer", { id, status: to })).toMatchObject({
        code: "INVALID_TRANSITION",
        allowedTransitions: [],
      });
  });

  test("every transition sets its date and the status of the unit, and writes an event", async () => {
    const unitId = await unit();
    const id = await buy({ unitId });
    expect(await step(id, "OUT_FOR_SIGNATURE")).toMatchObject({
      contractSentAt: expect.any(String),
      unit: { status: "PENDING" },
    });
    expect(await step(id, "IN_REVIEW")).toMatchObject({ purchaseDate: today(), rescissionEndsAt: null });
    expect((await read(id)).unit).toMatchObject({
      status: "SOLD",
      soldPrice: "390000.00",
      price: "400000.00",
    });
    await update(id, { price: 385_000 });
    expect((await read(id)).unit).toMatchObject({ soldPrice: "385000.00" });
    await step(id, "CONDITIONAL");
    expect(await step(id, "FIRM")).toMatchObject({ purchaseFirmDate: today() });
    await step(id, "CLEAR_TO_CLOSE");
    expect(await step(id, "CLOSED")).toMatchObject({ closingDate: today(), allowedTransitions: [] });
    expect((await read(id)).unit).toMatchObject({ status: "CLOSED", closedAt: expect.any(String) });
    const { rows } = await world.owner.query(
      `select name, changes -> 'status' as status from app_public.events where subject_id = $1 and changes ? 'status' order by id`,
      [id],
    );
    expect(rows).toEqual(
      statuses
        .slice(0, -2)
        .map((from, i) => ({ name: "buyer.status_changed", status: [from, statuses[i + 1]] })),
    );
  });

  test("a unit is sold when the purchase is firm, if the project is configured so", async () => {
    const { id: projectId } = await createProject(owen, {
      organizationId: world.harbour.id,
      title: "Firm Fields",
      soldTrigger: "FIRM",
    });
    const id = await buy({ projectId, unitId: await unit({ projectId }), status: "OUT_FOR_SIGNATURE" });
    for (const [status, expected] of [
      ["IN_REVIEW", "PENDING"],
      ["CONDITIONAL", "PENDING"],
      ["FIRM", "SOLD"],
      ["CLEAR_TO_CLOSE", "SOLD"],
    ]) {
      await step(id, status!);
      expect((await read(id)).unit.status).toBe(expected);
    }
  });

  test("the status of its home cannot be changed manually", async () => {
    const unitId = await unit();
    await buy({ unitId });
    expect(
      await owen.refused(
        `mutation ($id: ID!) { updateUnit(input: { id: $id, status: OFF_MARKET }) { id } }`,
        { id: unitId },
      ),
    ).toHaveProperty("code");
  });
});

describe("cancelling a purchase", () => {
  test("requires a reason of the project that applies to purchases", async () => {
    const id = await buy();
    expect(await refused("updateBuyer", { id, status: "CANCELLED" })).toMatchObject({
      code: "BAD_USER_INPUT",
      field: "falloutReasonId",
    });
    const { id: elsewhere } = await createProject(owen, { organizationId: world.harbour.id, title: "Aside" });
    const foreign = await reasonOf(elsewhere);
    expect(await refused("updateBuyer", { id, status: "CANCELLED", falloutReasonId: foreign })).toMatchObject(
      { code: "NOT_FOUND", field: "falloutReasonId" },
    );
    const ofLeads = await reasonOf(project, ["LEAD"]);
    expect(await refused("updateBuyer", { id, status: "CANCELLED", falloutReasonId: ofLeads })).toMatchObject(
      { code: "BAD_USER_INPUT", field: "falloutReasonId" },
    );
    await step(id, "CANCELLED");
    expect(await refused("updateBuyer", { id, falloutReasonId: null })).toMatchObject({
      code: "BAD_USER_INPUT",
      field: "falloutReasonId",
    });
  });

  test.each(["DRAFT", "IN_REVIEW", "CLEAR_TO_CLOSE"])(
    "from %s releases the home at its former list price",
    async (status) => {
      const unitId = await unit();
      const id = await buy({ unitId, status });
      await owen.get(`mutation ($id: ID!) { updateUnit(input: { id: $id, price: 450000 }) { id } }`, {
        id: unitId,
      });
      const buyer = await update(id, {
        status: "CANCELLED",
        falloutReasonId: reason,
        cancellationReason: "Lost the job.",
      });
      expect(buyer).toMatchObject({
        status: "CANCELLED",
        cancellationDate: today(),
        cancellationReason: "Lost the job.",
        falloutReason: { id: reason },
        allowedTransitions: [],
      });
      expect((await read(id)).unit).toEqual({
        id: unitId,
        status: "AVAILABLE",
        price: "400000.00",
        soldPrice: null,
        soldAt: null,
        closedAt: null,
        buyer: null,
      });
      // Another purchase can claim it.
      const next = await buy({ unitId });
      expect((await read(next)).unit).toMatchObject({ status: "PENDING", buyer: { id: next } });
    },
  );

  test("by the service has a reason too, and is cancelled once", async () => {
    const id = await buy({ unitId: await unit() });
    const cancel = () => world.owner.query("select app_private.cancel_purchase($1, 'Refunded.')", [id]);
    await cancel();
    const buyer = await read(id);
    expect(buyer).toMatchObject({
      status: "CANCELLED",
      cancellationReason: "Refunded.",
      falloutReason: { id: expect.any(String) },
      unit: { status: "AVAILABLE" },
    });
    const next = await buy({ unitId: buyer.unit.id });
    await cancel();
    expect((await read(next)).unit).toMatchObject({ status: "PENDING", buyer: { id: next } });
    expect((await read(id)).version).toBe(buyer.version);
  });
});

describe("the rescission period", () => {
  /** A project with this number of rescission days, in the time zone. */
  const place = async (timeZone: string, rescissionDays: number) =>
    (
      await createProject(owen, {
        organizationId: world.harbour.id,
        title: `Place ${++serial}`,
        timeZone,
        rescissionDays,
      })
    ).id;

  test.each([
    ["America/Toronto", 10, "2026-03-01", "2026-03-12T04:00:00Z"], // the clocks go forward in between
    ["America/Toronto", 10, "2026-10-25", "2026-11-05T05:00:00Z"], // the clocks go back in between
    ["Europe/Berlin", 1, "2026-03-28", "2026-03-29T22:00:00Z"],
    ["Asia/Tokyo", 8, "2026-06-01", "2026-06-09T15:00:00Z"],
    ["America/Santiago", 1, "2026-09-04", "2026-09-06T04:00:00Z"], // that midnight does not exist
    ["UTC", 3, "2026-12-30", "2027-01-03T00:00:00Z"],
  ])("in %s for %i days after %s", async (timeZone, days, purchaseDate, end) => {
    const projectId = await place(timeZone, days);
    const id = await buy({ projectId, status: "OUT_FOR_SIGNATURE" });
    const buyer = await update(id, { status: "IN_REVIEW", purchaseDate });
    expect(new Date(buyer.rescissionEndsAt)).toEqual(new Date(end));
  });

  test("begins with the day of signing in the time zone of the project", async () => {
    for (const timeZone of ["Pacific/Kiritimati", "Pacific/Pago_Pago"]) {
      const projectId = await place(timeZone, 5);
      const buyer = await read(await buy({ projectId, status: "IN_REVIEW" }));
      expect(buyer.purchaseDate).toBe(today(timeZone));
      const local = new Intl.DateTimeFormat("en-CA", {
        timeZone,
        dateStyle: "short",
        timeStyle: "medium",
        hourCycle: "h23",
      });
      const signed = new Date(`${buyer.purchaseDate}T00:00:00Z`);
      signed.setUTCDate(signed.getUTCDate() + 6);
      expect(local.format(new Date(buyer.rescissionEndsAt))).toBe(
        `${signed.toISOString().slice(0, 10)}, 00:00:00`,
      );
    }
  });

  test.each([
    [true, "CONDITIONAL"],
    [false, "FIRM"],
    [null, "FIRM"],
  ])(
    "ends by itself: with a financing contingency %s the purchase is %s",
    async (financingContingency, status) => {
      const projectId = await place("America/Toronto", 2);
      const id = await buy({
        projectId,
        unitId: await unit({ projectId }),
        status: "IN_REVIEW",
        financingContingency,
      });
      await passTime(world.owner, "2 days");
      expect(await read(id)).toMatchObject({ status: "IN_REVIEW" });
      await passTime(world.owner, "25 hours");
      const { buyers } = await owen.get(
        `query ($filter: BuyersFilter) { buyers(filter: $filter) { id status purchaseFirmDate rescissionEndsAt } }`,
        { filter: { projectIds: [projectId], status: [status] } },
      );
      expect(buyers).toHaveLength(1);
      expect(buyers[0].purchaseFirmDate).toBe(
        status === "FIRM"
          ? new Intl.DateTimeFormat("en-CA", { timeZone: "America/Toronto" }).format(
              new Date(buyers[0].rescissionEndsAt),
            )
          : null,
      );
      expect((await read(id)).unit.status).toBe("SOLD");
      const { rows } = await world.owner.query(
        "select actor_type, changes -> 'status' as status from app_public.events where subject_id = $1 and name = 'buyer.status_changed'",
        [id],
      );
      expect(rows).toEqual([{ actor_type: "SYSTEM", status: ["IN_REVIEW", status] }]);
    },
  );

  test("ends in an archived project too", async () => {
    const projectId = await place("UTC", 2);
    const id = await buy({ projectId, unitId: await unit({ projectId }), status: "IN_REVIEW" });
    await owen.get(`mutation ($id: ID!) { updateProject(input: { id: $id, status: ARCHIVED }) { id } }`, {
      id: projectId,
    });
    await passTime(world.owner, "4 days");
    expect(await read(id)).toMatchObject({ status: "FIRM", unit: { status: "SOLD" } });
  });

  test("has no effect on a purchase that was cancelled or whose period was waived", async () => {
    const projectId = await place("UTC", 2);
    const cancelled = await buy({ projectId, status: "IN_REVIEW" });
    const waived = await buy({ projectId, status: "IN_REVIEW" });
    await update(cancelled, { status: "CANCELLED", falloutReasonId: await reasonOf(projectId) });
    await step(waived, "CONDITIONAL");
    await passTime(world.owner, "5 days");
    expect((await read(cancelled)).status).toBe("CANCELLED");
    expect((await read(waived)).status).toBe("CONDITIONAL");
  });

  test("is computed again while it runs if the day of signing changes", async () => {
    const projectId = await place("UTC", 10);
    const id = await buy({ projectId, status: "IN_REVIEW", purchaseDate: "2090-01-01" });
    const buyer = await update(id, { purchaseDate: "2090-02-01" });
    expect(new Date(buyer.rescissionEndsAt)).toEqual(new Date("2090-02-12T00:00:00Z"));
    expect(await refused("updateBuyer", { id, purchaseDate: null })).toMatchObject({
      code: "BAD_USER_INPUT",
      field: "purchaseDate",
    });
  });
});

describe("an update", () => {
  test("changes every field, and null clears", async () => {
    const id = await buy({ unitId: await unit() });
    const given = {
      firstName: "Ben",
      lastName: "Berg",
      legalName: "Benjamin Berg",
      email: "ben@example.com",
      phone: "+4915112345678",
      dob: "1980-02-29",
      company: "Berg AG",
      price: "380000.00",
      purchaseDate: "2026-01-02",
      estimatedClosingDate: "2026-02-03",
      closingDate: "2026-03-04",
      cancellationReason: "None.",
      metadata: { a: [1] },
    };
    const extra = `preferredLanguage address { locality country } occupancyType occupancyTypeOther financingType financingContingency amountFinanced`;
    const more = {
      preferredLanguage: "de",
      address: { locality: "Berlin", country: "DE" },
      occupancyType: "OTHER",
      occupancyTypeOther: "A studio",
      financingType: "CASH",
      financingContingency: true,
      amountFinanced: "1000.00",
    };
    const { updateBuyer } = await owen.get(
      `mutation ($input: UpdateBuyerInput!) { updateBuyer(input: $input) { ${FIELDS} ${extra} } }`,
      { input: { id, ...given, ...more, assigneeId: world.max.id, agent: { name: "Ann" } } },
    );
    expect(updateBuyer).toMatchObject({
      ...given,
      ...more,
      assignee: { id: world.max.id },
      agent: { name: "Ann" },
    });
    const cleared = await update(id, {
      ...Object.fromEntries(
        Object.keys(given)
          .filter((key) => key !== "price")
          .map((key) => [key, null]),
      ),
      assigneeId: null,
      agent: null,
    });
    expect(cleared).toMatchObject({
      fullName: "Unnamed buyer",
      dob: null,
      assignee: null,
      agent: null,
      metadata: null,
    });
    expect(await refused("updateBuyer", { id, price: null })).toMatchObject({
      code: "BAD_USER_INPUT",
      field: "price",
    });
    expect(await refused("updateBuyer", { id, firstName: "X", expectedVersion: 1 })).toMatchObject({
      code: "VERSION_MISMATCH",
      currentVersion: cleared.version,
    });
    expect(
      await refused("updateBuyer", { id, closingDate: "2026-01-01", purchaseDate: "2026-01-02" }),
    ).toMatchObject({
      code: "BAD_USER_INPUT",
    });
    expect(await refused("updateBuyer", { id, dob: "2999-01-01" })).toMatchObject({ field: "dob" });
  });

  test("of the assignee is applied to the lead, and vice versa", async () => {
    const leadId = await lead();
    const id = await buy({ leadId });
    await update(id, { assigneeId: world.max.id });
    const assignee = async () =>
      (await owen.get(`query ($id: ID!) { lead(id: $id) { assignee { id } } }`, { id: leadId })).lead.assignee
        ?.id;
    expect(await assignee()).toBe(world.max.id);
    await owen.get(`mutation ($id: ID!) { updateLead(input: { id: $id, assigneeId: null }) { id } }`, {
      id: leadId,
    });
    expect((await read(id)).assignee).toBeNull();
  });

  test("in an archived project is refused", async () => {
    const { id: projectId } = await createProject(owen, { organizationId: world.harbour.id, title: "Old" });
    const id = await buy({ projectId });
    await owen.get(`mutation ($id: ID!) { updateProject(input: { id: $id, status: ARCHIVED }) { id } }`, {
      id: projectId,
    });
    expect(await refused("updateBuyer", { id, firstName: "X" })).toMatchObject({ code: "PROJECT_ARCHIVED" });
    expect(await refused("createBuyer", { projectId, price: 1 })).toMatchObject({ code: "PROJECT_ARCHIVED" });
  });

  test("the date of birth is not in any event", async () => {
    const id = await buy();
    await update(id, { dob: "1980-02-29" });
    const { rows } = await world.owner.query(
      "select 1 from app_public.events where subject_id = $1 and (data ? 'dob' or changes ? 'dob')",
      [id],
    );
    expect(rows).toEqual([]);
    expect((await read(id, world.max)).dob).toBeNull();
    expect((await read(id)).dob).toBe("1980-02-29");
  });
});

test("only drafts can be deleted, which releases their home", async () => {
  const unitId = await unit();
  const id = await buy({ unitId });
  const DELETE = `mutation ($id: ID!) { deleteBuyer(input: { id: $id }) { deleted } }`;
  await owen.get(DELETE, { id });
  expect(await read(id)).toBeNull();
  expect(
    (await owen.get(`query ($id: ID!) { unit(id: $id) { status buyer { id } } }`, { id: unitId })).unit,
  ).toEqual({
    status: "AVAILABLE",
    buyer: null,
  });
  const firm = await buy({ status: "FIRM" });
  expect(await expectUnchanged(world, () => owen.refused(DELETE, { id: firm }))).toMatchObject({
    code: "CONFLICT",
  });
});

describe("lists", () => {
  let listed: string;
  let ids: string[];
  beforeAll(async () => {
    listed = (await createProject(owen, { organizationId: world.harbour.id, title: "Listed" })).id;
    ids = [];
    const home = await unit({ projectId: listed });
    for (const input of [
      { firstName: "Zoë", lastName: "Ångström", email: "zoe@example.com" },
      { company: "Müller & Co", phone: "+14165550199", status: "FIRM", purchaseDate: "2026-05-05" },
      { legalName: "Third Person", unitId: home, assigneeId: world.max.id },
    ])
      ids.push(await buy({ projectId: listed, ...input }));
  });

  const list = async (filter: Record<string, unknown>, person = owen) => {
    const { buyers, buyersConnection: page } = await person.get(
      `query ($filter: BuyersFilter) { buyers(filter: $filter) { id } buyersConnection(filter: $filter) { totalCount nodes { id } } }`,
      { filter: { projectIds: [listed], ...filter } },
    );
    const found = buyers.map((buyer: { id: string }) => buyer.id);
    expect(page).toEqual({ totalCount: found.length, nodes: buyers });
    return found.map((id: string) => ids.indexOf(id));
  };

  test("are most recent first, and filter by every field", async () => {
    expect(await list({})).toEqual([2, 1, 0]);
    expect(await list({ status: ["FIRM", "CLOSED"] })).toEqual([1]);
    expect(await list({ status: [] })).toEqual([]);
    expect(await list({ assigneeIds: [world.max.id] })).toEqual([2]);
    expect(await list({ unitIds: [await unit({ projectId: listed })] })).toEqual([]);
    expect(await list({ query: "angstrom ZOE" })).toEqual([0]);
    expect(await list({ query: "muller" })).toEqual([1]);
    expect(await list({ query: "0199" })).toEqual([1]);
    expect(await list({ query: "person third" })).toEqual([2]);
    expect(await list({ query: "100%_" })).toEqual([]);
    expect(await list({ purchaseDate: { from: "2026-05-05", to: "2026-05-05" } })).toEqual([1]);
    expect(await list({ closingDate: { from: "2000-01-01" } })).toEqual([]);
    expect(await list({ updatedAt: { from: "2000-01-01T00:00:00Z" } })).toEqual([2, 1, 0]);
    expect(await list({}, world.olga)).toEqual([]);
  });

  test("have aggregates, and the project has its own list", async () => {
    const { buyersConnection: page, project: of } = await owen.get(
      `query ($id: ID!, $filter: BuyersFilter) {
        buyersConnection(filter: $filter) { aggregates { sum { price } } groupedAggregates(groupBy: [STATUS]) { keys distinctCount { id } } }
        project(id: $id) { buyers(first: 2) { id } } }`,
      { id: listed, filter: { projectIds: [listed] } },
    );
    expect(page.aggregates.sum.price).toBe("1170000.00");
    expect(page.groupedAggregates).toHaveLength(2);
    expect(of.buyers.map((b: { id: string }) => b.id)).toEqual([ids[2], ids[1]]);
  });

  test("take the same number of statements for fifty purchases as for one", async () => {
    const { id: projectId } = await createProject(owen, { organizationId: world.harbour.id, title: "Many" });
    const QUERY = `query ($filter: BuyersFilter) { buyers(filter: $filter, first: 50) { ${FIELDS} project { title }
      unit { title floorPlan { title } buyer { fullName } } lead { name buyer { id } assignee { fullName } } user { fullName } leadSource { name }
      reservation { number } deposits { title } agreements { id } appointments { id } contacts { id } phoneCalls { id } notes { id } tasks { id } documents { id } events(first: 3) { name } } }`;
    const count = async () =>
      (await world.statements(() => owen.get(QUERY, { filter: { projectIds: [projectId] } }))).count;
    await buy({ projectId, unitId: await unit({ projectId }), leadId: await lead({ projectId }) });
    // The first query after a change of permissions is sent twice.
    await count();
    const one = await count();
    for (let i = 0; i < 49; i += 1)
      await buy({ projectId, unitId: await unit({ projectId }), leadId: await lead({ projectId }) });
    expect(await count()).toBe(one);
    expect(one).toBe(1);
  });
});

test("a purchase loses its assignee when they leave the organization", async () => {
  const leaver = await world.signUp("Lee Leaver");
  await join(world, world.harbour.id, leaver, "MEMBER");
  const id = await buy({ assigneeId: leaver.id });
  expect((await read(id)).assignee.id).toBe(leaver.id);
  await owen.get(
    `mutation ($input: RemoveOrganizationMemberInput!) { removeOrganizationMember(input: $input) { reassignedLeads } }`,
    { input: { organizationId: world.harbour.id, userId: leaver.id } },
  );
  expect((await read(id)).assignee).toBeNull();
});

test("a lease permit belongs to a purchase of its project", async () => {
  const id = await create("createLeasePermit", { projectId: project, title: "Permit" });
  const UPDATE_PERMIT = `mutation ($input: UpdateLeasePermitInput!) { updateLeasePermit(input: $input) { buyer { id } } }`;
  const buyerId = await buy();
  expect((await owen.get(UPDATE_PERMIT, { input: { id, buyerId } })).updateLeasePermit.buyer.id).toBe(
    buyerId,
  );
  const { id: elsewhere } = await createProject(owen, { organizationId: world.harbour.id, title: "Afar" });
  expect(
    await owen.refused(UPDATE_PERMIT, { input: { id, buyerId: await buy({ projectId: elsewhere }) } }),
  ).toMatchObject({ code: "NOT_FOUND", field: "buyerId" });
});
