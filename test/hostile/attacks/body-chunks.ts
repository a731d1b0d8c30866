import type { Attack } from "../attack.ts";
import { flood, onConnections, openConnection } from "../connections.ts";

/** Chunks of a body with one byte each, which is the most chunks that fit. */
const chunks = Buffer.from("1\r\nx\r\n".repeat(10_000));

/** Bodies in as many parts as possible, from an address of the attacker. */
export default {
  title: "bodies in chunks of one byte",
  play: (world, signal) =>
    onConnections(signal, { count: 10, forMs: 3_000 }, async (turn) => {
      const socket = await openConnection(world, turn);
      socket.on("data", () => {});
      socket.write(
        `POST /graphql HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${world.stranger.token}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n"\r\n`,
      );
      await flood(socket, chunks);
    }),
} satisfies Attack;
