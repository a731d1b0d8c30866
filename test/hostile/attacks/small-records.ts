import type { Attack } from "../attack.ts";
import { onConnections } from "../connections.ts";
import { openRecordSender } from "../../harness/smallRecords.ts";

/** A header that is not complete. */
const head = `GET / HTTP/1.1\r\nHost: a\r\nX: ${"x".repeat(5_000)}`;

/** Requests that are never complete, in as many TLS records as possible, from an address of the attacker. */
export default {
  title: "headers in TLS records of one byte",
  play: (world, signal) =>
    onConnections(signal, { count: 4, forMs: 10_000 }, async (turn) => {
      const { hostname: host, port } = new URL(world.address);
      using sender = await openRecordSender({ host, port: Number(port), localAddress: "127.0.0.2" }, turn);
      await sender.encrypt(head, 1);
      sender.send();
      // Also at the end of the turn.
      await sender.closed;
    }),
} satisfies Attack;
