import type { Readable } from "node:stream";

/** Bytes `start` to `end`, both included. */
export interface ByteRange {
  start: number;
  end: number;
}

/**
 * Where the contents of files lie. Keys are made of lower-case letters, digits and dots; a content never changes under
 * its key, so that writing one twice is harmless.
 */
export interface FileStore {
  /** Stores the content, a stream or a file, whole or not at all. */
  put(key: string, content: Readable | { path: string }, of: { size: number; type: string }): Promise<void>;
  /** Undefined when there is no such content. */
  get(key: string, range?: ByteRange): Promise<Readable | undefined>;
  /** Bytes; undefined when there is no such content. */
  size(key: string): Promise<number | undefined>;
  /** Deletes the contents that are there. */
  delete(keys: readonly string[]): Promise<void>;
  /** Removes what was begun before then and never finished, since whoever did died. */
  sweep(before: Date): Promise<void>;
  close(): Promise<void>;
}

/** What a store says when the outside party failed; its message is for the log. */
export class FileStoreFailed extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "FileStoreFailed";
  }
}

export const thumbnailKey = (checksum: string): string => `${checksum}.thumbnail`;
