/** Live events as an async iterator for GraphQL subscriptions: pages of events with progress. */
import type { CodedError } from "../base/errors.ts";
import { type Batch, type EventFilter, type LiveEvent, matches } from "./batch.ts";
import type { Subscriber } from "./feed.ts";

/** Changes since the previous update. */
export interface Update {
  readonly organizationId: string;
  /** In order of sequence. */
  readonly events: readonly Pick<LiveEvent, "sequence" | "subjectId">[];
  /** All requested events up to this sequence number were delivered. */
  readonly upTo: number;
}

/** Events per update. */
const PAGE = 100;
/** Maximum number of buffered events. */
const HIGH_WATER = 500;
/** Default time to wait for a slow reader (ms). */
const READ_WITHIN_MS = 10_000;

export class Updates implements Subscriber, AsyncIterableIterator<Update, undefined> {
  position: number;
  /** Why it ended, if not by request. */
  error: CodedError | undefined;
  onReady = (): void => {};
  onClose = (): void => {};
  readonly #organizationId: string;
  readonly #filter: EventFilter;
  readonly #waiting: LiveEvent[] = [];
  #told: number;
  #isDue = false;
  #isOver = false;
  #takenAt = performance.now();
  #next: ((result: IteratorResult<Update, undefined>) => void) | undefined;

  constructor(organizationId: string, options: { filter: EventFilter; position: number }) {
    this.#organizationId = organizationId;
    this.#filter = options.filter;
    this.position = options.position;
    this.#told = options.position;
  }

  isReady(): boolean {
    return this.#waiting.length < HIGH_WATER;
  }

  take(batch: Batch): void {
    for (const event of batch.events)
      if (event.sequence > this.position && matches(event, this.#filter)) this.#waiting.push(event);
    this.position = batch.upto;
    this.#flush();
  }

  /** The first update reports that the backlog was delivered, even if it was empty. */
  caughtUp(): void {
    this.#isDue = true;
    this.#flush();
  }

  tick(now: number, readWithinMs = READ_WITHIN_MS): boolean {
    if (this.#told < this.position) {
      this.#isDue = true;
      this.#flush();
    }
    return this.isReady() || now - this.#takenAt <= readWithinMs;
  }

  end(error: CodedError): void {
    this.error ??= error;
    this.#finish();
  }

  #flush(): void {
    const next = this.#next;
    if (!next || (this.#waiting.length === 0 && !this.#isDue)) return;
    this.#next = undefined;
    next({ value: this.#page(), done: false });
  }

  #page(): Update {
    const wasReady = this.isReady();
    const events = this.#waiting.splice(0, PAGE);
    const upTo = this.#waiting.length > 0 ? events.at(-1)!.sequence : this.position;
    this.#told = upTo;
    this.#isDue = false;
    this.#takenAt = performance.now();
    if (!wasReady && this.isReady()) setImmediate(() => this.onReady());
    return { organizationId: this.#organizationId, events, upTo };
  }

  #finish(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.onClose();
    this.#next?.({ value: undefined, done: true });
    this.#next = undefined;
  }

  async next(): Promise<IteratorResult<Update, undefined>> {
    if (this.#isOver) return { value: undefined, done: true };
    if (this.#waiting.length > 0 || this.#isDue) return { value: this.#page(), done: false };
    return new Promise((resolve) => (this.#next = resolve));
  }

  async return(): Promise<IteratorResult<Update, undefined>> {
    this.#finish();
    return { value: undefined, done: true };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }
}
