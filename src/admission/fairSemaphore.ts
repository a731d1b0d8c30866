import { CodedError, withoutTrace } from "../base/errors.ts";
import { isVisitor, type Party } from "./party.ts";

export interface FairSemaphoreOptions {
  /** Units that can be held at once, by all parties together. */
  readonly capacity: number;
  /** Units per party. Default: `capacity`. */
  readonly perParty?: number;
  /** Units of the capacity reserved for parties that hold none yet. Default: none. */
  readonly reserved?: number;
  /** Units for all visitors together. Default: `capacity`. */
  readonly visitors?: number;
  /** Maximum number of waiting requests per party; more are refused. Default: no limit. */
  readonly queuePerParty?: number;
  /**
   * Maximum number of waiting requests per group; above it the longest queue loses its last request to a party with
   * fewer. Default: no limit.
   */
  readonly queuePerGroup?: number;
  /** Maximum wait in milliseconds. Default: no limit. */
  readonly timeoutMs?: number;
  /** Error of a request that is not admitted. Default: RATE_LIMITED. */
  readonly refusal?: (retryAfterSeconds: number) => Error;
}

/** Releases the units; a second call has no effect. */
export type Release = () => void;

interface AcquireOptions {
  /** Units to acquire. Default: 1. */
  readonly weight?: number;
  /** Cancels the wait. */
  readonly signal?: AbortSignal;
}

interface Waiter {
  readonly party: Party;
  readonly weight: number;
  admit(): void;
  refuse(): void;
}

/** Queues of one group, by party; the party to be served next is first. */
interface Group {
  readonly queues: Map<string, Waiter[]>;
  length: number;
}

type Verdict = "admitted" | "over its share" | "no capacity";

/**
 * A weighted semaphore with fair queueing: waiting requests are served round-robin, first by group, then by party
 * within a group, so that a party that sends many requests only delays itself. A request that needs more capacity
 * than is free holds back those behind it, so that small requests do not starve large ones; a request above its
 * party's share does not.
 */
export class FairSemaphore {
  readonly #options: FairSemaphoreOptions;
  readonly #shares: Required<Pick<FairSemaphoreOptions, "capacity" | "perParty" | "reserved" | "visitors">>;
  #held = 0;
  #heldByVisitors = 0;
  readonly #heldBy = new Map<string, number>();
  /** The group to be served next is first. */
  readonly #groups = new Map<string, Group>();

  constructor(options: FairSemaphoreOptions) {
    this.#options = options;
    const { capacity, perParty = capacity, visitors = capacity, reserved = 0 } = options;
    this.#shares = { capacity, perParty, visitors, reserved };
  }

  /** Units in use, and waiting requests. */
  get numbers(): { held: number; waiting: number } {
    let waiting = 0;
    for (const { length } of this.#groups.values()) waiting += length;
    return { held: this.#held, waiting };
  }

  /** Acquires units if no wait is necessary: they are free, and nobody waits. */
  tryAcquire(party: Party, weight = 1): Release | undefined {
    return this.#groups.size === 0 && this.#verdict(party, weight) === "admitted"
      ? this.#take(party, weight)
      : undefined;
  }

  /**
   * Waits until the party may have that many units.
   * @throws CodedError RATE_LIMITED, or the error of `refusal`, if the queue is full or the wait timed out; the
   * reason of `signal`
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

  /** Runs work while the party holds one unit. @throws the errors of `acquire` if the work was not started */
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
    return withoutTrace(() => refusal(retryAfterSeconds));
  }

  #verdict(party: Party, weight: number): Verdict {
    const { capacity, perParty, visitors, reserved } = this.#shares;
    const own = this.#heldBy.get(party.key) ?? 0;
    if (own + weight > perParty) return "over its share";
    if (isVisitor(party) && this.#heldByVisitors + weight > visitors) return "over its share";
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
      // PERF: mostly nobody waits.
      if (this.#groups.size > 0) this.#serve();
    };
  }

  #count(party: Party, change: number): void {
    this.#held += change;
    if (isVisitor(party)) this.#heldByVisitors += change;
    const held = (this.#heldBy.get(party.key) ?? 0) + change;
    if (held > 0) this.#heldBy.set(party.key, held);
    else this.#heldBy.delete(party.key);
  }

  /** @throws the refusal if the queue is full for this party */
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
      // Both move to the end of the rotation, and leave it if none of their requests waits.
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

  /** The first in the rotation that can be admitted now. */
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
