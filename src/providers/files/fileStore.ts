import type { Readable } from "node:stream";

/** Bytes `start` to `end`, inclusive. */
export interface ByteRange {
  start: number;
  end: number;
}

/**
 * The store of file contents. Keys consist of lower-case letters, digits and dots; contents are immutable, so that writing one twice is
 * harmless.
 */
export interface FileStore {
  /** Stores the content, a stream or a file, atomically. */
  put(key: string, content: Readable | { path: string }, of: { size: number; type: string }): Promise<void>;
  /** Undefined if there is no such content. */
  get(key: string, range?: ByteRange): Promise<Readable | undefined>;
  /** Bytes; undefined if there is no such content. */
  size(key: string): Promise<number | undefined>;
  /** Deletes the existing ones of these contents. */
  delete(keys: readonly string[]): Promise<void>;
  /** Removes uploads begun before then and never finished, because their process died. */
  sweep(before: Date): Promise<void>;
  close(): Promise<void>;
}

/** A failure of the external store; its message is for the log. */
export class FileStoreFailed extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "FileStoreFailed";
  }
}

/** Key of the thumbnail of the content with that checksum. */
export const thumbnailKey = (checksum: string): string => `${checksum}.thumbnail`;
