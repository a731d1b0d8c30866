import { connect, createServer, type AddressInfo, type Socket } from "node:net";
// oxlint-disable-next-line no-restricted-imports -- being slow is what it is for
import { setTimeout as pause } from "node:timers/promises";

/** A TCP proxy in front of PostgreSQL that counts round trips and can add latency. */
export interface WireProxy {
  readonly port: number;
  /**
   * The number of round trips since the last call: responses up to ReadyForQuery that were followed by more
   * data, and one for each connection.
   */
  takeRoundTrips(): number;
  /**
   * The data sent to the server since the last call, as Latin-1: contains texts of statements and values of
   * parameters.
   */
  takeSent(): string;
  /** Closes every connection, like a broken network. */
  cut(): void;
  close(): Promise<void>;
}

/** Starts the proxy; `delay` milliseconds are added in each direction. */
export async function startWireProxy(targetPort: number, delay = 0): Promise<WireProxy> {
  const sockets = new Set<Socket>();
  let roundTrips = 0;
  /** Connections that were answered, and have sent nothing since. */
  const answered = new Set<Socket>();
  let sent: Buffer[] = [];
  const server = createServer((client) => {
    const upstream = connect(targetPort, "127.0.0.1");
    const count = messageCounter("Z", () => answered.add(client));
    for (const socket of [client, upstream]) {
      socket.setNoDelay(true);
      sockets.add(socket);
      socket.on("error", () => {});
      socket.on("close", () => {
        sockets.delete(socket);
        client.destroy();
        upstream.destroy();
      });
    }
    forward(client, upstream, delay, (chunk) => {
      sent.push(chunk);
      if (answered.delete(client)) roundTrips += 1;
    });
    forward(upstream, client, delay, count);
  });
  const cut = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    port: (server.address() as AddressInfo).port,
    takeRoundTrips() {
      const seen = roundTrips + answered.size;
      roundTrips = 0;
      answered.clear();
      return seen;
    },
    takeSent() {
      const text = Buffer.concat(sent).toString("latin1");
      sent = [];
      return text;
    },
    cut,
    async close() {
      const closed = new Promise((resolve) => server.close(resolve));
      cut();
      await closed;
    },
  };
}

function forward(from: Socket, to: Socket, delay: number, see: (chunk: Buffer) => void = () => {}): void {
  from.on("data", async (chunk: Buffer) => {
    see(chunk);
    if (delay > 0) await pause(delay);
    to.write(chunk);
  });
}

/** Parses the server's messages (type byte, length, body), however they are split into chunks. */
function messageCounter(type: string, found: () => void): (chunk: Buffer) => void {
  let rest = Buffer.alloc(0);
  let skip = 0;
  return (chunk) => {
    if (skip >= chunk.length) {
      skip -= chunk.length;
      return;
    }
    rest = Buffer.concat([rest, chunk.subarray(skip)]);
    skip = 0;
    let at = 0;
    while (rest.length - at >= 5) {
      if (rest[at] === type.charCodeAt(0)) found();
      at += 1 + rest.readUInt32BE(at + 1);
    }
    skip = Math.max(0, at - rest.length);
    rest = rest.subarray(Math.min(at, rest.length));
  };
}
