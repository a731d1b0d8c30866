/**
 * Hands what arrives on a connection to Node's HTTP parser in slices. The parser does not stop before the end of what it
 * is given: 64 KB of the shortest requests, or of the shortest responses of a receiver, are 2,400, which take 75 to 150
 * milliseconds although the connection is closed after the first few.
 */
import type { Socket } from "node:net";
import { SmallRecords } from "./smallRecords.ts";

/** Bytes: as much as most requests have, and no more than some 80 of the shortest. */
const SLICE = 2_048;

const sliced = new WeakSet<Socket>();

/**
 * Also limits the TLS records in which it arrives. A connection that is used again is sliced already.
 * @param refuse closes a connection that has sent too many
 */
export function sliceInput(socket: Socket, refuse: (socket: Socket) => void): void {
  if (sliced.has(socket)) return;
  sliced.add(socket);
  const records = new SmallRecords();
  const push = socket.push.bind(socket);
  // Called by Node with what has arrived, and null at the end.
  socket.push = (chunk: Buffer | null) => {
    if (chunk === null) return push(null);
    if (!records.take(chunk.length)) {
      refuse(socket);
      return false;
    }
    if (chunk.length <= SLICE && !socket.writableEnded) return push(chunk);
    let wantsMore = true;
    for (let at = 0; at < chunk.length; at += SLICE) {
      if (socket.destroyed) return false;
      // It was refused: what else arrives is dropped, or not even read.
      if (socket.writableEnded) return !socket.isPaused();
      wantsMore = push(chunk.subarray(at, at + SLICE));
    }
    return wantsMore;
  };
}
