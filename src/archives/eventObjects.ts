/** Objects of archived events: compressed lines of JSON, one for each event, which begin with its sequence. */
import { createHash } from "node:crypto";
import { Readable } from "node:stream";
import { promisify } from "node:util";
import { gunzip, gzip } from "node:zlib";
import type { FileStore } from "../providers/files/index.ts";

/** Events per object. */
export const MOST_EVENTS = 2_000;
/** Bytes of lines per object, but for the last line. */
export const MOST_BYTES = 4_000_000;
/** Maximum bytes of lines that are decompressed: no content of an event is nearly as large. */
const MOST_DECOMPRESSED = 64 * 1024 * 1024;

const compress = promisify(gzip);
const decompress = promisify(gunzip);

/** An object that is missing, damaged or cannot be read at the moment. */
export class ArchiveUnreadable extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "ArchiveUnreadable";
  }
}

/** An object, as the database describes it. */
export interface EventObject {
  /** SHA-256 in hexadecimal digits, which is the key in the store. */
  readonly checksum: string;
  readonly filesize: number;
}

export interface PackedObject extends EventObject {
  readonly bytes: Buffer;
}

/** In hexadecimal digits, as the database computes it of lines. */
export const sha256 = (bytes: Uint8Array | string): string =>
  createHash("sha256").update(bytes).digest("hex");

/** The object with these lines; always the same for the same lines. */
export async function packEvents(content: string): Promise<PackedObject> {
  const bytes = await compress(content, { level: 9 });
  return { bytes, checksum: sha256(bytes), filesize: bytes.length };
}

export const storeObject = (store: FileStore, { checksum, filesize, bytes }: PackedObject): Promise<void> =>
  store.put(checksum, Readable.from([bytes]), { size: filesize, type: "application/gzip" });

/**
 * The lines of an object.
 * @throws ArchiveUnreadable
 */
export async function readObject(store: FileStore, { checksum, filesize }: EventObject): Promise<string> {
  try {
    const content = await store.get(checksum);
    if (!content) throw new ArchiveUnreadable(`The file store has no object ${checksum}.`);
    const parts: Buffer[] = [];
    let size = 0;
    for await (const part of content as AsyncIterable<Buffer>) {
      size += part.length;
      if (size > filesize) break;
      parts.push(part);
    }
    const bytes = Buffer.concat(parts);
    if (size !== filesize || sha256(bytes) !== checksum)
      throw new ArchiveUnreadable(`The object ${checksum} of the file store is damaged.`);
    return (await decompress(bytes, { maxOutputLength: MOST_DECOMPRESSED })).toString();
  } catch (error) {
    if (error instanceof ArchiveUnreadable) throw error;
    throw new ArchiveUnreadable(`The object ${checksum} of the file store cannot be read.`, { cause: error });
  }
}

const sequenceOf = /^\{ ?"sequence" : "(\d+)"/;

/** The lines by the sequences of their events. */
export function linesBySequence(content: string): Map<string, string> {
  const lines = new Map<string, string>();
  for (const line of content.split("\n")) {
    const sequence = sequenceOf.exec(line)?.[1];
    if (sequence !== undefined) lines.set(sequence, line);
  }
  return lines;
}
