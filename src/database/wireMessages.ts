/**
 * PERF: messages of PostgreSQL's extended query protocol, encoded into one buffer, so that a batch is a single write to
 * the socket. The driver encodes and writes each message separately.
 */

const EXECUTE_AND_SYNC = { execute: Buffer.from("E\0\0\0\t\0\0\0\0\0"), sync: Buffer.from("S\0\0\0\x04") };
/** Bytes of a character in UTF-8, at most. */
const MOST_BYTES = 3;
/** The bytes of longer texts are counted instead of estimated. */
const LONG = 1_000;
/** Bytes that are kept for the next batch. */
const MOST_KEPT = 262_144;

const spaceFor = (text: string | Buffer): number =>
  typeof text !== "string"
    ? text.length
    : text.length > LONG
      ? Buffer.byteLength(text)
      : text.length * MOST_BYTES;

/** Parameters in wire form: text, or bytes in binary form. */
export type WireValue = string | Buffer | null | undefined;

/** Writes the messages of one batch. */
export class WireMessages {
  readonly #size: number;
  #bytes: Buffer;
  #at = 0;

  /** @param size initial number of bytes */
  constructor(size = 16_384) {
    this.#size = size;
    this.#bytes = Buffer.allocUnsafeSlow(size);
  }

  parse(name: string, text: string): void {
    const start = this.#begin("P", spaceFor(name) + spaceFor(text));
    this.#terminated(name);
    this.#terminated(text);
    this.#int16(0);
    this.#end(start);
  }

  /** Binds the unnamed portal. All columns of the result are requested as text. */
  bind(statement: string, values: readonly WireValue[]): void {
    const start = this.#begin("B", spaceFor(statement) + values.length * 2);
    this.#terminated("");
    this.#terminated(statement);
    const isBinary = values.some((value) => value instanceof Buffer);
    this.#int16(isBinary ? values.length : 0);
    if (isBinary) for (const value of values) this.#int16(value instanceof Buffer ? 1 : 0);
    this.#int16(values.length);
    for (const value of values) this.#value(value);
    this.#int16(0);
    this.#end(start);
  }

  /** Describes the unnamed portal. */
  describe(): void {
    const start = this.#begin("D", 2);
    this.#terminated("P");
    this.#end(start);
  }

  execute(): void {
    this.#copy(EXECUTE_AND_SYNC.execute);
  }

  close(statement: string): void {
    const start = this.#begin("C", spaceFor(statement));
    this.#bytes[this.#at++] = 0x53;
    this.#terminated(statement);
    this.#end(start);
  }

  sync(): void {
    this.#copy(EXECUTE_AND_SYNC.sync);
  }

  /** Returns the messages written since the last call, and begins the next batch. */
  take(): Buffer {
    const taken = Buffer.allocUnsafe(this.#at);
    this.#bytes.copy(taken, 0, 0, this.#at);
    this.clear();
    return taken;
  }

  /** Drops what was written since. */
  clear(): void {
    this.#at = 0;
    if (this.#bytes.length > MOST_KEPT) this.#bytes = Buffer.allocUnsafeSlow(this.#size);
  }

  /** @returns where the message has its length */
  #begin(type: string, space: number): number {
    this.#reserve(space + 32);
    this.#bytes[this.#at] = type.charCodeAt(0);
    this.#at += 5;
    return this.#at - 4;
  }

  #end(start: number): void {
    this.#int32(this.#at - start, start);
  }

  #value(value: WireValue): void {
    if (value === null || value === undefined) {
      this.#reserve(32);
      this.#int32(-1, this.#at);
      this.#at += 4;
      return;
    }
    this.#reserve(spaceFor(value) + 32);
    const start = this.#at;
    this.#at += 4;
    if (typeof value === "string") this.#at += this.#bytes.write(value, this.#at, "utf8");
    else this.#at += value.copy(this.#bytes, this.#at);
    this.#int32(this.#at - start - 4, start);
  }

  #terminated(text: string): void {
    if (text !== "") this.#at += this.#bytes.write(text, this.#at, "utf8");
    this.#bytes[this.#at++] = 0;
  }

  #int16(value: number): void {
    this.#bytes[this.#at++] = value >> 8;
    this.#bytes[this.#at++] = value & 0xff;
  }

  #int32(value: number, at: number): void {
    this.#bytes[at] = value >> 24;
    this.#bytes[at + 1] = value >> 16;
    this.#bytes[at + 2] = value >> 8;
    this.#bytes[at + 3] = value;
  }

  #copy(bytes: Buffer): void {
    this.#reserve(bytes.length);
    this.#at += bytes.copy(this.#bytes, this.#at);
  }

  #reserve(bytes: number): void {
    if (this.#at + bytes <= this.#bytes.length) return;
    const larger = Buffer.allocUnsafeSlow(Math.max(this.#bytes.length * 2, this.#at + bytes));
    this.#bytes.copy(larger, 0, 0, this.#at);
    this.#bytes = larger;
  }
}
