import type { EventEmitter } from "node:events";
import { createServer as createHttpServer, type RequestListener } from "node:http";
import { createServer as createHttpsServer } from "node:https";
import { type AddressInfo, createServer as createNetServer, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { networkOf } from "../network/networkOf.ts";
import { sliceInput } from "../network/slicedInput.ts";
import { LEAST_RECORD } from "../network/smallRecords.ts";
import { CodedError } from "../base/errors.ts";
import { handshakes } from "../admission/semaphores.ts";
import { type ConnectionLimits, connectionLimits, countByAddress } from "./connectionLimits.ts";
import { defaultPace, keepPace, type Pace } from "./pace.ts";
import { limitPipelined } from "./pipelining.ts";
import { writeRefusal } from "./rawRefusal.ts";
import { inTurns } from "./requestTurns.ts";
import { asksForWebSocket, webSockets } from "./webSocket.ts";

export interface ListenOptions {
  /** Port to listen on; 0 for any free port. */
  readonly port: number;
  readonly host: string;
  /** PEM. */
  readonly cert: string;
  readonly key: string;
  /** Connection limits. Default: derived from the system's limits. */
  readonly limits?: ConnectionLimits;
  /** Limits for slow clients. */
  readonly pace?: Pace;
  /** Timeout of the handshake and of request headers, in milliseconds. */
  readonly headersWithin?: number;
  /** Session ticket keys, 48 bytes. Default: keys of this process. */
  readonly ticketKeys?: Buffer | undefined;
  /** Whether an address is a proxy. Default: none is. */
  readonly isProxy?: (address: string) => boolean;
}

export interface Listening {
  readonly port: number;
  /** Uses a renewed certificate for new connections. */
  renew(cert: string, key: string): void;
  /**
   * Continues to accept connections, but closes each after its next response, so that clients reconnect elsewhere.
   */
  drain(): void;
  /**
   * Stops accepting connections, lets running requests complete, and aborts the rest after `graceMs` milliseconds.
   */
  close(graceMs?: number): Promise<void>;
}

/** The first byte of a TLS connection: a handshake record. No HTTP method begins with it. */
const TLS_HANDSHAKE = 0x16;
/**
 * Connections that wait to be accepted; the system may have a lower limit. Of a thousand opened at once, those above
 * Node's default of 511 would be lost, and tried again after a second.
 */
const BACKLOG = 4_096;
const FIRST_BYTE_MS = 10_000;
const HEADERS_MS = 15_000;

/** Timeouts checked by Node (ms). Bodies may take longer as long as they make progress. */
const timeouts = (headersWithin: number) => ({
  headersTimeout: headersWithin,
  requestTimeout: 3_600_000,
  keepAliveTimeout: 65_000,
  // Interval of Node's checks; the default is 30 s.
  connectionsCheckingInterval: Math.min(1_000, headersWithin / 4),
});

const parserErrors: Record<string, { status: string; sentence: string }> = {
  HPE_HEADER_OVERFLOW: {
    status: "431 Request Header Fields Too Large",
    sentence: "The headers are too large.",
  },
  ERR_HTTP_REQUEST_TIMEOUT: {
    status: "408 Request Timeout",
    sentence: "The request did not arrive in time.",
  },
};

/** Invalid HTTP never reaches the application, and is refused in the same form. */
function onClientError(error: NodeJS.ErrnoException, socket: Duplex): void {
  if (!socket.writable || error.code === "ECONNRESET") return void socket.destroy();
  const { status, sentence } = parserErrors[error.code ?? ""] ?? {
    status: "400 Bad Request",
    sentence: "This is not a valid HTTP request.",
  };
  writeRefusal(socket, status, new CodedError("BAD_USER_INPUT", sentence));
}

const tooManyRecords = () =>
  new CodedError(
    "BAD_USER_INPUT",
    `The request arrived in too many small TLS records; send at least ${LEAST_RECORD} bytes in each.`,
  );

/** Connections that have become WebSockets. */
const upgraded = new WeakSet<Duplex>();

function refuseRecords(socket: Socket): void {
  if (!upgraded.has(socket)) writeRefusal(socket, "400 Bad Request", tooManyRecords());
  // Not after a moment: meanwhile, further records would be decrypted.
  socket.destroy();
}

/**
 * PERF: at the end of a connection, Node creates an error for each of its requests without a response; with stack traces,
 * which nobody reads, the twenty of a connection take two milliseconds.
 */
function endWithoutTraces(socket: Socket): void {
  let limit = Error.stackTraceLimit;
  socket.prependListener("close", () => {
    limit = Error.stackTraceLimit;
    Error.stackTraceLimit = 0;
  });
  socket.on("close", () => (Error.stackTraceLimit = limit));
}

/** @param socket of which Node's HTTP server has just begun to read */
function slice(socket: Socket): void {
  endWithoutTraces(socket);
  sliceInput(socket, refuseRecords);
  // Its parser would read the connection past `push`; it does not where somebody else listens.
  socket.on("data", () => {});
}

/**
 * Hands a connection to its server, which costs one to two milliseconds for the handshake: one per iteration of the
 * event loop, round-robin by network. Of a hundred simultaneous connections, at most one delays other requests and
 * new connections at a time.
 */
async function begin(socket: Socket, server: EventEmitter): Promise<void> {
  const network = networkOf(socket.remoteAddress);
  const release = await handshakes.acquire({ group: network, key: network });
  setImmediate(release);
  if (!socket.destroyed) server.emit("connection", socket);
}

/**
 * Serves the application over HTTPS on one port. Plain HTTP on the same port reaches the application too, which
 * refuses it with a clear message, or accepts it from a trusted proxy: the first byte of a connection selects the TLS
 * or the plain server.
 */
export async function listen(app: RequestListener, options: ListenOptions): Promise<Listening> {
  const { headersWithin = HEADERS_MS, limits = connectionLimits(), isProxy = () => false } = options;
  let isDraining = false;
  const turned = inTurns(app, isProxy);
  const drained: RequestListener = (request, response) => {
    if (isDraining) response.setHeader("Connection", "close");
    turned(request, response);
  };
  const paced = keepPace(drained, options.pace ?? defaultPace);
  const limited = limitPipelined(paced.app);
  const webSocketServer = webSockets(app, undefined, isProxy);
  const times = { ...timeouts(headersWithin), shouldUpgradeCallback: asksForWebSocket };
  const secure = createHttpsServer(
    {
      cert: options.cert,
      key: options.key,
      minVersion: "TLSv1.2",
      handshakeTimeout: headersWithin,
      ...(options.ticketKeys && { ticketKeys: options.ticketKeys }),
      ...times,
    },
    limited,
  );
  const plain = createHttpServer(times, limited);
  const addresses = countByAddress(limits.ofAddress, isProxy);
  const sockets = new Set<Socket>();
  const silent = new Set<Socket>();
  // Behind Node's own listeners of these events.
  secure.on("secureConnection", slice);
  plain.on("connection", slice);
  for (const server of [secure, plain]) {
    server.on("clientError", onClientError);
    server.on("upgrade", (request, socket, head) => {
      upgraded.add(socket);
      webSocketServer.upgrade(request, socket, head);
    });
    // Neither server listens itself, and this event starts the timers of the two timeouts above.
    server.emit("listening");
  }
  secure.on("tlsClientError", (_error, socket) => socket.destroy());

  const closeIdle = () => {
    secure.closeIdleConnections();
    plain.closeIdleConnections();
  };

  const front = createNetServer({ noDelay: true }, (socket) => {
    const leave = addresses.take(socket.remoteAddress);
    if (!leave) return void socket.destroy();
    socket.once("close", leave);
    sockets.add(socket);
    silent.add(socket);
    socket.once("close", () => {
      sockets.delete(socket);
      silent.delete(socket);
    });
    const cut = () => socket.destroy();
    socket.on("error", cut);
    socket.setTimeout(FIRST_BYTE_MS, cut);
    socket.once("readable", () => {
      const first: Buffer | null = socket.read(1);
      silent.delete(socket);
      if (!first) return cut();
      socket.setTimeout(0);
      socket.off("timeout", cut);
      socket.unshift(first);
      begin(socket, first[0] === TLS_HANDSHAKE ? secure : plain).catch(cut);
    });
  });
  front.maxConnections = limits.total;
  // A connection refused because of the limit closes idle keep-alive connections, so that the next attempt succeeds.
  front.on("drop", closeIdle);
  await new Promise<void>((resolve, reject) => {
    front.once("error", (error) => {
      paced.stop();
      reject(error);
    });
    front.listen({ port: options.port, host: options.host, backlog: BACKLOG }, resolve);
  });

  return {
    port: (front.address() as AddressInfo).port,
    drain: () => void (isDraining = true),
    renew: (cert, key) => secure.setSecureContext({ cert, key }),
    async close(graceMs = 10_000) {
      isDraining = true;
      const closed = new Promise((resolve) => front.close(resolve));
      const cut = setTimeout(() => sockets.forEach((socket) => socket.destroy()), graceMs);
      for (const socket of silent) socket.destroy();
      // A keep-alive connection becomes idle some time after its last response, without an event.
      const closing = setInterval(closeIdle, 50);
      secure.close();
      plain.close();
      await webSocketServer.close();
      await closed;
      clearTimeout(cut);
      clearInterval(closing);
      paced.stop();
    },
  };
}
