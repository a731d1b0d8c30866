/**
 * Compression of answers. The length of a compressed answer tells how alike its parts are: who can put text beside a secret, and measures
 * what travels, guesses the secret letter by letter. So only answers without secrets are compressed: the schema, and what anybody reads
 * without a token. An answer to a signed-in viewer mixes the texts of others, such as what a visitor wrote, with personal data.
 */
import type { Request } from "express";
import { promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";
import { compressions } from "../admission/semaphores.ts";
import type { OperationWork } from "../admission/operationWork.ts";
import type { RequestState } from "./requestState.ts";

/** Characters from which on an answer is compressed: shorter ones are sent in a few packets anyway. */
export const COMPRESSED_FROM = 4_096;

const encoders = {
  br: (text: string) =>
    promisify(brotliCompress)(text, {
      params: {
        [constants.BROTLI_PARAM_MODE]: constants.BROTLI_MODE_TEXT,
        // A schema of 2.4 MB becomes a twentieth of it in the time that gzip takes for a thirteenth.
        [constants.BROTLI_PARAM_QUALITY]: 5,
      },
    }),
  gzip: (text: string) => promisify(gzip)(text, { level: 6 }),
} as const;

/** Whether an answer holds nothing that its length could tell. */
export function isCompressible(
  { claims, operationType }: Pick<RequestState, "claims" | "operationType">,
  { tellsSchema }: Pick<OperationWork, "tellsSchema">,
): boolean {
  return tellsSchema || (claims?.userId === null && operationType === "query");
}

/**
 * Compresses a text in a thread of its own, one answer of the process at a time.
 * @returns undefined where the text is short, the caller takes neither encoding, or too many wait: the text goes out as it is
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
