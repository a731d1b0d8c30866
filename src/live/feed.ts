/**
 * Events of one organization as visible with one set of claims, for all subscribers with these claims. New commits
 * are read once for all subscribers that are up to date; others catch up page by page and join when they have. A
 * subscriber advances through the sequence without gaps and never goes back, so no event is lost or repeated.
 */
import type { CodedError } from "../base/errors.ts";
import { coalesceCalls } from "../base/coalesceCalls.ts";
import type { Batch } from "./batch.ts";

/** A receiver of events. */
export interface Subscriber {
  /** The sequence number up to which it has received events. */
  readonly position: number;
  /** Whether it accepts more now. If not, it catches up after `Feed.resume`. */
  isReady(): boolean;
  /** Takes the events of a batch after its position, which moves to the end of the batch. */
  take(batch: Batch): void;
  /** Called once, when it has received everything that existed at its start. */
  caughtUp(): void;
  /** Called when it is ended, with the reason. */
  end(error: CodedError): void;
}

export interface FeedOptions {
  /**
   * Reads the events after a sequence number, from a range with a maximum length.
   * @returns undefined if the viewer has lost access to the organization
   */
  read(after: number, most: number, lane: "live" | "behind"): Promise<Batch | undefined>;
  /** The viewer has lost access to the organization. */
  lost(): void;
  failed(error: unknown): void;
  /** Called with the number of up-to-date subscribers that received a batch. */
  told?(batch: Batch, subscribers: number): void;
}

/**
 * Sequence numbers per page. Each hidden event costs a lookup of its record, so a page takes at most a tenth of a
 * second.
 */
const PAGE = 200;

export class Feed {
  readonly #options: FeedOptions;
  /** Subscribers that are up to date, and those that are not. */
  readonly #live = new Set<Subscriber>();
  readonly #behind = new Set<Subscriber>();
  /** Position of the subscribers that are up to date. */
  #position = 0;
  /** Latest known sequence number, and whether a read is required in any case. */
  #wanted = 0;
  #isForced = false;
  readonly #reader: ReturnType<typeof coalesceCalls>;
  readonly #catcher: ReturnType<typeof coalesceCalls>;

  constructor(options: FeedOptions) {
    this.#options = options;
    this.#reader = coalesceCalls(() => this.#readLive(), options.failed);
    this.#catcher = coalesceCalls(() => this.#catchUp(), options.failed);
  }

  get subscribers(): Subscriber[] {
    return [...this.#live, ...this.#behind];
  }

  get isEmpty(): boolean {
    return this.#live.size === 0 && this.#behind.size === 0;
  }

  /** Position of the subscribers that are up to date; undefined if there are none. */
  get position(): number | undefined {
    return this.#live.size > 0 ? this.#position : undefined;
  }

  add(subscriber: Subscriber): void {
    this.#behind.add(subscriber);
    this.#catcher.call();
  }

  delete(subscriber: Subscriber): void {
    this.#live.delete(subscriber);
    this.#behind.delete(subscriber);
  }

  /** There are events up to this sequence number; without it, the viewer may have lost access to some. */
  call(upTo?: number): void {
    if (upTo === undefined) this.#isForced = true;
    else this.#wanted = Math.max(this.#wanted, upTo);
    if (this.#live.size > 0) this.#reader.call();
    if (this.#behind.size > 0) this.#catcher.call();
  }

  /** A subscriber accepts data again. */
  resume(): void {
    if (this.#behind.size > 0) this.#catcher.call();
  }

  async #readLive(): Promise<void> {
    while (this.#live.size > 0 && (this.#isForced || this.#position < this.#wanted)) {
      this.#isForced = false;
      const after = this.#position;
      const batch = await this.#options.read(after, PAGE, "live");
      if (!batch) return this.#options.lost();
      // All may have left meanwhile, and others may have joined at another position.
      if (this.#position !== after) continue;
      this.#position = batch.upto;
      let told = 0;
      for (const subscriber of this.#live)
        if (subscriber.position >= batch.upto) continue;
        else if (subscriber.isReady()) {
          subscriber.take(batch);
          told++;
        } else {
          this.#live.delete(subscriber);
          this.#behind.add(subscriber);
        }
      if (batch.events.length > 0) this.#options.told?.(batch, told);
      this.#wanted = Math.max(this.#wanted, batch.head);
    }
  }

  async #catchUp(): Promise<void> {
    for (;;) {
      const ready = [...this.#behind].filter((one) => one.isReady());
      const [first] = ready;
      if (!first) return;
      // Subscribers slightly behind it share the page, as after a restart, when all reconnect at once.
      const after = ready.reduce(
        (least, { position }) => (position > first.position - PAGE && position < least ? position : least),
        first.position,
      );
      const batch = await this.#options.read(after, PAGE, "behind");
      if (!batch) return this.#options.lost();
      for (const subscriber of ready) {
        if (!this.#behind.has(subscriber)) continue;
        const { position } = subscriber;
        if (position >= after && position < batch.upto) subscriber.take(batch);
        if (subscriber.position < batch.head) continue;
        this.#join(subscriber);
      }
      // The next page starts with another subscriber.
      if (this.#behind.delete(first)) this.#behind.add(first);
    }
  }

  /** Marks a subscriber that has caught up as up to date, unless the others have advanced meanwhile. */
  #join(subscriber: Subscriber): void {
    if (this.#live.size === 0) this.#position = subscriber.position;
    if (subscriber.position < this.#position) return;
    this.#behind.delete(subscriber);
    this.#live.add(subscriber);
    subscriber.caughtUp();
    // Commits since the page was read.
    if (this.#position < this.#wanted) this.#reader.call();
  }
}
