/** Connections of attackers that speak for themselves, from an address of the attacker. */
import { once } from "node:events";
import { connect as connectTcp } from "node:net";
import type { Duplex } from "node:stream";
import { connect, type TLSSocket } from "node:tls";
import type { HostileWorld } from "./attack.ts";

/** Opens a TLS connection, which is closed when the signal is aborted. @throws AbortError */
export async function openConnection({ address }: HostileWorld, signal: AbortSignal): Promise<TLSSocket> {
  const { hostname, port } = new URL(address);
  const path = connectTcp({ host: hostname, port: Number(port), localAddress: "127.0.0.2" });
  path.on("error", () => {});
  const socket = connect({ socket: path, rejectUnauthorized: false });
  socket.on("error", () => {});
  const leave = () => socket.destroy();
  signal.addEventListener("abort", leave, { once: true });
  socket.once("close", () => signal.removeEventListener("abort", leave));
  await once(socket, "secureConnect", { signal });
  return socket;
}

/** Resolves once a connection takes more, or is closed. */
async function drained(socket: Duplex): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  socket.once("drain", resolve).once("close", resolve);
  await promise;
  socket.off("drain", resolve).off("close", resolve);
}

/** Writes the same bytes without end, as fast as they are taken, until the connection is closed. */
export async function flood(socket: Duplex, bytes: Buffer): Promise<void> {
  while (!socket.destroyed) {
    const isFull = !socket.write(bytes);
    if (isFull) await drained(socket);
  }
}

/**
 * Repeats something on several connections for a while.
 * @throws Error if all of them failed before the end, because then nothing is attacked
 */
export async function onConnections(
  signal: AbortSignal,
  { count, forMs }: { count: number; forMs: number },
  attack: (turn: AbortSignal) => Promise<void>,
): Promise<void> {
  const turn = AbortSignal.any([signal, AbortSignal.timeout(forMs)]);
  const ends = await Promise.allSettled(Array.from({ length: count }, () => attack(turn)));
  if (!turn.aborted && ends.every(({ status }) => status === "rejected"))
    throw new Error("No connection was opened.");
}
