/**
 * Limits the TLS records in which a connection sends. Each is decrypted, and handed to the parser, by itself: the longest
 * headers in records of one byte are 16,000, which take 40 milliseconds although the request is never complete.
 */

/** Records that a connection may send within a window, and the average length in bytes of further ones: the shortest request is longer. */
const FREE_RECORDS = 256;
export const LEAST_RECORD = 16;
/** Milliseconds. A connection that is open for days may send short ones, such as the answers to pings, now and then. */
const WINDOW_MS = 15_000;

/** The records of one connection. */
export class SmallRecords {
  /** Short ones that it may still send; long ones give back no more than it had. */
  #left = FREE_RECORDS;
  #since = performance.now();

  /** Counts a record. @returns false if the connection has sent too many */
  take(length: number): boolean {
    this.#left = Math.min(FREE_RECORDS, this.#left + length / LEAST_RECORD) - 1;
    if (this.#left >= 0) return true;
    const now = performance.now();
    if (now - this.#since < WINDOW_MS) return false;
    this.#since = now;
    this.#left = FREE_RECORDS - 1;
    return true;
  }
}
