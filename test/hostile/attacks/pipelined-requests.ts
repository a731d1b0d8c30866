import { once } from "node:events";
import { connect as connectTcp } from "node:net";
import { connect } from "node:tls";
import type { Attack, HostileWorld } from "../attack.ts";
import { drained } from "../drained.ts";

const SOCKETS = 10;
/** The shortest requests, as many as fit. */
const requests = Buffer.from("GET / HTTP/1.1\r\nHost:a\r\n\r\n".repeat(2_500));

async function flood({ address }: HostileWorld, signal: AbortSignal): Promise<void> {
  const { hostname, port } = new URL(address);
  const path = connectTcp({ host: hostname, port: Number(port), localAddress: "127.0.0.2" });
  path.on("error", () => {});
  const socket = connect({ socket: path, rejectUnauthorized: false });
  socket.on("error", () => {}).on("data", () => {});
  const leave = () => socket.destroy();
  signal.addEventListener("abort", leave, { once: true });
  await once(socket, "secureConnect", { signal });
  while (!socket.destroyed && !signal.aborted) {
    const isFull = !socket.write(requests);
    if (isFull) await drained(socket);
  }
  signal.removeEventListener("abort", leave);
}

/** Requests that do not wait for responses, from an address of the attacker. */
export default {
  title: "connections that send requests without end",
  async play(world, signal) {
    const turn = AbortSignal.any([signal, AbortSignal.timeout(3_000)]);
    const ends = await Promise.allSettled(Array.from({ length: SOCKETS }, () => flood(world, turn)));
    if (!turn.aborted && ends.every(({ status }) => status === "rejected"))
      throw new Error("No connection was opened.");
  },
} satisfies Attack;
