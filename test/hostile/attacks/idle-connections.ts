import { once } from "node:events";
import { connect as connectTcp } from "node:net";
import { connect } from "node:tls";
import type { Attack, HostileWorld } from "../attack.ts";

/** The bytes that a client sends before it stalls. */
const beginnings = ({ attacker, project }: HostileWorld): string[] => {
  const large = JSON.stringify({
    query: `{ ${Array.from({ length: 20 }, (_, n) => `p${n}: project(id: "${project.id}") { id title }`).join(" ")} }`,
  });
  const head = "POST /graphql HTTP/1.1\r\nHost: a\r\n";
  return [
    "",
    `${head}X-Slow: `,
    `${head}Content-Type: application/json\r\nContent-Length: 900000\r\n\r\n{"query`,
    `${head}Authorization: Bearer ${attacker.token}\r\nContent-Type: application/json\r\nContent-Length: ${large.length}\r\n\r\n${large}`,
    "no HTTP\r\n\r\n",
  ];
};

/** Each turn leaves stalled connections behind, from an address of the attacker. */
export default {
  title: "connections that send half a request or read no answer",
  async play(world, signal) {
    const { hostname, port } = new URL(world.address);
    const sockets = beginnings(world).map((text) => {
      const path = connectTcp({ host: hostname, port: Number(port), localAddress: "127.0.0.2" });
      path.on("error", () => {});
      const socket = connect({ socket: path, rejectUnauthorized: false });
      socket.on("error", () => {});
      socket.once("secureConnect", () => socket.pause().write(text));
      return socket;
    });
    const leave = () => sockets.forEach((socket) => socket.destroy());
    signal.addEventListener("abort", leave, { once: true });
    // Some remain until the service closes them; the next turn does not wait for that.
    const turn = AbortSignal.any([signal, AbortSignal.timeout(500)]);
    await Promise.all(sockets.map((socket) => once(socket, "close", { signal: turn }))).catch(() => {});
    if (signal.aborted) leave();
  },
} satisfies Attack;
