/** Limits on the number of streams in a process and their distribution. */
import { networkOf } from "../network/networkOf.ts";
import { CodedError } from "../base/errors.ts";
import type { StreamLimits } from "../base/providerOptions.ts";

/** Seconds after which a refused stream can be retried. */
const RETRY_S = 10;

/** Owner of a stream. */
export interface StreamOwner {
  readonly userId: string;
  readonly organizationId: string;
  readonly ip: string | undefined;
}

/** Counts open streams. */
export class StreamCounts {
  readonly #limits: StreamLimits;
  readonly #counts = new Map<string, number>();

  constructor(limits: StreamLimits) {
    this.#limits = limits;
  }

  /**
   * @returns a function that releases the place, once
   * @throws CodedError UNAVAILABLE at the limit of the process, RATE_LIMITED at one of the other limits
   */
  take({ userId, organizationId, ip }: StreamOwner): () => void {
    const { total, ofOrganization, ofViewer, ofAddress } = this.#limits;
    const places: [key: string, limit: number, refusal: () => CodedError][] = [
      ["", total, () => full()],
      [`viewer ${userId}`, ofViewer, () => ofOneViewer(ofViewer)],
      [`address ${networkOf(ip)}`, ofAddress, () => ofOneAddress(ofAddress)],
      [`organization ${organizationId}`, ofOrganization, () => ofOneOrganization(ofOrganization)],
    ];
    for (const [key, limit, refusal] of places) if ((this.#counts.get(key) ?? 0) >= limit) throw refusal();
    for (const [key] of places) this.#counts.set(key, (this.#counts.get(key) ?? 0) + 1);
    let isTaken = true;
    return () => {
      if (!isTaken) return;
      isTaken = false;
      for (const [key] of places) {
        const left = this.#counts.get(key)! - 1;
        if (left === 0) this.#counts.delete(key);
        else this.#counts.set(key, left);
      }
    };
  }
}

const full = () =>
  new CodedError(
    "UNAVAILABLE",
    `The limit of event streams of this process is reached; try again in ${RETRY_S} s.`,
    { retryAfterSeconds: RETRY_S },
  );

const refusal = (message: string, limit: number) =>
  new CodedError("RATE_LIMITED", message, { limit, retryAfterSeconds: RETRY_S });

const ofOneViewer = (limit: number) =>
  refusal(
    `You have reached the limit of ${limit} event streams; close some, and try again in ${RETRY_S} s.`,
    limit,
  );
const ofOneAddress = (limit: number) =>
  refusal(
    `Your network has reached the limit of ${limit} event streams; close some, and try again in ${RETRY_S} s.`,
    limit,
  );
const ofOneOrganization = (limit: number) =>
  refusal(
    `The organization has reached the limit of ${limit} event streams; try again in ${RETRY_S} s.`,
    limit,
  );
