import type { Person } from "./api.ts";
import { createIn, mutationOf, type Create } from "./records.ts";
import type { World } from "./world.ts";

/** Creates negotiations and the records that they need, and negotiates. */
export interface Table {
  create: Create;
  /** A unit for sale in the project. */
  unit(input?: Record<string, unknown>): Promise<string>;
  lead(input?: Record<string, unknown>): Promise<string>;
  /** A purchase that is being prepared. */
  buyer(input?: Record<string, unknown>): Promise<string>;
  /** A negotiation of a new lead on the given unit, or on a new one. */
  negotiation(input?: Record<string, unknown>): Promise<string>;
  offer(
    negotiationId: string,
    side: "BUYER" | "SELLER",
    price: number,
    input?: Record<string, unknown>,
    by?: Person,
  ): Promise<string>;
  answer(offerId: string, action: "ACCEPT" | "REJECT", by?: Person): Promise<string>;
  /** Fields of a record by its id. */
  read(field: string, id: string, fields: string, by?: Person): Promise<any>;
  /** The refusal of a mutation. */
  refused(
    field: string,
    input: Record<string, unknown>,
    by?: Person,
  ): Promise<Record<string, any> & { message: string }>;
}

let serial = 0;

/** @param by the default person; in a project of `world` unless another one is given. */
export function negotiate(world: World, by: Person = world.owen, project = world.project): Table {
  const create = createIn(by);
  const unit: Table["unit"] = (input = {}) =>
    create("createUnit", {
      projectId: project.id,
      title: `Home ${++serial}`,
      status: "AVAILABLE",
      price: "400000",
      ...input,
    });
  const lead: Table["lead"] = (input = {}) =>
    create("createLead", {
      projectId: project.id,
      name: `Lena Lead ${++serial}`,
      email: `lena${serial}@example.com`,
      ...input,
    });
  return {
    create,
    unit,
    lead,
    buyer: (input = {}) =>
      create("createBuyer", { projectId: project.id, legalName: "Bea Buyer", price: "400000", ...input }),
    negotiation: async (input = {}) =>
      create("createNegotiation", {
        ...(!input.unitId && { unitId: await unit() }),
        ...(!input.leadId && !input.buyerId && !input.reservationId && { leadId: await lead() }),
        ...input,
      }),
    offer: (negotiationId, side, price, input = {}, person = by) =>
      create("createOffer", { negotiationId, side, price: String(price), ...input }, person),
    answer: (offerId, action, person = by) => create("createOfferResponse", { offerId, action }, person),
    read: async (field, id, fields, person = by) =>
      (await person.get(`query ($id: ID!) { ${field}(id: $id) { ${fields} } }`, { id }))[field],
    refused: (field, input, person = by) => person.refused(mutationOf(field, "{ __typename }"), { input }),
  };
}
