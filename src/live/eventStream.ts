/** A stream of server-sent events: https://html.spec.whatwg.org/multipage/server-sent-events.html */
import type { ServerResponse } from "node:http";
import { CodedError } from "../base/errors.ts";
import { type Batch, type EventFilter, type LiveEvent, matches } from "./batch.ts";
import type { Subscriber } from "./feed.ts";

/** Buffered bytes above which a stream accepts no more. */
const HIGH_WATER = 65_536;
/** Default time to wait for a slow reader (ms). */
const READ_WITHIN_MS = 10_000;
/**
 * Idle time after which a comment is sent as a keep-alive (ms); proxies close connections that are idle for a minute.
 */
const HEARTBEAT_MS = 15_000;
/** Time for reading the end of a stream (ms). */
const LINGER_MS = 2_000;

/** Bytes per write. Data in flight is an encrypted copy per connection; everything else is shared. */
const PART = 16_384;
/**
 * Bytes in flight on all streams of the process. Above it, streams with data in flight are paused and catch up later.
 */
const ALL_HIGH_WATER = 64_000_000;
let waiting = 0;

const HEARTBEAT = Buffer.from(":\n\n");

/** Message of one event. JSON contains no unescaped line breaks. */
const eventText = ({ sequence, message }: LiveEvent): string => `id: ${sequence}\ndata: ${message}\n\n`;

/** Progress marker: everything up to here was sent, or is not visible to the reader, or does not match the filter. */
const markText = (sequence: number): string =>
  `event: complete\nid: ${sequence}\ndata: {"sequence":"${sequence}"}\n\n`;

/** The part of a batch that is sent to all streams with the same filter; `told` is the last sequence number in it. */
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
  /** The last sequence number that was sent to the reader. */
  #told: number;
  #isCaughtUp = false;
  /** When it was last written to, and since when it has been waiting for its reader. */
  #wroteAt = performance.now();
  #waitsSince: number | undefined;
  /** Write buffer, and its size in bytes. */
  readonly #queue: Buffer[] = [];
  #queued = 0;
  #isWriting = false;
  /** Called when it accepts data again. */
  onReady = (): void => {};

  /**
   * @param position sequence number after which it begins
   * @param tell serializes an error for the reader, as JSON
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

  /** Sends the response headers; any write does. */
  begin(): void {
    if (this.#response.headersSent) return;
    this.#response.writeHead(200, {
      "Content-Type": "text/event-stream; charset=utf-8",
      "Cache-Control": "no-store",
      // Stops nginx from buffering events.
      "X-Accel-Buffering": "no",
    });
    this.#response.write("retry: 1000\n\n");
  }

  isReady(): boolean {
    if (this.#waitsSince !== undefined) return false;
    // A reader that has received everything does not wait for slower ones.
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

  /** Called about once a second: sends progress or a keep-alive. Returns false if the reader is too slow. */
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
    // Randomized, so that clients do not all reconnect at once after a shutdown.
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

  /** Writes the next part of the buffer once the previous one was flushed. */
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
      // Slow readers are fine as long as they make progress.
      if (this.#waitsSince !== undefined) this.#waitsSince = performance.now();
      this.#pump();
    });
  }
}
