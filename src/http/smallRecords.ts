/**
 * Limits the TLS records in which a connection sends. Each is decrypted, and handed to the parser, by itself: the longest
 * headers in records of one byte are 16,000, which take 40 milliseconds although the request is never complete.
 */
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { CodedError } from "../base/errors.ts";
import { writeRefusal } from "./rawRefusal.ts";

/** Records that a connection may send within a window, and the average length in bytes of further ones: the shortest request is longer. */
const FREE_RECORDS = 256;
const LEAST_AVERAGE = 16;
/** Milliseconds. A connection that is open for days may send short ones, such as the answers to pings, now and then. */
const WINDOW_MS = 15_000;

const tooManyRecords = () =>
  new CodedError(
    "BAD_USER_INPUT",
    `The request arrived in too many small TLS records; send at least ${LEAST_AVERAGE} bytes in each.`,
  );

/** The records of one connection. */
export class SmallRecords {
  #records = 0;
  #bytes = 0;
  #since = performance.now();

  /** Counts a record. @returns false if the connection has sent too many */
  take(length: number): boolean {
    this.#records += 1;
    this.#bytes += length;
    if (this.#records <= FREE_RECORDS + this.#bytes / LEAST_AVERAGE) return true;
    const now = performance.now();
    if (now - this.#since < WINDOW_MS) return false;
    this.#since = now;
    this.#records = 1;
    this.#bytes = length;
    return true;
  }
}

/** Refuses what a connection sends, and closes it at once: meanwhile, further records would be decrypted. */
export function refuseRecords(socket: Socket): void {
  writeRefusal(socket, "400 Bad Request", tooManyRecords());
  socket.destroy();
}

/**
 * Closes a connection whose protocol is another one if it sends too many records.
 * @param socket to whose data its reader listens already: before, they would be lost
 */
export function closeOnSmallRecords(socket: Duplex): void {
  const records = new SmallRecords();
  socket.on("data", (chunk: Buffer) => {
    if (!records.take(chunk.length)) socket.destroy();
  });
}
