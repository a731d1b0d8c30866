import { randomUUID } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { type CodedError, errorBody } from "../base/errors.ts";

/** After this a client that does not hang up is cut off; until then it can read what it was told (ms). */
const LINGER = 2_000;

/**
 * Answers on the connection itself, where there is no response to write to, in the form of all refusals, and ends it:
 * `end` alone leaves the descriptor to a client that neither reads nor hangs up.
 */
export function writeRefusal(socket: Duplex, status: string, error: CodedError): void {
  const body = JSON.stringify(errorBody(error, randomUUID()));
  const cut = setTimeout(() => socket.destroy(), LINGER);
  socket.once("close", () => clearTimeout(cut));
  socket.once("end", () => socket.destroy());
  socket.on("error", () => socket.destroy());
  socket.end(
    `HTTP/1.1 ${status}\r\nContent-Type: application/json; charset=utf-8\r\n` +
      `Content-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
  );
  // What is still being sent is read and dropped, since unread bytes would reset the connection before the answer is read.
  socket.resume();
}

/** A body of which so much is left is read to its end, so that the connection serves the next request. */
const SMALL_REST = 65_536;

/**
 * Reads no more of the body of a refused request, which Node would otherwise do however long it is; its sender has a moment to
 * read the answer before the connection ends.
 */
export function stopReading(request: IncomingMessage): void {
  const { socket } = request;
  if (request.complete || Number(request.headers["content-length"]) <= SMALL_REST) return;
  const cut = setTimeout(() => socket.destroy(), LINGER);
  socket.once("close", () => clearTimeout(cut));
  // Once Node has taken up the reading of a body that nobody had asked for, which it does when the answer is written.
  setImmediate(() => socket.pause());
}
