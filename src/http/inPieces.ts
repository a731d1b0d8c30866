import type { ServerResponse } from "node:http";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";

const PIECE = 65_536;

function* pieces(bytes: Buffer): Generator<Buffer> {
  for (let at = 0; at < bytes.length; at += PIECE) yield bytes.subarray(at, at + PIECE);
}

/**
 * Ends a response with a text or bytes, a piece after the other: only so is it seen how far a slow reader has come (see pace.ts).
 * A reader who leaves early is no failure.
 */
export async function endInPieces(response: ServerResponse, content: string | Buffer): Promise<void> {
  if (content.length <= PIECE) return void response.end(content);
  const bytes = typeof content === "string" ? Buffer.from(content) : content;
  // Each part of the request's way that waits for its end, and the pipeline itself, are more than the ten that Node finds usual.
  response.setMaxListeners(20);
  await pipeline(Readable.from(pieces(bytes)), response).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "ERR_STREAM_PREMATURE_CLOSE") throw error;
  });
}
