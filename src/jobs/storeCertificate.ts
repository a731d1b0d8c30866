import { createHash } from "node:crypto";
import { Readable } from "node:stream";
import type { FileStore } from "../providers/files/index.ts";

/**
 * Puts a certificate into the file store, once per content.
 * @param content a PDF
 * @param announce records in the database that the content is about to be stored; returns whether it already is
 * @returns its SHA-256, in hexadecimal digits
 */
export async function storeCertificate(
  fileStore: FileStore,
  content: Uint8Array,
  announce: (checksum: string, size: number) => Promise<{ rows: { stored: boolean }[] }>,
): Promise<string> {
  const checksum = createHash("sha256").update(content).digest("hex");
  const size = content.length;
  const { rows } = await announce(checksum, size);
  if (!rows[0]!.stored)
    await fileStore.put(checksum, Readable.from([content]), { size, type: "application/pdf" });
  return checksum;
}
