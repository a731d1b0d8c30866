import type { TLSSocket } from "node:tls";
import type { Attack, HostileWorld } from "../attack.ts";
import { openConnection } from "../connections.ts";

const SOCKETS = 100;
/** Requests that a connection sends before it reads the first response. */
const PIPELINED = 5;

const body = JSON.stringify({ query: "{ __typename }" });
const small = (token: string) =>
  `POST /graphql HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${token}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;

/** Sends requests at once, and waits for all responses. */
async function burst(socket: TLSSocket, token: string): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  let answers = 0;
  const count = (text: string) => {
    answers += text.split("HTTP/1.1 ").length - 1;
    if (answers >= PIPELINED) resolve();
  };
  socket.on("data", count).once("close", resolve);
  socket.write(small(token).repeat(PIPELINED));
  await promise;
  socket.off("data", count).off("close", resolve);
}

const opened = new WeakMap<HostileWorld, Promise<TLSSocket[]>[]>();

/** Open connections that all send short requests in the same moment, from an address of the attacker. */
export default {
  title: "a hundred connections each that send short requests at once",
  async play(world, signal) {
    const free = opened.get(world) ?? [];
    opened.set(world, free);
    const sockets = await (free.pop() ??
      Promise.all(Array.from({ length: SOCKETS }, () => openConnection(world, signal))).catch(() => []));
    if (sockets.length === 0 && !signal.aborted) throw new Error("The connections were not accepted.");
    const alive = sockets.filter((socket) => !socket.destroyed);
    for (const socket of alive) socket.setEncoding("latin1");
    await Promise.all(alive.map((socket) => burst(socket, world.stranger.token)));
    if (alive.length > 0) free.push(Promise.resolve(alive));
  },
} satisfies Attack;
