/**
 * The receiver of bench/deliveries.ts, in a separate thread: an HTTPS server that verifies the signature of each
 * message and answers 204. It posts its port, and then, every few milliseconds, the number of messages and the time
 * of the last one.
 */
import { createHmac } from "node:crypto";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { parentPort, workerData } from "node:worker_threads";

/** Input of the thread. */
export interface ReceiverData {
  cert: string;
  key: string;
  /** Secrets of webhooks, by the paths of their URLs. */
  secrets: Record<string, string>;
}

/** Messages of the thread after the port. */
export interface ReceiverCount {
  /** Number of messages with a valid signature. */
  received: number;
  /** Number of messages without one. */
  refused: number;
  /** Number of connections so far. */
  connections: number;
  /** Time of the last message, in milliseconds since 1970. */
  at: number;
}

const { cert, key, secrets } = workerData as ReceiverData;
const keys = new Map(
  Object.entries(secrets).map(([path, secret]) => [
    path,
    Buffer.from(secret.slice("whsec_".length), "base64"),
  ]),
);
const count: ReceiverCount = { received: 0, refused: 0, connections: 0, at: 0 };
let told = 0;

const server = createServer({ cert, key }, (request, response) => {
  const parts: Buffer[] = [];
  request.on("data", (part: Buffer) => parts.push(part));
  request.on("end", () => {
    const {
      "webhook-id": id,
      "webhook-timestamp": timestamp,
      "webhook-signature": signature,
    } = request.headers;
    const expected = createHmac("sha256", keys.get(request.url!)!)
      .update(`${String(id)}.${String(timestamp)}.`)
      .update(Buffer.concat(parts))
      .digest("base64");
    if (signature === `v1,${expected}`) count.received += 1;
    else count.refused += 1;
    count.at = performance.timeOrigin + performance.now();
    response.writeHead(204).end();
  });
});
server.on("secureConnection", () => (count.connections += 1));
server.listen(0, "127.0.0.1", () => parentPort!.postMessage((server.address() as AddressInfo).port));
setInterval(() => {
  if (count.received + count.refused === told) return;
  told = count.received + count.refused;
  parentPort!.postMessage({ ...count });
}, 2);
