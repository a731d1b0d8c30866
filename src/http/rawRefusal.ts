import { randomUUID } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { type CodedError, errorBody } from "../base/errors.ts";

/** Time in milliseconds that a client has to read the response before the connection is closed. */
const LINGER = 2_000;

/**
 * Writes a refusal directly to the connection if there is no response object, in the usual form, and closes it: `end`
 * alone leaves the descriptor to a client that neither reads nor hangs up.
 */
export function writeRefusal(socket: Duplex, status: string, error: CodedError): void {
  // Of several refused requests of a connection, the first is answered.
  if (socket.writableEnded || socket.destroyed) return;
  const body = JSON.stringify(errorBody(error, randomUUID()));
  const { retryAfterSeconds } = error.extensions;
  const retry = retryAfterSeconds === undefined ? "" : `Retry-After: ${Number(retryAfterSeconds)}\r\n`;
  const cut = setTimeout(() => socket.destroy(), LINGER);
  socket.once("close", () => clearTimeout(cut));
  socket.once("end", () => socket.destroy());
  socket.on("error", () => socket.destroy());
  socket.end(
    `HTTP/1.1 ${status}\r\nContent-Type: application/json; charset=utf-8\r\n` +
      `Content-Length: ${Buffer.byteLength(body)}\r\n${retry}Connection: close\r\n\r\n${body}`,
  );
  // Remaining input is read and dropped, since unread bytes would reset the connection before the response is read.
  socket.resume();
}

/** Up to this size, the rest of a body is read, so that the connection can be reused. */
const SMALL_REST = 65_536;

/**
 * Stops reading the body of a refused request, which Node would otherwise read to its end. The client has a moment to
 * read the response before the connection is closed.
 */
export function stopReading(request: IncomingMessage): void {
  const { socket } = request;
  if (request.complete || Number(request.headers["content-length"]) <= SMALL_REST) return;
  const cut = setTimeout(() => socket.destroy(), LINGER);
  socket.once("close", () => clearTimeout(cut));
  // After Node has started to read a body that nobody consumed, which happens when the response is written.
  setImmediate(() => socket.pause());
}
