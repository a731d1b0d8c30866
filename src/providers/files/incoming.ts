/** Content on its way in: streamed to a file of its own, so that nothing is kept in memory or left behind. */
import { createHash, randomBytes } from "node:crypto";
import { createWriteStream } from "node:fs";
import { mkdir, rm } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { Transform, type Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { ignoreEarlyErrors } from "../../base/ignoreEarlyErrors.ts";
import { CodedError } from "../../base/errors.ts";
import { MEGABYTE } from "./kinds.ts";

/** Where content on its way in rests. */
export const incomingFolder = (dataDir: string): string => join(dataDir, "incoming");

/**
 * What the files of this process begin with. A process of the same number on the same machine that is not this one is dead, so
 * that its files can go when this one starts; others go by their age.
 */
export const processName = `upload-${createHash("sha256").update(hostname()).digest("hex").slice(0, 12)}-${process.pid}.`;

export interface Incoming {
  path: string;
  /** Bytes. */
  size: number;
  /** SHA-256 in hexadecimal digits. */
  checksum: string;
}

export interface IncomingOptions {
  folder: string;
  /** Bytes; the first one over it ends the stream with PAYLOAD_TOO_LARGE. */
  limit: number;
  /** What the name of the file begins with. */
  name?: string;
}

/** A file over its limit. */
export function tooLarge(limit: number): CodedError {
  return new CodedError("PAYLOAD_TOO_LARGE", `The file exceeds ${limit / MEGABYTE} MB.`, {
    field: "file",
    limit,
  });
}

/** Runs `work` with the content in a file that is gone afterwards, whatever happens but the death of the process. */
export async function withIncoming<T>(
  { folder, limit, name = "" }: IncomingOptions,
  content: Readable,
  work: (incoming: Incoming) => Promise<T>,
): Promise<T> {
  ignoreEarlyErrors(content);
  const path = join(folder, `${name}${randomBytes(12).toString("hex")}.part`);
  const hash = createHash("sha256");
  let size = 0;
  const measure = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      size += chunk.length;
      if (size > limit) return done(tooLarge(limit));
      hash.update(chunk);
      done(null, chunk);
    },
  });
  await mkdir(folder, { recursive: true, mode: 0o700 });
  try {
    await pipeline(content, measure, createWriteStream(path, { flags: "wx", mode: 0o600 }));
    return await work({ path, size, checksum: hash.digest("hex") });
  } finally {
    await rm(path, { force: true });
  }
}
