/**
 * Hands what arrives on a connection to Node's HTTP parser in slices. The parser does not stop before the end of what it
 * is given: 64 KB of the shortest requests are 2,400, which take 150 milliseconds although the connection is closed
 * after the first few.
 */
import type { Socket } from "node:net";
import { refuseRecords, SmallRecords } from "./smallRecords.ts";

/** Bytes: as much as most requests have, and no more than some 80 of the shortest. */
const SLICE = 2_048;

const nothing = Buffer.alloc(0);

/** A connection whose input is sliced. */
interface Sliced {
  readonly take: (chunk: Buffer) => void;
  /** What has arrived and was not handed on yet. */
  rest: Buffer;
}
const connections = new WeakMap<Socket, Sliced>();

/** @param socket of which Node's HTTP server has just begun to read */
export function sliceInput(socket: Socket): void {
  const [parse] = socket.listeners("data") as ((this: Socket, chunk: Buffer) => void)[];
  if (!parse) return;
  const records = new SmallRecords();
  const sliced: Sliced = {
    rest: nothing,
    take(chunk) {
      if (!records.take(chunk.length)) return refuseRecords(socket);
      // PERF: most requests.
      if (chunk.length <= SLICE) return parse.call(socket, chunk);
      sliced.rest = chunk;
      while (sliced.rest.length > 0) {
        // It was refused, or closed.
        if (socket.destroyed || socket.writableEnded) return;
        // Its responses are not read; the rest comes again once they are.
        if (socket.isPaused()) {
          const { rest } = sliced;
          sliced.rest = nothing;
          return void socket.unshift(rest);
        }
        const slice = sliced.rest.subarray(0, SLICE);
        sliced.rest = sliced.rest.subarray(SLICE);
        parse.call(socket, slice);
      }
    },
  };
  socket.off("data", parse);
  socket.on("data", sliced.take);
  connections.set(socket, sliced);
}

/**
 * Another protocol reads the connection from here on.
 * @returns what has arrived behind the slice that was parsed last
 */
export function endSlices(socket: Socket): Buffer {
  const sliced = connections.get(socket);
  if (!sliced) return nothing;
  const { rest } = sliced;
  sliced.rest = nothing;
  socket.off("data", sliced.take);
  connections.delete(socket);
  return rest;
}
