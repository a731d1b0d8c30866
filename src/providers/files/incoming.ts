/** Uploads are streamed to temporary files, so that nothing is kept in memory or left behind. */
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

/** The folder of temporary files. */
export const incomingFolder = (dataDir: string): string => join(dataDir, "incoming");

/**
 * Prefix of this process's files. A process with the same id on the same machine that is not this one is dead, so its files are removed
 * when this one starts; others are removed by age.
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
  /** Maximum bytes; the first one beyond ends the stream with PAYLOAD_TOO_LARGE. */
  limit: number;
  /** Prefix of the file name. */
  name?: string;
}

/** A file that exceeds its limit. */
export function tooLarge(limit: number): CodedError {
  return new CodedError("PAYLOAD_TOO_LARGE", `The file exceeds ${limit / MEGABYTE} MB.`, {
    field: "file",
    limit,
  });
}

/** Runs `work` with the content in a temporary file that is removed afterwards, unless the process dies. */
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
