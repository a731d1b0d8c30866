import { once } from "node:events";
import { connect as connectTcp } from "node:net";
import { connect } from "node:tls";
import type { Attack, HostileWorld } from "../attack.ts";
import { drained } from "../drained.ts";

const SOCKETS = 10;
/** Chunks of a body with one byte each, which is the most chunks that fit. */
const chunks = Buffer.from("1\r\nx\r\n".repeat(10_000));

async function send({ address, stranger }: HostileWorld, signal: AbortSignal): Promise<void> {
  const { hostname, port } = new URL(address);
  const path = connectTcp({ host: hostname, port: Number(port), localAddress: "127.0.0.2" });
  path.on("error", () => {});
  const socket = connect({ socket: path, rejectUnauthorized: false });
  socket.on("error", () => {}).on("data", () => {});
  const leave = () => socket.destroy();
  signal.addEventListener("abort", leave, { once: true });
  await once(socket, "secureConnect", { signal });
  socket.write(
    `POST /graphql HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${stranger.token}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n"\r\n`,
  );
  while (!socket.destroyed && !signal.aborted) {
    const isFull = !socket.write(chunks);
    if (isFull) await drained(socket);
  }
  signal.removeEventListener("abort", leave);
}

/** Bodies in as many parts as possible, from an address of the attacker. */
export default {
  title: "bodies in chunks of one byte",
  async play(world, signal) {
    const turn = AbortSignal.any([signal, AbortSignal.timeout(3_000)]);
    const ends = await Promise.allSettled(Array.from({ length: SOCKETS }, () => send(world, turn)));
    if (!turn.aborted && ends.every(({ status }) => status === "rejected"))
      throw new Error("No connection was opened.");
  },
} satisfies Attack;
