import { CodedError } from "../base/errors.ts";
import { isStranger, type Party } from "./party.ts";

export interface FairSemaphoreOptions {
  /** Units that are held at once, of all parties together. */
  readonly capacity: number;
  /** Units that one party holds; `capacity` where omitted. */
  readonly perParty?: number;
  /** Of the capacity, units for parties that hold none yet; none where omitted. */
  readonly reserved?: number;
  /** Units that all strangers together hold; `capacity` where omitted. */
  readonly strangers?: number;
  /** Requests of one party that wait; more are refused. Any number where omitted. */
  readonly queuePerParty?: number;
  /** Requests of one group that wait; beyond it the longest queue loses its last request to a party that has fewer. Any number where omitted. */
  readonly queuePerGroup?: number;
  /** The longest wait, in milliseconds; without end where omitted. */
  readonly timeoutMs?: number;
  /** The error of a request that is not admitted; RATE_LIMITED where omitted. */
  readonly refusal?: (retryAfterSeconds: number) => Error;
}

/** Gives back what was acquired; a second call does nothing. */
export type Release = () => void;

interface AcquireOptions {
  /** Units to acquire; 1 where omitted. */
  readonly weight?: number;
  /** Ends the waiting of somebody who no longer wants them. */
  readonly signal?: AbortSignal;
}

interface Waiter {
  readonly party: Party;
  readonly weight: number;
  admit(): void;
  refuse(): void;
}

/** The queues of one group, by party; the party to be served next stands first. */
interface Group {
  readonly queues: Map<string, Waiter[]>;
  length: number;
}

type Verdict = "admitted" | "over its share" | "no capacity";

/**
 * A weighted semaphore with fair queueing: who waits is served in rotation, first among the groups, then among the parties of a
 * group, so that whoever sends much waits for themselves and nobody else does. A request for which the capacity is not free
 * yet holds back those behind it, so that small ones do not starve a large one; one that is over the share of its own party
 * does not.
 */
export class FairSemaphore {
  readonly #options: FairSemaphoreOptions;
  #held = 0;
  #heldByStrangers = 0;
  readonly #heldBy = new Map<string, number>();
  /** The group to be served next stands first. */
  readonly #groups = new Map<string, Group>();

  constructor(options: FairSemaphoreOptions) {
    this.#options = options;
  }

  /** Units that are held, and requests that wait. */
  get numbers(): { held: number; waiting: number } {
    let waiting = 0;
    for (const { length } of this.#groups.values()) waiting += length;
    return { held: this.#held, waiting };
  }

  /** Acquires units where that needs no waiting: they are free, and nobody waits already. */
  tryAcquire(party: Party, weight = 1): Release | undefined {
    return this.#groups.size === 0 && this.#verdict(party, weight) === "admitted"
      ? this.#take(party, weight)
      : undefined;
  }

  /**
   * Waits until the party may have that many units.
   * @throws CodedError RATE_LIMITED, or what `refusal` makes, when too many wait already or the wait took too long; the reason of `signal`
   */
  async acquire(party: Party, { weight = 1, signal }: AcquireOptions = {}): Promise<Release> {
    signal?.throwIfAborted();
    const release = this.tryAcquire(party, weight);
    if (release) return release;
    this.#makeRoom(party);
    const { promise, resolve, reject } = Promise.withResolvers<Release>();
    const leave = (reason: unknown) => {
      this.#remove(waiter);
      reject(reason);
      // It may have held back others.
      this.#serve();
    };
    const waiter: Waiter = {
      party,
      weight,
      admit: () => resolve(this.#take(party, weight)),
      refuse: () => leave(this.#refusal(1)),
    };
    const { timeoutMs } = this.#options;
    const timer = timeoutMs && setTimeout(() => leave(this.#refusal(Math.ceil(timeoutMs / 5000))), timeoutMs);
    const onAbort = () => leave(signal?.reason);
    signal?.addEventListener("abort", onAbort, { once: true });
    this.#enqueue(waiter);
    this.#serve();
    try {
      return await promise;
    } finally {
      if (timer) clearTimeout(timer);
      signal?.removeEventListener("abort", onAbort);
    }
  }

  /** Does the work while the party holds one unit. @throws what `acquire` throws, where the work was not begun */
  async run<T>(party: Party, work: () => Promise<T>): Promise<T> {
    const release = await this.acquire(party);
    try {
      return await work();
    } finally {
      release();
    }
  }

  #refusal(retryAfterSeconds: number): Error {
    const { refusal = tooMany } = this.#options;
    return refusal(retryAfterSeconds);
  }

  #verdict(party: Party, weight: number): Verdict {
    const { capacity, perParty = capacity, strangers = capacity, reserved = 0 } = this.#options;
    const own = this.#heldBy.get(party.key) ?? 0;
    if (own + weight > perParty) return "over its share";
    if (isStranger(party) && this.#heldByStrangers + weight > strangers) return "over its share";
    if (this.#held + weight > capacity) return "no capacity";
    return own > 0 && this.#held + weight > capacity - reserved ? "over its share" : "admitted";
  }

  #take(party: Party, weight: number): Release {
    this.#count(party, weight);
    let released = false;
    return () => {
      if (released) return;
      released = true;
      this.#count(party, -weight);
      this.#serve();
    };
  }

  #count(party: Party, change: number): void {
    this.#held += change;
    if (isStranger(party)) this.#heldByStrangers += change;
    const held = (this.#heldBy.get(party.key) ?? 0) + change;
    if (held > 0) this.#heldBy.set(party.key, held);
    else this.#heldBy.delete(party.key);
  }

  /** @throws the refusal where the queue is full for this party */
  #makeRoom({ group, key }: Party): void {
    const { queuePerParty = Infinity, queuePerGroup = Infinity } = this.#options;
    const { queues, length } = this.#groups.get(group) ?? { queues: new Map<string, Waiter[]>(), length: 0 };
    const own = queues.get(key)?.length ?? 0;
    if (own >= queuePerParty) throw this.#refusal(1);
    if (length < queuePerGroup) return;
    const longest = [...queues.values()].reduce((a, b) => (b.length > a.length ? b : a));
    if (longest.length <= own + 1) throw this.#refusal(1);
    longest.at(-1)!.refuse();
  }

  #enqueue(waiter: Waiter): void {
    const { group: name, key } = waiter.party;
    const group = this.#groups.get(name) ?? { queues: new Map<string, Waiter[]>(), length: 0 };
    this.#groups.set(name, group);
    const queue = group.queues.get(key) ?? [];
    group.queues.set(key, queue);
    queue.push(waiter);
    group.length += 1;
  }

  #remove(waiter: Waiter): void {
    const { group: name, key } = waiter.party;
    const group = this.#groups.get(name);
    const queue = group?.queues.get(key);
    const index = queue?.indexOf(waiter) ?? -1;
    if (!group || !queue || index < 0) return;
    queue.splice(index, 1);
    group.length -= 1;
    if (queue.length === 0) group.queues.delete(key);
    if (group.length === 0) this.#groups.delete(name);
  }

  #serve(): void {
    for (let next = this.#next(); next; next = this.#next()) {
      const { group: name, key } = next.party;
      // Both go to the end of the rotation, and leave it where nobody else of them waits.
      const group = this.#groups.get(name)!;
      const queue = group.queues.get(key)!;
      this.#groups.delete(name);
      this.#groups.set(name, group);
      group.queues.delete(key);
      group.queues.set(key, queue);
      this.#remove(next);
      next.admit();
    }
  }

  /** The first in the rotation that may be admitted now. */
  #next(): Waiter | undefined {
    if (this.#held >= this.#options.capacity) return undefined;
    for (const { queues } of this.#groups.values())
      for (const [first] of queues.values()) {
        const verdict = this.#verdict(first!.party, first!.weight);
        if (verdict === "admitted") return first;
        if (verdict === "no capacity") return undefined;
      }
    return undefined;
  }
}

function tooMany(retryAfterSeconds: number): CodedError {
  const message = `Too many requests of this kind are under way or waiting. Wait for their answers, and try again in ${retryAfterSeconds} s.`;
  return new CodedError("RATE_LIMITED", message, { retryAfterSeconds });
}
