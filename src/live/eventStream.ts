/** A stream of server-sent events: https://html.spec.whatwg.org/multipage/server-sent-events.html */
import type { ServerResponse } from "node:http";
import { CodedError } from "../base/errors.ts";
import { type Batch, type EventFilter, type LiveEvent, matches } from "./batch.ts";
import type { Subscriber } from "./feed.ts";

/** Bytes that wait to be sent above which a stream takes no more. */
const HIGH_WATER = 65_536;
/** How long a stream waits for its reader unless told otherwise (ms). */
const READ_WITHIN_MS = 10_000;
/** Silence after which a comment says that the stream lives (ms); proxies close what is silent for a minute. */
const HEARTBEAT_MS = 15_000;
/** How long the end of a stream may take to be read (ms). */
const LINGER_MS = 2_000;

/** Bytes that are written at once: what is on its way is a copy of each connection's own, encrypted; the rest is shared by all. */
const PART = 16_384;
/** Bytes on their way on all streams of the process; streams that have some of them are not served meanwhile, and catch up. */
const ALL_HIGH_WATER = 64_000_000;
let waiting = 0;

const HEARTBEAT = Buffer.from(":\n\n");

/** The message of one event. JSON has no line breaks outside of its strings, and none in them. */
const eventText = ({ sequence, message }: LiveEvent): string => `id: ${sequence}\ndata: ${message}\n\n`;

/** Says that there is nothing more up to here: what is not sent is not the reader's to see, or not what they asked for. */
const markText = (sequence: number): string =>
  `event: complete\nid: ${sequence}\ndata: {"sequence":"${sequence}"}\n\n`;

/** What of a batch is sent to all with the same filter; `told` is the last number that it names. */
interface Encoded {
  readonly bytes: Buffer;
  readonly told: number;
}

export class EventStream implements Subscriber {
  position: number;
  readonly #response: ServerResponse;
  readonly #filter: EventFilter;
  readonly #filterKey: string;
  readonly #language: (error: CodedError) => string;
  /** The last number that the reader knows of. */
  #told: number;
  #isCaughtUp = false;
  /** When it was last written to, and since when its reader is waited for. */
  #wroteAt = performance.now();
  #waitsSince: number | undefined;
  /** What is to be written, and its bytes. */
  readonly #queue: Buffer[] = [];
  #queued = 0;
  #isWriting = false;
  /** Called when it takes more again. */
  onReady = (): void => {};

  /**
   * @param position the sequence behind which it begins
   * @param tell what the reader is told of an error: JSON
   */
  constructor(
    response: ServerResponse,
    options: { filter: EventFilter; position: number; tell: (error: CodedError) => string },
  ) {
    this.#response = response;
    this.#filter = options.filter;
    this.#filterKey = JSON.stringify(options.filter);
    this.position = options.position;
    this.#told = options.position;
    this.#language = options.tell;
  }

  /** Answers the request; anything written does. */
  begin(): void {
    if (this.#response.headersSent) return;
    this.#response.writeHead(200, {
      "Content-Type": "text/event-stream; charset=utf-8",
      "Cache-Control": "no-store",
      // Of nginx, which would otherwise hold events back until there are many.
      "X-Accel-Buffering": "no",
    });
    this.#response.write("retry: 1000\n\n");
  }

  isReady(): boolean {
    if (this.#waitsSince !== undefined) return false;
    // Who has read all of it does not wait for those that have not.
    return waiting < (this.#isWriting ? ALL_HIGH_WATER : 4 * ALL_HIGH_WATER);
  }

  take(batch: Batch): void {
    const after = Math.max(this.position, batch.after);
    const encoded = batch.once(`sse ${after} ${this.#filterKey}`, () => this.#encode(batch, after));
    this.position = batch.upto;
    if (!encoded) return;
    this.#told = encoded.told;
    this.#write(encoded.bytes);
  }

  #encode(batch: Batch, after: number): Encoded | undefined {
    const wanted = batch.events.filter((event) => event.sequence > after && matches(event, this.#filter));
    const last = wanted.at(-1);
    if (!last) return undefined;
    const text = wanted.map(eventText).join("");
    const mark = last.sequence < batch.upto ? markText(batch.upto) : "";
    return { bytes: Buffer.from(text + mark), told: batch.upto };
  }

  caughtUp(): void {
    if (this.#isCaughtUp) return;
    this.#isCaughtUp = true;
    this.#mark();
  }

  #mark(): void {
    this.#told = this.position;
    this.#write(Buffer.from(markText(this.position)));
  }

  /** To be called about once a second: says how far it is, or that it lives; false: its reader is too slow. */
  tick(now: number, readWithinMs = READ_WITHIN_MS): boolean {
    if (this.#waitsSince !== undefined) return now - this.#waitsSince <= readWithinMs;
    if (this.#isCaughtUp && this.#told < this.position) this.#mark();
    else if (now - this.#wroteAt > HEARTBEAT_MS) this.#write(HEARTBEAT);
    return true;
  }

  end(error: CodedError): void {
    const response = this.#response;
    if (response.writableEnded || response.destroyed) return;
    this.begin();
    // Those who come back after a stop do not all come at once.
    const retry = error.code === "UNAVAILABLE" ? `retry: ${Math.round(500 + Math.random() * 2_500)}\n` : "";
    response.end(`${retry}event: end\ndata: ${this.#language(error)}\n\n`);
    const cut = setTimeout(() => response.destroy(), LINGER_MS);
    response.once("close", () => clearTimeout(cut));
  }

  #write(bytes: Buffer): void {
    const response = this.#response;
    if (response.writableEnded || response.destroyed) return;
    this.begin();
    this.#wroteAt = performance.now();
    this.#queue.push(bytes);
    this.#queued += bytes.length;
    if (!this.#isWriting) this.#pump();
    if (this.#queued > HIGH_WATER) this.#waitsSince ??= this.#wroteAt;
  }

  /** Writes the next part of what waits, once the one before was taken. */
  #pump(): void {
    const [first] = this.#queue;
    if (!first || this.#response.writableEnded || this.#response.destroyed) {
      this.#isWriting = false;
      if (this.#waitsSince === undefined) return;
      this.#waitsSince = undefined;
      this.onReady();
      return;
    }
    const part = first.subarray(0, PART);
    if (part.length === first.length) this.#queue.shift();
    else this.#queue[0] = first.subarray(PART);
    this.#queued -= part.length;
    this.#isWriting = true;
    waiting += PART;
    this.#response.write(part, () => {
      waiting -= PART;
      // Slow is no fault, as long as it goes on.
      if (this.#waitsSince !== undefined) this.#waitsSince = performance.now();
      this.#pump();
    });
  }
}
