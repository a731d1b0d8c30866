/**
 * Hands what arrives on a connection to Node's HTTP parser in slices. The parser does not stop before the end of what it
 * is given: 64 KB of the shortest requests, or of the shortest responses of a receiver, are 2,400, which take 75 to 150
 * milliseconds although the connection is closed after the first few.
 */
import type { Socket } from "node:net";
import { SmallRecords } from "./smallRecords.ts";

/** Bytes: as much as most requests have, and no more than some 80 of the shortest. */
const LEAST_SLICE = 2_048;
/** Bytes: a TLS record. */
const LARGEST_SLICE = 16_384;
/** Milliseconds: what takes less per byte is part of a body, of which the next slice may be longer. */
const QUICK_MS_PER_BYTE = 0.1 / LEAST_SLICE;

/** Bytes of a connection in one iteration of the event loop. */
const TURN = 65_536;

const sliced = new WeakSet<Socket>();

/**
 * Reads no more than a turn of a connection in one iteration of the event loop. Otherwise it is read up to 32 times: two
 * megabytes of a fast client, or twenty milliseconds, before the next one.
 * @returns counts what was read; false at the end of the turn
 */
function readInTurns(socket: Socket): (bytes: number) => boolean {
  // The name that streams give to what they ask for more.
  // oxlint-disable-next-line no-underscore-dangle
  const read = socket._read.bind(socket);
  let left = TURN;
  let isWaiting = false;
  // oxlint-disable-next-line no-underscore-dangle
  socket._read = (size) => {
    if (left > 0) read(size);
    else isWaiting = true;
  };
  const next = () => {
    left = TURN;
    if (!isWaiting) return;
    isWaiting = false;
    if (!socket.destroyed) read(0);
  };
  return (bytes) => {
    if (left > 0 && (left -= bytes) <= 0) setImmediate(next);
    return left > 0;
  };
}

/**
 * Also limits the TLS records in which it arrives. A connection that is used again is sliced already.
 * @param refuse closes a connection that has sent too many
 */
export function sliceInput(socket: Socket, refuse: (socket: Socket) => void): void {
  if (sliced.has(socket)) return;
  sliced.add(socket);
  const records = new SmallRecords();
  let size = LEAST_SLICE;
  const count = readInTurns(socket);
  const push = socket.push.bind(socket);
  // Called by Node with what has arrived, and null at the end.
  socket.push = (chunk: Buffer | null) => {
    if (chunk === null) return push(null);
    if (!records.take(chunk.length)) {
      refuse(socket);
      return false;
    }
    const isTurn = count(chunk.length);
    if (chunk.length <= LEAST_SLICE && !socket.writableEnded) return push(chunk) && isTurn;
    let wantsMore = true;
    for (let at = 0; at < chunk.length;) {
      if (socket.destroyed) return false;
      // It was refused: what else arrives is dropped, or not even read.
      if (socket.writableEnded) return isTurn && !socket.isPaused();
      const began = performance.now();
      wantsMore = push(chunk.subarray(at, at + size));
      at += size;
      const isQuick = performance.now() - began < size * QUICK_MS_PER_BYTE;
      // PERF: each slice is an event of its own for everybody who reads a body.
      size = isQuick ? Math.min(2 * size, LARGEST_SLICE) : LEAST_SLICE;
    }
    return wantsMore && isTurn;
  };
}
