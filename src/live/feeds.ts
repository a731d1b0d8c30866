/** The feeds of a process: one per organization and set of claims. */
import type { Claims } from "../database/claims.ts";
import type { Feed } from "./feed.ts";

/** The claims that determine visibility, so that sessions of a user share a feed. */
export const keyOf = ({ userId, tokenId, organizationId, scopes, secondFactorWithholds }: Claims): string =>
  JSON.stringify([userId, tokenId, organizationId, scopes, secondFactorWithholds]);

export class Feeds {
  /** By organization, then by claims. */
  readonly #feeds = new Map<string, Map<string, Feed>>();
  readonly #make: (claims: Claims, organizationId: string) => Feed;
  #size = 0;

  constructor(make: (claims: Claims, organizationId: string) => Feed) {
    this.#make = make;
  }

  /** Number of feeds. */
  get size(): number {
    return this.#size;
  }

  /** Followed organizations. */
  organizations(): Iterable<string> {
    return this.#feeds.keys();
  }

  /** The feed of an organization for a set of claims; created if necessary. */
  of(claims: Claims, organizationId: string): Feed {
    let ofOrganization = this.#feeds.get(organizationId);
    if (!ofOrganization) this.#feeds.set(organizationId, (ofOrganization = new Map()));
    const key = keyOf(claims);
    let feed = ofOrganization.get(key);
    if (!feed) {
      ofOrganization.set(key, (feed = this.#make(claims, organizationId)));
      this.#size += 1;
    }
    return feed;
  }

  /** Announces events of an organization up to a sequence number. */
  call(organizationId: string, upTo: number): void {
    for (const feed of this.#feeds.get(organizationId)?.values() ?? []) feed.call(upTo);
  }

  /** The lowest position of up-to-date subscribers, per followed organization. */
  positions(): Map<string, number> {
    const least = [...this.#feeds].map(([id, ofOrganization]): [string, number] => {
      const positions = [...ofOrganization.values()].map(({ position }) => position ?? Infinity);
      return [id, Math.min(...positions)];
    });
    return new Map(least.filter(([, position]) => position < Infinity));
  }

  /** Retries feeds whose last page could not be read. */
  resume(): void {
    for (const ofOrganization of this.#feeds.values())
      for (const feed of ofOrganization.values()) feed.resume();
  }

  /** Removes feeds without subscribers; returns whether the organization has no followers left. */
  tidy(organizationId: string): boolean {
    const ofOrganization = this.#feeds.get(organizationId);
    if (!ofOrganization) return false;
    for (const [key, feed] of ofOrganization)
      if (feed.isEmpty) {
        ofOrganization.delete(key);
        this.#size -= 1;
      }
    return ofOrganization.size === 0 && this.#feeds.delete(organizationId);
  }
}
