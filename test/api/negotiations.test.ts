/** Negotiations: who can begin which, the fields that the team sets, and fields that only offers change. */
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { negotiate, type Table } from "../harness/negotiations.ts";
import { createProject } from "../harness/portfolio.ts";
import { startWorld, type World } from "../harness/world.ts";

let world: World;
let table: Table;
/** Of another project of the same organization. */
let other: Table;

beforeAll(async () => {
  world = await startWorld();
  table = negotiate(world);
  other = negotiate(
    world,
    world.owen,
    await createProject(world.owen, { organizationId: world.harbour.id, title: "Other Orchard" }),
  );
});
afterAll(() => world.stop());

const update = async (input: Record<string, unknown>, fields = "id") =>
  (
    await world.owen.get(
      `mutation ($input: UpdateNegotiationInput!) { updateNegotiation(input: $input) { ${fields} } }`,
      { input },
    )
  ).updateNegotiation;

describe("a negotiation", () => {
  test("stores the list price at its start and belongs to the project of its unit", async () => {
    const unitId = await table.unit({ price: "425000.50" });
    const leadId = await table.lead();
    const id = await table.negotiation({
      unitId,
      leadId,
      floorPrice: "400000",
      offerExpirationHours: 24,
      notes: " Wants to sell by June. ",
    });
    await table.create("updateUnit", { id: unitId, price: "500000" });
    expect(
      await table.read(
        "negotiation",
        id,
        `status round turn listPrice floorPrice currency offerExpirationHours notes closedAt cancellationReason
        project { id } unit { id } lead { id } offers { id } currentOffer { id } acceptedOffer { id }
        allowedTransitions { to allowed blockedBy } version events { name }`,
      ),
    ).toEqual({
      status: "OPEN",
      round: 1,
      turn: null,
      listPrice: "425000.50",
      floorPrice: "400000.00",
      currency: "CAD",
      offerExpirationHours: 24,
      notes: "Wants to sell by June.",
      closedAt: null,
      cancellationReason: null,
      project: { id: world.project.id },
      unit: { id: unitId },
      lead: { id: leadId },
      offers: [],
      currentOffer: null,
      acceptedOffer: null,
      allowedTransitions: [{ to: "CANCELLED", allowed: false, blockedBy: ["cancellationReason"] }],
      version: 1,
      events: [{ name: "negotiation.created" }],
    });
  });

  test("is listed by its project, unit and lead", async () => {
    const unitId = await table.unit();
    const leadId = await table.lead();
    const id = await table.negotiation({ unitId, leadId });
    for (const [field, record] of [
      ["unit", unitId],
      ["lead", leadId],
    ])
      expect(await table.read(field!, record!, "negotiations { id }")).toEqual({ negotiations: [{ id }] });
    const { project } = await world.owen.get(
      `query ($id: ID!) { project(id: $id) { negotiations(filter: { status: [OPEN] }) { id } } }`,
      world.project,
    );
    expect(project.negotiations).toContainEqual({ id });
  });

  test("there is one at a time for a lead and a unit; after a cancellation, another can begin", async () => {
    const unitId = await table.unit();
    const leadId = await table.lead();
    const id = await table.negotiation({ unitId, leadId });
    expect(await table.refused("createNegotiation", { unitId, leadId })).toMatchObject({
      code: "CONFLICT",
      existingId: id,
      field: "leadId",
    });
    await table.answer(await table.offer(id, "BUYER", 100), "REJECT");
    expect(await table.refused("createNegotiation", { unitId, leadId })).toMatchObject({
      code: "CONFLICT",
      existingId: id,
    });
    await update({ id, status: "CANCELLED", cancellationReason: "Starts anew" });
    await table.negotiation({ unitId, leadId });
    await table.negotiation({ unitId: await table.unit(), leadId });
  });

  test("a negotiation of a buyer is one of the converted lead", async () => {
    const unitId = await table.unit();
    const leadId = await table.lead({ assigneeId: world.max.id });
    const buyerId = await table.buyer({ leadId });
    const id = await table.negotiation({ unitId, buyerId });
    expect(await table.read("negotiation", id, "lead { id }")).toEqual({ lead: { id: leadId } });
    const { rows } = await world.owner.query(
      "select buyer_id, assignee_id from app_public.negotiations where id = $1",
      [id],
    );
    expect(rows).toEqual([{ buyer_id: buyerId, assignee_id: world.max.id }]);
    expect(await table.refused("createNegotiation", { unitId, leadId })).toMatchObject({
      code: "CONFLICT",
      existingId: id,
    });
    // The agreed price becomes that of an unsigned purchase.
    await table.answer(await table.offer(id, "BUYER", 398_000), "ACCEPT");
    const { rows: buyers } = await world.owner.query(
      "select price::float as price from app_public.buyers where id = $1",
      [buyerId],
    );
    expect(buyers).toEqual([{ price: 398_000 }]);
  });

  test("follows the assignee of the lead, without a new version", async () => {
    const leadId = await table.lead({ assigneeId: world.max.id });
    const id = await table.negotiation({ leadId });
    const offer = await table.offer(id, "BUYER", 100);
    const versions = async () => [
      (await table.read("negotiation", id, "version")).version,
      (await table.read("offer", offer, "version")).version,
    ];
    const before = await versions();
    await table.create("updateLead", { id: leadId, assigneeId: world.ada.id });
    expect(await versions()).toEqual(before);
    const { rows } = await world.owner.query(
      `select n.assignee_id as negotiation, o.assignee_id as offer
       from app_public.negotiations n join app_public.offers o on o.negotiation_id = n.id where n.id = $1`,
      [id],
    );
    expect(rows).toEqual([{ negotiation: world.ada.id, offer: world.ada.id }]);
  });
});

describe("cancellation", () => {
  test("withdraws the pending offer, restores the lead's status, and is final", async () => {
    const leadId = await table.lead({ status: "WARM" });
    const id = await table.negotiation({ leadId });
    const offer = await table.offer(id, "BUYER", 100);
    expect(await table.read("lead", leadId, "status")).toEqual({ status: "NEGOTIATING" });
    expect(await table.refused("updateNegotiation", { id, status: "CANCELLED" })).toMatchObject({
      code: "BAD_USER_INPUT",
      field: "cancellationReason",
    });
    expect(
      await update(
        { id, status: "CANCELLED", cancellationReason: "Bought elsewhere" },
        "status turn closedAt cancellationReason allowedTransitions { to }",
      ),
    ).toEqual({
      status: "CANCELLED",
      turn: null,
      closedAt: expect.any(String),
      cancellationReason: "Bought elsewhere",
      allowedTransitions: [],
    });
    expect(await table.read("offer", offer, "status withdrawnAt")).toEqual({
      status: "WITHDRAWN",
      withdrawnAt: expect.any(String),
    });
    expect(await table.read("lead", leadId, "status")).toEqual({ status: "WARM" });
  });

  test("is done by the service when the deal ends", async () => {
    const unitId = await table.unit();
    const [mine, accepted] = [await table.negotiation({ unitId }), await table.negotiation({ unitId })];
    const elsewhere = await table.negotiation();
    const offer = await table.offer(mine!, "BUYER", 100);
    const end = async (what: string, id: string) =>
      (
        await world.owner.query(
          `select app_private.end_negotiations(${what} => $1, reason => 'Sold') as ended`,
          [id],
        )
      ).rows[0].ended;
    expect(await end("unit_id", unitId)).toBe(2);
    expect(await end("unit_id", unitId)).toBe(0);
    expect(await table.read("negotiation", mine!, "status cancellationReason")).toEqual({
      status: "CANCELLED",
      cancellationReason: "Sold",
    });
    expect(await table.read("offer", offer, "status")).toEqual({ status: "WITHDRAWN" });
    expect(await table.read("negotiation", accepted!, "status")).toEqual({ status: "CANCELLED" });
    expect(await table.read("negotiation", elsewhere, "status")).toEqual({ status: "OPEN" });
    const { lead } = await table.read("negotiation", elsewhere, "lead { id }");
    await table.answer(await table.offer(elsewhere, "BUYER", 100), "ACCEPT");
    expect(await end("lead_id", lead.id)).toBe(0);
    expect(await table.read("negotiation", elsewhere, "status")).toEqual({ status: "ACCEPTED" });
  });
});

test("a lost update is refused with the current version", async () => {
  const id = await table.negotiation();
  const { version } = await update({ id, offerExpirationHours: 10, expectedVersion: 1 }, "version");
  expect(version).toBe(2);
  expect(
    await table.refused("updateNegotiation", { id, offerExpirationHours: 11, expectedVersion: 1 }),
  ).toMatchObject({ code: "VERSION_MISMATCH", currentVersion: 2 });
  // The cancellation does not change records of the other person either.
  expect(
    await table.refused("updateNegotiation", {
      id,
      status: "CANCELLED",
      cancellationReason: "Late",
      expectedVersion: 1,
    }),
  ).toMatchObject({ code: "VERSION_MISMATCH" });
});

describe("refused", () => {
  test("without a person, of another project, of a person who cannot buy, for a home that is not for sale", async () => {
    const unitId = await table.unit();
    const leadId = await table.lead();
    const { project } = await world.owen.get(
      `query ($id: ID!) { project(id: $id) { falloutReasons { id } } }`,
      {
        id: world.project.id,
      },
    );
    const lost = await table.lead();
    await table.create("updateLead", {
      id: lost,
      status: "LOST",
      falloutReasonId: project.falloutReasons[0].id,
    });
    const lenas = await table.lead();
    const buyerId = await table.buyer({ leadId: lenas, unitId: await table.unit() });
    const cancelled = await table.buyer({ unitId });
    await table.create("updateBuyer", {
      id: cancelled,
      status: "CANCELLED",
      falloutReasonId: project.falloutReasons[0].id,
    });
    const unreleased = await table.unit({ status: "UNRELEASED" });
    const nobody = "00000000-0000-7000-8000-000000000000";
    const { rows: before } = await world.owner.query("select count(*) from app_public.negotiations");
    for (const [input, refusal] of [
      [{ unitId }, { code: "BAD_USER_INPUT", field: "leadId" }],
      [
        { unitId: nobody, leadId },
        { code: "NOT_FOUND", field: "unitId" },
      ],
      [
        { unitId, leadId: nobody },
        { code: "NOT_FOUND", field: "leadId" },
      ],
      [
        { unitId, buyerId: nobody },
        { code: "NOT_FOUND", field: "buyerId" },
      ],
      [
        { unitId, reservationId: nobody },
        { code: "NOT_FOUND", field: "reservationId" },
      ],
      [
        { unitId: "x", leadId },
        { code: "BAD_USER_INPUT", field: "unitId" },
      ],
      [
        { unitId: await other.unit(), leadId },
        { code: "BAD_USER_INPUT", field: "leadId" },
      ],
      [
        { unitId, leadId: await other.lead() },
        { code: "BAD_USER_INPUT", field: "leadId" },
      ],
      [
        { unitId, leadId: lost },
        { code: "CONFLICT", field: "leadId" },
      ],
      [
        { unitId, buyerId },
        { code: "BAD_USER_INPUT", field: "buyerId" },
      ],
      [
        { unitId, buyerId: cancelled },
        { code: "CONFLICT", field: "buyerId" },
      ],
      [
        { unitId: unreleased, leadId },
        { code: "INVENTORY_UNAVAILABLE", field: "unitId" },
      ],
      [
        { unitId, leadId, floorPrice: "-1" },
        { code: "BAD_USER_INPUT", field: "floorPrice" },
      ],
      [
        { unitId, leadId, floorPrice: "1.005" },
        { code: "BAD_USER_INPUT", field: "floorPrice" },
      ],
      [
        { unitId, leadId, offerExpirationHours: 0 },
        { code: "BAD_USER_INPUT", field: "offerExpirationHours" },
      ],
      [
        { unitId, leadId, offerExpirationHours: 8761 },
        { code: "BAD_USER_INPUT", field: "offerExpirationHours" },
      ],
    ] as const)
      expect(await table.refused("createNegotiation", input)).toMatchObject(refusal);
    const { rows: after } = await world.owner.query("select count(*) from app_public.negotiations");
    expect(after).toEqual(before);
  });

  test("in an archived project, as are offers and answers", async () => {
    const project = await createProject(world.owen, {
      organizationId: world.harbour.id,
      title: "Archived Acre",
    });
    const there = negotiate(world, world.owen, project);
    const unitId = await there.unit();
    const leadId = await there.lead();
    const id = await there.negotiation();
    const pending = await there.negotiation();
    const offerId = await there.offer(pending, "BUYER", 100);
    await there.create("updateProject", { id: project.id, status: "ARCHIVED" });
    for (const [field, input] of [
      ["createNegotiation", { unitId, leadId }],
      ["updateNegotiation", { id, offerExpirationHours: 3 }],
      ["createOffer", { negotiationId: id, side: "BUYER", price: "1" }],
      ["createOfferResponse", { offerId, action: "ACCEPT" }],
      ["createOfferResponse", { offerId, action: "REJECT" }],
      ["withdrawOffer", { id: offerId }],
    ] as const)
      expect(await there.refused(field, input)).toMatchObject({ code: "PROJECT_ARCHIVED" });
  });
});

test("only the listed transitions succeed, and the team can only cancel", async () => {
  const states = ["OPEN", "ACTIVE", "ACCEPTED", "REJECTED", "EXPIRED", "CANCELLED"];
  const listed: Record<string, string[]> = {
    OPEN: ["ACTIVE", "CANCELLED"],
    ACTIVE: ["OPEN", "ACCEPTED", "REJECTED", "EXPIRED", "CANCELLED"],
    REJECTED: ["ACTIVE", "CANCELLED"],
    EXPIRED: ["ACTIVE", "CANCELLED"],
    ACCEPTED: [],
    CANCELLED: [],
  };
  const id = await table.negotiation();
  const client = await world.owner.connect();
  try {
    for (const from of states)
      for (const to of states) {
        if (from === to) continue;
        const byHand = listed[from]!.includes("CANCELLED") ? ["CANCELLED"] : [];
        for (const service of ["", "on"]) {
          await client.query("begin; set local session_replication_role = replica");
          await client.query("update app_public.negotiations set status = $2 where id = $1", [id, from]);
          await client.query("set local session_replication_role = origin");
          await client.query("select set_config('plat.service', $1, true)", [service]);
          const outcome = await client
            .query(
              "update app_public.negotiations set status = $2, cancellation_reason = 'Because' where id = $1",
              [id, to],
            )
            .then(
              () => "passed",
              (error) => JSON.parse(error.detail),
            );
          const passes = listed[from]!.includes(to) && (service || to === "CANCELLED");
          const refusal = {
            code: "INVALID_TRANSITION",
            field: "status",
            from,
            to,
            allowedTransitions: byHand,
          };
          expect(outcome).toEqual(passes ? "passed" : refusal);
          await client.query("rollback");
        }
      }
  } finally {
    client.release();
  }
  // The same over the API.
  for (const status of ["ACTIVE", "ACCEPTED", "REJECTED", "EXPIRED"])
    expect(await table.refused("updateNegotiation", { id, status })).toMatchObject({
      code: "INVALID_TRANSITION",
      from: "OPEN",
      to: status,
      allowedTransitions: ["CANCELLED"],
    });
});
