import type { Duplex } from "node:stream";

/** Resolves once a connection takes more, or is closed. */
export async function drained(socket: Duplex): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  socket.once("drain", resolve).once("close", resolve);
  await promise;
  socket.off("drain", resolve).off("close", resolve);
}
