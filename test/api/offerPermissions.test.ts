/**
 * Permissions for negotiations and offers. The table is the specification:
 *
 *   yes            the operation succeeds, or the record or value is visible
 *   3              number of listed records
 *   null · none    null without an error · an empty list
 *   hidden         the record itself is not visible
 *   a code         refused with that code: FORBID is FORBIDDEN, UNAUTH is UNAUTHENTICATED
 *
 * owner, admin and member are of Harbour Homes, whose project Harbour View is open and whose Quiet Quay is in the lead mode
 * PRIVATE; the seller and the builder are members of organizations affiliated with Harbour View; the buyer and the other buyer
 * accepted invitations to purchases there; the outsider owns Summit Sales.
 */
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import type { Person } from "../harness/api.ts";
import { invite } from "../harness/deals.ts";
import {
  ask,
  readById,
  mutation,
  type Operation,
  outcomes,
  readMatrix,
  shortCodes,
} from "../harness/matrix.ts";
import { negotiate, type Table } from "../harness/negotiations.ts";
import { cast, type Portfolio, startPortfolio } from "../harness/portfolio.ts";
import { programOf } from "../harness/world.ts";

const matrix = `
                                          | owner | admin | member    | seller    | builder   | buyer     | other buyer | outsider  | anonymous
negotiation, unassigned                   | yes   | yes   | yes       | null      | null      | null      | null        | null      | UNAUTH
negotiation of the seller                 | yes   | yes   | yes       | yes       | null      | null      | null        | null      | UNAUTH
negotiation of the member, private        | yes   | yes   | yes       | null      | null      | null      | null        | null      | UNAUTH
negotiation of another member, private    | yes   | yes   | null      | null      | null      | null      | null        | null      | UNAUTH
negotiation of the buyer                  | yes   | yes   | yes       | null      | null      | yes       | null        | null      | UNAUTH
floorPrice of the seller's                | yes   | yes   | null      | null      | hidden    | hidden    | hidden      | hidden    | UNAUTH
floorPrice of the buyer's                 | yes   | yes   | null      | hidden    | hidden    | null      | hidden      | hidden    | UNAUTH
notes of the seller's                     | yes   | yes   | null      | null      | hidden    | hidden    | hidden      | hidden    | UNAUTH
notes of the buyer's                      | yes   | yes   | null      | hidden    | hidden    | null      | hidden      | hidden    | UNAUTH
cancellationReason of the seller's        | yes   | yes   | yes       | yes       | hidden    | hidden    | hidden      | hidden    | UNAUTH
cancellationReason of the buyer's         | yes   | yes   | yes       | hidden    | hidden    | null      | hidden      | hidden    | UNAUTH
events of the seller's                    | 3     | 3     | null      | null      | hidden    | hidden    | hidden      | hidden    | UNAUTH
events of the buyer's                     | 3     | 3     | null      | hidden    | hidden    | null      | hidden      | hidden    | UNAUTH
events, of the seller's                   | 3     | 3     | none      | none      | none      | none      | none        | none      | UNAUTH
events of the buyer's offer               | 1     | 1     | 1         | hidden    | hidden    | none      | hidden      | hidden    | UNAUTH
project.negotiations                      | 3     | 3     | 3         | 1         | null      | null      | null        | hidden    | hidden
project.offers                            | 3     | 3     | 3         | 1         | null      | null      | null        | hidden    | hidden
unit.negotiations                         | 1     | 1     | 1         | 1         | null      | hidden    | hidden      | hidden    | hidden
lead.negotiations                         | 1     | 1     | 1         | 1         | hidden    | hidden    | hidden      | hidden    | UNAUTH
buyer.negotiations                        | 1     | 1     | 1         | hidden    | hidden    | 1         | hidden      | hidden    | UNAUTH
negotiation.offers                        | 1     | 1     | 1         | hidden    | hidden    | 1         | hidden      | hidden    | UNAUTH
offers                                    | 5     | 5     | 4         | 1         | none      | 1         | none        | 1         | UNAUTH
offersConnection                          | 5     | 5     | 4         | 1         | none      | 1         | none        | 1         | UNAUTH
offer, unassigned                         | yes   | yes   | yes       | null      | null      | null      | null        | null      | UNAUTH
offer of the buyer                        | yes   | yes   | yes       | null      | null      | yes       | null        | null      | UNAUTH
bindingOffer of the buyer                 | yes   | yes   | yes       | null      | null      | yes       | null        | null      | UNAUTH
offerResponse, unassigned                 | yes   | yes   | yes       | null      | null      | null      | null        | null      | UNAUTH
offerResponse of the buyer                | yes   | yes   | yes       | null      | null      | yes       | null        | null      | UNAUTH
createNegotiation, unassigned lead        | yes   | yes   | yes       | NOT_FOUND | NOT_FOUND | NOT_FOUND | NOT_FOUND   | NOT_FOUND | UNAUTH
createNegotiation, lead of the seller     | yes   | yes   | yes       | yes       | NOT_FOUND | NOT_FOUND | NOT_FOUND   | NOT_FOUND | UNAUTH
createNegotiation, of another, private    | yes   | yes   | NOT_FOUND | NOT_FOUND | NOT_FOUND | NOT_FOUND | NOT_FOUND   | NOT_FOUND | UNAUTH
createNegotiation of the buyer            | yes   | yes   | yes       | NOT_FOUND | NOT_FOUND | FORBID    | NOT_FOUND   | NOT_FOUND | UNAUTH
createNegotiation with floorPrice         | yes   | yes   | FORBID    | FORBID    | NOT_FOUND | NOT_FOUND | NOT_FOUND   | NOT_FOUND | UNAUTH
createNegotiation with notes              | yes   | yes   | FORBID    | FORBID    | NOT_FOUND | NOT_FOUND | NOT_FOUND   | NOT_FOUND | UNAUTH
updateNegotiation, unassigned             | yes   | yes   | yes       | NOT_FOUND | NOT_FOUND | NOT_FOUND | NOT_FOUND   | NOT_FOUND | UNAUTH
updateNegotiation of the seller           | yes   | yes   | yes       | yes       | NOT_FOUND | NOT_FOUND | NOT_FOUND   | NOT_FOUND | UNAUTH
updateNegotiation of the buyer            | yes   | yes   | yes       | NOT_FOUND | NOT_FOUND | FORBID    | NOT_FOUND   | NOT_FOUND | UNAUTH
updateNegotiation of another, private     | yes   | yes   | NOT_FOUND | NOT_FOUND | NOT_FOUND | NOT_FOUND | NOT_FOUND   | NOT_FOUND | UNAUTH
updateNegotiation floorPrice              | yes   | yes   | FORBID    | FORBID    | NOT_FOUND | NOT_FOUND | NOT_FOUND   | NOT_FOUND | UNAUTH
updateNegotiation notes                   | yes   | yes   | FORBID    | FORBID    | NOT_FOUND | NOT_FOUND | NOT_FOUND   | NOT_FOUND | UNAUTH
updateNegotiation CANCELLED, the seller's | yes   | yes   | yes       | yes       | NOT_FOUND | NOT_FOUND | NOT_FOUND   | NOT_FOUND | UNAUTH
updateNegotiation CANCELLED, the buyer's  | yes   | yes   | yes       | NOT_FOUND | NOT_FOUND | FORBID    | NOT_FOUND   | NOT_FOUND | UNAUTH
createOffer BUYER, unassigned             | yes   | yes   | yes       | NOT_FOUND | NOT_FOUND | NOT_FOUND | NOT_FOUND   | NOT_FOUND | UNAUTH
createOffer SELLER, the seller's          | yes   | yes   | yes       | yes       | NOT_FOUND | NOT_FOUND | NOT_FOUND   | NOT_FOUND | UNAUTH
createOffer SELLER below floorPrice       | yes   | yes   | FORBID    | FORBID    | NOT_FOUND | NOT_FOUND | NOT_FOUND   | NOT_FOUND | UNAUTH
createOffer BUYER, the buyer's            | yes   | yes   | yes       | NOT_FOUND | NOT_FOUND | yes       | NOT_FOUND   | NOT_FOUND | UNAUTH
createOffer SELLER, the buyer's           | yes   | yes   | yes       | NOT_FOUND | NOT_FOUND | FORBID    | NOT_FOUND   | NOT_FOUND | UNAUTH
createOffer of another, private           | yes   | yes   | NOT_FOUND | NOT_FOUND | NOT_FOUND | NOT_FOUND | NOT_FOUND   | NOT_FOUND | UNAUTH
ACCEPT a BUYER's, the seller's            | yes   | yes   | yes       | yes       | NOT_FOUND | NOT_FOUND | NOT_FOUND   | NOT_FOUND | UNAUTH
ACCEPT a BUYER's below floorPrice         | yes   | yes   | FORBID    | FORBID    | NOT_FOUND | NOT_FOUND | NOT_FOUND   | NOT_FOUND | UNAUTH
ACCEPT a BUYER's, the buyer's             | yes   | yes   | yes       | NOT_FOUND | NOT_FOUND | FORBID    | NOT_FOUND   | NOT_FOUND | UNAUTH
REJECT a BUYER's, the buyer's             | yes   | yes   | yes       | NOT_FOUND | NOT_FOUND | FORBID    | NOT_FOUND   | NOT_FOUND | UNAUTH
ACCEPT a SELLER's, the buyer's            | yes   | yes   | yes       | NOT_FOUND | NOT_FOUND | yes       | NOT_FOUND   | NOT_FOUND | UNAUTH
REJECT a SELLER's, the buyer's            | yes   | yes   | yes       | NOT_FOUND | NOT_FOUND | yes       | NOT_FOUND   | NOT_FOUND | UNAUTH
withdrawOffer of BUYER, the buyer's       | yes   | yes   | yes       | NOT_FOUND | NOT_FOUND | yes       | NOT_FOUND   | NOT_FOUND | UNAUTH
withdrawOffer of SELLER, the buyer's      | yes   | yes   | yes       | NOT_FOUND | NOT_FOUND | FORBID    | NOT_FOUND   | NOT_FOUND | UNAUTH
withdrawOffer of another, private         | yes   | yes   | NOT_FOUND | NOT_FOUND | NOT_FOUND | NOT_FOUND | NOT_FOUND   | NOT_FOUND | UNAUTH
`;

const { rows } = readMatrix(matrix);
let world: Portfolio;
let people: Record<string, Person>;
let operations: Record<string, Operation>;

/** Creates new records for each operation. */
interface Kind {
  table: Table;
  lead(): Promise<string>;
  /** A negotiation, with an offer of this side if one is given. */
  negotiation(input?: Record<string, unknown>): Promise<string>;
  offer(side: "BUYER" | "SELLER", price?: number, input?: Record<string, unknown>): Promise<string>;
}

beforeAll(async () => {
  world = await startPortfolio();
  const { owen, max, mia, sam, olga, project, quiet, peak } = world;
  const [bea, ben] = (await Promise.all(["Bea Buyer", "Ben Buyer"].map(world.signUp))) as [Person, Person];
  people = cast(world, { buyer: bea, "other buyer": ben });
  const there = negotiate(world);
  const quietly = negotiate(world, owen, quiet);
  /** With leads of the person, as those who only see their own leads need. */
  const broughtBy = (person: Person, table: Table, where = project): Kind => {
    const { lead } = negotiate(world, person, where);
    const negotiation: Kind["negotiation"] = async (input = {}) =>
      table.negotiation({ leadId: await lead(), floorPrice: "300000", notes: "Ours.", ...input });
    return {
      table,
      lead,
      negotiation,
      offer: async (side, price = 350_000, input = {}) => table.offer(await negotiation(input), side, price),
    };
  };
  const unassigned = broughtBy(owen, there);
  const sams = broughtBy(sam, there);
  const maxs = broughtBy(max, quietly, quiet);
  const mias = broughtBy(mia, quietly, quiet);
  /** Each purchase has a unit of its own, because a user may have several. */
  const purchaseOf = async (user: Person) => {
    const unitId = await there.unit();
    const buyerId = await there.buyer({ unitId });
    await invite(world, buyerId, user);
    return { unitId, buyerId };
  };
  const beas: Kind = {
    table: there,
    lead: there.lead,
    negotiation: async (input = {}) =>
      there.negotiation({ ...(await purchaseOf(bea)), floorPrice: "300000", notes: "Ours.", ...input }),
    offer: async (side, price = 350_000) => there.offer(await beas.negotiation(), side, price),
  };
  await purchaseOf(ben);

  const bought = await purchaseOf(bea);
  const known = {
    unassigned: await unassigned.negotiation(),
    sams: await sams.negotiation(),
    maxs: await maxs.negotiation(),
    mias: await mias.negotiation(),
    beas: await there.negotiation({ ...bought, floorPrice: "300000", notes: "Ours." }),
    foreign: await negotiate(world, olga, peak).negotiation(),
  };
  await world.owner.query(
    "update app_public.negotiations set cancellation_reason = 'Ours.' where id = any ($1)",
    [[known.sams, known.beas]],
  );
  const offers = {
    unassigned: await there.offer(known.unassigned, "BUYER", 350_000),
    sams: await there.offer(known.sams, "BUYER", 350_000),
    maxs: await quietly.offer(known.maxs, "BUYER", 350_000),
    mias: await quietly.offer(known.mias, "BUYER", 350_000),
    beas: await there.offer(known.beas, "SELLER", 350_000),
    foreign: await negotiate(world, olga, peak).offer(known.foreign, "BUYER", 1),
  };
  const { unit, lead } = await there.read("negotiation", known.sams, "unit { id } lead { id }");
  // Answered offers in addition, in a project for the lists.
  const answered = await there.answer(
    await there.offer(await unassigned.negotiation(), "BUYER", 1),
    "REJECT",
  );
  const answeredBeas = await there.answer(await there.offer(await beas.negotiation(), "BUYER", 1), "REJECT");
  const count = { first: "status: [PENDING]" };
  const list = `filter: { ${count.first} }`;

  const create = (kind: Kind, input: Record<string, unknown> = {}) =>
    mutation("createNegotiation", async () => ({
      unitId: await kind.table.unit(),
      leadId: await kind.lead(),
      ...input,
    }));
  const update = (kind: Kind, input: Record<string, unknown>) =>
    mutation("updateNegotiation", async () => ({ id: await kind.negotiation(), ...input }));
  const cancel = { status: "CANCELLED", cancellationReason: "Because" };
  const offer = (kind: Kind, side: string, price = "350000") =>
    mutation("createOffer", async () => ({ negotiationId: await kind.negotiation(), side, price }));
  const answer = (kind: Kind, side: "BUYER" | "SELLER", action: string, price?: number) =>
    mutation("createOfferResponse", async () => ({ offerId: await kind.offer(side, price), action }));
  const withdraw = (kind: Kind, side: "BUYER" | "SELLER") =>
    mutation("withdrawOffer", async () => ({ id: await kind.offer(side) }));

  operations = {
    "negotiation, unassigned": readById("negotiation", known.unassigned),
    "negotiation of the seller": readById("negotiation", known.sams),
    "negotiation of the member, private": readById("negotiation", known.maxs),
    "negotiation of another member, private": readById("negotiation", known.mias),
    "negotiation of the buyer": readById("negotiation", known.beas),
    "floorPrice of the seller's": readById("negotiation", known.sams, "floorPrice"),
    "floorPrice of the buyer's": readById("negotiation", known.beas, "floorPrice"),
    "notes of the seller's": readById("negotiation", known.sams, "notes"),
    "notes of the buyer's": readById("negotiation", known.beas, "notes"),
    "cancellationReason of the seller's": readById("negotiation", known.sams, "cancellationReason"),
    "cancellationReason of the buyer's": readById("negotiation", known.beas, "cancellationReason"),
    "events of the seller's": readById("negotiation", known.sams, "events { id }"),
    "events of the buyer's": readById("negotiation", known.beas, "events { id }"),
    "events, of the seller's": ask(`query ($id: ID) { events(filter: { subjectId: $id }) { id } }`, {
      id: known.sams,
    }),
    "events of the buyer's offer": readById("offer", offers.beas, "events { id }"),
    "project.negotiations": readById(
      "project",
      project.id,
      "negotiations(filter: { status: [ACTIVE] }) { id }",
    ),
    "project.offers": readById("project", project.id, `offers(${list}) { id }`),
    "unit.negotiations": readById("unit", unit.id, "negotiations { id }"),
    "lead.negotiations": readById("lead", lead.id, "negotiations { id }"),
    "buyer.negotiations": readById("buyer", bought.buyerId, "negotiations { id }"),
    "negotiation.offers": readById("negotiation", known.beas, "offers { id }"),
    offers: ask(`{ offers(${list}) { id } }`),
    offersConnection: ask(`{ offersConnection(${list}) { totalCount nodes { id } } }`),
    "offer, unassigned": readById("offer", offers.unassigned),
    "offer of the buyer": readById("offer", offers.beas),
    "bindingOffer of the buyer": readById("bindingOffer", offers.beas),
    "offerResponse, unassigned": readById("offerResponse", answered),
    "offerResponse of the buyer": readById("offerResponse", answeredBeas),
    "createNegotiation, unassigned lead": create(unassigned),
    "createNegotiation, lead of the seller": create(sams),
    "createNegotiation, of another, private": create(mias),
    "createNegotiation of the buyer": mutation("createNegotiation", () => purchaseOf(bea)),
    "createNegotiation with floorPrice": create(sams, { floorPrice: "1" }),
    "createNegotiation with notes": create(sams, { notes: "Mine." }),
    "updateNegotiation, unassigned": update(unassigned, { offerExpirationHours: 5 }),
    "updateNegotiation of the seller": update(sams, { offerExpirationHours: 5 }),
    "updateNegotiation of the buyer": update(beas, { offerExpirationHours: 5 }),
    "updateNegotiation of another, private": update(mias, { offerExpirationHours: 5 }),
    "updateNegotiation floorPrice": update(sams, { floorPrice: "1" }),
    "updateNegotiation notes": update(sams, { notes: "Mine." }),
    "updateNegotiation CANCELLED, the seller's": update(sams, cancel),
    "updateNegotiation CANCELLED, the buyer's": update(beas, cancel),
    "createOffer BUYER, unassigned": offer(unassigned, "BUYER"),
    "createOffer SELLER, the seller's": offer(sams, "SELLER"),
    "createOffer SELLER below floorPrice": offer(sams, "SELLER", "299999.99"),
    "createOffer BUYER, the buyer's": offer(beas, "BUYER"),
    "createOffer SELLER, the buyer's": offer(beas, "SELLER"),
    "createOffer of another, private": offer(mias, "BUYER"),
    "ACCEPT a BUYER's, the seller's": answer(sams, "BUYER", "ACCEPT"),
    "ACCEPT a BUYER's below floorPrice": answer(sams, "BUYER", "ACCEPT", 299_999),
    "ACCEPT a BUYER's, the buyer's": answer(beas, "BUYER", "ACCEPT"),
    "REJECT a BUYER's, the buyer's": answer(beas, "BUYER", "REJECT"),
    "ACCEPT a SELLER's, the buyer's": answer(beas, "SELLER", "ACCEPT"),
    "REJECT a SELLER's, the buyer's": answer(beas, "SELLER", "REJECT"),
    "withdrawOffer of BUYER, the buyer's": withdraw(beas, "BUYER"),
    "withdrawOffer of SELLER, the buyer's": withdraw(beas, "SELLER"),
    "withdrawOffer of another, private": withdraw(mias, "BUYER"),
  };
});
afterAll(() => world.stop());

describe("permissions for negotiations and offers", () => {
  test.each(rows)("$operation", async ({ operation, expected }) => {
    expect(await outcomes(people, operations[operation]!, shortCodes)).toEqual(expected);
  });

  test("the table contains every operation", () => {
    expect(Object.keys(operations).sort()).toEqual(rows.map((row) => row.operation).sort());
  });
});

test("offers entered by the team for a buyer are marked manual, the buyer's own are not, and events name the actor", async () => {
  const table = negotiate(world);
  const { owen } = world;
  const bea = people["buyer"]!;
  const unitId = await table.unit();
  const buyerId = await table.buyer({ unitId });
  await invite(world, buyerId, bea);
  const negotiation = await table.negotiation({ unitId, buyerId });
  const entered = await table.offer(negotiation, "BUYER", 350_000);
  const theirs = await table.offer(negotiation, "SELLER", 380_000);
  const own = await table.offer(negotiation, "BUYER", 360_000, {}, bea);
  const last = await table.offer(negotiation, "SELLER", 370_000);
  const manual = async (id: string) => (await table.read("offer", id, "manual")).manual;
  expect(await Promise.all([entered, theirs, own, last].map(manual))).toEqual([true, false, false, false]);
  const response = await table.answer(last, "ACCEPT", bea);
  expect(await table.read("offerResponse", response, "side manual respondedBy { id }", bea)).toEqual({
    side: "BUYER",
    manual: false,
    respondedBy: { id: bea.id },
  });
  expect(await table.read("buyer", buyerId, "price acceptedOffer { id price }", bea)).toEqual({
    price: "370000.00",
    acceptedOffer: { id: last, price: "370000.00" },
  });
  const { offer } = await owen.get(`query ($id: ID!) { offer(id: $id) { events { name actorType } } }`, {
    id: own,
  });
  expect(offer.events.at(-1)).toEqual({ name: "offer.created", actorType: "BUYER" });
});

test("a token acts within its scopes", async () => {
  const table = negotiate(world);
  const negotiation = await table.negotiation();
  const token = (scopes: string[]) => programOf(world, world.owen, { scopes });
  const reader = await token(["sale.read"]);
  expect(await table.read("negotiation", negotiation, "id floorPrice", reader)).toEqual({
    id: negotiation,
    floorPrice: null,
  });
  for (const [field, input] of [
    ["createOffer", { negotiationId: negotiation, side: "BUYER", price: "1" }],
    ["updateNegotiation", { id: negotiation, offerExpirationHours: 3 }],
  ] as const)
    expect(await table.refused(field, input, reader)).toMatchObject({
      code: "FORBIDDEN",
      permission: "sale.write",
    });
  const stranger = await token(["lead.read"]);
  expect(
    await table.refused("createOffer", { negotiationId: negotiation, side: "BUYER", price: "1" }, stranger),
  ).toMatchObject({ code: "NOT_FOUND" });
});
