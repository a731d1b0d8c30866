import type { Attack } from "../attack.ts";
import { flood, onConnections, openConnection } from "../connections.ts";

/** The shortest requests, as many as fit. */
const requests = Buffer.from("GET / HTTP/1.1\r\nHost:a\r\n\r\n".repeat(2_500));

/** Requests that do not wait for responses, from an address of the attacker. */
export default {
  title: "connections that send requests without end",
  play: (world, signal) =>
    onConnections(signal, { count: 10, forMs: 3_000 }, async (turn) => {
      const socket = await openConnection(world, turn);
      socket.on("data", () => {});
      await flood(socket, requests);
    }),
} satisfies Attack;
