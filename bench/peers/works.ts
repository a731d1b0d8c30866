/** The requests to every contestant. */
import { randomUUID } from "node:crypto";
import type { Viewer } from "./data.ts";

/** A GraphQL request in JSON form. */
export interface GraphqlRequest {
  /** The text of the document, or the id of a registered one. */
  query?: string;
  documentId?: string;
  operationName: string;
  variables: Record<string, unknown>;
}

export interface Work {
  /** Name of the operation, by which the ceiling finds its SQL. */
  name: string;
  title: string;
  document: string;
  /** Sent without a token. */
  anonymous?: boolean;
  /** Changes data, so that its results depend on earlier work of the run. */
  writes?: boolean;
  variables?: (viewer: Viewer, n: number) => Record<string, unknown>;
  /** A second request, derived from the response to the first. Both are one piece of work. */
  then?: { name: string; document: string; variables: (data: any) => Record<string, unknown> };
}

const pick = (list: readonly string[], n: number) => list[n % list.length]!;
const run = randomUUID().slice(0, 8);

export const works: readonly Work[] = [
  {
    name: "Viewer",
    title: "1 viewer",
    document: "query Viewer { viewer { id firstName lastName email } }",
  },
  {
    name: "Lead",
    title: "2 a lead by id",
    document: "query Lead($id: ID!) { lead(id: $id) { id name status email phone registeredAt } }",
    variables: ({ leads }, n) => ({ id: pick(leads, n * 7) }),
  },
  {
    name: "Leads",
    title: "3 50 NEW leads",
    document:
      "query Leads($status: [LeadStatus!]) { leads(filter: { status: $status }, first: 50) { id name status email registeredAt } }",
    variables: () => ({ status: ["NEW"] }),
  },
  {
    name: "Units",
    title: "4 50 units with plan, lot, images, reservation",
    document: `query Units($projectId: ID!) { units(filter: { projectId: $projectId }, first: 50) {
      id title number status price floorPlan { id title bedrooms } lot { id number } images { id sequence width height }
      activeReservation { id number status expiresAt } } }`,
    variables: ({ projects }, n) => ({ projectId: pick(projects, n) }),
  },
  {
    name: "Buyer",
    title: "5 a buyer's page",
    document: `query Buyer($id: ID!) { buyer(id: $id) {
      id firstName lastName email status price project { id title status } unit { id title number floorPlan { id title } lot { id number } }
      lead { id name status } assignee { id firstName lastName } deposits { id title amount status dueAt } } }`,
    variables: ({ buyers }, n) => ({ id: pick(buyers, n) }),
  },
  {
    name: "PublicProjects",
    title: "6 publicProjects, anonymous",
    document: "query PublicProjects { publicProjects(first: 50) { id title slug status } }",
    anonymous: true,
  },
  {
    name: "Search",
    title: "7 search",
    document: "query Search($query: String!) { search(query: $query, first: 10) { id type title subtitle } }",
    variables: (_viewer, n) => ({ query: pick(["ada", "grace c", "linus 4", "unit 12", "edsger a8"], n) }),
  },
  {
    name: "CreateLead",
    title: "8 createLead",
    document:
      "mutation CreateLead($input: CreateLeadInput!) { createLead(input: $input) { id name status } }",
    writes: true,
    variables: ({ projects }, n) => ({
      input: {
        projectId: pick(projects, n),
        name: "Bo Larsen",
        email: `bo.${run}.${n}.${randomUUID()}@example.com`,
      },
    }),
  },
  {
    name: "CreateReservation",
    title: "9 createReservation, REFUNDED",
    document:
      "mutation CreateReservation($input: CreateReservationInput!) { createReservation(input: $input) { id number status } }",
    writes: true,
    variables: ({ units }, n) => ({ input: { unitId: pick(units, n), acceptedTerms: true } }),
    then: {
      name: "RefundReservation",
      document:
        "mutation RefundReservation($input: UpdateReservationInput!) { updateReservation(input: $input) { id status } }",
      variables: ({ createReservation }) => ({ input: { id: createReservation.id, status: "REFUNDED" } }),
    },
  },
  {
    name: "Groups",
    title: "10 leads by status, counted",
    document:
      "query Groups { leadsConnection { totalCount groupedAggregates(groupBy: [STATUS]) { keys distinctCount { id } } } }",
  },
];

/** Composition of a hundred pieces of mixed work. */
export const mix: Readonly<Record<string, number>> = {
  Viewer: 15,
  Lead: 25,
  Leads: 25,
  Units: 10,
  Buyer: 10,
  PublicProjects: 7,
  CreateLead: 8,
};
