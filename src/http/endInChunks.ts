import type { ServerResponse } from "node:http";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";

const PIECE = 65_536;

function* pieces(bytes: Buffer): Generator<Buffer> {
  for (let at = 0; at < bytes.length; at += PIECE) yield bytes.subarray(at, at + PIECE);
}

/**
 * Sends a text or bytes in chunks, which is required to measure the progress of a slow reader (see pace.ts). A client
 * that disconnects early is not an error.
 */
export async function endInChunks(response: ServerResponse, content: string | Buffer): Promise<void> {
  if (content.length <= PIECE) return void response.end(content);
  const bytes = typeof content === "string" ? Buffer.from(content) : content;
  // The middlewares that listen for the end of the response, and the pipeline itself, exceed Node's default of ten
  // listeners.
  response.setMaxListeners(20);
  await pipeline(Readable.from(pieces(bytes)), response).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "ERR_STREAM_PREMATURE_CLOSE") throw error;
  });
}
