/**
 * The receiver of bench/deliveries.ts, in a thread of its own: an HTTPS server that verifies each message's signature and answers 204.
 * It tells the port that it listens on, then every few milliseconds how many messages have come and when the last one did.
 */
import { createHmac } from "node:crypto";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { parentPort, workerData } from "node:worker_threads";

/** What the thread is given. */
export interface ReceiverData {
  cert: string;
  key: string;
  /** Secrets of webhooks, by the paths of their addresses. */
  secrets: Record<string, string>;
}

/** What the thread tells, after the port. */
export interface ReceiverCount {
  /** Messages so far that were signed as they should be. */
  received: number;
  /** Messages so far that were not. */
  refused: number;
  /** Connections that were made so far. */
  connections: number;
  /** When the last message came, in milliseconds since the epoch. */
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
