import { once } from "node:events";
import { connect as connectTcp, type Socket } from "node:net";
import { connect } from "node:tls";
import { WebSocket } from "ws";
import type { Attack, HostileWorld } from "../attack.ts";
import { drained } from "../drained.ts";

const SOCKETS = 10;
/** The shortest frames that a client can send: pings without content, masked with zeros. */
const frames = Buffer.from([0x89, 0x80, 0, 0, 0, 0]);
const pings = Buffer.concat(Array.from({ length: 10_000 }, () => frames));

async function flood({ address }: HostileWorld, signal: AbortSignal): Promise<void> {
  const { hostname, port } = new URL(address);
  let connection: Socket | undefined;
  const client = new WebSocket(`${address.replace(/^https/, "wss")}/graphql`, "graphql-transport-ws", {
    rejectUnauthorized: false,
    createConnection: () => {
      const socket = connectTcp({ host: hostname, port: Number(port), localAddress: "127.0.0.2" });
      socket.on("error", () => {});
      connection = connect({ socket, rejectUnauthorized: false });
      return connection;
    },
  });
  client.on("error", () => {});
  signal.addEventListener("abort", () => client.terminate(), { once: true });
  await once(client, "open", { signal });
  while (client.readyState === client.OPEN && !signal.aborted)
    if (!connection!.write(pings)) await drained(connection!);
  client.terminate();
}

/** Frames that the service answers before it looks at a message, as many as fit, from an address of the attacker. */
export default {
  title: "WebSockets of strangers that send pings",
  async play(world, signal) {
    const turn = AbortSignal.any([signal, AbortSignal.timeout(1_500)]);
    const ends = await Promise.allSettled(Array.from({ length: SOCKETS }, () => flood(world, turn)));
    // Those that are not opened before the end of the turn have not failed.
    if (!turn.aborted && ends.every(({ status }) => status === "rejected"))
      throw new Error("No WebSocket was opened.");
  },
} satisfies Attack;
