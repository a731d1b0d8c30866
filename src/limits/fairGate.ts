import { CodedError } from "../errors.ts";
import { isStranger, type Party } from "./party.ts";

export interface FairGateOptions {
  /** Most inside at once. */
  readonly atOnce: number;
  /** Most of one party inside at once; `atOnce` where left out. */
  readonly perParty?: number;
  /** Of all places, those for parties that have none yet; none where left out. */
  readonly kept?: number;
  /** Most of all strangers together; `atOnce` where left out. */
  readonly strangers?: number;
  /** Most of one party that wait; more are refused. Any number where left out. */
  readonly waitingPerParty?: number;
  /** Most strangers that wait; any number where left out. */
  readonly waitingStrangers?: number;
  /** The longest wait, in milliseconds; without end where left out. */
  readonly patienceMs?: number;
}

/** Gives the place back; a second call does nothing. */
export type Leave = () => void;

interface Waiter {
  readonly party: Party;
  readonly enter: () => void;
}

/**
 * Lets a bounded number inside at once. Who waits is let in by turns: one of each group, and within the strangers one of each
 * network, so that whoever asks a lot waits for themselves and nobody else does.
 */
export class FairGate {
  readonly #options: FairGateOptions;
  #inside = 0;
  readonly #insideOf = new Map<string, number>();
  #strangersInside = 0;
  /** By group, then by party; the one whose turn is next stands first. */
  readonly #waiting = new Map<string, Map<string, Waiter[]>>();
  #strangersWaiting = 0;

  constructor(options: FairGateOptions) {
    this.#options = options;
  }

  /** How many are inside, and how many wait. */
  get numbers(): { inside: number; waiting: number } {
    let waiting = 0;
    for (const parties of this.#waiting.values())
      for (const waiters of parties.values()) waiting += waiters.length;
    return { inside: this.#inside, waiting };
  }

  /**
   * Waits for a place.
   * @param gone ends the waiting of somebody who no longer wants one
   * @throws CodedError RATE_LIMITED when too many wait already, or the wait took too long; what `gone` was aborted with
   */
  async enter(party: Party, gone?: AbortSignal): Promise<Leave> {
    gone?.throwIfAborted();
    if (this.#admits(party) && !this.#waiting.has(party.group)) return this.#take(party);
    this.#refuseWhenFull(party);
    const { promise, resolve, reject } = Promise.withResolvers<Leave>();
    const waiter: Waiter = { party, enter: () => resolve(this.#take(party)) };
    const giveUp = (reason: unknown) => {
      this.#remove(waiter);
      reject(reason);
    };
    const { patienceMs } = this.#options;
    const timer = patienceMs && setTimeout(() => giveUp(busy(Math.ceil(patienceMs / 5000))), patienceMs);
    const onGone = () => giveUp(gone?.reason);
    gone?.addEventListener("abort", onGone, { once: true });
    this.#add(waiter);
    this.#letIn();
    try {
      return await promise;
    } finally {
      if (timer) clearTimeout(timer);
      gone?.removeEventListener("abort", onGone);
    }
  }

  #admits(party: Party): boolean {
    const { atOnce, perParty = atOnce, strangers = atOnce, kept = 0 } = this.#options;
    const own = this.#insideOf.get(party.key) ?? 0;
    if (own >= perParty || this.#inside >= (own > 0 ? atOnce - kept : atOnce)) return false;
    return !isStranger(party) || this.#strangersInside < strangers;
  }

  #take(party: Party): Leave {
    this.#count(party, 1);
    let left = false;
    return () => {
      if (left) return;
      left = true;
      this.#count(party, -1);
      this.#letIn();
    };
  }

  #count(party: Party, change: 1 | -1): void {
    this.#inside += change;
    if (isStranger(party)) this.#strangersInside += change;
    const inside = (this.#insideOf.get(party.key) ?? 0) + change;
    if (inside > 0) this.#insideOf.set(party.key, inside);
    else this.#insideOf.delete(party.key);
  }

  #refuseWhenFull(party: Party): void {
    const { waitingPerParty = Infinity, waitingStrangers = Infinity } = this.#options;
    const ofParty = this.#waiting.get(party.group)?.get(party.key)?.length ?? 0;
    if (ofParty >= waitingPerParty || (isStranger(party) && this.#strangersWaiting >= waitingStrangers))
      throw busy(1);
  }

  #add(waiter: Waiter): void {
    const { group, key } = waiter.party;
    const parties = this.#waiting.get(group) ?? new Map<string, Waiter[]>();
    this.#waiting.set(group, parties);
    const waiters = parties.get(key) ?? [];
    parties.set(key, waiters);
    waiters.push(waiter);
    if (isStranger(waiter.party)) this.#strangersWaiting += 1;
  }

  #remove(waiter: Waiter): void {
    const { group, key } = waiter.party;
    const parties = this.#waiting.get(group);
    const waiters = parties?.get(key);
    const index = waiters?.indexOf(waiter) ?? -1;
    if (!parties || !waiters || index < 0) return;
    waiters.splice(index, 1);
    if (isStranger(waiter.party)) this.#strangersWaiting -= 1;
    if (waiters.length === 0) parties.delete(key);
    if (parties.size === 0) this.#waiting.delete(group);
  }

  #letIn(): void {
    for (let next = this.#next(); next; next = this.#next()) {
      const { group, key } = next.party;
      // Both go to the end of their line, and are gone from it where nobody else of them waits.
      const parties = this.#waiting.get(group)!;
      const waiters = parties.get(key)!;
      this.#waiting.delete(group);
      this.#waiting.set(group, parties);
      parties.delete(key);
      parties.set(key, waiters);
      this.#remove(next);
      next.enter();
    }
  }

  /** The first, in the order of turns, for whom there is a place. */
  #next(): Waiter | undefined {
    if (this.#inside >= this.#options.atOnce) return undefined;
    for (const parties of this.#waiting.values())
      for (const [first] of parties.values()) if (first && this.#admits(first.party)) return first;
    return undefined;
  }
}

function busy(retryAfterSeconds: number): CodedError {
  const message = `Too many operations of yours are under way or waiting. Wait for their answers, and try again in ${retryAfterSeconds} s.`;
  return new CodedError("RATE_LIMITED", message, { retryAfterSeconds });
}
