/** Requests that were received as messages of a WebSocket; see webSocket.ts. */
import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";

const connections = new WeakSet<Duplex>();

/** Notes that requests of a connection are messages of a WebSocket. */
export const markOfWebSocket = (connection: Duplex): void => void connections.add(connection);

/** Whether a request is a message of a WebSocket, which takes subscriptions only. */
export const isOfWebSocket = ({ socket }: IncomingMessage): boolean => connections.has(socket);
