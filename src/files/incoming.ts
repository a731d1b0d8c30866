/** Content on its way in: streamed to a file of its own, so that nothing is kept in memory or left behind. */
import { createHash, randomBytes } from "node:crypto";
import { createWriteStream } from "node:fs";
import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { Transform, type Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { CodedError } from "../errors.ts";

/** Where content on its way in rests. */
export const incomingFolder = (dataDir: string): string => join(dataDir, "incoming");

export interface Incoming {
  path: string;
  /** Bytes. */
  size: number;
  /** SHA-256 in hexadecimal digits. */
  checksum: string;
}

/** A file over its limit. */
export function tooLarge(limit: number): CodedError {
  return new CodedError("PAYLOAD_TOO_LARGE", `The file is over ${limit / 1_000_000} MB.`, {
    field: "file",
    limit,
  });
}

export interface IncomingOptions {
  folder: string;
  /** Bytes; the first one over it ends the stream with PAYLOAD_TOO_LARGE. */
  limit: number;
  /** What the name of the file begins with. */
  name?: string;
}

/** Runs `work` with the content in a file that is gone afterwards, whatever happens but the death of the process. */
export async function withIncoming<T>(
  { folder, limit, name = "" }: IncomingOptions,
  content: Readable,
  work: (incoming: Incoming) => Promise<T>,
): Promise<T> {
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
