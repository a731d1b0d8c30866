/**
 * Compression of responses. The compressed length reveals how similar the parts of a response are: an attacker who
 * can place text beside a secret and observe the traffic can guess the secret letter by letter. So only responses
 * without secrets are compressed: the schema, and public data for visitors. Responses to signed-in viewers mix texts
 * of others, such as messages of visitors, with personal data.
 */
import type { Request } from "express";
import { promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";
import { compressions } from "../admission/semaphores.ts";
import type { OperationWork } from "../admission/operationWork.ts";
import type { RequestState } from "./requestState.ts";

/** Minimum number of characters: shorter responses fit a few packets anyway. */
export const COMPRESSED_FROM = 4_096;

const encoders = {
  br: (text: string) =>
    promisify(brotliCompress)(text, {
      params: {
        [constants.BROTLI_PARAM_MODE]: constants.BROTLI_MODE_TEXT,
        // Compresses a schema of 2.4 MB to a twentieth, in the time in which gzip reaches a thirteenth.
        [constants.BROTLI_PARAM_QUALITY]: 5,
      },
    }),
  gzip: (text: string) => promisify(gzip)(text, { level: 6 }),
} as const;

/** Whether a response contains nothing that its length could reveal. */
export function isCompressible(
  { claims, operationType }: Pick<RequestState, "claims" | "operationType">,
  { tellsSchema }: Pick<OperationWork, "tellsSchema">,
): boolean {
  return tellsSchema || (claims?.userId === null && operationType === "query");
}

/**
 * Compresses a text in a separate thread, one response at a time per process.
 * @returns undefined if the text is short, the client accepts neither encoding, or the queue is full: the text is
 * sent uncompressed
 */
export async function compressed(
  text: string,
  request: Request,
  { party }: Pick<OperationWork, "party">,
): Promise<{ encoding: keyof typeof encoders; bytes: Buffer } | undefined> {
  if (text.length < COMPRESSED_FROM) return undefined;
  const encoding = (["br", "gzip"] as const).find((known) => request.acceptsEncodings(known) !== false);
  if (!encoding) return undefined;
  const release = await compressions.acquire(party).catch(() => undefined);
  try {
    return release && { encoding, bytes: await encoders[encoding](text) };
  } finally {
    release?.();
  }
}
