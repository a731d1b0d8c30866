/** Random deals: several people execute operations concurrently, on few units, so that they conflict. */
import * as fc from "fast-check";
import type { Answer, Person } from "../harness/api.ts";
import { mutationOf } from "../harness/records.ts";
import type { Deals } from "./world.ts";

/** One operation of a player; the numbers select among the records that exist at that time. */
export interface Move {
  who: number;
  what: number;
  a: number;
  b: number;
  amount: number;
}

/** The moves of one player, in order. */
export const moves = (length: number): fc.Arbitrary<Move[]> =>
  fc.array(
    fc.record({
      who: fc.nat(9),
      what: fc.nat(999),
      a: fc.nat(999),
      b: fc.nat(999),
      amount: fc.integer({ min: -1, max: 500_000 }),
    }),
    { minLength: 1, maxLength: length },
  );

type Play = (deals: Deals, move: Move, person: Person) => Promise<Answer | "" | undefined>;

const pick = <T>(list: T[], index: number): T | undefined =>
  list.length ? list[index % list.length] : undefined;
const choose = <T>(list: readonly T[], index: number): T => list[index % list.length]!;

/** Ids of existing records, newest first, read as the owner of the database. */
async function ids(deals: Deals, table: string, where = "true"): Promise<string[]> {
  const { rows } = await deals.owner.query<{ id: string }>(
    `select id from app_public.${table} where ${where} order by id desc limit 12`,
  );
  return rows.map((row) => row.id);
}

const send = (person: Person, field: string, input: Record<string, unknown>): Promise<Answer> =>
  person.ask(mutationOf(field), { input });

const update =
  (table: string, field: string, inputs: (move: Move, deals: Deals) => Record<string, unknown>): Play =>
  async (deals, move, person) => {
    const id = pick(await ids(deals, table), move.a);
    return id && send(person, field, { id, ...inputs(move, deals) });
  };

/** Reasons and dates that some statuses require. */
const withReason = (status: string): Record<string, unknown> => ({
  status,
  ...(status === "CANCELLED" && { cancellationReason: "Changed their mind" }),
});

/** All operations, with their frequencies. */
const plays: [weight: number, play: Play][] = [
  [
    6,
    (deals, { a, b }, person) =>
      send(person, "createReservation", {
        ...(b % 4 === 0 ? { lotId: pick(deals.stock.lots, a) } : { unitId: pick(deals.stock.units, a) }),
        leadId: pick(deals.stock.leads, b),
        acceptedTerms: true,
        ...(b % 3 === 0 && { expiration: 1 }),
      }),
  ],
  [
    4,
    update("reservations", "updateReservation", ({ b }) =>
      withReason(choose(["CONFIRMED", "CANCELLED", "REFUNDED", "EXPIRED", "CONVERTED", "PENDING"], b)),
    ),
  ],
  [1, update("reservations", "updateReservation", ({ b }) => ({ expiration: 1 + (b % 100) }))],
  [
    3,
    (deals, { a, b }, person) =>
      send(person, "createUnitHold", {
        ...(b % 4 === 0 ? { lotId: pick(deals.stock.lots, a) } : { unitId: pick(deals.stock.units, a) }),
        ...(b % 2 && { leadId: pick(deals.stock.leads, b) }),
      }),
  ],
  [1, update("unit_holds", "updateUnitHold", ({ b }) => ({ expiration: 1 + (b % 30) }))],
  [1, update("unit_holds", "deleteUnitHold", () => ({}))],
  [1, update("reservations", "updateReservation", ({ amount }) => ({ price: `${amount}.25` }))],
  [
    4,
    async (deals, { a, b }, person) => {
      const reservation = pick(await ids(deals, "reservations", "unit_id is not null"), a);
      return send(person, "createNegotiation", {
        unitId: pick(deals.stock.units, a),
        leadId: pick(deals.stock.leads, b),
        ...(reservation && b % 2 && { reservationId: reservation }),
      });
    },
  ],
  [
    8,
    async (deals, { a, b, amount }, person) => {
      const negotiationId = pick(await ids(deals, "negotiations"), a);
      return (
        negotiationId &&
        send(person, "createOffer", {
          negotiationId,
          side: choose(["BUYER", "SELLER"], b),
          price: `${amount}.5`,
          ...(b % 5 === 0 && { expiresAt: new Date(Date.now() + 3_600_000).toISOString() }),
        })
      );
    },
  ],
  [
    6,
    async (deals, { a, b }, person) => {
      const offerId = pick(await ids(deals, "offers"), a);
      return (
        offerId && send(person, "createOfferResponse", { offerId, action: choose(["ACCEPT", "REJECT"], b) })
      );
    },
  ],
  [2, update("offers", "withdrawOffer", () => ({}))],
  [
    2,
    update("negotiations", "updateNegotiation", ({ b }) =>
      withReason(choose(["CANCELLED", "ACCEPTED", "ACTIVE"], b)),
    ),
  ],
  [
    4,
    async (deals, { a, b }, person) => {
      const leadId = pick(deals.stock.leads, a)!;
      return send(person, "convertLead", {
        leadId,
        ...(b % 2 && { unitId: pick(deals.stock.units, b) }),
        ...(b % 3 === 0 && { price: `${300_000 + b}.10` }),
      });
    },
  ],
  [
    2,
    (deals, { a, b, amount }, person) =>
      send(person, "createBuyer", {
        projectId: deals.project.id,
        legalName: "Pat Purchaser",
        price: `${amount}`,
        ...(b % 2 && { unitId: pick(deals.stock.units, a) }),
        ...(b % 3 === 0 && { leadId: pick(deals.stock.leads, b) }),
      }),
  ],
  [
    6,
    update("buyers", "updateBuyer", ({ b }, { falloutReason }) => ({
      falloutReasonId: falloutReason,
      ...withReason(
        choose(
          [
            "OUT_FOR_SIGNATURE",
            "IN_REVIEW",
            "CONDITIONAL",
            "FIRM",
            "CLEAR_TO_CLOSE",
            "CLOSED",
            "CANCELLED",
            "CANCELLED",
          ],
          b,
        ),
      ),
    })),
  ],
  [
    2,
    async (deals, { a, b }, person) =>
      send(person, "updateUnit", {
        id: pick(deals.stock.units, a),
        ...(b % 2
          ? { status: choose(["AVAILABLE", "OFF_MARKET", "UNRELEASED", "SOLD", "HELD"], b) }
          : { price: `${400_000 + b}` }),
      }),
  ],
  [
    2,
    async (deals, { a, b }, person) =>
      send(person, "updateLead", {
        id: pick(deals.stock.leads, a),
        ...choose(
          [
            { status: "HOT" },
            { status: "LOST", falloutReasonId: deals.falloutReason },
            { status: "WARM" },
            { assigneeId: choose([deals.mia, deals.max, deals.ada], b).id },
          ],
          b,
        ),
      }),
  ],
  [
    3,
    async (deals, { a, b }, person) => {
      const buyerId = pick(await ids(deals, "buyers", "unit_id is not null"), a);
      const unitId = buyerId
        ? (await deals.owner.query("select unit_id from app_public.buyers where id = $1", [buyerId])).rows[0]
            .unit_id
        : pick(deals.stock.units, a);
      return send(person, "createPersonalization", {
        unitId,
        ...(buyerId ? { buyerId } : { leadId: pick(deals.stock.leads, b) }),
        selections: deals.options
          .slice(b % 2, 1 + (b % 3))
          .map((optionId) => ({ optionId, quantity: `${1 + (b % 4)}.5` })),
      });
    },
  ],
  [
    3,
    update("personalizations", "updatePersonalization", ({ b }) => ({
      status: choose(["SUBMITTED", "APPROVED", "SIGNED", "LOCKED", "CANCELLED"], b),
    })),
  ],
  [
    1,
    async (deals, { a, b }, person) => {
      const personalizationId = pick(await ids(deals, "personalizations"), a);
      return (
        personalizationId &&
        (b % 2
          ? send(person, "createPersonalizationDiscount", {
              personalizationId,
              title: "Sale",
              percent: `${1 + (b % 99)}.125`,
            })
          : send(person, "createPersonalizationCredit", {
              personalizationId,
              title: "Thanks",
              amount: `${1 + b}.01`,
            }))
      );
    },
  ],
];

const wheel = plays.flatMap(([weight, one]) => Array.from({ length: weight }, () => one));

/** Executes a move. Returns OK, the code of the refusal, or undefined if there was no record for it. */
export async function play(deals: Deals, move: Move): Promise<string | undefined> {
  const person = choose([choose(deals.players, move.who)].flat(), move.a);
  const answer = await choose(wheel, move.what)(deals, move, person);
  return answer ? (answer.errors?.[0]?.extensions.code ?? "OK") : undefined;
}
