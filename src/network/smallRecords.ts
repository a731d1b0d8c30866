/**
 * Limits the TLS records in which a connection sends. Each is decrypted, and handed to the parser, by itself: the longest
 * headers in records of one byte are 16,000, which take 40 milliseconds although the request is never complete.
 */

/** Records that a connection may send within a window, and the average length in bytes of further ones: the shortest request is longer. */
const FREE_RECORDS = 256;
export const LEAST_AVERAGE = 16;
/** Milliseconds. A connection that is open for days may send short ones, such as the answers to pings, now and then. */
const WINDOW_MS = 15_000;

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
