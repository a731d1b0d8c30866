/** A TCP proxy in front of PostgreSQL that counts statements and round trips. */
import { connect, createServer, type AddressInfo, type Socket } from "node:net";

const EXECUTE = 0x45;
const QUERY = 0x51;
const SYNC = 0x53;
const READY = 0x5a;

/**
 * Calls back with the type of each message, independent of chunk boundaries. The first message of a client has no
 * type.
 */
function messages(startup: boolean, found: (type: number) => void): (chunk: Buffer) => void {
  let rest = Buffer.alloc(0);
  let isFirst = startup;
  return (chunk) => {
    rest = Buffer.concat([rest, chunk]);
    for (;;) {
      const head = isFirst ? 0 : 1;
      if (rest.length < head + 4) return;
      const length = head + rest.readUInt32BE(head);
      if (rest.length < length) return;
      if (!isFirst) found(rest[0]!);
      isFirst = false;
      rest = rest.subarray(length);
    }
  };
}

export interface WireCounter {
  port: number;
  /** Counts since the last call. A round trip begins when a client sends a message while it waits for no answer. */
  take(): { statements: number; roundTrips: number };
  close(): Promise<void>;
}

/** Starts the proxy on a free port. */
export async function startWireCounter(port: number, host: string): Promise<WireCounter> {
  const sockets = new Set<Socket>();
  let [statements, roundTrips] = [0, 0];
  const server = createServer((client) => {
    const upstream = connect(port, host);
    let awaited = 0;
    const asked = messages(true, (type) => {
      if (type === EXECUTE || type === QUERY) statements += 1;
      if ((type === SYNC || type === QUERY) && awaited++ === 0) roundTrips += 1;
    });
    const answered = messages(false, (type) => {
      if (type === READY && awaited > 0) awaited -= 1;
    });
    for (const [from, to, see] of [
      [client, upstream, asked],
      [upstream, client, answered],
    ] as const) {
      from.setNoDelay(true);
      sockets.add(from);
      from.on("error", () => {});
      from.on("close", () => {
        sockets.delete(from);
        to.destroy();
      });
      from.on("data", (chunk: Buffer) => {
        see(chunk);
        to.write(chunk);
      });
    }
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  return {
    port: (server.address() as AddressInfo).port,
    take() {
      const seen = { statements, roundTrips };
      [statements, roundTrips] = [0, 0];
      return seen;
    },
    async close() {
      const closed = new Promise((done) => server.close(done));
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}
