import { networkOf } from "../network/networkOf.ts";

/** Who asks, as far as sharing is concerned. */
export interface Party {
  /** A viewer, or the network address of a stranger. */
  readonly key: string;
  /** Groups are served in rotation: every viewer is one, all strangers together are one. */
  readonly group: string;
}

const STRANGERS = "strangers";

/** The party of a viewer without a token is the network they come from: a single address, or a /64 of IPv6. */
export function partyOf(userId: string | null, address: string | undefined): Party {
  if (userId !== null) return { key: `viewer ${userId}`, group: `viewer ${userId}` };
  return { key: `network ${networkOf(address)}`, group: STRANGERS };
}

/** The members of an organization, where they share something. */
export const organizationParty = (organizationId: string): Party => ({
  key: `organization ${organizationId}`,
  group: `organization ${organizationId}`,
});

export const isStranger = (party: Party): boolean => party.group === STRANGERS;
