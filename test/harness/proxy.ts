/** A proxy before a server that can simulate failures of a network: closed, interrupted or silent connections. */
import { connect, createServer, type AddressInfo, type Socket } from "node:net";

export interface Proxy extends AsyncDisposable {
  readonly port: number;
  /** The address of a server through the proxy. */
  through(url: string): string;
  /** Forwards new connections to another port. */
  lead(port: number): void;
  /** Closes all connections and refuses new ones. */
  shut(): void;
  /** Accepts connections and data from now on, but forwards and answers nothing. */
  hush(): void;
  /** Forwards data again from now on, and closes connections that were silent. */
  open(): void;
  /** Delays data by that many milliseconds, in both directions; 0 for no delay. */
  delay(ms: number): void;
}

/** @param port of the server, on this machine */
export async function startProxy(port: number): Promise<Proxy> {
  const sockets = new Set<Socket>();
  let target = port;
  let state: "open" | "shut" | "silent" = "open";
  let delayMs = 0;
  const cut = () => {
    for (const socket of sockets) socket.destroy();
  };
  const server = createServer((client) => {
    client.on("error", () => {});
    if (state === "shut") return void client.destroy();
    sockets.add(client);
    client.on("close", () => sockets.delete(client));
    if (state === "silent") return void client.resume();
    const upstream = connect({ port: target, host: "127.0.0.1" });
    upstream.on("error", () => {});
    sockets.add(upstream);
    upstream.on("close", () => sockets.delete(upstream));
    for (const [from, to] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      const pass = (chunk: Buffer) => {
        if (state === "open") to.write(chunk);
      };
      from.on("data", (chunk: Buffer) => {
        if (delayMs === 0) pass(chunk);
        // oxlint-disable-next-line no-restricted-globals -- a network that is slow
        else setTimeout(pass, delayMs, chunk);
      });
      from.on("close", () => {
        if (state !== "silent") to.destroy();
      });
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const own = (server.address() as AddressInfo).port;
  return {
    port: own,
    through: (url) => Object.assign(new URL(url), { hostname: "127.0.0.1", port: String(own) }).href,
    lead: (next) => void (target = next),
    shut() {
      state = "shut";
      cut();
    },
    hush: () => void (state = "silent"),
    delay: (ms) => void (delayMs = ms),
    open() {
      if (state === "silent") cut();
      state = "open";
    },
    async [Symbol.asyncDispose]() {
      const closed = new Promise((resolve) => server.close(resolve));
      state = "shut";
      cut();
      await closed;
    },
  };
}
