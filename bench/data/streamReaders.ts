/**
 * Readers of event streams, in a separate thread. Each is a TLS connection that records the time of each sequence
 * number.
 */
import { connect, type TLSSocket } from "node:tls";
import { parentPort, workerData } from "node:worker_threads";

export interface ReadersData {
  port: number;
  readers: { organizationId: string; token: string }[];
  /** Number of the first source address: readers connect from addresses in 127.0.0.0/16, hundreds from each. */
  firstAddress: number;
}

/**
 * Arrivals at the readers of a thread: by organization and sequence number, the time at each reader in milliseconds
 * since 1970.
 */
export type Arrivals = [key: string, at: Float64Array][];

const readersOfAddress = 200;
const { port, readers, firstAddress } = workerData as ReadersData;
const sockets: TLSSocket[] = [];
const arrivals = new Map<string, number[]>();
/** Sequence numbers that arrived out of order, or twice. */
let wrong = 0;

const now = () => performance.timeOrigin + performance.now();

function open({ organizationId, token }: ReadersData["readers"][number], n: number): Promise<void> {
  const address = firstAddress + Math.floor(n / readersOfAddress);
  return new Promise((opened, failed) => {
    const socket = connect({
      port,
      host: "127.0.0.1",
      rejectUnauthorized: false,
      localAddress: `127.0.${1 + Math.floor(address / 250)}.${2 + (address % 250)}`,
    } as never);
    sockets.push(socket);
    socket.once("error", failed);
    let rest = "";
    let ended = "";
    let previous = "";
    socket.once("end", () => {
      // A reader that was closed, for example because it read too slowly, would be waited for in vain.
      throw new Error(`A stream ended: ${ended}`);
    });
    let isOpen = false;
    let last = 0;
    socket.setEncoding("latin1").on("data", (text: string) => {
      const at = now();
      const lines = (rest + text).split("\n");
      rest = lines.pop()!;
      for (const line of lines) {
        const before = previous;
        previous = line;
        if (!isOpen && line.startsWith("HTTP/1.1") && !line.includes(" 200 ")) failed(new Error(line));
        if (before === "event: end") ended = line;
        if (!line.startsWith("id: ")) continue;
        if (before === "event: complete") {
          isOpen = true;
          opened();
          continue;
        }
        const sequence = Number(line.slice(4));
        if (last && sequence !== last + 1) wrong++;
        last = sequence;
        const key = `${organizationId} ${sequence}`;
        const known = arrivals.get(key);
        if (known) known.push(at);
        else arrivals.set(key, [at]);
      }
    });
    // HTTP/1.0, so that the response is not chunked.
    socket.write(
      `GET /events/stream?organizationId=${organizationId} HTTP/1.0\r\nHost: localhost\r\nAuthorization: Bearer ${token}\r\n\r\n`,
    );
  });
}

/** Connections in progress at a time, because handshakes are queued. */
const atATime = 32;
let next = 0;
await Promise.all(
  Array.from({ length: Math.min(atATime, readers.length) }, async () => {
    while (next < readers.length) {
      const n = next++;
      await open(readers[n]!, n);
    }
  }),
);
parentPort!.postMessage("open");

parentPort!.on("message", (asked: "count" | "take" | "close") => {
  if (asked === "count")
    parentPort!.postMessage([...arrivals.values()].reduce((sum, { length }) => sum + length, 0));
  else if (asked === "take") {
    const taken: Arrivals = [...arrivals].map(([key, at]) => [key, Float64Array.from(at)]);
    arrivals.clear();
    parentPort!.postMessage({ taken, wrong });
  } else for (const socket of sockets) socket.destroy();
});
