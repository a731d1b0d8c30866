import { networkOf } from "../network/networkOf.ts";

/** The party that shares resources. */
export interface Party {
  /** A viewer, or the network of a visitor. */
  readonly key: string;
  /** Groups are served round-robin: every viewer is one, all visitors together are one. */
  readonly group: string;
}

const VISITORS = "visitors";

/** The party of a visitor is their network: a single address, or a /64 with IPv6. */
export function partyOf(userId: string | null, address: string | undefined): Party {
  if (userId !== null) return { key: `viewer ${userId}`, group: `viewer ${userId}` };
  return { key: `network ${networkOf(address)}`, group: VISITORS };
}

/** The members of an organization, for resources that they share. */
export const organizationParty = (organizationId: string): Party => ({
  key: `organization ${organizationId}`,
  group: `organization ${organizationId}`,
});

/** Whether the party has no account; such parties share one group. */
export const isVisitor = (party: Party): boolean => party.group === VISITORS;
