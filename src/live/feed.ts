/**
 * The events of one organization as one set of claims may read them, for all subscribers with these claims. What is committed is read
 * once for all that are up to date; those behind catch up page by page, and join the others where their places meet. A subscriber
 * moves through the sequence without gaps and never back, so nothing is lost or told twice.
 */
import type { CodedError } from "../base/errors.ts";
import { coalesceCalls } from "../base/coalesceCalls.ts";
import type { Batch } from "./batch.ts";

/** Somebody who is told of events. */
export interface Subscriber {
  /** The sequence up to which it was told. */
  readonly position: number;
  /** Whether it takes more now. One that does not catches up once `Feed.resume` is called. */
  isReady(): boolean;
  /** Takes what of a batch lies behind its position, which moves to the end of the batch. */
  take(batch: Batch): void;
  /** It has been told all that there was when it came; called once. */
  caughtUp(): void;
  /** It is told no more, and why. */
  end(error: CodedError): void;
}

export interface FeedOptions {
  /**
   * Reads the events behind a sequence, of so many numbers at most.
   * @returns undefined where the viewer has no part in the organization any more
   */
  read(after: number, most: number, lane: "live" | "behind"): Promise<Batch | undefined>;
  /** The viewer has no part in the organization any more. */
  lost(): void;
  failed(error: unknown): void;
  /** A batch was handed to that many subscribers that are up to date. */
  told?(batch: Batch, subscribers: number): void;
}

/** Numbers of a page. Each that is hidden costs a look at its record, so a page is a tenth of a second at worst. */
const PAGE = 200;

export class Feed {
  readonly #options: FeedOptions;
  /** Those that were told all that was read, and those that were not. */
  readonly #live = new Set<Subscriber>();
  readonly #behind = new Set<Subscriber>();
  /** Up to where those that are up to date were told. */
  #position = 0;
  /** There is something up to here; and whether it is read once in any case. */
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

  /** Up to where all that are up to date were told; undefined where there is none. */
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

  /** There are events up to a sequence; without one, there may be less that the viewer may read. */
  call(upTo?: number): void {
    if (upTo === undefined) this.#isForced = true;
    else this.#wanted = Math.max(this.#wanted, upTo);
    if (this.#live.size > 0) this.#reader.call();
    if (this.#behind.size > 0) this.#catcher.call();
  }

  /** Some subscriber takes more again. */
  resume(): void {
    if (this.#behind.size > 0) this.#catcher.call();
  }

  async #readLive(): Promise<void> {
    while (this.#live.size > 0 && (this.#isForced || this.#position < this.#wanted)) {
      this.#isForced = false;
      const after = this.#position;
      const batch = await this.#options.read(after, PAGE, "live");
      if (!batch) return this.#options.lost();
      // All may have left meanwhile, and others have come at another place.
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
      // Those a little behind it are served along, as after a restart, when all come back at once.
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
      // The next page begins with another one.
      if (this.#behind.delete(first)) this.#behind.add(first);
    }
  }

  /** Has a subscriber that has read to the end follow, unless the others are further by now. */
  #join(subscriber: Subscriber): void {
    if (this.#live.size === 0) this.#position = subscriber.position;
    if (subscriber.position < this.#position) return;
    this.#behind.delete(subscriber);
    this.#live.add(subscriber);
    subscriber.caughtUp();
    // What was committed since the page was read.
    if (this.#position < this.#wanted) this.#reader.call();
  }
}
